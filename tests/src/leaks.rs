//! Leaks: what no answer may contain.

use crate::answer::Answer;
use crate::contract::{self, API_ROOT};
use crate::{fixture, inspectors};

/// Signs of the internals of the service.
const INSIDE: &[&str] = &[
    "SELECT ",
    "INSERT ",
    "UPDATE ",
    " FROM ",
    " WHERE ",
    "tokio",
    "postgres",
    "Postgres",
    "deadpool",
    "panicked",
    "unwrap",
    ".rs:",
    "/src/",
    "/tmp/",
    "/home/",
    "/root/",
    "/usr/",
    "relation \"",
    "syntax error",
    "column \"",
];

/// Checks that an answer has no internals, no secret, and no personal data that its organization hides.
#[track_caller]
pub(crate) fn check(answer: &Answer, at: &str) {
    let Ok(text) = std::str::from_utf8(&answer.body) else {
        return;
    };
    let is_inspectors = contract::is_inspectors(answer.target.split('?').next().unwrap_or_default());
    let is_ours = answer.target.starts_with(API_ROOT) || is_inspectors;
    if !is_ours || answer.header("content-type") != Some("application/json") {
        return;
    }
    let tokens = inspectors::INSPECTORS.iter().map(|inspector| inspector.token);
    let keys = fixture::KEYS.iter().map(|key| key.secret);
    for secret in keys.chain(tokens).chain([fixture::MASTER_KEY]) {
        assert!(!text.contains(secret), "{at}: a secret is in {text}");
    }
    // An answer may repeat what the caller sent.
    let sent = String::from_utf8_lossy(&answer.sent).into_owned() + &answer.target;
    for mark in INSIDE.iter().filter(|mark| !sent.contains(**mark)) {
        assert!(!text.contains(mark), "{at}: {mark:?} is in {text}");
    }
    // Inspectors see what they and their colleagues have written.
    if is_inspectors {
        return;
    }
    for datum in fixture::NEVER_SHOWN
        .iter()
        .filter(|datum| !sent.replace(' ', "").contains(&datum.replace(' ', "")))
    {
        assert!(!text.contains(datum), "{at}: {datum:?} is hidden, and in {text}");
    }
}
