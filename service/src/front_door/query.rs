//! Query parameters that Dropshot would let through: unknown, repeated, not UTF-8.

use partner_api_signing::decode_query;

use crate::error::ApiError;
use crate::generated::operations::Operation;

/// Checks a raw query against the operation's parameters.
///
/// # Errors
/// 400 that names the parameter: a mistyped `published_from` must not silently return everything.
pub(super) fn check(operation: &Operation, raw: &str) -> Result<(), ApiError> {
    let pairs =
        decode_query(raw.as_bytes()).map_err(|malformed| ApiError::invalid_request(format!("query: {malformed}")))?;
    let mut seen: Vec<String> = Vec::with_capacity(pairs.len());
    for (name, value) in pairs {
        let name =
            String::from_utf8(name).map_err(|_| ApiError::invalid_request("query: a parameter's name is not UTF-8"))?;
        if !operation.query_parameters.contains(&name.as_str()) {
            let known = match operation.query_parameters {
                [] => "none".to_string(),
                names => names.join(", "),
            };
            return Err(ApiError::invalid_request(format!(
                "query: unknown parameter {}; this operation has: {known}",
                shown(&name)
            )));
        }
        if seen.contains(&name) {
            return Err(ApiError::invalid_request(format!(
                "{name}: given more than once; send it once"
            )));
        }
        if std::str::from_utf8(&value).is_err() {
            return Err(ApiError::invalid_request(format!(
                "{name}: is not UTF-8; encode its UTF-8 bytes as %XX"
            )));
        }
        seen.push(name);
    }
    Ok(())
}

/// A stranger's text as a message may quote it.
fn shown(text: &str) -> String {
    format!("{:?}", text.chars().take(64).collect::<String>())
}
