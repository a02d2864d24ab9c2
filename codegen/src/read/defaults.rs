//! Checks of defaults, which must be valid because an omitted member is treated as if the client had sent its default.

use crate::error::Problem;
use crate::literals;
use crate::model::{BodyContent, Operation, Shape, TypeDefinition};

/// Checks every default.
///
/// # Errors
/// The first default that does not match its type.
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
    let forms = operations
        .iter()
        .filter_map(|operation| match &operation.body.as_ref()?.content {
            BodyContent::Form(form) => Some(&form.fields),
            _ => None,
        });
    for field in members.chain(parameters).chain(forms).flatten() {
        if let (Some(default), Err(literals::NoValue)) = (&field.default, literals::default(field, types)) {
            let reason = format!("the default {default} is not a value of this schema");
            return Err(Problem::rejected(&format!("{}/default", field.pointer), reason));
        }
    }
    Ok(())
}
