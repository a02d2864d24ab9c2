//! Authentication, which every request passes before its operation. It accepts all requests until you implement it.

use crate::error::ApiError;

/// The caller of an operation.
#[derive(Debug)]
pub struct Caller {}

/// Authenticates the current request.
///
/// # Errors
/// None, until you reject requests here.
pub fn caller() -> Result<Caller, ApiError> {
    Ok(Caller {})
}
