//! Reading the document.

use std::path::{Path, PathBuf};

use openapiv3::OpenAPI;
use serde_json::Value;

use crate::Problem;
use crate::node::{Node, escaped};
use crate::positions::Positions;

/// A document, as data and as OpenAPI.
#[derive(Debug)]
pub struct Document {
    /// Where it was read from.
    pub path: PathBuf,
    /// The document as it stands.
    pub value: Value,
    /// The document as progenitor reads it.
    pub openapi: OpenAPI,
    /// Where in the file its values stand.
    pub positions: Positions,
}

/// Reads a YAML or JSON document from a file.
///
/// # Errors
/// When the file cannot be read, is neither YAML nor JSON, or is no OpenAPI 3.0 document.
pub fn from_file(path: &Path) -> Result<Document, Problem> {
    let text = std::fs::read_to_string(path).map_err(|source| Problem::Io {
        path: path.into(),
        source,
    })?;
    from_text(path, &text)
}

/// Reads a document from its text; `path` is for messages.
///
/// # Errors
/// When it is neither YAML nor JSON, or no OpenAPI 3.0 document.
pub fn from_text(path: &Path, text: &str) -> Result<Document, Problem> {
    let positions = Positions::of(path, text)?;
    // YAML 1.2 contains JSON.
    let value: Value = serde_yaml::from_str(text).map_err(|error| {
        let (line, column) = error.location().map_or((1, 1), |place| (place.line(), place.column()));
        Problem::Syntax {
            path: path.into(),
            line,
            column,
            detail: error.to_string(),
        }
    })?;
    match openapi(&value) {
        Ok(openapi) => Ok(Document {
            path: path.into(),
            value,
            openapi,
            positions,
        }),
        Err(problem) => Err(positions.locate(path, problem)),
    }
}

fn openapi(value: &Value) -> Result<OpenAPI, Problem> {
    let version = Node::root(value).need("openapi")?;
    if !version.text()?.starts_with("3.0.") {
        let found = version.text()?;
        return Err(version.refuse(format!("OpenAPI 3.0.x is needed, this is {found}")));
    }
    serde_path_to_error::deserialize(value.clone()).map_err(|error| {
        use serde_path_to_error::Segment;
        let mut pointer = "#".to_string();
        for segment in error.path() {
            match segment {
                Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
                Segment::Map { key } => pointer.push_str(&format!("/{}", escaped(key))),
                // An enumeration's variant is no place in the document.
                Segment::Enum { .. } | Segment::Unknown => {}
            }
        }
        Problem::refused(&pointer, format!("not a valid OpenAPI 3.0 document: {}", error.inner()))
    })
}
