//! Operations: parameters, bodies, responses.

use heck::ToSnakeCase;

use super::schema::Derived;
use super::{embed, names, object, responses, schema, security};
use crate::Problem;
use crate::emit::operation_prefix;
use crate::model::{BodyContent, Field, Form, Operation, Others, RequestBody, ResponseContent, Type};
use crate::node::Node;

/// Reads one operation.
///
/// # Errors
/// What cannot be generated, with its place.
pub fn operation(
    path: &str,
    method: &str,
    item: &Node<'_>,
    node: &Node<'_>,
    derived: &mut Derived,
) -> Result<Operation, Problem> {
    if method == "trace" {
        return Err(node.refuse("Dropshot serves no TRACE; leave the operation out"));
    }
    if let Some(place) = node.get("callbacks") {
        return Err(place.refuse("callbacks are not supported; leave them out, and call back without generated code"));
    }
    let (id, ident) = match node.get("operationId") {
        Some(place) => (place.text()?.to_string(), names::function_name(place.text()?, &place)?),
        None => {
            let id = unnamed(method, path);
            let ident = names::function_name(&id, node)?;
            (id, ident)
        }
    };
    let owner = operation_prefix(&id);
    let mut tags = Vec::new();
    let mut tag = None;
    if let Some(list) = node.get("tags") {
        for place in list.items()? {
            if tags.is_empty() {
                tag = Some(names::field_name(place.text()?, &place)?);
            }
            tags.push(place.text()?.to_string());
        }
    }
    let [path_parameters, query_parameters, header_parameters] = parameters(path, item, node, &owner, derived)?;
    let body = node
        .get("requestBody")
        .map(|body| request_body(&body, &owner, derived))
        .transpose()?;
    let responses::Responses {
        successes,
        errors,
        error_type,
    } = responses::responses(&node.need("responses")?, &owner, derived)?;
    let websocket = successes
        .iter()
        .any(|success| matches!(success.content, ResponseContent::Upgraded));
    if websocket && (successes.len() > 1 || body.is_some()) {
        return Err(node.refuse("what opens a websocket has no body, and no other success than 101; leave them out"));
    }
    let mut docs = node.text_of("summary")?.unwrap_or_default().trim().to_string();
    let description = schema::docs(node)?;
    if !description.is_empty() {
        if !docs.is_empty() {
            docs.push_str("\n\n");
        }
        docs.push_str(&description);
    }
    let extensions = node
        .members()?
        .into_iter()
        .filter(|(key, _)| key.starts_with("x-"))
        .filter_map(|(key, place)| Some((key.to_string(), place.value().as_str()?.to_string())))
        .collect();
    Ok(Operation {
        is_unnamed: node.get("operationId").is_none(),
        id,
        ident,
        method: method.to_uppercase(),
        path: path.to_string(),
        tag,
        tags,
        docs,
        deprecated: node.flag("deprecated")?,
        path_parameters,
        query_parameters,
        header_parameters,
        body,
        websocket,
        pagination: node.get("x-dropshot-pagination").map(|place| place.value().clone()),
        successes,
        errors,
        error_type,
        security: security::requirements(&node.whole(), node)?,
        extensions,
        pointer: node.pointer().to_string(),
    })
}

/// The name of an operation that has none: `get_pets_by_id` of `GET /pets/{id}`.
pub fn unnamed(method: &str, path: &str) -> String {
    let mut id = method.to_string();
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        match segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(variable) => id += &format!("_by_{variable}"),
            None => id += &format!("_{segment}"),
        }
    }
    id.to_snake_case()
}

/// What a parameter may be.
pub const PARAMETER: &str = "a parameter must be text, a number, a boolean, a time, a day, a UUID, an \
                             enumeration or a `oneOf` of such";

