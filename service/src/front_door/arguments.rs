//! A request's path and query as arguments of an operation, for any contract.

use codegen_runtime::call::Query;
use codegen_runtime::{Fault, names};
use partner_api_signing::DecodedPair;

use crate::request_log::Reason;

/// The variables of a raw path that is an instance of a template, byte for byte; a variable is one segment without escapes.
pub fn variables(template: &'static str, path: &str) -> Option<Vec<(&'static str, String)>> {
    let mut found = Vec::new();
    let mut segments = path.split('/');
    for wanted in template.split('/') {
        let segment = segments.next()?;
        match wanted.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(_) if segment.is_empty() || segment.contains('%') => return None,
            Some(name) => found.push((name, segment.to_string())),
            None if segment != wanted => return None,
            None => {}
        }
    }
    segments.next().is_none().then_some(found)
}

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

#[cfg(test)]
mod tests {
    use super::variables;

    #[test]
    fn a_path_fits_its_template_byte_for_byte() {
        let found = variables("/a/{id}/b", "/a/1/b");
        assert_eq!(found, Some(vec![("id", "1".to_string())]));
        for other in [
            "/a/1/b/", "/a//b", "//a/1/b", "/a/1/%62", "/a/%31/b", "/a/1", "/A/1/b", "/a/1/b/c",
        ] {
            assert_eq!(variables("/a/{id}/b", other), None, "{other}");
        }
    }
}
