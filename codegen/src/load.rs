//! Reading the document.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::Problem;
use crate::node::Node;
use crate::positions::{DEEPEST_JSON, Positions, deeper, too_deep};

/// A document.
#[derive(Clone, Debug)]
pub struct Document {
    /// Where it was read from.
    pub path: PathBuf,
    /// The document as it stands.
    pub value: Value,
    /// Where in the file its values stand.
    pub positions: Positions,
}

/// Reads a YAML or JSON document from a file.
///
/// # Errors
/// When the file cannot be read, is neither YAML nor JSON, or says that it is something else than OpenAPI 3.0.
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
/// When it is neither YAML nor JSON, or says that it is something else than OpenAPI 3.0.
pub fn from_text(path: &Path, text: &str) -> Result<Document, Problem> {
    let (value, positions) = match text.trim_start().starts_with('{') {
        true => json(path, text)?,
        false => yaml(path, text)?,
    };
    version(&value).map_err(|problem| positions.locate(path, problem))?;
    Ok(Document {
        path: path.into(),
        value,
        positions,
    })
}

/// A text that begins like JSON and is none may still be YAML in braces.
fn json(path: &Path, text: &str) -> Result<(Value, Positions), Problem> {
    if let Some((line, column)) = deeper(text, DEEPEST_JSON) {
        return Err(too_deep(path, line, column, DEEPEST_JSON));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = Value::deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    match value {
        Ok(value) => Ok((value, Positions::of_json(path, text)?)),
        Err(error) => yaml(path, text).map_err(|_| Problem::Syntax {
            path: path.into(),
            line: error.line(),
            column: error.column(),
            detail: error.to_string(),
        }),
    }
}

fn yaml(path: &Path, text: &str) -> Result<(Value, Positions), Problem> {
    let positions = Positions::of(path, text)?;
    let syntax = |error: serde_yaml::Error| {
        let (line, column) = error.location().map_or((1, 1), |place| (place.line(), place.column()));
        Problem::Syntax {
            path: path.into(),
            line,
            column,
            detail: error.to_string(),
        }
    };
    if !text.contains("<<") {
        return Ok((serde_yaml::from_str(text).map_err(syntax)?, positions));
    }
    let mut merged: serde_yaml::Value = serde_yaml::from_str(text).map_err(syntax)?;
    merged.apply_merge().map_err(syntax)?;
    Ok((serde_yaml::from_value(merged).map_err(syntax)?, positions))
}

fn version(value: &Value) -> Result<(), Problem> {
    let version = Node::root(value).need("openapi")?;
    if !version.text()?.starts_with("3.0.") {
        let found = version.text()?;
        return Err(version.refuse(format!("OpenAPI 3.0.x is needed, this is {found}")));
    }
    Ok(())
}
