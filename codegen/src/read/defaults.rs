//! Checks of defaults, which must be valid because an omitted member is treated as if the client had sent its default.

use crate::error::Problem;
use crate::literals;
use crate::model::{Operation, Shape, TypeDefinition};

/// Checks every default.
///
/// # Errors
/// The first default that does not match its type.
pub fn check(types: &[TypeDefinition], operations: &[Operation]) -> Result<(), Problem> {
    let members = types.iter().filter_map(|definition| match &definition.shape {
        Shape::Struct(object) => Some(&object.fields),
        _ => None,
    });
    let parameters = operations.iter().flat_map(|it| it.parameters().chain(it.form()));
    for field in members.flatten().chain(parameters) {
        if let (Some(default), Err(literals::NoValue)) = (&field.default, literals::default(field, types)) {
            let reason = format!("the default {default} is not a value of this schema");
            return Err(Problem::rejected(&format!("{}/default", field.pointer), reason));
        }
    }
    Ok(())
}
