//! Explains what is generated for a place in a document.

use codegen_runtime::Format;
use serde_json::Value;
use syn::ext::IdentExt;

use crate::emit::{operation_type, rust_text};
use crate::error::Problem;
use crate::keywords::is_rule_of_a_type;
use crate::load::Document;
use crate::model;
use crate::model::{
    Api, BodyContent, Field, JoinedPart, OneWay, Operation, Others, ResponseContent, Shape, Tagging, Type,
    TypeDefinition,
};
use crate::node::{below, members};
use crate::rejections::{all, skipping};

/// Describes what is generated for the place at `pointer` (`#/components/schemas/Pet`), or why it is rejected.
///
/// # Errors
/// If the document has nothing at `pointer`.
pub fn explain(document: &Document, pointer: &str) -> Result<String, Problem> {
    let pointer = match pointer.strip_prefix('/') {
        Some(rest) => format!("#/{rest}"),
        None => pointer.to_string(),
    };
    let place = pointer.strip_prefix('#');
    let Some(value) = place.and_then(|place| document.value.pointer(place)) else {
        return Err(document.locate(nothing_there(document, &pointer)));
    };
    let place = document.locate(Problem::rejected(&pointer, ""));
    let mut lines = vec![place.to_string().trim_end_matches(": ").to_string()];
    if let Some(Value::String(target)) = value.get("$ref") {
        lines.push(format!("refers to {target}"));
    }
    let problems = all(document);
    let is_near = |at: &str| below(at, &pointer).or(below(&pointer, at)).is_some();
    let is_here = |it: &&Problem| matches!(it, Problem::Rejected { pointer, .. } if is_near(pointer));
    let near = problems.iter().filter(is_here);
    let rejected: Vec<String> = near.map(|problem| format!("rejected: {problem}")).collect();
    let api = match problems.is_empty() {
        true => model(document),
        false => skipping(document).and_then(|(rest, _)| model(&rest)),
    };
    match api.as_ref().ok().and_then(|api| found(api, &pointer)) {
        Some((at, made)) => {
            if at != pointer {
                lines.push(format!("part of {at}:"));
            }
            lines.extend(made);
        }
        None if rejected.is_empty() => lines.push("no code is generated for it".into()),
        None => {}
    }
    lines.extend(rejected);
    Ok(lines.join("\n"))
}

fn nothing_there(document: &Document, pointer: &str) -> Problem {
    let mut around = pointer;
    while let Some((before, _)) = around.rsplit_once('/') {
        around = before;
        if let Some(value) = document.value.pointer(around.trim_start_matches('#')) {
            let members: Vec<&str> = members(Some(value)).map(|(name, _)| name.as_str()).collect();
            let members = members.join(", ");
            let reason = format!("{pointer} is not in the document; the members here are: {members}");
            return Problem::rejected(around, reason);
        }
    }
    let reason = format!("`{pointer}` must be a JSON pointer, such as #/components/schemas/Pet or #/paths/~1pets/get");
    Problem::rejected("#", reason)
}

/// The innermost place enclosing `pointer` for which something is generated, and a description of that.
fn found(api: &Api, pointer: &str) -> Option<(String, Vec<String>)> {
    let mut best: Option<(String, Vec<String>)> = None;
    let mut consider = |at: &str, lines: &dyn Fn() -> Vec<String>| {
        let nearer = best.as_ref().is_none_or(|(known, _)| at.len() > known.len());
        if below(pointer, at).is_some() && nearer {
            best = Some((at.to_string(), lines()));
        }
    };
    for definition in &api.types {
        if let Shape::Struct(object) = &definition.shape {
            let owner = format!("`{}`", definition.ident.unraw());
            for one in &object.fields {
                consider(&one.pointer, &|| field(one, &owner, api));
            }
        }
    }
    for operation in &api.operations {
        for (fields, _, suffix) in operation.groups() {
            let owner = operation_type(api, operation, suffix);
            for one in fields {
                let parameter = one.pointer.strip_suffix("/schema").unwrap_or(&one.pointer);
                consider(parameter, &|| field(one, &format!("`{owner}`"), api));
            }
        }
        let owner = operation_type(api, operation, "Form");
        for one in operation.form() {
            consider(&one.pointer, &|| field(one, &format!("`{owner}`"), api));
        }
        consider(&operation.pointer, &|| function(operation, api));
    }
    for definition in &api.types {
        consider(&definition.pointer, &|| named(definition));
    }
    best
}

fn field(field: &Field, owner: &str, api: &Api) -> Vec<String> {
    let ty = rust_text(&field.ty, field.is_option());
    let mut lines = vec![format!("field `{}` of {owner}: `{ty}`", field.ident)];
    let presence = match (field.required, field.nullable, &field.default) {
        _ if field.one_way == Some(OneWay::Responses) => "sent in responses only; requests may omit it".to_string(),
        (true, false, _) => "required, not null".to_string(),
        (true, true, _) => "required, may be null".to_string(),
        (false, _, Some(default)) => format!("optional, {default} by default"),
        (false, true, None) => "optional, may be null".to_string(),
        (false, false, None) => "optional, not null".to_string(),
    };
    lines.push(presence);
    if field.one_way == Some(OneWay::Requests) {
        lines.push("sent in requests only; responses omit it".into());
    }
    lines.extend(rules(&field.schema));
    if let Type::Named(ident) = &field.ty
        && let Some(definition) = api.definition(ident)
    {
        lines.extend(named(definition));
    }
    lines
}

