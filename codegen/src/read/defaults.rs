//! Defaults must be values of their type: what a client leaves out is answered as if it had sent them.

use proc_macro2::Ident;
use serde_json::Value;

use crate::Problem;
use crate::model::{Field, Operation, Shape, Type, TypeDefinition};

/// Checks every default.
///
/// # Errors
/// The first that is no value of its type, or of a type that cannot have one.
pub fn check(types: &[TypeDefinition], operations: &[Operation]) -> Result<(), Problem> {
    let members = types.iter().filter_map(|definition| match &definition.shape {
        Shape::Struct(object) => Some(&object.fields),
        _ => None,
    });
    let parameters = operations.iter().flat_map(|operation| {
        [
            &operation.path_parameters,
            &operation.query_parameters,
            &operation.header_parameters,
        ]
    });
    for field in members.chain(parameters).flatten() {
        if let Some(default) = &field.default {
            let place = format!("{}/default", field.pointer);
            let refuse = |reason: String| Err(Problem::refused(&place, reason));
            if let Err(reason) = fits(field, default, types) {
                return refuse(reason);
            }
        }
    }
    Ok(())
}

fn fits(field: &Field, default: &Value, types: &[TypeDefinition]) -> Result<(), String> {
    let fits = match (&field.ty, default) {
        (_, Value::Null) => field.nullable,
        (Type::Boolean, value) => value.is_boolean(),
        (Type::Integer { minimum, maximum, kind }, value) => {
            let (low, high) = super::range(kind);
            value
                .as_i64()
                .map(i128::from)
                .or(value.as_u64().map(i128::from))
                .is_some_and(|value| (low..=high).contains(&value) && above(value, minimum) && below(value, maximum))
        }
        (Type::Number { minimum, maximum }, value) => value
            .as_f64()
            .is_some_and(|value| above(value, minimum) && below(value, maximum)),
        (
            Type::String {
                min_length,
                max_length,
                pattern,
            },
            Value::String(text),
        ) => {
            let length = text.chars().count();
            let matches = |pattern: &String| regex::Regex::new(pattern).is_ok_and(|regex| regex.is_match(text));
            min_length.is_none_or(|min| length >= min)
                && max_length.is_none_or(|max| length <= max)
                && pattern.as_ref().is_none_or(matches)
        }
        (Type::String { .. }, _) => false,
        (Type::Named(ident), value) => match variant(ident, types) {
            Some(values) => value.as_str().is_some_and(|value| values.contains(&value)),
            None => return Err("only text, numbers, booleans and enumerations can have a default".into()),
        },
        (Type::Array { min_items: None, .. }, Value::Array(items)) => items.is_empty(),
        (
            Type::Map {
                min_properties: None, ..
            },
            Value::Object(members),
        ) => members.is_empty(),
        _ => return Err("only text, numbers, booleans and enumerations can have a default".into()),
    };
    match fits {
        true => Ok(()),
        false => Err(format!("the default {default} is not a value of this schema")),
    }
}

fn variant<'t>(ident: &Ident, types: &'t [TypeDefinition]) -> Option<Vec<&'t str>> {
    let definition = types.iter().find(|definition| definition.ident == *ident)?;
    match &definition.shape {
        Shape::Enum(variants) => Some(variants.iter().map(|variant| variant.value.as_str()).collect()),
        _ => None,
    }
}

fn above<T: PartialOrd + Copy>(value: T, bound: &Option<(T, bool)>) -> bool {
    bound.is_none_or(|(bound, exclusive)| value > bound || !exclusive && value == bound)
}

fn below<T: PartialOrd + Copy>(value: T, bound: &Option<(T, bool)>) -> bool {
    bound.is_none_or(|(bound, exclusive)| value < bound || !exclusive && value == bound)
}
