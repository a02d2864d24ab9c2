//! Responses as files: `snapshots/<operation id>/<case>.snap`, and `snapshots/every_operation/<case>.snap` for the responses of all
//! operations to the same invalid request.
//!
//! A snapshot's header has `info` with `operation` (or `operations`), `status` and, of an error, `code`, for the coverage check.
//! A value that differs from run to run is replaced by its name in brackets after its format was checked.

use std::panic::Location;
use std::sync::LazyLock;

use chrono::{DateTime, TimeDelta, Utc};
use regex::{Captures, Regex};
use serde_json::{Map, Value};

use crate::contract::is_like;
use crate::coverage::{EVERY_OPERATION, Info, NO_OPERATION};
use crate::response::TestResponse;
use crate::{coverage, snapshot_log};

/// Headers that the document declares.
const SHOWN_HEADERS: &[&str] = &[
    "allow",
    "content-disposition",
    "content-type",
    "etag",
    "ratelimit",
    "ratelimit-policy",
    "retry-after",
    "set-cookie",
    "x-idempotency-payload-mismatch",
    "x-request-id",
];

const UUID: &str = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
const UUID_V7: &str = "[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
const TIME: &str = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z";
const UNIX_TIME: &str = r"\d{10}";

impl TestResponse {
    /// Compares with the snapshot of this case, whose name is a sentence. Responses without an operation belong to `gateway`.
    #[track_caller]
    pub fn snapshot(&self, case: &str) {
        let folder = self.operation.as_deref().unwrap_or(NO_OPERATION);
        let info = Info {
            operation: Some(folder.to_owned()),
            operations: Vec::new(),
            status: self.status.as_u16(),
            code: self.code(),
        };
        let shown = format!("{}\n{}", self.shown_request(), self.shown(Remaining::Shown));
        compare(folder, case, &info, &shown);
    }
}

/// Compares the responses of several operations with the one snapshot of this case, whose name is a sentence.
///
/// Equal responses are shown once, below all of their requests. The number of remaining requests is not shown, because it
/// depends on the order of the operations.
///
/// # Panics
/// Unless each response has this status and code.
#[track_caller]
pub fn of_all(case: &str, status: u16, code: &str, responses: &[TestResponse]) {
    let mut shown: Vec<(String, Vec<String>)> = Vec::new();
    let mut operations = Vec::new();
    for response in responses {
        response.assert_rejected(status, code);
        operations.push(response.operation.clone().expect("the response of an operation"));
        let request = format!("{} {}", response.method, response.target);
        let text = response.shown(Remaining::Hidden);
        match shown.iter_mut().find(|(other, _)| *other == text) {
            Some((_, requests)) => requests.push(request),
            None => shown.push((text, vec![request])),
        }
    }
    let groups = shown
        .iter()
        .map(|(text, requests)| format!("{}\n{text}", requests.join("\n")));
    let info = Info {
        operation: None,
        operations,
        status,
        code: Some(code.to_owned()),
    };
    compare(EVERY_OPERATION, case, &info, &groups.collect::<Vec<_>>().join("\n\n"));
}

/// Compares the messages of errors of one operation with the snapshot of this case. Each comes with a short description of its
/// request.
///
/// # Panics
/// Unless each response has this status and code.
#[track_caller]
pub fn of_messages(case: &str, status: u16, code: &str, responses: &[(String, TestResponse)]) {
    let mut shown = Vec::new();
    for (sent, response) in responses {
        response.assert_rejected(status, code);
        let error = response.redacted("", response.json()["error"].clone());
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let mut lines = vec![format!("{sent}\n→ {}", text(&error["message"]).replace('\n', "\n  "))];
        let details = error["details"].as_array();
        assert_eq!(
            details.map(|details| &details[0]["field"]),
            error.get("field"),
            "the field is the first one of the details: {error}"
        );
        for detail in details.into_iter().flatten() {
            lines.push(format!("  {:?} {}", text(&detail["field"]), text(&detail["message"])));
        }
        shown.push(lines.join("\n"));
    }
    let operation = responses[0].1.operation.clone();
    let folder = operation.clone().unwrap_or_else(|| NO_OPERATION.to_owned());
    let info = Info {
        operation: Some(folder.clone()),
        operations: Vec::new(),
        status,
        code: Some(code.to_owned()),
    };
    compare(&folder, case, &info, &shown.join("\n\n"));
}

