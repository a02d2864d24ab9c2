//! Supported keywords, and the error for all others.

use crate::error::Problem;
use crate::model::plausible;
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

/// The keywords that [`allow`] accepts, besides the annotations.
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

/// Rejects keywords that would be ignored.
///
/// # Errors
/// The first such keyword.
pub fn allow(node: &Node<'_>, keywords: &[&str]) -> Result<(), Problem> {
    debug_assert!(keywords.iter().all(|keyword| KEYWORDS.contains(keyword)));
    for (key, place) in node.members()? {
        let known = keywords.contains(&key) || ANNOTATIONS.contains(&key);
        // codegen's own keywords are rejected where they would not be checked. Other extensions are ignored.
        let ours = [
            "x-decimal-places",
            "x-max-significant-digits",
            "x-key-pattern",
            plausible::KEYWORD,
        ]
        .contains(&key);
        if !known && (ours || !key.starts_with("x-")) {
            return Err(place.reject(format!(
                "`{key}` is not supported here, because values would not be checked against it; remove it"
            )));
        }
    }
    Ok(())
}
