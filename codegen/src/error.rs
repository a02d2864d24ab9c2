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
    /// A folder to write into is, or may be, somebody else's.
    #[error("{folder} {what}: {remedy}")]
    Foreign {
        /// The folder.
        folder: PathBuf,
        /// What is in it.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// Files for an owner cannot be written.
    #[error("{0}")]
    Scaffold(String),
    /// The document is no YAML or JSON.
    #[error("{path}:{line}:{column}: not a YAML or JSON document: {detail}")]
    Syntax {
        /// The document.
        path: PathBuf,
        /// Where, from 1.
        line: usize,
        /// Where in the line, from 1.
        column: usize,
        /// What the parser said.
        detail: String,
    },
    /// The document is not OpenAPI 3.0, or holds something that cannot be generated.
    #[error("{}{pointer}: {reason}", place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default())]
    Refused {
        /// Where that is in the file, once it is known.
        place: Option<Place>,
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

/// A place in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.path.display(), self.line, self.column)
    }
}

impl Problem {
    /// A refusal whose place in the file is not yet known.
    pub fn refused(pointer: &str, reason: impl Into<String>) -> Self {
        Problem::Refused {
            place: None,
            pointer: pointer.to_string(),
            reason: reason.into(),
        }
    }
}