#[track_caller]
fn compare(folder: &str, case: &str, info: &Info, shown: &str) {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(coverage::folder().join(folder));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_description(case.replace('_', " "));
    settings.set_info(info);
    assert!(is_like(case, "[a-z0-9_]+"), "{case:?} must contain only a-z, 0-9 and _");
    let file = format!("{folder}/{case}.snap");
    snapshot_log::record(&file, Location::caller()).unwrap();
    settings.bind(|| insta::assert_snapshot!(case, shown));
    // Coverage is computed from the header, which insta does not compare.
    let actual = coverage::info(&coverage::folder().join(&file));
    assert_eq!(actual, *info, "{file}: the header is wrong; record the snapshot again");
}

/// Whether a snapshot shows the number of remaining requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Remaining {
    Shown,
    Hidden,
}

impl TestResponse {
    /// Returns the request as a snapshot shows it.
    fn shown_request(&self) -> String {
        let target = match self.target.starts_with("/inspector/") {
            true => without_recent_values(&self.target),
            false => self.target.clone(),
        };
        let mut shown = format!("{} {target}", self.method);
        if !self.sent.is_empty() {
            shown.push('\n');
            shown += &match serde_json::from_slice::<Value>(&self.sent) {
                Ok(json) if self.sent.len() < 4096 => self.shown_json(&json),
                _ if self.sent.len() < 256 => String::from_utf8_lossy(&self.sent).into_owned(),
                _ => format!("[{} bytes]", self.sent.len()),
            };
        }
        shown
    }

    fn shown_json(&self, json: &Value) -> String {
        match self.target.starts_with("/inspector/") {
            true => without_recent_values(&pretty(json)),
            false => without_recent_times(&pretty(json)),
        }
    }

    /// Returns the response as a snapshot shows it.
    #[track_caller]
    fn shown(&self, remaining: Remaining) -> String {
        let mut lines = vec![String::new(), self.status.to_string()];
        for name in SHOWN_HEADERS {
            if let Some(value) = self.header(name) {
                lines.push(format!("{name}: {}", shown_header(name, value, remaining)));
            }
        }
        if !self.body.is_empty() {
            lines.push(String::new());
            lines.push(if self.header("content-type") == Some("application/json") {
                pretty(&self.redacted("", self.json()))
            } else {
                format!("[{} bytes]", self.body.len())
            });
        }
        lines.join("\n")
    }

    /// Replaces parts of a value that differ from run to run; `name` is the name of its member.
    #[track_caller]
    fn redacted(&self, name: &str, value: Value) -> Value {
        match value {
            Value::Object(members) => members
                .into_iter()
                .map(|(name, value)| (name.clone(), self.redacted(&name, value)))
                .collect::<Map<_, _>>()
                .into(),
            Value::Array(items) => items.into_iter().map(|item| self.redacted(name, item)).collect(),
            Value::String(text) => self.redacted_text(name, &text).into(),
            other => other,
        }
    }

    #[track_caller]
    fn redacted_text(&self, name: &str, text: &str) -> String {
        let format = |pattern: &str, shown: &str| {
            assert!(
                is_like(text, pattern),
                "{name} does not have the format of {shown}: {text}"
            );
            shown.to_owned()
        };
        match name {
            "request_id" => format(UUID, "[uuid]"),
            "measurement_id" => format(UUID_V7, "[uuid v7]"),
            "server_time" | "expires_at" => format(TIME, "[time]"),
            "next_cursor" => format("[A-Za-z0-9_-]{16,1024}", "[cursor]"),
            "url" | "thumb_url" => {
                format(
                    &format!(
                        r"{}/files/[a-z0-9/-]+\.[a-z]+\?expires={UNIX_TIME}&signature=[A-Za-z0-9_-]{{43,64}}",
                        self.base_url
                    ),
                    "",
                );
                let (file, _) = text.split_once('?').unwrap();
                without_recent_values(&file.replace(&self.base_url, "[base]"))
                    + "?expires=[unix time]&signature=[signature]"
            }
            "csrf_token" => format("[A-Za-z0-9_-]{43}", "[csrf token]"),
            "public_slug" => format("[a-z2-9]{12}", "[slug]"),
            "message" => without_recent_times(&text.replace(&self.base_url, "[base]")),
            // Inspectors see reports of today.
            _ if self.target.starts_with("/inspector/") => without_recent_values(text),
            _ => text.replace(&self.base_url, "[base]"),
        }
    }
}

