//! Checks that involve more than one part of a document.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Ident;

use crate::emit::Dispatch;
use crate::error::Problem;
use crate::model::{Api, BodyContent, Field, Operation, Shape, Tagging, Type, TypeDefinition, close_over};
use crate::naming::operation_prefix;
use crate::read::PARAMETER;

/// Returns every reason why the server selected by `dispatch` does not support the document as a whole.
pub fn check(api: &Api, dispatch: Dispatch) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut types = BTreeMap::new();
    for definition in &api.types {
        if let Some(other) = types.insert(definition.ident.to_string(), definition) {
            let (ident, at) = (&definition.ident, &other.pointer);
            let reason = format!("`{ident}` is also the Rust name of {at}; rename one");
            found.push(Problem::rejected(&definition.pointer, reason));
        }
        found.extend(tags_are_text(definition, api).err());
    }
    for definition in &api.types {
        found.extend(finite(definition, &types).err());
        found.extend(bounded(definition, api).err());
    }
    let mut names: BTreeMap<String, (&str, &str)> = BTreeMap::new();
    for operation in &api.operations {
        let name = operation_prefix(&operation.name);
        match names.get(&name) {
            None => {}
            Some((id, at)) if *id == operation.id => {
                let reason = format!("operationId `{id}` is already used at {at}; operation IDs must be unique");
                found.push(Problem::rejected(&operation.pointer, reason));
                continue;
            }
            Some((id, at)) => {
                let reason = format!(
                    "`{}` and `{id}` at {at} have the same Rust name `{name}`; rename one",
                    operation.id
                );
                found.push(Problem::rejected(&operation.pointer, reason));
                continue;
            }
        }
        found.extend(parameters(operation, &types).err());
        names.insert(name, (&operation.id, &operation.pointer));
    }
    for operation in &api.operations {
        found.extend(
            segments(&operation.path)
                .err()
                .map(|reason| Problem::rejected(&operation.pointer, reason)),
        );
    }
    match dispatch {
        Dispatch::Dropshot => found.extend(conflicts(&api.operations)),
        Dispatch::Calls => found.extend(api.operations.iter().filter_map(needs_dropshot)),
    }
    found
}

/// Rejects what only Dropshot's server gives access to.
fn needs_dropshot(operation: &Operation) -> Option<Problem> {
    let content = operation.body.as_ref().map(|body| &body.content);
    let what = match content {
        _ if operation.websocket => "websockets require",
        Some(BodyContent::Multipart) => "multipart bodies require",
        _ => return None,
    };
    let reason = format!("{what} Dropshot's server; generate without `--dispatch calls`");
    Some(Problem::rejected(&operation.pointer, reason))
}

/// Rejects a type that contains itself other than through an array or a map, because its values would be infinite.
fn finite(definition: &TypeDefinition, types: &BTreeMap<String, &TypeDefinition>) -> Result<(), Problem> {
    let mut reached = vec![definition];
    let mut next = 0;
    while let Some(current) = reached.get(next).copied() {
        next += 1;
        for ident in current.held() {
            if *ident == definition.ident {
                let reason = format!(
                    "`{}` contains itself through `{}`; use an array or a map in between",
                    definition.ident, current.ident
                );
                return Err(Problem::rejected(&definition.pointer, reason));
            }
            if let Some(other) = types.get(&ident.to_string())
                && !reached.iter().any(|known| known.ident == other.ident)
            {
                reached.push(other);
            }
        }
    }
    Ok(())
}

/// Checks that discriminators are strings or string enumerations.
fn tags_are_text(definition: &TypeDefinition, api: &Api) -> Result<(), Problem> {
    let Shape::Union(union) = &definition.shape else {
        return Ok(());
    };
    let find = |ident: &proc_macro2::Ident| api.types.iter().find(|definition| definition.ident == *ident);
    let Tagging::Member(tag) = &union.tagging else {
        return Ok(());
    };
    for alternative in &union.alternatives {
        let Some(Type::Named(ident)) = alternative.content.as_ref().map(Type::unboxed) else {
            continue;
        };
        let Some(Shape::Struct(object)) = find(ident).map(|definition| &definition.shape) else {
            continue;
        };
        for field in object.fields.iter().filter(|field| field.name == *tag) {
            let Type::Named(ident) = &field.ty else { continue };
            let values = match find(ident).map(|definition| &definition.shape) {
                Some(Shape::Enum(of)) => &of.variants,
                _ => {
                    let reason = "a discriminator must be a string or an enumeration";
                    return Err(Problem::rejected(&field.pointer, reason));
                }
            };
            let lacks = |value: &&String| !values.iter().any(|known| known.value == **value);
            if let Some(value) = alternative.values.iter().find(lacks) {
                let reason = format!("`{value}` identifies this alternative but is not one of the allowed values");
                return Err(Problem::rejected(&field.pointer, reason));
            }
        }
    }
    Ok(())
}

