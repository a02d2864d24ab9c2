//! Operations with their parameters and bodies.

use std::collections::BTreeSet;

use serde_json::Value;

use super::field;
use super::schema::Derived;
use super::{embed, names, object, responses, schema, security, union};
use crate::error::Problem;
use crate::keywords::{ANNOTATIONS, is_json};
use crate::model::{
    BodyContent, Field, Form, ListStyle, Operation, Others, RequestBody, ResponseContent, StringRules, Success, Type,
    Versions,
};
use crate::naming::{operation_prefix, unnamed, variables};
use crate::node::Node;

pub fn operation(
    path: &str,
    method: &str,
    item: &Node<'_>,
    node: &Node<'_>,
    derived: &mut Derived,
) -> Result<Operation, Problem> {
    if method == "trace" {
        return Err(node.reject("Dropshot does not support TRACE; remove the operation"));
    }
    let (id, place) = match node.get("operationId") {
        Some(place) => (place.text()?.to_string(), place),
        None => (unnamed(method, path), node.clone()),
    };
    let renamed = node.renamed().operations.get(&(path.to_string(), method.to_string()));
    let name = renamed.unwrap_or(&id).clone();
    let ident = names::function_name(&name, &place)?;
    let owner = operation_prefix(&name);
    let mut tags = Vec::new();
    let mut tag = None;
    for place in node.items_of("tags")? {
        if tags.is_empty() {
            tag = Some(names::plain_name(place.text()?, &place)?);
        }
        tags.push(place.text()?.to_string());
    }
    let parameters = parameters(path, item, node, &owner, derived)?;
    let body = node.get("requestBody").map(|body| request_body(&body, &owner, derived));
    let body = body.transpose()?;
    let (successes, errors, error_type) = responses::responses(&node.need("responses")?, &owner, derived)?;
    let is_upgrade = |success: &Success| matches!(success.content, ResponseContent::Upgraded);
    let websocket = successes.iter().any(is_upgrade) || node.get("x-dropshot-websocket").is_some();
    if websocket && (successes.len() > 1 || body.is_some()) {
        let reason =
            "an operation that opens a websocket must not have a body or another success response; remove them";
        return Err(node.reject(reason));
    }
    let summary = node.text_of("summary")?.unwrap_or_default().trim().to_string();
    let mut docs = vec![summary, node.description()?];
    docs.retain(|text| !text.is_empty());
    let extensions = node.members()?.into_iter().filter(|(key, _)| key.starts_with("x-"));
    let extensions = extensions.filter_map(|(key, place)| Some((key.to_string(), place.value().as_str()?.to_string())));
    Ok(Operation {
        is_unnamed: node.get("operationId").is_none(),
        id,
        name,
        versions: Versions::default(),
        ident,
        method: method.to_uppercase(),
        path: path.to_string(),
        tag,
        tags,
        docs: docs.join("\n\n"),
        deprecated: node.flag("deprecated")?,
        parameters,
        body,
        websocket,
        pagination: node.get("x-dropshot-pagination").map(|place| place.value().clone()),
        successes,
        errors,
        error_type,
        security: security::requirements(&node.whole(), node)?,
        extensions: extensions.collect(),
        pointer: node.pointer().to_string(),
    })
}

/// The supported types of parameters.
pub const PARAMETER: &str = "a parameter must be a string, a number, a boolean, an enumeration, a `oneOf` of these or \
                             a list of these";

