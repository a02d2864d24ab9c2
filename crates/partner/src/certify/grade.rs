//! The grading of a program by its requests. The file is long because every check is beside its tests.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use partner_api_signing::{HEADER_NONCE, HEADER_TIMESTAMP};
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::Value;

use super::script::{Step, Task};

/// The path of measurements.
const MEASUREMENTS: &str = "/api/v1/partner/test-line/measurements";
/// The time that may pass between signing and sending a request, in seconds.
const SENDING_TOLERANCE: u64 = 5;
/// The part of a `Retry-After` that a program may lack because of the resolution of its timer.
const TIMER_TOLERANCE: Duration = Duration::from_millis(50);
/// The shortest pause before a retry if the response names none.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

/// A request of the program.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    /// The time of its arrival, since the start of the session.
    pub(super) arrived: Duration,
    pub(super) method: Method,
    path: String,
    query: String,
    nonce: String,
    timestamp: Option<i64>,
    pub(super) body: Bytes,
    /// The response that the script requested.
    pub(super) preference: Option<String>,
    /// `None` until the response is sent, or if the program did not wait for it.
    pub(super) response: Option<Received>,
}

/// The response to an attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct Received {
    /// The time of the response, since the start of the session.
    pub(super) at: Duration,
    /// `None` if the connection was closed instead.
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<u64>,
    pub(super) request_id: Option<String>,
    pub(super) body: Value,
}

/// The program's report about a step: its exit code and its output, or the text that the user typed.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    /// `None` if the program was not started by a command.
    pub(super) exit: Option<i32>,
    pub(super) text: String,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    pub(super) check: &'static str,
    pub(super) passed: bool,
    pub(super) found: String,
}

impl Check {
    fn new(check: &'static str, passed: bool, found: impl Into<String>) -> Self {
        Self {
            check,
            passed,
            found: found.into(),
        }
    }
}

impl Attempt {
    pub(super) fn of(request: &Request<Bytes>, arrived: Duration) -> Self {
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
        Self {
            arrived,
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
            nonce: header(HEADER_NONCE).unwrap_or_default().to_owned(),
            timestamp: header(HEADER_TIMESTAMP).and_then(|text| text.parse().ok()),
            body: request.body().clone(),
            preference: None,
            response: None,
        }
    }

    /// Returns whether the request performs the task of a step.
    pub(super) fn performs(&self, task: Task) -> bool {
        match task {
            Task::Measure => self.method == Method::POST && self.path == MEASUREMENTS,
            Task::List => self.method == Method::GET && !self.query.is_empty(),
        }
    }

    pub(super) fn external_id(&self) -> Option<String> {
        let body: Value = serde_json::from_slice(&self.body).ok()?;
        body["external_id"].as_str().map(str::to_owned)
    }

    pub(super) fn status(&self) -> Option<u16> {
        self.response.as_ref()?.status
    }

    /// Returns whether the response is one after which a program has to send the request again.
    pub(super) fn is_transient(&self) -> bool {
        matches!(self.status(), None | Some(408 | 429 | 500..))
    }

    /// Returns whether the script requested the status of the response.
    fn is_requested(&self) -> bool {
        let status = self.status().map(|status| format!("code={status}"));
        let preference = self.preference.as_deref().unwrap_or_default();
        status.is_some_and(|status| preference.contains(&status))
    }

    /// Returns the code of the error in the response.
    fn code(&self) -> Option<&str> {
        self.response.as_ref()?.body["error"]["code"].as_str()
    }

    pub(super) fn skipped(&self) -> Vec<&str> {
        let points = self
            .response
            .as_ref()
            .map(|response| &response.body["data"]["skipped_points"]);
        let points = points.and_then(Value::as_array).into_iter().flatten();
        points.filter_map(|point| point["code"].as_str()).collect()
    }

    pub(super) fn is_mismatch(&self) -> bool {
        self.response
            .as_ref()
            .is_some_and(|response| response.body["data"]["payload_mismatch"] == true)
    }

    /// Describes the response, such as `401 invalid_key`.
    pub(super) fn outcome(&self) -> String {
        match (&self.response, self.status()) {
            (None, _) => "no response (the program did not wait for it)".to_owned(),
            (_, None) => "connection closed".to_owned(),
            (_, Some(status)) => match self.code() {
                Some(code) => format!("{status} {code}"),
                None => status.to_string(),
            },
        }
    }
}

