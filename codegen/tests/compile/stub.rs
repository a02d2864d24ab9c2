//! The server that generated code is compiled against.

/// The state that handlers share.
pub mod context {
    /// None.
    pub struct Context;
}

/// Errors of handlers.
pub mod error {
    pub use dropshot::HttpError as ApiError;

    /// What every handler of the fixtures answers.
    pub fn nothing_here() -> ApiError {
        ApiError::for_not_found(None, "a fixture has no handlers".into())
    }
}

/// What stands before the handlers.
pub mod front_door {
    use super::error::ApiError;

    /// Who calls.
    pub struct Caller;

    /// The caller of the request in hand.
    ///
    /// # Errors
    /// None.
    pub fn caller() -> Result<Caller, ApiError> {
        Ok(Caller)
    }

    /// The bytes of the request in hand.
    ///
    /// # Errors
    /// None.
    pub fn raw_body() -> Result<Vec<u8>, ApiError> {
        Ok(Vec::new())
    }
}

/// What happens around a client's calls.
pub mod hooks {
    /// Nothing.
    #[derive(Clone, Debug)]
    pub struct Hooks;
}
