//! The server that generated code is compiled against.

/// The state that handlers share.
pub mod context {
    /// None.
    pub struct Context;
}

/// Errors of handlers.
pub mod error {
    use std::fmt;

    use dropshot::{ErrorStatusCode, HttpError, HttpErrorResponseBody, HttpResponseError};
    use schemars::JsonSchema;
    use schemars::r#gen::SchemaGenerator;
    use schemars::schema::Schema;
    use serde::{Serialize, Serializer};

    /// Dropshot's error under a name of one's own, as an API with several kinds of errors needs it.
    #[derive(Debug)]
    pub struct ApiError(HttpError);

    impl From<HttpError> for ApiError {
        fn from(error: HttpError) -> Self {
            ApiError(error)
        }
    }

    impl From<codegen_runtime::Faults> for ApiError {
        fn from(faults: codegen_runtime::Faults) -> Self {
            ApiError(HttpError::for_bad_request(None, faults.to_string()))
        }
    }

    impl fmt::Display for ApiError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.fmt(f)
        }
    }

    impl Serialize for ApiError {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let body = HttpErrorResponseBody {
                request_id: String::new(),
                error_code: self.0.error_code.clone(),
                message: self.0.external_message.clone(),
            };
            body.serialize(serializer)
        }
    }

    impl JsonSchema for ApiError {
        fn schema_name() -> String {
            HttpErrorResponseBody::schema_name()
        }

        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            HttpErrorResponseBody::json_schema(generator)
        }
    }

    impl HttpResponseError for ApiError {
        fn status_code(&self) -> ErrorStatusCode {
            self.0.status_code
        }
    }

    /// What every handler of the fixtures answers.
    pub fn nothing_here() -> ApiError {
        ApiError(HttpError::for_not_found(None, "a fixture has no handlers".into()))
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