/// Grades one step. `earlier` contains the nonces of earlier steps, and gets those of this one.
pub(super) fn grade(
    step: &Step,
    attempts: &[Attempt],
    evidence: &Evidence,
    earlier: &mut HashSet<String>,
) -> Vec<Check> {
    let Some(last) = attempts.last() else {
        return vec![Check::new("sends the request", false, "no request arrived in time")];
    };
    let mut checks = vec![signature(attempts), nonces(attempts, earlier)];
    if attempts.len() > 1 {
        checks.push(timestamps(attempts));
    }
    match step.task {
        Task::Measure => checks.extend(package(step, attempts)),
        Task::List => checks.extend(query(&last.decoded_query(), &last.query)),
    }
    checks.extend(waits(attempts));
    checks.push(end(attempts, last));
    if !last.skipped().is_empty() {
        checks.push(skipped(last, evidence));
    } else if step.id_is_taken {
        checks.push(mismatch(last, evidence));
    } else if let (Some(200..300), Some(code)) = (last.status(), evidence.exit) {
        // Otherwise an exit code other than 0 would not show that the program noticed a problem.
        let found = format!("its exit code is {code}");
        checks.push(Check::new("exits with 0 after a success", code == 0, found));
    }
    checks
}

fn signature(attempts: &[Attempt]) -> Check {
    // A repeated nonce has a check of its own.
    let wrong = attempts
        .iter()
        .filter(|attempt| attempt.status() == Some(401) && !attempt.is_requested())
        .find(|attempt| attempt.code() != Some("replay_detected"));
    let found = wrong.map_or_else(|| "all signatures are valid".to_owned(), Attempt::outcome);
    Check::new("signs each request", wrong.is_none(), found)
}

fn nonces(attempts: &[Attempt], earlier: &mut HashSet<String>) -> Check {
    let repeated = attempts
        .iter()
        .filter(|attempt| !earlier.insert(attempt.nonce.clone()))
        .count();
    let found = format!("{} requests, {repeated} repeated nonces", attempts.len());
    Check::new("uses a new nonce for each request", repeated == 0, found)
}

fn timestamps(attempts: &[Attempt]) -> Check {
    let (first, rest) = (&attempts[0], &attempts[1..]);
    let stale = rest.iter().find(|attempt| {
        let (Some(begin), Some(end)) = (first.timestamp, attempt.timestamp) else {
            return true;
        };
        let passed = attempt.arrived.saturating_sub(first.arrived).as_secs();
        let signed = u64::try_from(end.saturating_sub(begin)).unwrap_or_default();
        (signed == 0 && passed >= 2) || signed.abs_diff(passed) > SENDING_TOLERANCE
    });
    let found = match stale {
        None => "each timestamp is the time of its request".to_owned(),
        Some(attempt) => format!(
            "a request sent {:.1} s after the first has the timestamp {}, the first {}",
            attempt.arrived.saturating_sub(first.arrived).as_secs_f64(),
            attempt.timestamp.unwrap_or_default(),
            first.timestamp.unwrap_or_default(),
        ),
    };
    Check::new("uses a new timestamp for each request", stale.is_none(), found)
}

/// Checks the packages of a measurement and its retries.
fn package(step: &Step, attempts: &[Attempt]) -> Vec<Check> {
    let ids: Vec<_> = attempts.iter().map(Attempt::external_id).collect();
    let first = ids.first().cloned().flatten();
    let same = first.is_some() && ids.iter().all(|id| *id == first);
    let found = match (&first, same) {
        (None, _) => "the package has no external_id".to_owned(),
        (Some(id), true) => id.clone(),
        (Some(_), false) => {
            let ids: Vec<_> = ids.iter().map(|id| id.as_deref().unwrap_or("none")).collect();
            format!("the external_ids are {}", ids.join(", "))
        }
    };
    let mut checks = vec![Check::new("keeps the external_id at each retry", same, found)];
    if same && attempts.len() > 1 {
        let unchanged = attempts.iter().all(|attempt| attempt.body == attempts[0].body);
        let found = if unchanged {
            "the bytes are equal"
        } else {
            "the bytes differ"
        };
        checks.push(Check::new("sends the same package at each retry", unchanged, found));
    }
    if step.responses.is_empty() && !step.id_is_taken {
        let body: Value = serde_json::from_slice(&attempts[0].body).unwrap_or_default();
        let values: Vec<_> = body["measurements"].as_object().into_iter().flatten().collect();
        let is_decimal =
            values.iter().any(|(_, value)| value.is_f64()) && values.iter().all(|(_, value)| value.is_number());
        let shown: Vec<_> = values.iter().map(|(code, value)| format!("{code} {value}")).collect();
        checks.push(Check::new(
            "writes values with a decimal point",
            is_decimal,
            shown.join(", "),
        ));
    }
    checks
}