/// Today and the day before. The fixture data has a draft that is older than a day.
const RECENT: TimeDelta = TimeDelta::days(2);

/// Replaces recent times and IDs, and report numbers of this year.
fn without_recent_values(text: &str) -> String {
    static ID: LazyLock<Regex> = LazyLock::new(|| Regex::new(UUID_V7).unwrap());
    static OF_THIS_YEAR: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(&format!(r"^([A-Z0-9-]+)-{}-(\d{{6}})$", Utc::now().format("%Y"))).unwrap());
    let replaced = ID.replace_all(text, |found: &Captures<'_>| {
        let id: uuid::Uuid = found[0].parse().unwrap();
        let created = id
            .get_timestamp()
            .and_then(|created| DateTime::from_timestamp(created.to_unix().0.cast_signed(), 0));
        match created.is_some_and(|created| (created - Utc::now()).abs() < RECENT) {
            true => "[uuid v7]".to_owned(),
            false => found[0].to_owned(),
        }
    });
    let replaced = OF_THIS_YEAR.replace(&replaced, "$1-[year]-$2");
    without_recent_times(&replaced)
}

/// Replaces recent times; those of examples stay.
fn without_recent_times(text: &str) -> String {
    static WRITTEN: LazyLock<Regex> = LazyLock::new(|| Regex::new(TIME).unwrap());
    static IN_SECONDS: LazyLock<Regex> = LazyLock::new(|| Regex::new(&format!(r"\b{UNIX_TIME}\b")).unwrap());
    let now = Utc::now();
    let is_near = |time: Option<DateTime<Utc>>| time.is_some_and(|time| (time - now).abs() < RECENT);
    let replaced = WRITTEN.replace_all(text, |found: &Captures<'_>| {
        if is_near(found[0].parse().ok()) {
            "[time]".to_owned()
        } else {
            found[0].to_owned()
        }
    });
    let seconds = |text: &str| DateTime::from_timestamp(text.parse().ok()?, 0);
    IN_SECONDS
        .replace_all(&replaced, |found: &Captures<'_>| {
            if is_near(seconds(&found[0])) {
                "[unix time]".to_owned()
            } else {
                found[0].to_owned()
            }
        })
        .into_owned()
}

#[track_caller]
fn shown_header(name: &str, value: &str, remaining: Remaining) -> String {
    let format = |pattern: &str| assert!(is_like(value, pattern), "{name}: {value}");
    match name {
        "x-request-id" => {
            format(UUID);
            "[uuid]".to_owned()
        }
        // It depends on links and keys of objects.
        "etag" => {
            format("\"[A-Za-z0-9_-]{22}\"");
            "[etag]".to_owned()
        }
        "set-cookie" => {
            format(
                "inspector_session=[0-9a-f]{64}; Path=/inspector; HttpOnly; SameSite=Strict; Max-Age=[0-9]+(; Secure)?",
            );
            let (_, attributes) = value.split_once(';').unwrap();
            let max_age = Regex::new("Max-Age=[0-9]+").unwrap();
            format!(
                "inspector_session=[cookie];{}",
                max_age.replace(attributes, "Max-Age=[seconds]")
            )
        }
        "retry-after" if value.len() > 2 => {
            format("[1-8][0-9]{2}|900");
            "[seconds of a quarter of an hour]".to_owned()
        }
        "retry-after" => {
            format("[1-9]|[1-5][0-9]|60");
            "[seconds]".to_owned()
        }
        "ratelimit" => {
            format("\"default\";r=[0-9]+;t=([1-9]|[1-5][0-9]|60)");
            match remaining {
                Remaining::Hidden => "\"default\";r=[left];t=[seconds]".to_owned(),
                Remaining::Shown => format!("{}=[seconds]", value.rsplit_once('=').unwrap().0),
            }
        }
        _ => value.to_owned(),
    }
}

/// Formats JSON with members in alphabetical order, whatever their order in memory.
fn pretty(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_by_key(|(name, _)| name.as_str());
                members
                    .into_iter()
                    .map(|(name, value)| (name.clone(), sorted(value)))
                    .collect::<Map<_, _>>()
                    .into()
            }
            Value::Array(items) => items.iter().map(sorted).collect(),
            other => other.clone(),
        }
    }
    format!("{:#}", sorted(value))
}
