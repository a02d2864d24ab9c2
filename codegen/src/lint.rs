//! Refusals that only show in the whole document.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Ident;

use crate::Problem;
use crate::model::{Api, BodyContent, Field, Operation, Shape, Tagging, Type, TypeDefinition};
use crate::read::PARAMETER;

/// Checks the whole.
///
/// # Errors
/// The first thing that cannot be generated.
pub fn check(api: &Api) -> Result<(), Problem> {
    let mut types = BTreeMap::new();
    for definition in &api.types {
        if let Some(other) = types.insert(definition.ident.to_string(), definition) {
            let (ident, at) = (&definition.ident, &other.pointer);
            let reason = format!("this is `{ident}` in Rust, and so is {at}; rename one");
            return Err(Problem::refused(&definition.pointer, reason));
        }
        tags_are_text(definition, api)?;
    }
    for definition in &api.types {
        finite(definition, &types)?;
        bounded(definition, api)?;
    }
    let mut ids = BTreeMap::new();
    for operation in &api.operations {
        let refuse = |reason: String| Err(Problem::refused(&operation.pointer, reason));
        if let Some(other) = ids.insert(&operation.id, &operation.pointer) {
            return refuse(format!("operationId `{}` is already used at {other}", operation.id));
        }
        for suffix in ["Path", "Query", "Headers", "Response"] {
            let name = heck::ToUpperCamelCase::to_upper_camel_case(operation.id.as_str()) + suffix;
            if let Some(schema) = types.get(&name) {
                let at = &schema.pointer;
                return refuse(format!(
                    "`{name}` is generated for this operation, and is also {at}; rename one"
                ));
            }
        }
        parameters(operation, &types)?;
        // progenitor makes one function with one return type.
        let mut shapes = operation.successes.iter().map(|success| success.content.shape());
        let first = shapes.next();
        if shapes.any(|shape| Some(shape) != first) {
            return refuse("all success responses of an operation need the same schema".into());
        }
    }
    routes(&api.operations)
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
    if let Some(field) = form.iter().find(|field| !is_text(&field.ty, types, 0)) {
        let reason = "a form's member must be what a parameter may be: text, a number, a boolean, a time, a day, a UUID, \
                      an enumeration or a `oneOf` of such";
        return Err(Problem::refused(&field.pointer, reason));
    }
    for field in all.into_iter().flatten() {
        if matches!(field.ty, Type::Named(_)) && !is_text(&field.ty, types, 0) {
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
    let Shape::Union(union) = &definition.shape else {
        return Ok(());
    };
    if !matches!(union.tagging, Tagging::Value { .. }) {
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

/// Refuses paths that Dropshot's router would panic at.
fn routes(operations: &[Operation]) -> Result<(), Problem> {
    for (index, operation) in operations.iter().enumerate() {
        let refuse = |reason: String| Err(Problem::refused(&operation.pointer, reason));
        let mut variables = Vec::new();
        for segment in operation.path.split('/') {
            match (segment.strip_prefix('{'), segment.strip_suffix('}')) {
                (Some(name), Some(_)) if variables.contains(&name) => {
                    return refuse(format!("the path names `{{{name}` twice"));
                }
                (Some(name), Some(_)) => variables.push(name),
                (None, None) if !segment.contains(['{', '}']) => {}
                _ => return refuse(format!("`{segment}`: a variable must be a whole segment of the path")),
            }
        }
        for other in &operations[..index] {
            let both = operation.path.split('/').zip(other.path.split('/'));
            let Some((here, there)) = both.into_iter().find(|(here, there)| here != there) else {
                continue;
            };
            if here.starts_with('{') || there.starts_with('{') {
                let path = &other.path;
                return refuse(format!(
                    "Dropshot cannot tell `{here}` from `{there}` of the path `{path}`: a segment is one word or \
                     one variable"
                ));
            }
        }
    }
    Ok(())
}
