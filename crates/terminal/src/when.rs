//! Times in UTC and durations such as `24h`, as people read and write them.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};

/// Formats a time as `2026-11-22T09:30:00Z`.
pub fn at(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Formats a time, `-` for none.
pub fn at_or_none(time: Option<DateTime<Utc>>) -> String {
    time.map_or_else(|| "-".to_owned(), at)
}

/// Parses a time with an offset, such as `2026-12-01T00:00:00+03:00`.
///
/// # Errors
/// If the text is not such a time.
pub fn moment(text: &str) -> Result<DateTime<Utc>, String> {
    DateTime::parse_from_rfc3339(text)
        .map(|time| time.with_timezone(&Utc))
        .map_err(|_| "expected a time with its offset, like 2026-12-01T00:00:00+03:00".to_owned())
}

/// Parses a duration, such as `24h` or `7days`. A bare 0 needs no unit.
///
/// # Errors
/// If the text is not a duration.
pub fn span(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; expected a duration with its unit, like 24h or 7days"))
}
