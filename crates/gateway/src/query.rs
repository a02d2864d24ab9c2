//! A request's query as the arguments of an operation.

use codegen_runtime::call::Query;
use codegen_runtime::{Fault, Faults, names};
use http::Uri;
use partner_api_signing::{DecodedPair, decode_query};

use crate::Reason;

/// A query that is rejected before its values are read.
#[derive(Debug)]
pub struct InvalidQuery {
    /// The parameters that are wrong.
    pub faults: Faults,
    /// The reason for the request log, of the first of them.
    pub reason: Reason,
}

/// A query as it was sent.
#[derive(Clone, Copy, Debug)]
pub struct RawQuery<'r>(&'r str);

impl<'r> RawQuery<'r> {
    pub(super) fn of(uri: &'r Uri) -> Self {
        RawQuery(uri.query().unwrap_or_default())
    }

    /// Decodes the query.
    ///
    /// # Errors
    /// For an invalid escape, with the name of its parameter.
    pub fn decode(self) -> Result<DecodedQuery, InvalidQuery> {
        let pairs = decode_query(self.0.as_bytes()).map_err(|malformed| InvalidQuery {
            faults: Fault::of_parameter(name_at(self.0, malformed.offset), malformed.to_string()).into(),
            reason: Reason::QueryMalformed,
        })?;
        Ok(DecodedQuery(pairs))
    }
}

/// The decoded pairs of a query.
#[derive(Debug)]
pub struct DecodedQuery(Vec<DecodedPair>);

impl DecodedQuery {
    /// The pairs, in the order in which they were sent.
    pub fn pairs(&self) -> &[DecodedPair] {
        &self.0
    }

    /// The query of an operation whose parameters are `known`, with the reason for the request log if a parameter is unknown,
    /// repeated or not text. A mistyped `published_from` must not silently return everything. The faults are in the query and
    /// rejected when it is read, so that they are reported together with those found then.
    ///
    /// # Errors
    /// The same faults, for an operation without parameters: nobody reads its query.
    pub(super) fn of_operation(self, known: &[&str]) -> Result<(Query, Option<Reason>), InvalidQuery> {
        let mut query = Query::default();
        let mut first_reason = None;
        for (name, value) in self.0 {
            match parameter(&query.pairs, known, name, value) {
                Ok(pair) => query.pairs.push(pair),
                Err((fault, reason)) => {
                    query.faults.push(fault);
                    first_reason.get_or_insert(reason);
                }
            }
        }
        match (Faults::of(query.faults.iter().cloned()), first_reason) {
            (Some(faults), Some(reason)) if known.is_empty() => Err(InvalidQuery { faults, reason }),
            _ => Ok((query, first_reason)),
        }
    }
}

/// The name, as sent, of the parameter that has the byte at `offset`.
fn name_at(query: &str, offset: usize) -> &str {
    let start = query.as_bytes()[..offset].iter().rposition(|byte| *byte == b'&');
    let parameter = query.get(start.map_or(0, |before| before + 1)..).unwrap_or_default();
    let parameter = parameter.split('&').next().unwrap_or_default();
    parameter.split('=').next().unwrap_or_default()
}

fn parameter(
    earlier: &[(String, String)],
    known: &[&str],
    name: Vec<u8>,
    value: Vec<u8>,
) -> Result<(String, String), (Fault, Reason)> {
    let rejected = |name: &str, problem: &str, reason| Err((Fault::of_parameter(&short(name), problem), reason));
    let Ok(name) = String::from_utf8(name) else {
        return rejected("query", "a parameter's name is not UTF-8", Reason::QueryMalformed);
    };
    if !known.contains(&name.as_str()) {
        return rejected(&name, &unknown(&name, known), Reason::ParameterUnknown);
    }
    if earlier.iter().any(|(earlier, _)| *earlier == name) {
        return rejected(
            &name,
            "was sent more than once; send it once",
            Reason::ParameterRepeated,
        );
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

/// The message about a parameter that the operation does not have.
fn unknown(name: &str, known: &[&str]) -> String {
    match (names::nearest(name, known.iter().copied()), known) {
        (Some(near), _) => format!("is unknown; did you mean {near}?"),
        (None, []) => "is unknown; this operation has no query parameters".into(),
        (None, known) => format!("is unknown; this operation has {}", known.join(", ")),
    }
}

/// A parameter's name, short and clean enough to be repeated in an answer.
fn short(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(64).collect()
}