fn parameters(
    path: &str,
    item: &Node<'_>,
    node: &Node<'_>,
    owner: &str,
    derived: &mut Derived,
) -> Result<[Vec<Field>; 3], Problem> {
    let mut all: Vec<(String, Field, Node<'_>)> = Vec::new();
    for holder in [item, node] {
        let Some(list) = holder.get("parameters") else { continue };
        for place in list.items()? {
            let parameter = place.resolved()?;
            let (location, field) = parameter_field(&parameter, owner, derived)?;
            // The operation's own parameter replaces the path's.
            all.retain(|(known, other, _)| !(known == &location && other.name == field.name));
            all.push((location, field, parameter));
        }
    }
    let named_in_path: Vec<&str> = path
        .split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
        .collect();
    for name in &named_in_path {
        if !all
            .iter()
            .any(|(location, field, _)| location == "path" && field.name == *name)
        {
            return Err(node.refuse(format!(
                "the path names `{name}`, but there is no such path parameter; declare it"
            )));
        }
    }
    let mut sorted: [Vec<Field>; 3] = Default::default();
    for (location, field, place) in all {
        if location == "path" && !named_in_path.contains(&field.name.as_str()) {
            return Err(place.refuse(format!("`{}` does not occur in the path `{path}`", field.name)));
        }
        match location.as_str() {
            "path" => sorted[0].push(field),
            "query" => sorted[1].push(field),
            _ => sorted[2].push(field),
        }
    }
    for fields in &sorted {
        names::distinct(fields.iter().map(|field| (field.name.as_str(), &field.ident)), node)?;
    }
    Ok(sorted)
}

fn parameter_field(node: &Node<'_>, owner: &str, derived: &mut Derived) -> Result<(String, Field), Problem> {
    let location = node.need("in")?;
    if !["path", "query", "header"].contains(&location.text()?) {
        let found = location.text()?;
        return Err(location.refuse(format!(
            "a parameter in `{found}` is not supported; use path, query or header"
        )));
    }
    for key in ["style", "explode", "allowReserved", "allowEmptyValue", "content"] {
        if let Some(place) = node.get(key) {
            // Of a single value these say what holds anyway.
            let usual = match location.text()? {
                "query" => "form",
                _ => "simple",
            };
            if key == "explode" || place.value() == usual || place.value() == false {
                continue;
            }
            return Err(place.refuse(format!(
                "`{key}` is not supported on a parameter; values are plain text"
            )));
        }
    }
    let required = node.flag("required")?;
    if location.text()? == "path" && !required {
        return Err(node.refuse("a path parameter needs `required: true`"));
    }
    let mut field = schema::field(
        node.need("name")?.text()?,
        schema::docs(node)?,
        required,
        &node.need("schema")?,
        owner,
        derived,
    )?;
    field.deprecated |= node.flag("deprecated")?;
    match field.ty {
        Type::Array { .. }
        | Type::Map { .. }
        | Type::Any
        | Type::Null
        | Type::Never
        | Type::Bytes
        | Type::Decimal { .. }
        | Type::ExactNumber { .. } => Err(node.refuse(PARAMETER)),
        _ => Ok((location.text()?.to_string(), field)),
    }
}

const FORM: &str = "application/x-www-form-urlencoded";

/// A form: an object whose members are what parameters may be, which `lint` sees.
fn form(node: &Node<'_>, owner: &str, derived: &mut Derived) -> Result<Form, Problem> {
    let target = node.resolved()?;
    if !object::is_object(&target)? {
        return Err(node.refuse("a form needs a schema with named members"));
    }
    let name = match node.text_of("$ref")? {
        Some(reference) => reference.trim_start_matches("#/components/schemas/").to_string(),
        None => format!("{owner}Form"),
    };
    let object = object::object(&target, &format!("{owner}Form"), derived)?;
    if let Others::Kept(field) = &object.others {
        return Err(Problem::refused(
            &field.pointer,
            "a form can only have members that are named",
        ));
    }
    let mut refers_to = Vec::new();
    embed::references(&target, &mut refers_to)?;
    Ok(Form {
        fields: object.fields,
        closed: matches!(object.others, Others::Refused),
        name,
        inline: node.get("$ref").is_none(),
        schema: embed::embedded(target.value()),
        refers_to,
    })
}

fn request_body(node: &Node<'_>, owner: &str, derived: &mut Derived) -> Result<RequestBody, Problem> {
    let body = node.resolved()?;
    if !body.flag("required")? {
        return Err(body.refuse("Dropshot has no optional bodies: write `required: true`"));
    }
    let raw = body.flag("x-raw-body")?;
    let content = body.need("content")?;
    let content = match content.members()?.as_slice() {
        [(media_type, media)] if responses::is_json(media_type) => {
            let schema = media.need("schema")?;
            BodyContent::Json(schema::named_type(&schema, &format!("{owner}Body"), derived)?)
        }
        [("application/octet-stream" | FORM, _)] if raw => {
            return Err(body.refuse("`x-raw-body` is for JSON; a handler of other bodies has no need of it"));
        }
        [(FORM, media)] => BodyContent::Form(form(&media.need("schema")?, owner, derived)?),
        [("application/octet-stream", _)] => BodyContent::Bytes,
        [(other, media)] => {
            return Err(media.refuse(format!(
                "a body of `{other}` is not supported; use JSON, a form or `application/octet-stream`"
            )));
        }
        _ => return Err(content.refuse("a body needs exactly one media type")),
    };
    Ok(RequestBody { content, raw })
}
