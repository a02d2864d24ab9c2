//! Checks that a document is valid OpenAPI 3.0.
//!
//! Parsing the whole document locates an error only roughly, because the parser tries several forms at each place and
//! reports the first failure. The parts are therefore parsed one by one, from the innermost outwards.

use openapiv3::{Header, OpenAPI, Operation, Parameter, ReferenceOr, RequestBody, Response, Schema};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::Problem;
use crate::node::{Node, escaped};
use crate::places::{self, Kind};

/// Everything in the document that is not valid OpenAPI 3.0.
pub fn check(document: &Value) -> Vec<Problem> {
    if serde_json::from_value::<OpenAPI>(document.clone()).is_ok() {
        return Vec::new();
    }
    let mut found = Vec::new();
    // The document, in which each part that has been checked is replaced by a valid one.
    let mut whole = document.clone();
    for (pointer, kind) in places::all(document) {
        let (Some(value), Some(shell)) = (document.pointer(&pointer), whole.pointer_mut(&pointer)) else {
            continue;
        };
        let node = Node::at(document, value, &pointer);
        let (check, valid): (fn(&Node<'_>, &Value, &mut Vec<Problem>), _) = match kind {
            Kind::Schema => (part::<ReferenceOr<Schema>>, json!({})),
            Kind::Parameter => (part::<ReferenceOr<Parameter>>, json!({ "$ref": "" })),
            Kind::Header => (part::<ReferenceOr<Header>>, json!({ "$ref": "" })),
            Kind::Body => (part::<ReferenceOr<RequestBody>>, json!({ "$ref": "" })),
            Kind::Response => (part::<ReferenceOr<Response>>, json!({ "$ref": "" })),
            Kind::Operation => (part::<Operation>, json!({ "responses": {} })),
        };
        check(&node, shell, &mut found);
        *shell = valid;
    }
    part::<OpenAPI>(&Node::root(document), &whole, &mut found);
    if found.is_empty() {
        // Errors that only parsing the whole document reveals.
        part::<OpenAPI>(&Node::root(document), document, &mut found);
    }
    found
}

/// Parses `shell`, the value at `node` with its inner parts replaced by valid ones. Reports an error at the member whose
/// removal would make it valid, or else where the parser stopped.
fn part<T: DeserializeOwned>(node: &Node<'_>, shell: &Value, found: &mut Vec<Problem>) {
    if serde_json::from_value::<T>(shell.clone()).is_ok() {
        return;
    }
    let Err(error) = serde_path_to_error::deserialize::<_, T>(shell.clone()) else {
        return;
    };
    if let Some(members) = shell.as_object() {
        for key in members.keys() {
            let mut rest = members.clone();
            rest.shift_remove(key);
            if serde_json::from_value::<T>(rest.into()).is_ok()
                && let Some(place) = node.get(key)
            {
                found.push(place.reject(reason(key, place.value(), &error.inner().to_string())));
                return;
            }
        }
    }
    use serde_path_to_error::Segment;
    let mut pointer = node.pointer().to_string();
    for segment in error.path() {
        match segment {
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Map { key } => pointer.push_str(&format!("/{}", escaped(key))),
            // An enum variant does not correspond to a place in the document.
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    let value = node.value();
    let last = pointer.rsplit('/').next().unwrap_or_default();
    let inner = error.inner().to_string();
    let there = value.pointer(&pointer[node.pointer().len()..]).unwrap_or(value);
    let key = error.path().iter().next().map_or("", |_| last);
    found.push(Problem::rejected(&pointer, reason(key, there, &inner)));
}

/// Describes the error, in terms of OpenAPI where the parser's message is unhelpful.
fn reason(key: &str, value: &Value, message: &str) -> String {
    let text = match (key, value) {
        ("type", Value::Array(_)) => {
            "several types must be written as a `oneOf`, each with its own rules; use `nullable: true` for null, or in \
             OpenAPI 3.1 the type \"null\""
        }
        ("exclusiveMinimum" | "exclusiveMaximum", Value::Number(_)) => {
            "a number is only valid in OpenAPI 3.1; in 3.0, write `true` beside the bound"
        }
        ("version" | "title" | "description" | "summary" | "operationId", Value::Number(_) | Value::Bool(_)) => {
            "must be a string; put it in quotes"
        }
        _ => &plain(message),
    };
    format!("not a valid OpenAPI 3.0 document: {text}")
}

/// The parser's message without the names of its types.
fn plain(message: &str) -> String {
    // Parsers of tagged values add the place, which is known.
    let message = message.split(" at line ").next().unwrap_or(message);
    if let Some(name) = message.strip_prefix("missing field ") {
        return format!("{name} is missing");
    }
    if message.contains("ParameterSchemaOrContent") {
        return "`schema` is missing".into();
    }
    match message.contains("variant of") {
        true => "must have one of the forms that OpenAPI 3.0 defines for it".into(),
        false => codegen_runtime::plain::message(message),
    }
}
