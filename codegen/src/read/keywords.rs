//! The keywords that are read, and the refusal of all others.

use super::plausible;
use crate::Problem;
use crate::node::Node;

/// What may stand beside any keyword and changes nothing in Rust.
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

/// What is read of a schema, beside the annotations: [`allow`] takes no other.
pub const KEYWORDS: [&str; 30] = [
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "discriminator",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "type",
    "uniqueItems",
    "x-decimal-places",
    "x-key-pattern",
    "x-max-significant-digits",
    plausible::KEYWORD,
];

/// Refuses keywords that would silently be ignored.
///
/// # Errors
/// Names the first such keyword.
pub fn allow(node: &Node<'_>, keywords: &[&str]) -> Result<(), Problem> {
    debug_assert!(keywords.iter().all(|keyword| KEYWORDS.contains(keyword)));
    for (key, place) in node.members()? {
        let known = keywords.contains(&key) || ANNOTATIONS.contains(&key);
        // Rules of ours are refused where they would not be checked; other extensions are none of our business.
        let ours = [
            "x-decimal-places",
            "x-max-significant-digits",
            "x-key-pattern",
            plausible::KEYWORD,
        ]
        .contains(&key);
        if !known && (ours || !key.starts_with("x-")) {
            return Err(place.refuse(format!(
                "`{key}` is not supported here; values would not be checked against it"
            )));
        }
    }
    Ok(())
}
