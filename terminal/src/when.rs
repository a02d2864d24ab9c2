//! Times as people read and write them: UTC, and spans such as `24h`.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};

/// `2026-11-22T09:30:00Z`.
pub fn at(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The same, `-` for none.
pub fn at_or_none(time: Option<DateTime<Utc>>) -> String {
    time.map_or_else(|| "-".to_owned(), at)
}

/// Reads a moment with an offset, such as `2026-12-01T00:00:00+03:00`.
///
/// # Errors
/// It is something else.
pub fn moment(text: &str) -> Result<DateTime<Utc>, String> {
    DateTime::parse_from_rfc3339(text)
        .map(|time| time.with_timezone(&Utc))
        .map_err(|_| "expected a time with its offset, like 2026-12-01T00:00:00+03:00".to_owned())
}

/// Reads a span, such as `24h` or `7days`. A bare 0 needs no unit.
///
/// # Errors
/// It is something else.
pub fn span(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; expected a span with its unit, like 24h or 7days"))
}
