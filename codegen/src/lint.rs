//! Checks that involve more than one part of a document.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Ident;

use crate::error::Problem;
use crate::model::{Api, BodyContent, Field, Operation, Shape, Tagging, Type, TypeDefinition, close_over};
use crate::naming::operation_prefix;
use crate::read::PARAMETER;

/// Returns everything that makes the document as a whole unsupported.
pub fn check(api: &Api) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut types = BTreeMap::new();
    for definition in &api.types {
        if let Some(other) = types.insert(definition.ident.to_string(), definition) {
            let (ident, at) = (&definition.ident, &other.pointer);
            let reason = format!("`{ident}` is also the Rust name of {at}; rename one");
            found.push(Problem::refused(&definition.pointer, reason));
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
                let reason = format!("operationId `{id}` is already used at {at}; operation ids must be unique");
                found.push(Problem::refused(&operation.pointer, reason));
                continue;
            }
            Some((id, at)) => {
                let reason = format!(
                    "`{}` and `{id}` at {at} have the same Rust name `{name}`; rename one",
                    operation.id
                );
                found.push(Problem::refused(&operation.pointer, reason));
                continue;
            }
        }
        found.extend(parameters(operation, &types).err());
        names.insert(name, (&operation.id, &operation.pointer));
    }
    found.extend(routes(&api.operations));
    found
}

/// Refuses a type that contains itself other than through an array or a map, because its values would be infinite.
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
                return Err(Problem::refused(&definition.pointer, reason));
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
                    return Err(Problem::refused(&field.pointer, reason));
                }
            };
            let lacks = |value: &&String| !values.iter().any(|known| known.value == **value);
            if let Some(value) = alternative.values.iter().find(lacks) {
                let reason = format!("`{value}` identifies this alternative but is not one of the allowed values");
                return Err(Problem::refused(&field.pointer, reason));
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
        return Err(Problem::refused(&field.pointer, reason));
    }
    for field in all.into_iter().flatten() {
        if matches!(field.ty, Type::Named(_) | Type::Array { .. }) && !is_parameter(&field.ty, types) {
            return Err(Problem::refused(&field.pointer, PARAMETER));
        }
    }
    for Field { name, pointer, .. } in &operation.query_parameters {
        if operation.path_parameters.iter().any(|field| field.name == *name) {
            let reason = format!(
                "`{name}` is both a query and a path parameter, which Dropshot does not distinguish; \
                                  rename one"
            );
            return Err(Problem::refused(pointer, reason));
        }
    }
    Ok(())
}

/// Whether a parameter can have this type: a scalar, or a list of scalars.
fn is_parameter(ty: &Type, types: &BTreeMap<String, &TypeDefinition>) -> bool {
    match list_items(ty, types, 0) {
        Some(items) => is_text(items, types, 0),
        None => is_text(ty, types, 0),
    }
}

/// The item type, if the type is a list.
fn list_items<'t>(ty: &'t Type, types: &BTreeMap<String, &'t TypeDefinition>, depth: usize) -> Option<&'t Type> {
    match ty {
        Type::Array { items, .. } => Some(items),
        Type::Named(ident) if depth < 32 => match types.get(&ident.to_string()).map(|definition| &definition.shape) {
            Some(Shape::Newtype(inner)) => list_items(inner, types, depth + 1),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a value of this type can be written as the text of a parameter.
fn is_text(ty: &Type, types: &BTreeMap<String, &TypeDefinition>, depth: usize) -> bool {
    match ty {
        Type::String(_)
        | Type::Integer { .. }
        | Type::Number(_)
        | Type::Boolean
        | Type::Date
        | Type::DateTime
        | Type::Uuid => true,
        // Cycles of names are refused elsewhere.
        Type::Named(ident) if depth < 32 => match types.get(&ident.to_string()).map(|definition| &definition.shape) {
            Some(Shape::Enum(_)) => true,
            Some(Shape::Newtype(ty)) => is_text(ty, types, depth + 1),
            Some(Shape::Union(union)) => {
                let is_text = |content: &Option<Type>| content.as_ref().is_some_and(|ty| is_text(ty, types, depth + 1));
                // Dropshot accepts scalars in a `oneOf` but not in an `anyOf`.
                union.tagging == (Tagging::Value { exclusive: true })
                    && union.alternatives.iter().all(|it| is_text(&it.content))
            }
            _ => false,
        },
        _ => false,
    }
}

/// Refuses an untagged union that contains itself, because trying its alternatives would take twice as long for every
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
        true => Err(Problem::refused(
            &definition.pointer,
            "a union without a discriminator must not contain itself, because each level of nesting would double the \
             work; give every alternative a member with a constant value, such as `type`",
        )),
        false => Ok(()),
    }
}

/// Refuses paths on which Dropshot's router would panic. The router ignores a trailing slash.
fn routes(operations: &[Operation]) -> Vec<Problem> {
    let mut found = Vec::new();
    // For each parent path, the first segment found below it and the path that it belongs to: a literal or a variable.
    let mut places: BTreeMap<String, (&str, &str)> = BTreeMap::new();
    let mut served: BTreeMap<(&str, &str, Option<&str>), &str> = BTreeMap::new();
    for operation in operations {
        match route(operation, &mut places) {
            Err(reason) => found.push(Problem::refused(&operation.pointer, reason)),
            Ok(path) => {
                let key = served.insert(
                    // Operations of several versions do not overlap, because each starts at a different version.
                    (&operation.method, path, operation.versions.from.as_deref()),
                    &operation.path,
                );
                if let Some(other) = key {
                    let reason = format!(
                        "Dropshot does not distinguish `{}` from `{other}`, because it ignores a trailing slash; \
                         remove one of them",
                        operation.path
                    );
                    found.push(Problem::refused(&operation.pointer, reason));
                }
            }
        }
    }
    found
}

fn route<'o>(operation: &'o Operation, places: &mut BTreeMap<String, (&'o str, &'o str)>) -> Result<&'o str, String> {
    let path = operation.path.strip_suffix('/').unwrap_or(&operation.path);
    let Some(inside) = operation.path.strip_prefix('/') else {
        return Err("a path must begin with a slash".into());
    };
    let inside = inside.strip_suffix('/').unwrap_or(inside);
    if inside.is_empty() {
        return Ok(path);
    }
    let mut variables = Vec::new();
    let mut parent = String::new();
    for segment in inside.split('/') {
        let variable = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        match variable {
            Some("") => return Err("a path variable must have a name".into()),
            Some(name) if variables.contains(&name) => {
                return Err(format!("the path contains `{{{name}}}` twice; rename one"));
            }
            Some(name) if !name.contains(['{', '}', ':']) => variables.push(name),
            None if segment.is_empty() => {
                return Err("a path must not have empty segments; remove one of the slashes".into());
            }
            None if !segment.contains(['{', '}']) => {}
            _ => return Err(format!("`{segment}`: a path variable must be a whole segment")),
        }
        match places.get(&parent) {
            Some((there, other)) if *there != segment && (variable.is_some() || there.starts_with('{')) => {
                return Err(format!(
                    "`{segment}` conflicts with `{there}` in the path `{other}`: Dropshot requires literals or one \
                     variable in the same place; change one of the paths"
                ));
            }
            Some(_) => {}
            None => {
                places.insert(parent.clone(), (segment, &operation.path));
            }
        }
        parent = format!("{parent}/{segment}");
    }
    Ok(path)
}
