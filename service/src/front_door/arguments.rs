//! A request's query as arguments of an operation, for any contract.

use codegen_runtime::call::Query;
use codegen_runtime::{Fault, names};
use partner_api_signing::DecodedPair;

use crate::request_log::Reason;

/// The query of an operation whose parameters are `known`, and why it is refused if it is: for the first parameter that is
/// wrong.
pub fn query(known: &[&str], pairs: Vec<DecodedPair>) -> (Query, Option<Reason>) {
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
    (query, refused_for)
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
