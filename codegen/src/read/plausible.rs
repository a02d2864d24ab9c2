//! Checks of `x-plausible-range`.

use codegen_runtime::Pattern;

use crate::error::Problem;
use crate::model::plausible::{KEYWORD, number};
use crate::node::Node;

/// Rejects ranges that are incomplete, empty, or for names that cannot occur.
///
/// # Errors
/// The place of the first such range.
pub fn check(node: &Node<'_>, key_pattern: Option<&Pattern>, values_are_exact: bool) -> Result<(), Problem> {
    let Some(ranges) = node.get(KEYWORD) else {
        return Ok(());
    };
    if !values_are_exact {
        return Err(ranges.reject(
            "`x-plausible-range` must be on a map of numbers with `format: decimal`; remove it or \
                                  add the format",
        ));
    }
    for (name, range) in ranges.members()? {
        if key_pattern.is_some_and(|pattern| !pattern.is_match(name)) {
            return Err(range.reject(format!(
                "`{name}` does not match the `x-key-pattern` of this map; remove it"
            )));
        }
        for (key, place) in range.members()? {
            if !["minimum", "maximum"].contains(&key) {
                return Err(place.reject(format!(
                    "`{key}` is not supported here; a range has `minimum` and `maximum`"
                )));
            }
        }
        let bound = |key: &str| {
            let place = range
                .get(key)
                .ok_or_else(|| range.reject("a range must have both `minimum` and `maximum`"))?;
            number(place.value()).ok_or_else(|| place.reject("must be a number"))
        };
        if bound("minimum")? > bound("maximum")? {
            return Err(range.reject("`minimum` must not exceed `maximum`; swap them"));
        }
    }
    Ok(())
}