/// Checks the query of a list.
fn query(decoded: &str, sent: &str) -> [Check; 2] {
    let has_plus = sent.to_ascii_uppercase().contains("%2B") && !sent.contains('+');
    let is_turkish = sent.is_ascii() && decoded.chars().any(|letter| "çğıöşüÇĞİÖŞÜ".contains(letter));
    [
        Check::new("writes + in a query as %2B", has_plus, sent),
        Check::new("writes Turkish letters in a query as UTF-8", is_turkish, sent),
    ]
}

/// Checks the time between each response and the retry.
fn waits(attempts: &[Attempt]) -> Vec<Check> {
    let pairs = attempts.iter().zip(attempts.iter().skip(1));
    let timed = pairs.filter_map(|(attempt, next)| {
        let response = attempt.response.as_ref()?;
        let waited = next.arrived.saturating_sub(response.at);
        let Some(wanted) = response.retry_after.map(Duration::from_secs) else {
            let found = format!("waited {:.1} s after: {}", waited.as_secs_f64(), attempt.outcome());
            return attempt
                .is_transient()
                .then(|| Check::new("waits before each retry", waited >= SHORTEST_PAUSE, found));
        };
        let check = match response.status? {
            429 => "waits for Retry-After after 429",
            503 => "waits for Retry-After after 503",
            _ => return None,
        };
        let found = format!("waited {:.1} s of {} s", waited.as_secs_f64(), wanted.as_secs());
        Some(Check::new(check, waited + TIMER_TOLERANCE >= wanted, found))
    });
    timed.collect()
}

/// Checks that the program went on exactly until a final response.
fn end(attempts: &[Attempt], last: &Attempt) -> Check {
    let rejected = attempts
        .iter()
        .position(|attempt| matches!(attempt.status(), Some(401 | 403)) && attempt.is_requested());
    if let Some(rejected) = rejected {
        let further = attempts.len() - rejected - 1;
        return Check::new(
            "sends nothing after its key was rejected",
            further == 0,
            format!("{} requests after {}", further, attempts[rejected].outcome()),
        );
    }
    let outcomes: Vec<_> = attempts.iter().map(Attempt::outcome).collect();
    let check = match attempts.len() > 1 || last.is_transient() {
        true => "sends the request again until it succeeds",
        false => "sends a valid request",
    };
    let passed = matches!(last.status(), Some(200..300));
    Check::new(check, passed, outcomes.join(", then "))
}

fn skipped(last: &Attempt, evidence: &Evidence) -> Check {
    const CHECK: &str = "reports skipped points";
    let codes = last.skipped();
    let body = last.response.as_ref().map(|response| &response.body);
    let is_reported = |code: &&str| match (evidence.exit, body) {
        (Some(0), Some(body)) => reports(&evidence.text, code, body),
        (Some(_), _) => true,
        (None, _) => evidence.text.contains(*code),
    };
    let missing: Vec<_> = codes.iter().copied().filter(|code| !is_reported(code)).collect();
    let found = match (missing.as_slice(), evidence.exit) {
        ([], Some(code)) if code != 0 => format!("its exit code is {code}"),
        ([], _) => format!("it reports {}", codes.join(", ")),
        (missing, None) => format!("it does not report {}", missing.join(", ")),
        (missing, Some(_)) => format!(
            "it does not report {}, or only as a part of the response, and its exit code is 0",
            missing.join(", ")
        ),
    };
    Check::new(CHECK, missing.is_empty(), found)
}

/// Returns whether a line of a program's output names a skipped point. The JSON of the response does not count, however it was
/// formatted or quoted.
fn reports(output: &str, code: &str, response: &Value) -> bool {
    let plain = |text: &str| {
        let kept = text.chars().filter(|c| !c.is_whitespace() && !"\"'\\".contains(*c));
        kept.collect::<String>().to_lowercase()
    };
    let (code, response) = (plain(code), plain(&response.to_string()));
    let member = format!("code:{code}");
    output.lines().map(plain).any(|line| {
        // A whole response, in any order of its members, or a line of a formatted one.
        let is_response = line.contains("measurement_id:") || response.contains(line.trim_end_matches(','));
        line.replace(&member, "").contains(&code) || (line.contains(&member) && !is_response)
    })
}