fn parameters(operation: &Operation, types: &BTreeMap<String, &TypeDefinition>) -> Result<(), Problem> {
    let all = [
        &operation.path_parameters,
        &operation.query_parameters,
        &operation.header_parameters,
    ];
    let form = match operation.body.as_ref().map(|body| &body.content) {
        Some(BodyContent::Form(form)) => form.fields.as_slice(),
        _ => &[],
    };
    if let Some(field) = form.iter().find(|field| !is_parameter(&field.ty, types)) {
        let reason = "a member of a form must be a string, a number, a boolean, an enumeration, a `oneOf` of these or \
                      a list of these";
        return Err(Problem::rejected(&field.pointer, reason));
    }
    for field in all.into_iter().flatten() {
        if matches!(field.ty, Type::Named(_) | Type::Array { .. }) && !is_parameter(&field.ty, types) {
            return Err(Problem::rejected(&field.pointer, PARAMETER));
        }
    }
    for Field { name, pointer, .. } in &operation.query_parameters {
        if operation.path_parameters.iter().any(|field| field.name == *name) {
            let reason = format!(
                "`{name}` is both a query and a path parameter, which Dropshot does not distinguish; \
                                  rename one"
            );
            return Err(Problem::rejected(pointer, reason));
        }
    }
    Ok(())
}

/// Whether a parameter can have this type: a scalar, or a list of scalars.
fn is_parameter(ty: &Type, types: &BTreeMap<String, &TypeDefinition>) -> bool {
    let text = list_items(ty, types, &mut BTreeSet::new()).unwrap_or(ty);
    is_text(text, types, &mut BTreeSet::new())
}

/// The item type, if the type is a list.
fn list_items<'t>(
    ty: &'t Type,
    types: &BTreeMap<String, &'t TypeDefinition>,
    seen: &mut BTreeSet<Ident>,
) -> Option<&'t Type> {
    match ty {
        Type::Array { items, .. } => Some(items),
        Type::Named(ident) => match types.get(&ident.to_string()).map(|definition| &definition.shape) {
            Some(Shape::Newtype(inner)) if seen.insert(ident.clone()) => list_items(inner, types, seen),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a value of this type can be written as the text of a parameter.
fn is_text(ty: &Type, types: &BTreeMap<String, &TypeDefinition>, seen: &mut BTreeSet<Ident>) -> bool {
    match ty {
        Type::String(_)
        | Type::Integer { .. }
        | Type::Number(_)
        | Type::Boolean
        | Type::Date
        | Type::DateTime
        | Type::Uuid => true,
        // A type that was visited before is checked there. Types that contain themselves are rejected elsewhere.
        Type::Named(ident) if !seen.insert(ident.clone()) => true,
        Type::Named(ident) => match types.get(&ident.to_string()).map(|definition| &definition.shape) {
            Some(Shape::Enum(_)) => true,
            Some(Shape::Newtype(ty)) => is_text(ty, types, seen),
            Some(Shape::Union(union)) => {
                let mut is_text = |content: &Option<Type>| content.as_ref().is_some_and(|ty| is_text(ty, types, seen));
                // Dropshot accepts scalars in a `oneOf` but not in an `anyOf`.
                union.tagging == (Tagging::Value { exclusive: true })
                    && union.alternatives.iter().all(|it| is_text(&it.content))
            }
            _ => false,
        },
        _ => false,
    }
}

/// Rejects an untagged union that contains itself, because trying its alternatives would take twice as long for every
/// level of nesting.
fn bounded(definition: &TypeDefinition, api: &Api) -> Result<(), Problem> {
    let is_tried = match &definition.shape {
        Shape::Union(union) => matches!(union.tagging, Tagging::Value { .. }),
        Shape::Checked(_) => true,
        _ => false,
    };
    if !is_tried {
        return Ok(());
    }
    let mut reached: BTreeSet<Ident> = BTreeSet::new();
    definition.mentioned(&mut reached);
    close_over(&api.types, &mut reached);
    match reached.contains(&definition.ident) {
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
    let all: Vec<&str> = inside.split('/').filter(|_| !inside.is_empty()).collect();
    for (index, segment) in all.iter().enumerate() {
        let variable = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        match variable {
            Some("") => return Err("a path variable must have a name".into()),
            Some(name) if all[..index].contains(segment) => {
                return Err(format!("the path contains `{{{name}}}` twice; rename one"));
            }
            Some(name) if !name.contains(['{', '}', ':']) => {}
            None if segment.is_empty() => {
                return Err("a path must not have empty segments; remove one of the slashes".into());
            }
            None if !segment.contains(['{', '}']) => {}
            _ => return Err(format!("`{segment}`: a path variable must be a whole segment")),
        }
    }
    Ok(all)
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
        let mut conflict = None;
        for segment in segments {
            match places.get(&parent) {
                Some((there, other)) if *there != segment && (segment.starts_with('{') || there.starts_with('{')) => {
                    conflict = Some(reject(format!(
                        "Dropshot's router cannot have `{segment}` here and `{there}` in the same place of the path \
                         `{other}`; generate with `--dispatch calls` and serve with another router, or change one of \
                         the paths"
                    )));
                    break;
                }
                Some(_) => {}
                None => drop(places.insert(parent.clone(), (segment, &operation.path))),
            }
            parent = format!("{parent}/{segment}");
        }
        if conflict.is_some() {
            found.extend(conflict);
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
