//! Refusals that only show in the whole document.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Ident;

use crate::Problem;
use crate::emit::operation_prefix;
use crate::model::{Api, BodyContent, Field, Operation, Shape, Tagging, Type, TypeDefinition};
use crate::read::PARAMETER;

/// Checks the whole; returns everything that cannot be generated.
pub fn check(api: &Api) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut types = BTreeMap::new();
    for definition in &api.types {
        if let Some(other) = types.insert(definition.ident.to_string(), definition) {
            let (ident, at) = (&definition.ident, &other.pointer);
            let reason = format!("this is `{ident}` in Rust, and so is {at}; rename one");
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
                let reason = format!("operationId `{id}` is already used at {at}; each operation needs its own");
                found.push(Problem::refused(&operation.pointer, reason));
                continue;
            }
            Some((id, at)) => {
                let reason = format!(
                    "`{}` and `{id}` at {at} both begin the names of their types with `{name}`; rename one",
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

/// The schemas without names of their own that are reached from themselves without passing one that has a name.
pub fn hold_themselves(api: &Api) -> Vec<&TypeDefinition> {
    let inline: BTreeMap<String, &TypeDefinition> = api
        .types
        .iter()
        .filter(|definition| definition.inline)
        .map(|definition| (definition.ident.to_string(), definition))
        .collect();
    let all = inline.values().copied();
    all.filter(|definition| holds_itself_inline(definition, &inline))
        .collect()
}

/// Whether a schema without a name of its own is reached from itself without passing one that has a name.
fn holds_itself_inline(definition: &TypeDefinition, inline: &BTreeMap<String, &TypeDefinition>) -> bool {
    let mut reached = vec![definition];
    let mut next = 0;
    while let Some(current) = reached.get(next).copied() {
        next += 1;
        let mut idents = BTreeSet::new();
        current.mentioned(&mut idents);
        for ident in idents {
            if ident == definition.ident {
                return true;
            }
            if let Some(other) = inline.get(&ident.to_string()).copied()
                && !reached.iter().any(|known| known.ident == other.ident)
            {
                reached.push(other);
            }
        }
    }
    false
}

/// Refuses a type that holds itself other than in an array or a map: it would have no end.
fn finite(definition: &TypeDefinition, types: &BTreeMap<String, &TypeDefinition>) -> Result<(), Problem> {
    let mut reached = vec![definition];
    let mut next = 0;
    while let Some(current) = reached.get(next).copied() {
        next += 1;
        for ident in current.held() {
            if *ident == definition.ident {
                let reason = format!(
                    "`{}` holds itself through `{}`, without end; put it into an array or a map",
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

/// What tells alternatives apart must be text: a string or an enumeration.
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
                let reason = format!("`{value}` stands for this alternative but is not among the values here");
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
        let reason = "a form's member must be what a parameter may be: text, a number, a boolean, a time, a day, a UUID, \
                      an enumeration, a `oneOf` of such or a list of such";
        return Err(Problem::refused(&field.pointer, reason));
    }
    for field in all.into_iter().flatten() {
        if matches!(field.ty, Type::Named(_) | Type::Array { .. }) && !is_parameter(&field.ty, types) {
            return Err(Problem::refused(&field.pointer, PARAMETER));
        }
    }
    for Field { name, pointer, .. } in &operation.query_parameters {
        if operation.path_parameters.iter().any(|field| field.name == *name) {
            let reason = format!("Dropshot does not tell the query's `{name}` from the path's; rename one");
            return Err(Problem::refused(pointer, reason));
        }
    }
    Ok(())
}

/// Whether a parameter can be of this type: a value that is a text, or a list of such.
fn is_parameter(ty: &Type, types: &BTreeMap<String, &TypeDefinition>) -> bool {
    match list_items(ty, types, 0) {
        Some(items) => is_text(items, types, 0),
        None => is_text(ty, types, 0),
    }
}

/// The type of the items, where it is a list.
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

/// Whether a value can stand in a parameter.
fn is_text(ty: &Type, types: &BTreeMap<String, &TypeDefinition>, depth: usize) -> bool {
    match ty {
        Type::String(_)
        | Type::Integer { .. }
        | Type::Number(_)
        | Type::Boolean
        | Type::Date
        | Type::DateTime
        | Type::Uuid => true,
        // A circle of names has no end, which is refused elsewhere.
        Type::Named(ident) if depth < 32 => match types.get(&ident.to_string()).map(|definition| &definition.shape) {
            Some(Shape::Enum(_)) => true,
            Some(Shape::Newtype(ty)) => is_text(ty, types, depth + 1),
            Some(Shape::Union(union)) => {
                let is_text = |content: &Option<Type>| content.as_ref().is_some_and(|ty| is_text(ty, types, depth + 1));
                // Dropshot looks for scalars in a `oneOf`, not in an `anyOf`.
                union.tagging == (Tagging::Value { exclusive: true })
                    && union.alternatives.iter().all(|it| is_text(&it.content))
            }
            _ => false,
        },
        _ => false,
    }
}

/// Refuses a union that is told apart by its values and holds itself: to try its alternatives would take twice as long
/// with every level of the value.
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
    crate::read::close_over(&api.types, &mut reached);
    match reached.contains(&definition.ident) {
        true => Err(Problem::refused(
            &definition.pointer,
            "alternatives that only their values tell apart cannot hold this type itself: each level would double the \
             ways to try; give every alternative a member of one value, such as `type`",
        )),
        false => Ok(()),
    }
}

/// Refuses paths that Dropshot's router would panic at; it passes over a slash at the end.
fn routes(operations: &[Operation]) -> Vec<Problem> {
    let mut found = Vec::new();
    // By its parent, what stands at a place in the tree of routes first: a word or a variable, and in which path.
    let mut places: BTreeMap<String, (&str, &str)> = BTreeMap::new();
    let mut served: BTreeMap<(&str, &str, Option<&str>), &str> = BTreeMap::new();
    for operation in operations {
        match route(operation, &mut places) {
            Err(reason) => found.push(Problem::refused(&operation.pointer, reason)),
            Ok(path) => {
                let key = served.insert(
                    // Operations of several versions do not overlap: each begins with a version of its own.
                    (&operation.method, path, operation.versions.from.as_deref()),
                    &operation.path,
                );
                if let Some(other) = key {
                    let reason = format!(
                        "Dropshot does not tell `{}` from `{other}`: it passes over a slash at the end; leave one out",
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
        return Err("a path begins with a slash".into());
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
            Some("") => return Err("a variable of a path needs a name".into()),
            Some(name) if variables.contains(&name) => {
                return Err(format!("the path names `{{{name}}}` twice; rename one"));
            }
            Some(name) if !name.contains(['{', '}', ':']) => variables.push(name),
            None if segment.is_empty() => {
                return Err("a path has no empty segments: leave out one of the slashes".into());
            }
            None if !segment.contains(['{', '}']) => {}
            _ => return Err(format!("`{segment}`: a variable must be a whole segment of the path")),
        }
        match places.get(&parent) {
            Some((there, other)) if *there != segment && (variable.is_some() || there.starts_with('{')) => {
                return Err(format!(
                    "Dropshot cannot tell `{segment}` from `{there}` of the path `{other}`: a segment is one word or \
                     one variable; rename one"
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