fn mismatch(last: &Attempt, evidence: &Evidence) -> Check {
    const CHECK: &str = "reports payload_mismatch";
    if !last.is_mismatch() {
        return Check::new(CHECK, false, "the response had no payload_mismatch");
    }
    let external_id = last.external_id().unwrap_or_default();
    let (noticed, found) = match evidence.exit {
        Some(code) => (code != 0, format!("its exit code is {code}")),
        None => {
            let noticed = !external_id.is_empty() && evidence.text.contains(&external_id);
            (noticed, format!("the user entered {:?}", evidence.text))
        }
    };
    Check::new(CHECK, noticed, found)
}

impl Attempt {
    fn decoded_query(&self) -> String {
        percent_decode_str(&self.query).decode_utf8_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn attempt(at: u64, timestamp: i64, nonce: &str, package: &Value) -> Attempt {
        Attempt {
            arrived: Duration::from_secs(at),
            method: Method::POST,
            path: MEASUREMENTS.to_owned(),
            query: String::new(),
            nonce: nonce.to_owned(),
            timestamp: Some(timestamp),
            body: package.to_string().into(),
            preference: None,
            response: None,
        }
    }

    fn answered(mut attempt: Attempt, status: u16, retry_after: Option<u64>, body: Value) -> Attempt {
        attempt.response = Some(Received {
            at: attempt.arrived,
            status: Some(status),
            retry_after,
            request_id: None,
            body,
        });
        attempt
    }

    fn failed(step: &Step, attempts: &[Attempt], evidence: &Evidence) -> Vec<&'static str> {
        let checks = grade(step, attempts, evidence, &mut HashSet::new());
        let failed = checks.into_iter().filter(|check| !check.passed);
        failed.map(|check| check.check).collect()
    }

    #[test]
    fn each_mistake_fails_its_own_check() {
        let step = Step {
            responses: vec!["code=503".to_owned()],
            ..Step::default()
        };
        let package = json!({ "external_id": "A-1", "measurements": { "SLIP_FRONT": 1.5 } });
        let other = json!({ "external_id": "A-2", "measurements": { "SLIP_FRONT": 1.5 } });
        let changed = json!({ "external_id": "A-1", "measurements": { "SLIP_FRONT": 1.6 } });
        let unavailable = || answered(attempt(0, 1000, "a", &package), 503, Some(3), Value::Null);
        let retried = |at, timestamp, nonce, package| {
            let recorded = answered(attempt(at, timestamp, nonce, package), 201, None, json!({}));
            failed(&step, &[unavailable(), recorded], &Evidence::default())
        };
        assert_eq!(retried(3, 1003, "b", &package), [""; 0]);
        assert_eq!(retried(3, 1003, "a", &package), ["uses a new nonce for each request"]);
        assert_eq!(
            retried(3, 1000, "b", &package),
            ["uses a new timestamp for each request"]
        );
        assert_eq!(retried(2, 1002, "b", &package), ["waits for Retry-After after 503"]);
        let after_drop = |at: u64| {
            let mut dropped = answered(attempt(0, 1000, "a", &package), 503, None, Value::Null);
            dropped.response = Some(Received::default());
            let mut recorded = answered(attempt(0, 1000, "b", &package), 201, None, json!({}));
            recorded.arrived = Duration::from_millis(at);
            failed(&step, &[dropped, recorded], &Evidence::default())
        };
        assert_eq!(after_drop(100), [""; 0]);
        assert_eq!(after_drop(99), ["waits before each retry"]);
        assert_eq!(retried(3, 1003, "b", &other), ["keeps the external_id at each retry"]);
        assert_eq!(
            retried(3, 1003, "b", &changed),
            ["sends the same package at each retry"]
        );
        assert_eq!(
            failed(&step, &[unavailable()], &Evidence::default()),
            ["sends the request again until it succeeds"]
        );
        assert_eq!(failed(&step, &[], &Evidence::default()), ["sends the request"]);
    }

    #[test]
    fn values_and_queries_must_have_the_documented_form() {
        let graded = |measurements: Value| {
            let package = json!({ "external_id": "A-1", "measurements": measurements });
            let recorded = answered(attempt(0, 1000, "a", &package), 201, None, json!({}));
            failed(&Step::default(), &[recorded], &Evidence::default())
        };
        assert_eq!(graded(json!({ "SLIP_FRONT": 1.5 })), [""; 0]);
        for wrong in [json!({ "SLIP_FRONT": "1,5" }), json!({ "SLIP_FRONT": 1 }), json!({})] {
            assert_eq!(graded(wrong), ["writes values with a decimal point"]);
        }
        let queries = |sent: &str| {
            let step = Step {
                task: Task::List,
                ..Step::default()
            };
            let mut listed = attempt(0, 1000, "a", &Value::Null);
            listed.query = sent.to_owned();
            failed(&step, &[answered(listed, 200, None, json!({}))], &Evidence::default())
        };
        assert_eq!(queries("from=10:00%2B03:00&n=%C4%B0"), [""; 0]);
        assert_eq!(queries("from=10:00+03:00&n=%C4%B0"), ["writes + in a query as %2B"]);
        // ISO-8859-9, as old programs write it.
        assert_eq!(
            queries("from=10:00%2b03:00&n=%DD"),
            ["writes Turkish letters in a query as UTF-8"]
        );
    }

