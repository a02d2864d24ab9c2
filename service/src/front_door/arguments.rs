//! A request's query as arguments of an operation, for any contract.

use codegen_runtime::call::Query;
use codegen_runtime::{Fault, Faults, names};
use partner_api_signing::{DecodedPair, decode_query};

use crate::request_log::Reason;

/// What is wrong with a query, and why it is refused, for the request log.
#[derive(Debug)]
pub struct Wrong {
    /// The parameters that are wrong.
    pub faults: Faults,
    /// For the first of them.
    pub reason: Reason,
}

/// The pairs of a raw query, decoded.
///
/// # Errors
/// An escape that is none, with the name of its parameter.
pub fn pairs(raw: &str) -> Result<Vec<DecodedPair>, Wrong> {
    decode_query(raw.as_bytes()).map_err(|malformed| Wrong {
        faults: Fault::of_parameter(name_at(raw, malformed.offset), malformed.to_string()).into(),
        reason: Reason::QueryMalformed,
    })
}

/// The name, as it is written, of the parameter of a raw query in which the byte at `offset` stands.
fn name_at(query: &str, offset: usize) -> &str {
    let start = query.as_bytes()[..offset].iter().rposition(|byte| *byte == b'&');
    let parameter = query.get(start.map_or(0, |before| before + 1)..).unwrap_or_default();
    let parameter = parameter.split('&').next().unwrap_or_default();
    parameter.split('=').next().unwrap_or_default()
}

/// The query of an operation whose parameters are `known`, and why it is refused if something is wrong with it, for the first
/// parameter that is: what is unknown, repeated or no text. A mistyped `published_from` must not silently return everything.
/// Reading it refuses it, so that what is wrong is told together with what is found then.
///
/// # Errors
/// The same, of an operation that has no parameters: nobody reads its query.
pub fn query(known: &[&str], pairs: Vec<DecodedPair>) -> Result<(Query, Option<Reason>), Wrong> {
    let mut query = Query::default();
    let mut refused_for = None;
    for (name, value) in pairs {
        match parameter(&query.pairs, known, name, value) {
            Ok(pair) => query.pairs.push(pair),
            Err((fault, reason)) => {
                query.faults.push(fault);
                refused_for.get_or_insert(reason);
            }
        }
    }
    match (Faults::of(query.faults.iter().cloned()), refused_for) {
        (Some(faults), Some(reason)) if known.is_empty() => Err(Wrong { faults, reason }),
        _ => Ok((query, refused_for)),
    }
}

fn parameter(
    earlier: &[(String, String)],
    known: &[&str],
    name: Vec<u8>,
    value: Vec<u8>,
) -> Result<(String, String), (Fault, Reason)> {
    let refused = |name: &str, problem: &str, reason| Err((Fault::of_parameter(&short(name), problem), reason));
    let Ok(name) = String::from_utf8(name) else {
        return refused("query", "a parameter's name is not UTF-8", Reason::QueryMalformed);
    };
    if !known.contains(&name.as_str()) {
        return refused(&name, &unknown(&name, known), Reason::ParameterUnknown);
    }
    if earlier.iter().any(|(earlier, _)| *earlier == name) {
        return refused(
            &name,
            "was sent more than once; send it once",
            Reason::ParameterRepeated,
        );
    }
    match String::from_utf8(value) {
        Ok(value) => Ok((name, value)),
        Err(_) => refused(
            &name,
            "is not UTF-8; encode its UTF-8 bytes as %XX",
            Reason::QueryMalformed,
        ),
    }
}

/// What is said of a parameter that the operation does not have.
fn unknown(name: &str, known: &[&str]) -> String {
    match (names::nearest(name, known.iter().copied()), known) {
        (Some(near), _) => format!("is unknown; did you mean {near}?"),
        (None, []) => "is unknown; this operation has no query parameters".into(),
        (None, known) => format!("is unknown; this operation has {}", known.join(", ")),
    }
}

/// A stranger's name of a parameter as an answer may repeat it.
fn short(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(64).collect()
}
