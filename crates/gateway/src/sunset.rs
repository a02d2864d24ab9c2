//! Headers that announce the removal of an operation: `Deprecation` (RFC 9745) with the date of its deprecation, and `Sunset`
//! (RFC 8594) with the date from which it may be removed.

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::Operation;

/// Adds the headers for the dates that the document has: `x-deprecated-since` and `x-sunset` (SVC-11).
pub(super) fn announce(headers: &mut HeaderMap, operation: &Operation) {
    const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
    const SUNSET: HeaderName = HeaderName::from_static("sunset");
    let day = |extension| midnight(operation.extension(extension)?);
    let values = [
        (
            DEPRECATION,
            day("x-deprecated-since").map(|day| format!("@{}", day.timestamp())),
        ),
        (
            SUNSET,
            day("x-sunset").map(|day| day.format("%a, %d %b %Y %H:%M:%S GMT").to_string()),
        ),
    ];
    for (name, value) in values {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
            headers.insert(name, value);
        }
    }
}

/// Returns the beginning of a day in UTC, or `None` if the text is not a date. A check of the document rejects such a text.
fn midnight(text: &str) -> Option<DateTime<Utc>> {
    let day: NaiveDate = text.parse().ok()?;
    Some(day.and_time(NaiveTime::MIN).and_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(extensions: &'static [(&'static str, &'static str)]) -> HeaderMap {
        let operation = Operation {
            id: "get_health_of_old",
            method: "GET",
            path: "/api/v1/partner/health",
            query_parameters: &[],
            has_body: false,
            extensions,
        };
        let mut headers = HeaderMap::new();
        announce(&mut headers, &operation);
        headers
    }

    /// SVC-11
    #[test]
    fn a_deprecated_operation_has_both_headers() {
        let headers = announced(&[("x-deprecated-since", "2027-01-15"), ("x-sunset", "2028-02-01")]);
        assert_eq!(headers["deprecation"], "@1799971200");
        assert_eq!(headers["sunset"], "Tue, 01 Feb 2028 00:00:00 GMT");
    }

    #[test]
    fn other_operations_have_neither_header() {
        assert!(announced(&[("x-required-scope", "test-line:write")]).is_empty());
    }
}
