//! Answers as files: `snapshots/<operation id>/<case>.snap`, and `snapshots/every_operation/<case>.snap` for the answers of all
//! operations to the same faulty request.
//!
//! A snapshot's header has `info` with `operation` (or `operations`), `status` and, of an error, `code`, for the coverage check.
//! A value that differs from run to run is replaced by its name in brackets after its format was checked.

use std::panic::Location;

use chrono::{DateTime, TimeDelta, Utc};
use regex::{Captures, Regex};
use serde_json::{Map, Value};

use crate::answer::Answer;
use crate::contract::is_like;
use crate::coverage::{EVERY_OPERATION, Info, NO_OPERATION};
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

impl Answer {
    /// Compares with the snapshot of this case, whose name is a sentence. An answer to no operation belongs to `gateway`.
    #[track_caller]
    pub fn snapshot(&self, case: &str) {
        let folder = self.operation.as_deref().unwrap_or(NO_OPERATION);
        let info = Info {
            operation: Some(folder.to_owned()),
            operations: Vec::new(),
            status: self.status.as_u16(),
            code: self.code(),
        };
        let shown = format!("{}\n{}", self.shown_request(), self.shown(Left::Shown));
        compare(folder, case, &info, &shown);
    }
}

/// Compares what several operations answered with the one snapshot of this case, whose name is a sentence.
///
/// Answers that are the same stand there once, below all the requests that got them. How many requests the key has left is
/// not shown: each operation's turn would be in it.
///
/// # Panics
/// Unless each answer has this status and code.
#[track_caller]
pub fn of_all(case: &str, status: u16, code: &str, answers: &[Answer]) {
    let mut shown: Vec<(String, Vec<String>)> = Vec::new();
    let mut operations = Vec::new();
    for answer in answers {
        answer.assert_refused(status, code);
        operations.push(answer.operation.clone().expect("the answer of an operation"));
        let request = format!("{} {}", answer.method, answer.target);
        let text = answer.shown(Left::Hidden);
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

/// Compares with the snapshot of this case what was said to several requests for one operation, each with what was wrong
/// with it in a few words.
///
/// # Panics
/// Unless each answer has this status and code.
#[track_caller]
pub fn of_messages(case: &str, status: u16, code: &str, answers: &[(String, Answer)]) {
    let mut shown = Vec::new();
    for (sent, answer) in answers {
        answer.assert_refused(status, code);
        let error = answer.redacted("", answer.json()["error"].clone());
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
    let operation = answers[0].1.operation.clone();
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
    assert!(is_like(case, "[a-z0-9_]+"), "{case:?} is no name of a file");
    let file = format!("{folder}/{case}.snap");
    snapshot_log::record(&file, Location::caller()).unwrap();
    settings.bind(|| insta::assert_snapshot!(case, shown));
    // The header is what coverage counts by, and insta does not compare it.
    let told = coverage::info(&coverage::folder().join(&file));
    assert_eq!(told, *info, "{file}: its header says something else");
}

/// Whether a snapshot shows how many requests a key has left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Shown,
    Hidden,
}

impl Answer {
    /// The request as a snapshot shows it.
    fn shown_request(&self) -> String {
        let target = match self.target.starts_with("/inspector/") {
            true => without_the_new(&self.target),
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
            true => without_the_new(&pretty(json)),
            false => pretty(json),
        }
    }

    /// The answer as a snapshot shows it.
    #[track_caller]
    fn shown(&self, left: Left) -> String {
        let mut lines = vec![String::new(), self.status.to_string()];
        for name in SHOWN_HEADERS {
            if let Some(value) = self.header(name) {
                lines.push(format!("{name}: {}", shown_header(name, value, left)));
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

    /// A value with what differs from run to run replaced; `name` is its member's name.
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
        let shape = |pattern: &str, shown: &str| {
            assert!(is_like(text, pattern), "{name} is not of the shape of {shown}: {text}");
            shown.to_owned()
        };
        match name {
            "request_id" => shape(UUID, "[uuid]"),
            "measurement_id" => shape(UUID_V7, "[uuid v7]"),
            "server_time" | "expires_at" => shape(TIME, "[time]"),
            "next_cursor" => shape("[A-Za-z0-9_-]{16,1024}", "[cursor]"),
            "url" | "thumb_url" => {
                shape(
                    &format!(
                        r"{}/files/[a-z0-9/-]+\.[a-z]+\?expires={UNIX_TIME}&signature=[A-Za-z0-9_-]{{43,64}}",
                        self.base_url
                    ),
                    "",
                );
                let (file, _) = text.split_once('?').unwrap();
                without_the_new(&file.replace(&self.base_url, "[base]")) + "?expires=[unix time]&signature=[signature]"
            }
            "csrf_token" => shape("[A-Za-z0-9_-]{43}", "[csrf token]"),
            "public_slug" => shape("[a-z2-9]{12}", "[slug]"),
            "message" => without_the_present(&text.replace(&self.base_url, "[base]")),
            // What inspectors see is of today.
            _ if self.target.starts_with("/inspector/") => without_the_new(text),
            _ => text.replace(&self.base_url, "[base]"),
        }
    }
}

/// What is of today, or of the day before: the fixture data has a draft that is older than a day.
const RECENT: TimeDelta = TimeDelta::days(2);

/// Times of today and ids that were made today replaced, and numbers of this year.
fn without_the_new(text: &str) -> String {
    let replaced = Regex::new(UUID_V7).unwrap().replace_all(text, |found: &Captures<'_>| {
        let id: uuid::Uuid = found[0].parse().unwrap();
        let made = id
            .get_timestamp()
            .and_then(|made| DateTime::from_timestamp(made.to_unix().0.cast_signed(), 0));
        match made.is_some_and(|made| (made - Utc::now()).abs() < RECENT) {
            true => "[uuid v7]".to_owned(),
            false => found[0].to_owned(),
        }
    });
    let of_this_year = Regex::new(&format!(r"^([A-Z0-9-]+)-{}-(\d{{6}})$", Utc::now().format("%Y"))).unwrap();
    let replaced = of_this_year.replace(&replaced, "$1-[year]-$2");
    without_the_present(&replaced)
}

/// Times of today replaced; those of an example stay.
fn without_the_present(text: &str) -> String {
    let now = Utc::now();
    let is_near = |time: Option<DateTime<Utc>>| time.is_some_and(|time| (time - now).abs() < RECENT);
    let replaced = Regex::new(TIME).unwrap().replace_all(text, |found: &Captures<'_>| {
        if is_near(found[0].parse().ok()) {
            "[time]".to_owned()
        } else {
            found[0].to_owned()
        }
    });
    let unix_time = Regex::new(&format!(r"\b{UNIX_TIME}\b")).unwrap();
    let seconds = |text: &str| DateTime::from_timestamp(text.parse().ok()?, 0);
    unix_time
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
fn shown_header(name: &str, value: &str, left: Left) -> String {
    let shape = |pattern: &str| assert!(is_like(value, pattern), "{name}: {value}");
    match name {
        "x-request-id" => {
            shape(UUID);
            "[uuid]".to_owned()
        }
        // Links and keys of objects are in what it names.
        "etag" => {
            shape("\"[A-Za-z0-9_-]{22}\"");
            "[etag]".to_owned()
        }
        "set-cookie" => {
            shape(
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
            shape("[1-8][0-9]{2}|900");
            "[seconds of a quarter of an hour]".to_owned()
        }
        "retry-after" => {
            shape("[1-9]|[1-5][0-9]|60");
            "[seconds]".to_owned()
        }
        "ratelimit" => {
            shape("\"default\";r=[0-9]+;t=([1-9]|[1-5][0-9]|60)");
            match left {
                Left::Hidden => "\"default\";r=[left];t=[seconds]".to_owned(),
                Left::Shown => format!("{}=[seconds]", value.rsplit_once('=').unwrap().0),
            }
        }
        _ => value.to_owned(),
    }
}

/// With members in alphabetical order, whatever order JSON objects are kept in.
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