fn parameters(
    path: &str,
    item: &Node<'_>,
    node: &Node<'_>,
    owner: &str,
    derived: &mut Derived,
) -> Result<[Vec<Field>; 4], Problem> {
    let mut all: Vec<(String, Field, Node<'_>)> = Vec::new();
    for holder in [item, node] {
        for place in holder.items_of("parameters")? {
            let parameter = place.resolved()?;
            let (location, field) = parameter_field(&parameter, owner, derived)?;
            // The operation's own parameter replaces that of the path item.
            all.retain(|(known, other, _)| !(known == &location && other.name == field.name));
            all.push((location, field, parameter));
        }
    }
    let named_in_path: Vec<&str> = variables(path).collect();
    for name in &named_in_path {
        let is_this = |(location, field, _): &(String, Field, _)| location == "path" && field.name == *name;
        if !all.iter().any(is_this) {
            return Err(node.reject(format!(
                "the path contains `{name}`, which is not declared as a path parameter; declare it"
            )));
        }
    }
    let mut sorted: [Vec<Field>; 4] = Default::default();
    for (location, field, place) in all {
        if location == "path" && !named_in_path.contains(&field.name.as_str()) {
            return Err(place.reject(format!("`{}` does not occur in the path `{path}`", field.name)));
        }
        let index = ["path", "query", "header"].iter().position(|known| *known == location);
        sorted[index.unwrap_or(3)].push(field);
    }
    for fields in &mut sorted {
        names::distinct(fields.iter_mut().map(|field| &mut field.ident));
    }
    Ok(sorted)
}

fn parameter_field(node: &Node<'_>, owner: &str, derived: &mut Derived) -> Result<(String, Field), Problem> {
    let location = node.need("in")?;
    for key in ["allowReserved", "allowEmptyValue"] {
        if let Some(place) = node.get(key).filter(|place| place.value() != false) {
            return Err(place.reject(format!("`{key}` is not supported on a parameter")));
        }
    }
    let (schema, list) = match node.get("content").as_ref().map(Node::members).transpose()?.as_deref() {
        None => (node.need("schema")?, list_style(node, location.text()?)?),
        Some([(media_type, media)]) if is_json(media_type) => (media.need("schema")?, ListStyle::Json),
        Some(_) => {
            return Err(node
                .need("content")?
                .reject("the `content` of a parameter must be JSON"));
        }
    };
    let required = node.flag("required")?;
    if location.text()? == "path" && !required {
        return Err(node.reject("a path parameter must have `required: true`"));
    }
    let name = node.need("name")?.text()?;
    let mut field = field::field(name, node.description()?, required, &schema, owner, derived)?;
    field.deprecated |= node.flag("deprecated")?;
    field.list = Some(list);
    Ok((location.text()?.to_string(), field))
}

/// The encoding of a list. For other values, `style` must be the default.
fn list_style(node: &Node<'_>, location: &str) -> Result<ListStyle, Problem> {
    let usual = match location {
        "query" | "cookie" => "form",
        _ => "simple",
    };
    let style = node.text_of("style")?.unwrap_or(usual);
    let explode = match node.get("explode") {
        Some(_) => node.flag("explode")?,
        None => style == "form",
    };
    Ok(match (style, location) {
        ("form" | "spaceDelimited" | "pipeDelimited", "query") | ("form", "cookie") if explode => ListStyle::Repeated,
        ("form", "query" | "cookie") | ("simple", "path" | "header") => ListStyle::Separated(','),
        ("spaceDelimited", "query") => ListStyle::Separated(' '),
        ("pipeDelimited", "query") => ListStyle::Separated('|'),
        _ => {
            let place = node.get("style").unwrap_or_else(|| node.clone());
            return Err(place.reject(format!(
                "`style: {style}` is not supported here; use `{usual}`, or for a list in a query `spaceDelimited` or \
                 `pipeDelimited`"
            )));
        }
    })
}

/// The remedy for a body or a response with several media types.
pub const CHOOSE: &str = "only one media type is supported here; remove the others, or choose one with `--media-type`";

const FORM: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data";

/// Reads a form, whose members must have types that parameters can have. `lint` checks the types.
fn form(node: &Node<'_>, owner: &str, derived: &mut Derived) -> Result<Form, Problem> {
    let target = node.resolved()?;
    if !object::is_object(&target)? {
        return Err(node.reject("a form must have a schema with declared members"));
    }
    if let Some(keyword) = union::beside(&target).next() {
        return Err(target.need(keyword)?.reject(
            "alternatives in a form are not supported, because they would not be checked; declare all members, and \
             check them in the handler",
        ));
    }
    let name = match node.text_of("$ref")? {
        Some(reference) => reference.trim_start_matches("#/components/schemas/").to_string(),
        None => format!("{owner}Form"),
    };
    let mut object = object::object(&target, &format!("{owner}Form"), derived)?;
    for field in &mut object.fields {
        field.list = Some(ListStyle::Repeated);
        // A member or an item without a schema is text.
        match &mut field.ty {
            Type::Array { items: ty, .. } if **ty == Type::Any => **ty = Type::String(StringRules::NONE),
            Type::Any => field.ty = Type::String(StringRules::NONE),
            _ => {}
        }
    }
    if let Others::Kept(field) = &object.others {
        let reason = "a form must declare all of its members";
        return Err(Problem::rejected(&field.pointer, reason));
    }
    let mut refers_to = Vec::new();
    embed::references(&target, &mut refers_to)?;
    Ok(Form {
        fields: object.fields,
        closed: matches!(object.others, Others::Rejected),
        name,
        inline: node.get("$ref").is_none(),
        schema: embed::embedded(target.value()),
        refers_to,
    })
}

fn request_body(node: &Node<'_>, owner: &str, derived: &mut Derived) -> Result<RequestBody, Problem> {
    let body = node.resolved()?;
    let optional = !body.flag("required")?;
    let raw = body.flag("x-raw-body")?;
    let further_errors = body.flag("x-further-faults")?;
    let content = body.need("content")?;
    let content = match content.members()?.as_slice() {
        [(media_type, media)] if is_json(media_type) => {
            let schema = media.need("schema")?;
            BodyContent::Json(schema::named_type(&schema, &format!("{owner}Body"), derived)?)
        }
        [_] if raw => {
            let reason = "`x-raw-body` must be on a JSON body; handlers always receive the bytes of other bodies";
            return Err(body.reject(reason));
        }
        [(MULTIPART, media)] => {
            if let Some(schema) = media.get("schema") {
                parts(&schema, &mut BTreeSet::new())?;
            }
            BodyContent::Multipart
        }
        [(FORM, media)] => {
            for (_, encoding) in media.members_of("encoding")? {
                let is_other = |(key, usual): (&str, Value)| encoding.get(key).filter(|place| *place.value() != usual);
                let mut usual = [("style", "form".into()), ("explode", true.into())].into_iter();
                if let Some(place) = usual.find_map(is_other) {
                    return Err(place.reject(
                        "a form sends a list by repeating the member's name, and an object as JSON; remove it",
                    ));
                }
            }
            BodyContent::Form(form(&media.need("schema")?, owner, derived)?)
        }
        [("application/octet-stream", _)] => BodyContent::Bytes,
        [(_, media)] if is_bytes(media)? => BodyContent::Bytes,
        [(other, media)] => {
            return Err(media.reject(format!(
                "the schema of a body with the media type `{other}` is not supported, because values would not be checked \
                 against it; use JSON, or `type: string` without rules for a body that the handler reads"
            )));
        }
        _ => return Err(content.reject(CHOOSE)),
    };
    if further_errors && (optional || !matches!(content, BodyContent::Json(_))) {
        return Err(body.reject("`x-further-faults` must be on a required JSON body"));
    }
    Ok(RequestBody {
        content,
        raw,
        further_errors,
        optional,
    })
}

/// Whether the schema of a media type allows any bytes.
fn is_bytes(media: &Node<'_>) -> Result<bool, Problem> {
    let Some(schema) = media.get("schema") else {
        return Ok(true);
    };
    let schema = schema.resolved()?;
    let is_string = matches!(schema.text_of("type")?, None | Some("string"));
    let has_no_rules = |(key, _): &(&str, Node<'_>)| {
        ["type", "format"].contains(key) || ANNOTATIONS.contains(key) || key.starts_with("x-")
    };
    Ok(is_string && schema.members()?.iter().all(has_no_rules))
}

/// Checks the schema of multipart parts, which only the handler reads. It may declare parts and their types, but no
/// rules.
fn parts(node: &Node<'_>, seen: &mut BTreeSet<String>) -> Result<(), Problem> {
    const KINDS: [&str; 3] = ["type", "format", "items"];
    let node = node.resolved()?;
    if !seen.insert(node.pointer().to_string()) {
        return Ok(());
    }
    for (key, place) in node.members()? {
        match key {
            "properties" => place.members()?.iter().try_for_each(|(_, part)| parts(part, seen))?,
            "items" => parts(&place, seen)?,
            "required" => {}
            _ if KINDS.contains(&key) || key.starts_with("x-") || ANNOTATIONS.contains(&key) => {}
            _ => {
                return Err(place.reject(format!(
                    "`{key}` of a part is not supported, because Dropshot does not check parts; remove it, and check \
                     the part in the handler"
                )));
            }
        }
    }
    Ok(())
}
