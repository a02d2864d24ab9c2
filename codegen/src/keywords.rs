//! The keywords of schemas: which are supported, which restrict nothing, and to which type the others apply.

use crate::error::Problem;
use crate::model::PLAUSIBLE_RANGE;
use crate::node::Node;

/// Keywords that are allowed everywhere and do not affect the Rust type.
pub const ANNOTATIONS: [&str; 10] = [
    "title",
    "description",
    "example",
    "externalDocs",
    "deprecated",
    "readOnly",
    "writeOnly",
    "nullable",
    "default",
    "xml",
];

/// The extensions that are rules.
const OURS: [&str; 4] = [
    "x-decimal-places",
    "x-key-pattern",
    "x-max-significant-digits",
    PLAUSIBLE_RANGE,
];

/// The keywords that [`allow`] accepts, besides the annotations.
pub fn all() -> impl Iterator<Item = &'static str> {
    const OTHERS: &str = "$ref allOf anyOf discriminator enum format not oneOf required type";
    let of_types = OF_TYPES.into_iter().flat_map(|(_, keys)| keys.iter().copied());
    OTHERS.split(' ').chain(of_types).chain(OURS)
}

/// Rejects keywords that would be ignored.
pub fn allow(node: &Node<'_>, keywords: &[&str]) -> Result<(), Problem> {
    debug_assert!(keywords.iter().all(|keyword| all().any(|known| known == *keyword)));
    for (key, place) in node.members()? {
        let known = keywords.contains(&key) || ANNOTATIONS.contains(&key);
        // codegen's own keywords are rejected where they would not be checked. Other extensions are ignored.
        if !known && (OURS.contains(&key) || !key.starts_with("x-")) {
            return Err(place.reject(format!(
                "`{key}` is not supported here, because values would not be checked against it; remove it"
            )));
        }
    }
    Ok(())
}

/// Whether a keyword is allowed everywhere and restricts nothing.
pub fn is_annotation(key: &str) -> bool {
    ANNOTATIONS.contains(&key) || key.starts_with("x-")
}

/// The keywords from which the type of a schema without one follows.
pub const OF_TYPES: [(&str, &[&str]); 4] = [
    (
        "object",
        &["properties", "additionalProperties", "minProperties", "maxProperties"],
    ),
    ("array", &["items", "minItems", "maxItems", "uniqueItems"]),
    ("string", &["minLength", "maxLength", "pattern"]),
    (
        "number",
        &[
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
        ],
    ),
];

/// Whether a keyword applies only to values of one type.
pub fn is_rule_of_a_type(key: &str) -> bool {
    key == "format" || OF_TYPES.iter().any(|(_, keys)| keys.contains(&key))
}

/// Whether a rule applies only to values of another type, which the schema does not allow.
pub fn is_of_another_type(key: &str, ty: &str) -> bool {
    let is_number = |ty: &str| ty == "number" || ty == "integer";
    match OF_TYPES.iter().find(|(_, keys)| keys.contains(&key)) {
        Some((of, _)) => *of != ty && !(is_number(of) && is_number(ty)),
        None => key == "format" && ty != "string" && !is_number(ty),
    }
}

/// Whether a media type is JSON, including `+json` types and parameters.
pub fn is_json(media_type: &str) -> bool {
    let name = media_type.split(';').next().unwrap_or_default().trim().to_lowercase();
    name == "application/json" || name.starts_with("application/") && name.ends_with("+json")
}
