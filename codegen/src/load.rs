//! Reading documents from files and strings.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::error::Problem;
use crate::model::Dispatch;
use crate::node::Node;
use crate::positions::Positions;
use crate::{bundle, equivalent, hoist, join, openapi_3_1};

/// An OpenAPI document.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file that it was read from.
    pub path: PathBuf,
    /// Its content.
    pub value: Value,
    /// The line and column of each value.
    pub positions: Positions,
    /// How the document is served, which decides what is supported.
    pub dispatch: Dispatch,
    /// The pointers of the webhooks and callbacks, which are requests that the server sends. They have been removed.
    pub own_requests: Vec<String>,
}

impl Document {
    /// Sets how the document is served, and keeps only the first of `media_types` that a body or a response with several
    /// has.
    pub fn with(mut self, dispatch: Dispatch, media_types: &[String]) -> Self {
        equivalent::choose(&mut self.value, media_types);
        Document { dispatch, ..self }
    }

    /// Adds the place in the file to an error.
    pub fn locate(&self, problem: Problem) -> Problem {
        self.positions.locate(problem)
    }
}

/// Reads a YAML or JSON document from a file.
///
/// # Errors
/// If the file or one that it refers to cannot be read, is neither YAML nor JSON, or is not OpenAPI 3.0 or 3.1.
pub fn from_file(path: &Path) -> Result<Document, Problem> {
    from_text(path, &std::fs::read_to_string(path).map_err(Problem::io(path))?)
}

/// Reads a document from a string. Messages use `path`, and references to other files are relative to it.
///
/// # Errors
/// If it is neither YAML nor JSON, refers to something that does not exist, or is not OpenAPI 3.0 or 3.1.
pub fn from_text(path: &Path, text: &str) -> Result<Document, Problem> {
    let (mut value, mut positions) = parsed(path, text)?;
    version(&value).map_err(|problem| positions.locate(problem))?;
    let read = |file: &Path| parsed(file, &std::fs::read_to_string(file).map_err(Problem::io(file))?);
    let bundled = bundle::bundled(path, &mut value, &mut positions, &read);
    bundled.map_err(|problem| positions.locate(problem))?;
    if value["openapi"].as_str().unwrap_or_default().starts_with("3.1.") {
        openapi_3_1::converted(&mut value).map_err(|problem| positions.locate(problem))?;
    }
    let own_requests = equivalent::without_own_requests(&mut value);
    let mut moved = hoist::Moved::new();
    hoist::path_items(&mut value, &mut moved);
    hoist::parts(&mut value, &mut moved);
    equivalent::simplified(&mut value);
    hoist::bases(&mut value, &mut moved);
    join::parts(&mut value);
    positions.moved = moved;
    Ok(Document {
        path: path.into(),
        value,
        positions,
        dispatch: Dispatch::default(),
        own_requests,
    })
}

fn parsed(path: &Path, text: &str) -> Result<(Value, Positions), Problem> {
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    match is_json || text.trim_start().starts_with('{') {
        true => json(path, text, is_json),
        false => yaml(path, text),
    }
}

/// Parses JSON. A text that looks like JSON but is not valid JSON may still be YAML in flow style, unless its file's name
/// says that it is JSON.
fn json(path: &Path, text: &str, is_json: bool) -> Result<(Value, Positions), Problem> {
    let positions = match Positions::of_json(path, text) {
        Err(problem @ Problem::Syntax { .. }) => return Err(problem),
        other => other,
    };
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = Value::deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    match value {
        Ok(value) => Ok((value, positions?)),
        Err(error) => {
            let (message, place) = (error.to_string(), (error.line().max(1), error.column().max(1)));
            let message = message.split(" at line ").next().unwrap_or_default();
            let syntax = Problem::syntax(path, place, format!("must be valid JSON: {message}"));
            match is_json {
                true => Err(syntax),
                false => yaml(path, text).map_err(|_| syntax),
            }
        }
    }
}

fn yaml(path: &Path, text: &str) -> Result<(Value, Positions), Problem> {
    let positions = Positions::of(path, text)?;
    let syntax = |error: serde_yaml::Error| {
        let place = error.location().map_or((1, 1), |place| (place.line(), place.column()));
        Problem::syntax(path, place, error.to_string())
    };
    if !text.contains("<<") {
        return Ok((serde_yaml::from_str(text).map_err(syntax)?, positions));
    }
    let mut merged: serde_yaml::Value = serde_yaml::from_str(text).map_err(syntax)?;
    merged.apply_merge().map_err(syntax)?;
    Ok((serde_yaml::from_value(merged).map_err(syntax)?, positions))
}

fn version(value: &Value) -> Result<(), Problem> {
    let root = Node::root(value);
    if !value.is_object() {
        return Err(
            root.reject("an OpenAPI document must be an object that begins with its version, such as `openapi: 3.0.3`")
        );
    }
    if let Some(swagger) = root.get("swagger") {
        return Err(swagger.reject("Swagger 2.0 is not supported; convert the document to OpenAPI 3.0"));
    }
    let version = root.need("openapi")?;
    let found = version.text()?;
    match found.starts_with("3.0.") || found.starts_with("3.1.") {
        true => Ok(()),
        false => Err(version.reject(format!("must be OpenAPI 3.0.x or 3.1.x, is {found}"))),
    }
}
