//! The query of a request as the arguments of an operation.

use codegen_runtime::call::Query;
use codegen_runtime::{ValidationError, ValidationErrors, names};
use http::Uri;
use partner_api_signing::{DecodedPair, decode_query};

use crate::Reason;

/// A query that is rejected before its values are read.
#[derive(Debug)]
pub struct InvalidQuery {
    /// The invalid parameters.
    pub errors: ValidationErrors,
    /// The reason for the request log, which is that of the first error.
    pub reason: Reason,
}

/// A query as sent.
#[derive(Clone, Copy, Debug)]
pub struct RawQuery<'r>(&'r str);

impl<'r> RawQuery<'r> {
    pub(super) fn of(uri: &'r Uri) -> Self {
        RawQuery(uri.query().unwrap_or_default())
    }

    /// Decodes the query.
    ///
    /// # Errors
    /// If an escape is invalid, with the name of the parameter.
    pub fn decode(self) -> Result<DecodedQuery, InvalidQuery> {
        let pairs = decode_query(self.0.as_bytes()).map_err(|malformed| InvalidQuery {
            errors: ValidationError::of_parameter(name_at(self.0, malformed.offset), malformed.to_string()).into(),
            reason: Reason::QueryMalformed,
        })?;
        Ok(DecodedQuery(pairs))
    }
}

/// The decoded pairs of a query.
#[derive(Debug)]
pub struct DecodedQuery(Vec<DecodedPair>);

impl DecodedQuery {
    /// Returns the pairs in the order in which they were sent.
    pub fn pairs(&self) -> &[DecodedPair] {
        &self.0
    }

    /// Returns the query of an operation with the `known` parameters. If a parameter is unknown, repeated or not UTF-8, also
    /// returns the reason for the request log. Unknown parameters are rejected, because a mistyped `published_from` must not
    /// silently return everything. The errors are stored in the query. When the query is read, they are reported together with
    /// the errors found then. `hint` returns a remedy for a parameter that is unknown or repeated.
    ///
    /// # Errors
    /// The errors, if the operation has no parameters, because its query is never read.
    pub(super) fn of_operation(
        self,
        known: &[&str],
        hint: impl Fn(&str) -> Option<&'static str>,
    ) -> Result<(Query, Option<Reason>), InvalidQuery> {
        let mut query = Query::default();
        let mut first_reason = None;
        for (name, value) in self.0 {
            match parameter(&query.pairs, known, &hint, name, value) {
                Ok(pair) => query.pairs.push(pair),
                Err((error, reason)) => {
                    query.errors.push(error);
                    first_reason.get_or_insert(reason);
                }
            }
        }
        match (ValidationErrors::of(query.errors.iter().cloned()), first_reason) {
            (Some(errors), Some(reason)) if known.is_empty() => Err(InvalidQuery { errors, reason }),
            _ => Ok((query, first_reason)),
        }
    }
}

/// Returns the name, as sent, of the parameter that contains the byte at `offset`.
fn name_at(query: &str, offset: usize) -> &str {
    let start = query.as_bytes()[..offset].iter().rposition(|byte| *byte == b'&');
    let parameter = query.get(start.map_or(0, |before| before + 1)..).unwrap_or_default();
    let parameter = parameter.split('&').next().unwrap_or_default();
    parameter.split('=').next().unwrap_or_default()
}

fn parameter(
    earlier: &[(String, String)],
    known: &[&str],
    hint: impl Fn(&str) -> Option<&'static str>,
    name: Vec<u8>,
    value: Vec<u8>,
) -> Result<(String, String), (ValidationError, Reason)> {
    let rejected =
        |name: &str, problem: &str, reason| Err((ValidationError::of_parameter(&short(name), problem), reason));
    let Ok(name) = String::from_utf8(name) else {
        return rejected("query", "a parameter's name is not UTF-8", Reason::QueryMalformed);
    };
    if !known.contains(&name.as_str()) {
        let problem = match hint(&name) {
            Some(hint) => format!("is unknown; {hint}"),
            None => unknown(&name, known),
        };
        return rejected(&name, &problem, Reason::ParameterUnknown);
    }
    if earlier.iter().any(|(earlier, _)| *earlier == name) {
        let hint = hint(&name).unwrap_or("send it once");
        let problem = format!("was sent more than once; {hint}");
        return rejected(&name, &problem, Reason::ParameterRepeated);
    }
    match String::from_utf8(value) {
        Ok(value) => Ok((name, value)),
        Err(_) => rejected(
            &name,
            "is not UTF-8; encode its UTF-8 bytes as %XX",
            Reason::QueryMalformed,
        ),
    }
}

/// Returns the message about a parameter that the operation does not have.
fn unknown(name: &str, known: &[&str]) -> String {
    match (names::nearest(name, known.iter().copied()), known) {
        (Some(near), _) => format!("is unknown; did you mean {near}?"),
        (None, []) => "is unknown; this operation has no query parameters".into(),
        (None, known) => format!("is unknown; this operation has {}", known.join(", ")),
    }
}

/// Shortens a parameter's name and removes control characters, so that it can be included in a response.
fn short(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_an_invalid_escape_names_its_parameter() {
        let query = "limit=%zz&city=50%zz&flag%";
        for (offset, name) in [(6, "limit"), (17, "city"), (25, "flag%")] {
            assert_eq!(name_at(query, offset), name);
        }
    }

    #[test]
    fn unknown_parameters_are_an_error_at_once_only_if_the_query_is_never_read() {
        let query = || DecodedQuery(vec![(b"city".to_vec(), b"1".to_vec())]);
        let rejected = query().of_operation(&[], |_| None).unwrap_err();
        assert_eq!(rejected.reason, Reason::ParameterUnknown);
        let (read, reason) = query().of_operation(&["limit"], |_| None).unwrap();
        assert_eq!((read.errors.len(), reason), (1, Some(Reason::ParameterUnknown)));
        let (read, reason) = query().of_operation(&["city"], |_| None).unwrap();
        assert_eq!((read.pairs.len(), read.errors.len(), reason), (1, 0, None));
    }
}
