//! Data that no response may contain.

use partner_api::gateway::API_ROOT;
use partner_api_inspector::gateway::API_ROOT as INSPECTORS_ROOT;

use crate::fixture;
use crate::fixture::inspectors::INSPECTORS;
use crate::response::TestResponse;

/// Texts that reveal internals of the service.
const INTERNALS: &[&str] = &[
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

/// Asserts that a response contains no internals, no secret, and no personal data that its organization hides.
#[track_caller]
pub(crate) fn check(response: &TestResponse, at: &str) {
    let Ok(text) = std::str::from_utf8(&response.body) else {
        return;
    };
    let is_inspectors = response.target.starts_with(INSPECTORS_ROOT);
    let is_api = response.target.starts_with(API_ROOT) || is_inspectors;
    if !is_api || response.header("content-type") != Some("application/json") {
        return;
    }
    let tokens = INSPECTORS.iter().map(|inspector| inspector.token);
    let keys = fixture::KEYS.iter().map(|key| key.secret);
    for secret in keys.chain(tokens).chain([fixture::MASTER_KEY]) {
        assert!(!text.contains(secret), "{at}: a secret is in {text}");
    }
    // A response may repeat what the caller sent.
    let sent = String::from_utf8_lossy(&response.sent).into_owned() + &response.target;
    for mark in INTERNALS.iter().filter(|mark| !sent.contains(**mark)) {
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
        assert!(!text.contains(datum), "{at}: hidden data {datum:?} is in {text}");
    }
}
