//! Reading the document.

use std::path::Path;

use openapiv3::OpenAPI;
use serde_json::Value;

use crate::Problem;
use crate::node::Node;

/// A document, as data and as OpenAPI.
#[derive(Debug)]
pub struct Document {
    /// The document as it stands.
    pub value: Value,
    /// The document as progenitor reads it.
    pub openapi: OpenAPI,
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
    // YAML 1.2 contains JSON.
    let value: Value = serde_yaml::from_str(text).map_err(|error| Problem::Syntax {
        path: path.into(),
        detail: error.to_string(),
    })?;
    let root = Node::root(&value);
    let version = root.need("openapi")?;
    if !version.text()?.starts_with("3.0.") {
        let found = version.text()?;
        return Err(version.refuse(format!("OpenAPI 3.0.x is needed, this is {found}")));
    }
    let openapi = serde_json::from_value(value.clone())
        .map_err(|error| root.refuse(format!("not a valid OpenAPI 3.0 document: {error}")))?;
    Ok(Document { value, openapi })
}
