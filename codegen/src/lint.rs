//! Checks that involve more than one part of a document.

use std::collections::BTreeMap;

use proc_macro2::Ident;

use crate::error::Problem;
use crate::model::{Api, BodyContent, Dispatch, Field, ListStyle, Operation, Shape, Tagging, TypeDefinition, Types};
use crate::naming::{operation_prefix, variables};
use crate::read::PARAMETER;

/// Returns every reason why the server selected by `dispatch` does not support the document as a whole.
pub fn check(api: &Api, dispatch: Dispatch) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut known = BTreeMap::new();
    for definition in &api.types {
        if let Some(other) = known.insert(definition.ident.to_string(), definition) {
            let (ident, at) = (&definition.ident, &other.pointer);
            let reason = format!("`{ident}` is also the Rust name of {at}; rename one");
            found.push(Problem::rejected(&definition.pointer, reason));
        }
    }
    let types = Types::of(&api.types);
    for definition in &api.types {
        found.extend(finite(definition, &types).err());
        found.extend(bounded(definition, &types).err());
    }
    let mut names: BTreeMap<String, (&str, &str)> = BTreeMap::new();
    for operation in &api.operations {
        let reject = |reason: String| Problem::rejected(&operation.pointer, reason);
        let (id, name) = (&operation.id, operation_prefix(&operation.name));
        match names.get(&name) {
            None => {
                found.extend(parameters(operation, api).err());
                names.insert(name, (id, &operation.pointer));
            }
            Some((other, at)) if other == id => found.push(reject(format!(
                "operationId `{id}` is already used at {at}; operation IDs must be unique"
            ))),
            Some((other, at)) => found.push(reject(format!(
                "`{id}` and `{other}` at {at} have the same Rust name `{name}`; rename one"
            ))),
        }
        found.extend(segments(&operation.path).err().map(reject));
    }
    match dispatch {
        Dispatch::Dropshot => found.extend(conflicts(&api.operations)),
        Dispatch::Calls => found.extend(api.operations.iter().filter_map(needs_dropshot)),
    }
    found
}

/// Rejects what only Dropshot's server gives access to.
fn needs_dropshot(operation: &Operation) -> Option<Problem> {
    let what = match operation.content() {
        _ if operation.websocket => "websockets require",
        Some(BodyContent::Multipart) => "multipart bodies require",
        _ => return None,
    };
    let reason = format!("{what} Dropshot's server; generate without `--dispatch calls`");
    Some(Problem::rejected(&operation.pointer, reason))
}

/// Rejects a type that contains itself other than through an array or a map, because its values would be infinite.
fn finite(definition: &TypeDefinition, types: &Types<'_>) -> Result<(), Problem> {
    let ident = &definition.ident;
    let leads_back = |held: &Ident| types.reached([held.clone()], TypeDefinition::held).contains(ident);
    match definition.held().into_iter().find(leads_back) {
        None => Ok(()),
        Some(through) => {
            let reason = format!("`{ident}` contains itself through `{through}`; use an array or a map in between");
            Err(Problem::rejected(&definition.pointer, reason))
        }
    }
}

fn parameters(operation: &Operation, api: &Api) -> Result<(), Problem> {
    for field in operation.parameters.iter().flatten() {
        if field.list != Some(ListStyle::Json) && !api.is_text(api.list_items(&field.ty).unwrap_or(&field.ty), true) {
            return Err(Problem::rejected(&field.pointer, PARAMETER));
        }
    }
    let [path, query, _, cookies] = &operation.parameters;
    for Field { ty, list, pointer, .. } in cookies {
        if *list == Some(ListStyle::Repeated) && api.is_list(ty) {
            let reason = "a list in a cookie must have `explode: false`, because a request has a cookie only once";
            return Err(Problem::rejected(pointer, reason));
        }
    }
    for Field { name, pointer, .. } in query {
        if path.iter().any(|field| field.name == *name) {
            let reason = format!(
                "`{name}` is both a query and a path parameter, which Dropshot does not distinguish; rename one"
            );
            return Err(Problem::rejected(pointer, reason));
        }
    }
    Ok(())
}

