//! Headers that announce the removal of an operation: since when it is deprecated (`Deprecation`, RFC 9745), and from when it may
//! be gone (`Sunset`, RFC 8594).

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::Operation;

/// Adds the two headers if the document has their dates: `x-deprecated-since` and `x-sunset` (SVC-11).
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

/// The beginning of a day, in UTC; `None` for a text that is not a date, which a gate over the document rejects.
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
    fn an_operation_that_is_to_go_says_since_when_and_until_when() {
        let headers = announced(&[("x-deprecated-since", "2027-01-15"), ("x-sunset", "2028-02-01")]);
        assert_eq!(headers["deprecation"], "@1799971200");
        assert_eq!(headers["sunset"], "Tue, 01 Feb 2028 00:00:00 GMT");
    }

    #[test]
    fn other_operations_have_neither_header() {
        assert!(announced(&[("x-required-scope", "test-line:write")]).is_empty());
    }
}
