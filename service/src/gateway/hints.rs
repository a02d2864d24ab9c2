//! Hints in the messages about requests for something that other APIs have and this one does not.

use http::Method;

use super::API_ROOT;

/// The path of the measurements, below the API's root.
const MEASUREMENTS: &str = "/test-line/measurements";

const STATUS_OF_A_MEASUREMENT: &str =
    "to get the status of a measurement, send its package again with the same external_id; nothing is recorded twice";

/// Returns a hint for a path that does not exist.
pub(super) fn of_path(path: &str) -> Option<&'static str> {
    let id = path
        .strip_prefix(API_ROOT)?
        .strip_prefix(MEASUREMENTS)?
        .strip_prefix('/')?;
    (!id.is_empty()).then_some(STATUS_OF_A_MEASUREMENT)
}

/// Returns a hint for a method that the paths of this template do not have.
pub(super) fn of_method(method: &Method, template: &str) -> Option<&'static str> {
    let is_measurements = template.strip_prefix(API_ROOT) == Some(MEASUREMENTS);
    (method == Method::GET && is_measurements).then_some(STATUS_OF_A_MEASUREMENT)
}

/// Returns a hint for a parameter that is repeated, or is none of the operation's `known` parameters.
pub(super) fn of_parameter(name: &str, known: &[&str]) -> Option<&'static str> {
    let (related, hint) = match name {
        "page" | "offset" | "skip" | "start" => (
            "cursor",
            "to get the next page, send page.next_cursor of the last response as cursor",
        ),
        "page_size" | "per_page" | "size" => ("limit", "did you mean limit?"),
        "plate" | "license_plate" => ("report_number", "reports cannot be searched by plate"),
        "status" => (
            "status",
            "send one status per request; without it, published and archived reports are listed",
        ),
        _ => return None,
    };
    known.contains(&related).then_some(hint)
}