/// Rejects an untagged union that contains itself, because trying its alternatives would take twice as long for every
/// level of nesting.
fn bounded(definition: &TypeDefinition, types: &Types<'_>) -> Result<(), Problem> {
    let is_tried = match &definition.shape {
        Shape::Union(union) => matches!(union.tagging, Tagging::Value { .. }),
        Shape::Checked(_) => true,
        _ => false,
    };
    let reached = || types.reached(definition.mentioned(), TypeDefinition::mentioned);
    match is_tried && reached().contains(&definition.ident) {
        true => Err(Problem::rejected(
            &definition.pointer,
            "a union without a discriminator must not contain itself, because each level of nesting would double the \
             work; give every alternative a member with a constant value, such as `type`",
        )),
        false => Ok(()),
    }
}

/// The segments of a path, without a slash at its end.
fn segments(path: &str) -> Result<Vec<&str>, String> {
    let Some(inside) = path.strip_prefix('/') else {
        return Err("a path must begin with a slash".into());
    };
    let inside = inside.strip_suffix('/').unwrap_or(inside);
    let names: Vec<&str> = variables(path).collect();
    for (index, name) in names.iter().enumerate() {
        match *name {
            "" => return Err("a path variable must have a name".into()),
            name if names[..index].contains(&name) => {
                return Err(format!("the path contains `{{{name}}}` twice; rename one"));
            }
            _ => {}
        }
    }
    let all: Vec<&str> = inside.split('/').filter(|_| !inside.is_empty()).collect();
    for segment in &all {
        // The rest of the segment, without its variables, is literal.
        let literal = variables(segment).fold((*segment).to_string(), |rest, name| {
            rest.replace(&format!("{{{name}}}"), "")
        });
        if segment.is_empty() {
            return Err("a path must not have empty segments; remove one of the slashes".into());
        }
        if literal.contains(['{', '}']) || segment.contains("}{") || names.iter().any(|name| name.contains(['{', ':']))
        {
            return Err(format!(
                "`{segment}`: variables must be in braces, with a literal between two of them"
            ));
        }
    }
    Ok(all)
}

/// Whether a variable is only a part of a segment.
pub fn is_partial(segment: &str) -> bool {
    segment.contains('{') && !(segment.rfind('{') == Some(0) && segment.ends_with('}'))
}

/// Returns the paths on which Dropshot's router would panic. The router ignores a slash at the end.
pub fn conflicts(operations: &[Operation]) -> Vec<Problem> {
    let mut found = Vec::new();
    // For each parent path, the first segment found below it and the path that it belongs to: a literal or a variable.
    let mut places: BTreeMap<String, (&str, &str)> = BTreeMap::new();
    let mut served: BTreeMap<(&str, String, Option<&str>), &str> = BTreeMap::new();
    for operation in operations {
        let Ok(segments) = segments(&operation.path) else {
            continue;
        };
        let reject = |reason: String| Problem::rejected(&operation.pointer, reason);
        let mut parent = String::new();
        let conflict = segments.into_iter().find_map(|segment| {
            let conflict = match places.get(&parent) {
                _ if is_partial(segment) => Some(format!(
                    "`{segment}`: Dropshot's router supports a variable only as a whole segment; generate with \
                     `--dispatch calls` and serve with another router, or change the path"
                )),
                Some((there, other)) if *there != segment && (segment.starts_with('{') || there.starts_with('{')) => {
                    Some(format!(
                        "Dropshot's router cannot have `{segment}` here and `{there}` in the same place of the path \
                         `{other}`; generate with `--dispatch calls` and serve with another router, or change one of \
                         the paths"
                    ))
                }
                Some(_) => None,
                None => {
                    places.insert(parent.clone(), (segment, &operation.path));
                    None
                }
            };
            parent = format!("{parent}/{segment}");
            conflict
        });
        if let Some(reason) = conflict {
            found.push(reject(reason));
            continue;
        }
        // Operations of several versions do not overlap, because each starts at a different version.
        let key = (operation.method.as_str(), parent, operation.versions.from.as_deref());
        if let Some(other) = served.insert(key, &operation.path) {
            found.push(reject(format!(
                "Dropshot does not distinguish `{}` from `{other}`, because it ignores a trailing slash; remove one of them",
                operation.path
            )));
        }
    }
    found
}