fn named(definition: &TypeDefinition) -> Vec<String> {
    let ident = definition.ident.unraw();
    let mut lines = match &definition.shape {
        Shape::Struct(object) => {
            let mut lines = vec![format!("struct `types::{ident}`:")];
            let line = |field: &Field| format!("    {}: {}", field.ident, rust_text(&field.ty, field.is_option()));
            lines.extend(object.fields.iter().map(line));
            lines.push(match &object.others {
                Others::Ignored => "other members are ignored".into(),
                Others::Rejected => "other members are rejected".into(),
                Others::Kept(field) => format!("other members are kept in `{}`", field.ident),
            });
            lines
        }
        Shape::Enum(of) => {
            let all = of.variants.iter();
            let all: Vec<String> = all.map(|it| format!("{} ({:?})", it.ident.unraw(), it.value)).collect();
            vec![format!("enum `types::{ident}`: {}", all.join(", "))]
        }
        Shape::Union(union) => {
            let all = union.alternatives.iter();
            let all = all.map(|it| format!("{} ({})", it.ident.unraw(), it.values.join(", ")));
            let all: Vec<String> = all.collect();
            let apart = match &union.tagging {
                Tagging::Member(tag) => format!("identified by `{tag}`"),
                Tagging::Name => "identified by its text or the name of its only member".into(),
                Tagging::Value { exclusive: true } => "the only one that matches".into(),
                Tagging::Value { exclusive: false } => "the first one that matches".into(),
            };
            vec![format!("enum `types::{ident}`, {apart}: {}", all.join(", "))]
        }
        Shape::Joined(parts) => {
            let line = |part: &JoinedPart| format!("    {}: {}", part.ident, rust_text(&part.ty, false));
            let mut lines = vec![format!(
                "struct `types::{ident}`, an object with the members of all of:"
            )];
            lines.extend(parts.iter().map(line));
            lines
        }
        Shape::Checked(alternatives) => {
            let all: Vec<String> = alternatives.iter().map(|it| it.values.join(", ")).collect();
            let all = all.join(", ");
            vec![format!(
                "struct `types::{ident}`, a JSON value that matches at least one of {all}"
            )]
        }
        Shape::Newtype(ty) => {
            let mut lines = vec![format!("newtype `types::{ident}` of `{}`", rust_text(ty, false))];
            lines.extend(rules(&definition.schema));
            lines
        }
    };
    lines.push(
        match (definition.in_requests, definition.in_responses) {
            (true, true) => "used in requests and responses",
            (true, false) => "used in requests",
            (false, true) => "used in responses",
            (false, false) => "not generated, because no operation uses it",
        }
        .into(),
    );
    lines
}

fn function(operation: &Operation, api: &Api) -> Vec<String> {
    let place = match &operation.tag {
        Some(tag) => format!("{tag}::{}", operation.ident),
        None => operation.ident.to_string(),
    };
    let Operation { method, path, .. } = operation;
    let mut lines = vec![format!("{method} {path}: `endpoints::{place}::handle`, which receives")];
    for (_, name, suffix) in operation.groups() {
        lines.push(format!("    {name}: types::{}", operation_type(api, operation, suffix)));
    }
    if let Some(body) = &operation.body {
        lines.push(match &body.content {
            BodyContent::Json(ident) if body.optional => format!("    body: Option<types::{}>", ident.unraw()),
            BodyContent::Json(ident) => format!("    body: types::{}", ident.unraw()),
            BodyContent::Form(_) => format!("    body: types::{}", operation_type(api, operation, "Form")),
            BodyContent::Bytes => "    body: the bytes as they are".into(),
            BodyContent::Multipart => "    body: the parts as sent, which are not checked".into(),
        });
        if body.raw {
            lines.push("    raw: the exact bytes of the body".into());
        }
        if body.further_errors {
            lines.push("    and `further_errors` beside it, with `--dispatch calls`, reports further errors in a rejected body".into());
        }
    }
    if operation.websocket {
        lines.push("    upgrade: the connection, to become a websocket".into());
    }
    let response = operation_type(api, operation, "Response");
    lines.push(format!("and returns `responses::{response}`:"));
    for success in &operation.successes {
        let content = match &success.content {
            ResponseContent::Empty => "nothing".to_string(),
            ResponseContent::Json(ident, _) => format!("types::{}", ident.unraw()),
            ResponseContent::Bytes(media_type) => media_type.clone(),
            ResponseContent::Upgraded => "a websocket".to_string(),
            ResponseContent::Whole => "the response that the handler builds".to_string(),
        };
        let status = success.status.map(|status| status.to_string());
        let status = status.unwrap_or("any status".into());
        lines.push(format!("    {status}: {content}"));
    }
    lines
}

/// The rules of a schema, which are checked when a value is read, one per line.
fn rules(schema: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for (key, value) in schema.as_object().into_iter().flatten() {
        match key.as_str() {
            "items" | "additionalProperties" => {
                lines.extend(rules(value).into_iter().map(|rule| format!("each item {rule}")));
            }
            "not" => lines.push("checked: not 0".into()),
            // The Rust type says what other formats mean.
            "format" => {
                lines.extend(Format::named(&text(value)).map(|it| format!("checked: must be {}", it.expected())))
            }
            "properties" => {}
            "x-decimal-places" | "x-max-significant-digits" | "x-key-pattern" => lines.push(rule(key, value)),
            _ if is_rule_of_a_type(key) => lines.push(rule(key, value)),
            _ => {}
        }
    }
    lines
}

fn rule(key: &str, value: &Value) -> String {
    format!("checked: {key} {}", text(value))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}
