//! Reading documents from files and strings.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::error::Problem;
use crate::node::Node;
use crate::positions::{DEEPEST_JSON, Positions, deeper, too_deep};
use crate::{bundle, newer};

/// An OpenAPI document.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file that it was read from.
    pub path: PathBuf,
    /// Its content.
    pub value: Value,
    /// The line and column of each value.
    pub positions: Positions,
}

/// Reads a YAML or JSON document from a file.
///
/// # Errors
/// If the file or one that it refers to cannot be read, is neither YAML nor JSON, or is not OpenAPI 3.0 or 3.1.
pub fn from_file(path: &Path) -> Result<Document, Problem> {
    let text = std::fs::read_to_string(path).map_err(|source| Problem::Io {
        path: path.into(),
        source,
    })?;
    from_text(path, &text)
}

/// Reads a document from a string. Messages use `path`, and references to other files are relative to it.
///
/// # Errors
/// If it is neither YAML nor JSON, refers to something that does not exist, or is not OpenAPI 3.0 or 3.1.
pub fn from_text(path: &Path, text: &str) -> Result<Document, Problem> {
    let (mut value, mut positions) = parsed(path, text)?;
    version(&value).map_err(|problem| positions.locate(path, problem))?;
    bundle::bundled(path, &mut value, &mut positions, &|file| {
        let text = std::fs::read_to_string(file).map_err(|source| Problem::Io {
            path: file.into(),
            source,
        })?;
        parsed(file, &text)
    })
    .map_err(|problem| positions.locate(path, problem))?;
    if value["openapi"]
        .as_str()
        .is_some_and(|version| version.starts_with("3.1."))
    {
        newer::converted(&mut value).map_err(|problem| positions.locate(path, problem))?;
    }
    Ok(Document {
        path: path.into(),
        value,
        positions,
    })
}

fn parsed(path: &Path, text: &str) -> Result<(Value, Positions), Problem> {
    match text.trim_start().starts_with('{') {
        true => json(path, text),
        false => yaml(path, text),
    }
}

/// Parses JSON. A text that looks like JSON but is not valid JSON may still be YAML in flow style.
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
    let is_known = ["3.0.", "3.1."]
        .iter()
        .any(|known| version.text().is_ok_and(|text| text.starts_with(known)));
    if !is_known {
        let found = version.text()?;
        return Err(version.refuse(format!("must be OpenAPI 3.0.x or 3.1.x, is {found}")));
    }
    Ok(())
}
