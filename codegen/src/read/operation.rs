//! Operations: parameters, bodies, responses.

use heck::ToSnakeCase;

use super::{names, schema};
use crate::Problem;
use crate::model::{BodyContent, Field, Operation, RequestBody, ResponseContent, Success, Type};
use crate::node::Node;

/// Reads one operation.
///
/// # Errors
/// What cannot be generated, with its place.
pub fn operation(path: &str, method: &str, item: &Node<'_>, node: &Node<'_>) -> Result<Operation, Problem> {
    if method == "trace" {
        return Err(node.refuse("Dropshot serves no TRACE"));
    }
    if let Some(place) = node.get("callbacks") {
        return Err(place.refuse("callbacks are not supported"));
    }
    let id = node.need("operationId")?;
    if id.text()? != id.text()?.to_snake_case() {
        let wanted = id.text()?.to_snake_case();
        return Err(id.refuse(format!(
            "an operationId names a function and a file: write it as `{wanted}`"
        )));
    }
    names::field_name(id.text()?, &id)?;
    let mut tags = Vec::new();
    if let Some(list) = node.get("tags") {
        for tag in list.items()? {
            tags.push(tag.text()?.to_string());
        }
    }
    let [path_parameters, query_parameters, header_parameters] = parameters(path, item, node)?;
    let Responses {
        successes,
        errors,
        error_types,
    } = responses(&node.need("responses")?)?;
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
        id: id.text()?.to_string(),
        method: method.to_uppercase(),
        path: path.to_string(),
        tag: tags.first().map(|tag| tag.to_snake_case()),
        tags,
        docs,
        deprecated: node.flag("deprecated")?,
        path_parameters,
        query_parameters,
        header_parameters,
        body: node.get("requestBody").map(|body| request_body(&body)).transpose()?,
        successes,
        errors,
        error_types,
        extensions,
        pointer: node.pointer().to_string(),
    })
}

fn parameters(path: &str, item: &Node<'_>, node: &Node<'_>) -> Result<[Vec<Field>; 3], Problem> {
    let mut all: Vec<(String, Field, Node<'_>)> = Vec::new();
    for owner in [item, node] {
        let Some(list) = owner.get("parameters") else { continue };
        for place in list.items()? {
            let parameter = place.resolved()?;
            let (location, field) = parameter_field(&parameter)?;
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
            return Err(node.refuse(format!("the path names `{name}`, but there is no such path parameter")));
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

fn parameter_field(node: &Node<'_>) -> Result<(String, Field), Problem> {
    let location = node.need("in")?;
    if !["path", "query", "header"].contains(&location.text()?) {
        let found = location.text()?;
        return Err(location.refuse(format!("a parameter in `{found}` is not supported")));
    }
    for key in ["style", "explode", "allowReserved", "allowEmptyValue", "content"] {
        if let Some(place) = node.get(key) {
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
    )?;
    field.deprecated |= node.flag("deprecated")?;
    match field.ty {
        Type::Array { .. } | Type::Map { .. } | Type::Any | Type::Decimal { .. } | Type::ExactNumber { .. } => {
            Err(node.refuse("a parameter must be text, a number, a boolean, a time, a UUID or an enumeration"))
        }
        _ => Ok((location.text()?.to_string(), field)),
    }
}

fn request_body(node: &Node<'_>) -> Result<RequestBody, Problem> {
    let body = node.resolved()?;
    if !body.flag("required")? {
        return Err(body.refuse("Dropshot has no optional bodies: write `required: true`"));
    }
    let raw = body.flag("x-raw-body")?;
    let content = body.need("content")?;
    match content.members()?.as_slice() {
        [("application/json", media)] => {
            let schema = media.need("schema")?;
            match schema::ty(&schema)? {
                Type::Named(ident) => Ok(RequestBody {
                    content: BodyContent::Json(ident),
                    raw,
                }),
                _ => Err(schema.refuse("a body needs a named type: refer to a schema under #/components/schemas/")),
            }
        }
        [("application/octet-stream", _)] => Ok(RequestBody {
            content: BodyContent::Bytes,
            raw,
        }),
        [(other, media)] => Err(media.refuse(format!("a body of `{other}` is not supported"))),
        _ => Err(content.refuse("a body needs exactly one media type")),
    }
}

#[derive(Default)]
struct Responses {
    successes: Vec<Success>,
    errors: Vec<(u16, Vec<String>)>,
    error_types: Vec<proc_macro2::Ident>,
}

fn responses(node: &Node<'_>) -> Result<Responses, Problem> {
    let mut all = Responses::default();
    for (status, place) in node.members()? {
        if status.starts_with("x-") {
            continue;
        }
        let code: u16 = status.parse().map_err(|_| {
            place.refuse(format!(
                "`{status}`: name each status; ranges and `default` say too little"
            ))
        })?;
        let response = place.resolved()?;
        match code {
            200..=299 => all.successes.push(success(code, &response)?),
            400..=599 => {
                let mut codes = Vec::new();
                if let Some(list) = response.get("x-error-codes") {
                    for item in list.items()? {
                        codes.push(item.text()?.to_string());
                    }
                }
                all.errors.push((code, codes));
                // An error without a body, or with one that is not JSON, is the server's own affair.
                if let ResponseContent::Json(ident) = success(code, &response)?.content
                    && !all.error_types.contains(&ident)
                {
                    all.error_types.push(ident);
                }
            }
            _ => return Err(place.refuse(format!("status {code} is not supported"))),
        }
    }
    if all.successes.is_empty() {
        return Err(node.refuse("an operation needs a success response"));
    }
    Ok(all)
}

fn success(status: u16, node: &Node<'_>) -> Result<Success, Problem> {
    let content = match node.get("content") {
        None => ResponseContent::Empty,
        Some(content) => match content.members()?.as_slice() {
            [("application/json", media)] => {
                let schema = media.need("schema")?;
                match schema::ty(&schema)? {
                    Type::Named(ident) => ResponseContent::Json(ident),
                    _ => return Err(schema.refuse("a response needs a named type under #/components/schemas/")),
                }
            }
            [(media_type, _)] => ResponseContent::Bytes((*media_type).to_string()),
            _ => return Err(content.refuse("a response needs exactly one media type")),
        },
    };
    let mut headers = Vec::new();
    if let Some(list) = node.get("headers") {
        for (name, place) in list.members()? {
            let header = place.resolved()?;
            if header.text_of("x-supplied-by")?.is_none() {
                names::field_name(name, &header)?;
                headers.push((name.to_string(), header.flag("required")?, schema::docs(&header)?));
            }
        }
    }
    Ok(Success {
        status,
        description: schema::docs(node)?,
        content,
        headers,
    })
}
