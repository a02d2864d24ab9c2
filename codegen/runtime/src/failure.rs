//! Errors of an operation whose error body is not the one that all others have, too.

use std::borrow::Cow;
use std::fmt;

use dropshot::{Body, ErrorStatusCode, HttpError, HttpResponseError};
use http::{Response, StatusCode};
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::{Serialize, Serializer};

use crate::response;

/// An error with a body that the document declares, `T`, or one of the server's own kind, `E`: what its front door and
/// Dropshot's extractors refuse.
///
/// Dropshot names one schema for all errors of an operation, and takes it from the error's type: this one has `T`'s.
#[derive(Debug)]
pub enum Failure<T, E> {
    /// With a body that the document declares.
    Declared {
        /// The status.
        status: ErrorStatusCode,
        /// The body.
        body: T,
    },
    /// Of the server's own kind, in its own words.
    Other(E),
}

impl<T: Serialize, E> Failure<T, E> {
    /// The response, where no server of Dropshot's makes it.
    ///
    /// # Errors
    /// The error of the server's own kind; 500 as such a one when the body does not serialise.
    pub fn answer(self) -> Result<Response<Body>, E>
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
            // What is in the body is the client's, and not for logs.
            Failure::Declared { status, .. } => {
                let status: StatusCode = status.as_status();
                write!(f, "answered {status}")
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
