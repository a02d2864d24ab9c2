//! What the generator says when it cannot go on.

use std::path::PathBuf;

use thiserror::Error;

/// Why nothing, or not everything, was generated.
#[derive(Debug, Error)]
pub enum Problem {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The document is no YAML or JSON.
    #[error("{path}: not a YAML or JSON document: {detail}")]
    Syntax {
        /// The document.
        path: PathBuf,
        /// What the parser said.
        detail: String,
    },
    /// The document is not OpenAPI 3.0, or holds something that cannot be generated.
    #[error("{pointer}: {reason}")]
    Refused {
        /// The JSON pointer of the place, as a URI fragment (`#/paths/~1pets/get`).
        pointer: String,
        /// What is wrong there, and what would be right.
        reason: String,
    },
    /// progenitor could not generate a client.
    #[error("the client cannot be generated: {0}")]
    Client(String),
    /// Generated code did not parse: a defect of the generator.
    #[error("defect of the generator: {file} does not parse: {detail}")]
    Defect {
        /// The generated file.
        file: String,
        /// What the parser said.
        detail: String,
    },
}
