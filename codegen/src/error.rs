//! Errors of the generator.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// An error that prevented the generator from doing all or part of its work.
#[derive(Debug, Error)]
pub enum Problem {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The document is neither YAML nor JSON.
    #[error("{place}: not a YAML or JSON document: {detail}")]
    Syntax {
        /// The place in the file.
        place: Place,
        /// The parser's message.
        detail: String,
    },
    /// The document is not valid OpenAPI 3.0, or contains something that is not supported.
    #[error("{}{pointer}: {reason}", place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default())]
    Rejected {
        /// The place in the file; `None` until it is located.
        place: Option<Place>,
        /// The JSON pointer, as a URI fragment (`#/paths/~1pets/get`).
        pointer: String,
        /// The problem and its remedy.
        reason: String,
    },
    /// The command cannot do what it is asked to do, for this reason.
    #[error("{0}")]
    Refused(String),
    /// A bug of the generator, such as generated code that does not parse.
    #[error("bug in codegen: {0}; please report it")]
    Defect(String),
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The length of the name or value there, in characters.
    pub length: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.path.display(), self.line, self.column)
    }
}

impl Problem {
    /// A function that adds the file or folder to an error of the operating system.
    pub fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Problem + use<> {
        let path = path.to_path_buf();
        move |source| Problem::Io { path, source }
    }

    /// A [`Problem::Rejected`] that has not been located in the file yet.
    pub fn rejected(pointer: &str, reason: impl Into<String>) -> Self {
        Problem::Rejected {
            place: None,
            pointer: pointer.to_string(),
            reason: reason.into(),
        }
    }

    /// A [`Problem::Syntax`] at a line and column.
    pub fn syntax(path: &Path, (line, column): (usize, usize), detail: impl Into<String>) -> Self {
        let (path, length) = (path.into(), 1);
        Problem::Syntax {
            place: Place {
                path,
                line,
                column,
                length,
            },
            detail: detail.into(),
        }
    }
}
