//! Renders schemas as lists of members.

use maud::{Markup, html};
use serde_json::Value;

use crate::document::{strings, text};
use crate::markdown::{Links, render};
use crate::{Document, frame};

/// The maximum nesting depth, which also limits recursive schemas.
const DEPTH: usize = 8;

/// Renders the members of a schema and their members.
pub fn members(document: &Document, schema: &Value, sent: bool, links: &Links) -> Markup {
    list(document, schema, sent, links, DEPTH)
}

fn list(document: &Document, schema: &Value, sent: bool, links: &Links, depth: usize) -> Markup {
    let schema = inner(document, schema);
    let properties = schema.get("properties").and_then(Value::as_object);
    let required: Vec<&str> = strings(schema.get("required")).collect();
    html! {
        @if let Some(properties) = properties.filter(|_| depth > 0) {
            ul.members {
                @for (name, property) in properties {
                    li { (member(document, name, property, required.contains(&name.as_str()), sent, links, depth)) }
                }
            }
        }
    }
}

fn member(
    document: &Document,
    name: &str,
    property: &Value,
    is_required: bool,
    sent: bool,
    links: &Links,
    depth: usize,
) -> Markup {
    let schema = document.resolve(property);
    let presence = match (is_required, sent) {
        (true, true) => "required",
        (false, true) => "optional",
        (true, false) => "",
        (false, false) => "may be absent",
    };
    let inside = list(document, schema, sent, links, depth - 1);
    let description = match text(property.get("description")) {
        "" => text(schema.get("description")),
        own => own,
    };
    html! {
        p.member {
            code.name { (name) } " " span.type { (kind(document, schema)) }
            @if schema.get("nullable").and_then(Value::as_bool) == Some(true) { span.type { " or null" } }
            @if !presence.is_empty() { " " span.presence data-presence=(presence) { (presence) } }
        }
        (render(description, 3, links))
        (bounds(schema))
        @if !inside.0.is_empty() {
            details { summary { "Members of " code { (name) } } (inside) }
        }
    }
}

/// Returns the schema of the items or values of a list or map, otherwise the schema itself.
fn inner<'a>(document: &'a Document, schema: &'a Value) -> &'a Value {
    let schema = document.resolve(schema);
    match schema
        .get("items")
        .or_else(|| schema.get("additionalProperties").filter(|value| value.is_object()))
    {
        Some(inner_schema) => inner(document, inner_schema),
        None => schema,
    }
}

/// Returns a schema's type in words.
pub fn kind(document: &Document, schema: &Value) -> String {
    let schema = document.resolve(schema);
    match (text(schema.get("type")), text(schema.get("format"))) {
        ("array", _) => match schema.get("items") {
            Some(items) => format!("array of {}", kind(document, items)),
            None => "array".to_owned(),
        },
        ("object", _) => match schema.get("additionalProperties").filter(|value| value.is_object()) {
            Some(values) => format!("object of {}", kind(document, values)),
            None => "object".to_owned(),
        },
        ("integer", _) => "integer".to_owned(),
        (plain, "") => plain.to_owned(),
        (plain, format) => format!("{plain} ({format})"),
    }
}

/// Renders a schema's bounds, values and example.
pub fn bounds(schema: &Value) -> Markup {
    let number = |name: &str| schema.get(name).filter(|value| value.is_number()).map(Value::to_string);
    let range = |min: &str, max: &str| match (number(min), number(max)) {
        (Some(min), Some(max)) => Some(format!("{min} to {max}")),
        (Some(min), None) => Some(format!("at least {min}")),
        (None, Some(max)) => Some(format!("at most {max}")),
        (None, None) => None,
    };
    let lines = [
        ("Value", range("minimum", "maximum")),
        ("Characters", range("minLength", "maxLength")),
        (
            "Entries",
            range("minProperties", "maxProperties").or_else(|| range("minItems", "maxItems")),
        ),
        ("Default", schema.get("default").map(plain)),
        (
            "Example",
            schema.get("example").filter(|value| !value.is_object()).map(plain),
        ),
    ];
    let values: Vec<&str> = strings(schema.get("enum")).collect();
    let known: Vec<&str> = strings(schema.get("x-known-values")).collect();
    html! {
        @if lines.iter().any(|(_, value)| value.is_some()) || !values.is_empty() || !known.is_empty() {
            dl.bounds {
                @for (name, value) in &lines {
                    @if let Some(value) = value { div { dt { (name) } dd { code { (value) } } } }
                }
                @if !values.is_empty() { div { dt { "One of" } dd { (codes(&values)) } } }
                @if !known.is_empty() { div { dt { "Known values (others may be added)" } dd { (codes(&known)) } } }
            }
        }
    }
}

fn codes(values: &[&str]) -> Markup {
    frame::joined(values.iter().map(|value| html! { code { (value) } }), " ")
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
