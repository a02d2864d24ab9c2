//! Errors of operations with different error bodies.

use std::borrow::Cow;
use std::fmt;

use dropshot::{Body, ErrorStatusCode, HttpError, HttpResponseError};
use http::{Response, StatusCode};
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::{Serialize, Serializer};

use crate::response;

/// An error with a declared body `T`, or an error `E` of the server, which covers rejected requests.
///
/// Dropshot declares one schema for all errors of an operation, which it takes from the error's type. This type has the
/// schema of `T`.
#[derive(Debug)]
pub enum Failure<T, E> {
    /// An error with the declared body.
    Declared {
        /// The status.
        status: ErrorStatusCode,
        /// The body.
        body: T,
    },
    /// An error of the server, with its own body.
    Other(E),
}

impl<T: Serialize, E> Failure<T, E> {
    /// The response, for servers other than Dropshot's.
    ///
    /// # Errors
    /// The server's error, or an internal error if the body cannot be serialized.
    pub fn into_response(self) -> Result<Response<Body>, E>
    where
        E: From<HttpError>,
    {
        match self {
            Failure::Declared { status, body } => response::json(status.as_status(), &body, &[]).map_err(E::from),
            Failure::Other(error) => Err(error),
        }
    }
}

impl<T, E: fmt::Display> fmt::Display for Failure<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The body is meant for the client and must not be logged.
            Failure::Declared { status, .. } => {
                let status: StatusCode = status.as_status();
                write!(f, "responded with {status}")
            }
            Failure::Other(error) => error.fmt(f),
        }
    }
}

impl<T, E: From<HttpError>> From<HttpError> for Failure<T, E> {
    fn from(error: HttpError) -> Self {
        Failure::Other(E::from(error))
    }
}

impl<T: Serialize, E: Serialize> Serialize for Failure<T, E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Failure::Declared { body, .. } => body.serialize(serializer),
            Failure::Other(error) => error.serialize(serializer),
        }
    }
}

impl<T: JsonSchema, E> JsonSchema for Failure<T, E> {
    fn is_referenceable() -> bool {
        T::is_referenceable()
    }

    fn schema_name() -> String {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<T, E> HttpResponseError for Failure<T, E>
where
    T: JsonSchema + Serialize + Send + Sync + 'static,
    E: HttpResponseError + Serialize + Send + Sync + 'static,
{
    fn status_code(&self) -> ErrorStatusCode {
        match self {
            Failure::Declared { status, .. } => *status,
            Failure::Other(error) => error.status_code(),
        }
    }
}