    #[test]
    fn a_program_must_stop_at_a_rejected_key_and_report_what_was_not_written() {
        let package = json!({ "external_id": "A-1", "measurements": { "SLIP_FRONT": 1.5 } });
        let graded = |status, body: Value, exit, text: &str, count: u64, step: &Step| {
            let attempts: Vec<_> = (0..count)
                .map(|number| {
                    let nonce = number.to_string();
                    let mut attempt = answered(attempt(0, 1000, &nonce, &package), status, None, body.clone());
                    attempt.preference = step.responses.first().cloned();
                    attempt
                })
                .collect();
            let text = text.to_owned();
            failed(step, &attempts, &Evidence { exit, text })
        };
        let revoked = Step {
            responses: vec!["code=401".to_owned()],
            ..Step::default()
        };
        assert_eq!(graded(401, json!({}), Some(1), "", 1, &revoked), [""; 0]);
        assert_eq!(
            graded(401, json!({}), Some(1), "", 2, &revoked),
            ["sends nothing after its key was rejected"]
        );
        let valued = Step {
            responses: vec!["code=201".to_owned()],
            ..Step::default()
        };
        assert_eq!(
            graded(201, json!({}), Some(1), "", 1, &valued),
            ["exits with 0 after a success"]
        );
        let taken = Step {
            id_is_taken: true,
            ..Step::default()
        };
        let mismatch = json!({ "data": { "payload_mismatch": true } });
        for (exit, text, expected) in [
            (Some(1), "", vec![]),
            (Some(0), "A-1", vec!["reports payload_mismatch"]),
            (None, "A-1", vec![]),
            (None, "B-1", vec!["reports payload_mismatch"]),
        ] {
            assert_eq!(graded(200, mismatch.clone(), exit, text, 1, &taken), expected);
        }
        assert_eq!(
            graded(200, json!({}), Some(1), "", 1, &taken),
            ["reports payload_mismatch"]
        );
    }

    #[test]
    fn a_skipped_point_is_reported_by_an_exit_code_or_a_line_that_is_not_the_response() {
        let package = json!({ "external_id": "A-1", "measurements": { "SLIP_REAR": 1.5 } });
        let response = json!({ "data": {
            "measurement_id": "M", "applied_points": ["SLIP_FRONT"],
            "skipped_points": [{ "code": "SLIP_REAR", "reason": "no_status" }],
        } });
        let passes = |exit: Option<i32>, text: &str| {
            let attempts = [answered(attempt(0, 1000, "a", &package), 201, None, response.clone())];
            let text = text.to_owned();
            failed(&Step::default(), &attempts, &Evidence { exit, text }).is_empty()
        };
        let (compact, formatted) = (response.to_string(), format!("{response:#}"));
        for text in [
            "SLIP_REAR",
            "not written: SLIP_REAR (no_status)",
            r#"{"level":"warning","code":"SLIP_REAR","reason":"no_status"}"#,
            "measurement_id: M, skipped: SLIP_REAR",
            &format!("{compact}\nskipped SLIP_REAR"),
        ] {
            assert!(passes(Some(0), text), "{text}");
        }
        for text in [
            "",
            "ok",
            &compact,
            &formatted,
            &format!("INFO response={compact:?}"),
            "[{'code': 'SLIP_REAR', 'reason': 'no_status'}]",
            "{'data': {'skipped_points': [{'reason': 'no_status', 'code': 'SLIP_REAR'}], 'measurement_id': 'M'}}",
            "  skipped_points: [ { code: 'SLIP_REAR', reason: 'no_status' } ]",
            "skipped SLIP_FRONT",
        ] {
            assert!(!passes(Some(0), text), "{text}");
            assert!(passes(Some(1), text), "{text}");
        }
        // The text that the user typed.
        assert!(passes(None, "SLIP_REAR"));
        assert!(!passes(None, "SLIP_FRONT"));
    }
}
