//! Refusals that only show in the whole document.

use std::collections::BTreeMap;

use crate::Problem;
use crate::model::{Api, ResponseContent};

/// Checks the whole.
///
/// # Errors
/// The first thing that cannot be generated.
pub fn check(api: &Api) -> Result<(), Problem> {
    let mut types = BTreeMap::new();
    for definition in &api.types {
        if let Some(other) = types.insert(definition.ident.to_string(), &definition.name) {
            let reason = format!(
                "`{other}` and `{}` are both `{}` in Rust; rename one",
                definition.name, definition.ident
            );
            return Err(Problem::Refused {
                pointer: format!("#/components/schemas/{}", definition.name),
                reason,
            });
        }
    }
    let mut ids = BTreeMap::new();
    for operation in &api.operations {
        let refuse = |reason: String| Problem::Refused {
            pointer: operation.pointer.clone(),
            reason,
        };
        if let Some(other) = ids.insert(&operation.id, &operation.pointer) {
            return Err(refuse(format!(
                "operationId `{}` is already used at {other}",
                operation.id
            )));
        }
        for suffix in ["Path", "Query", "Headers", "Response"] {
            let name = heck::ToUpperCamelCase::to_upper_camel_case(format!("{}_{suffix}", operation.id).as_str());
            if types.contains_key(&name) {
                return Err(refuse(format!(
                    "the schema `{name}` has the name of a type generated for this operation"
                )));
            }
        }
        // progenitor makes one function with one return type.
        let mut shapes = operation.successes.iter().map(|success| match &success.content {
            ResponseContent::Empty => String::new(),
            ResponseContent::Json(ident) => ident.to_string(),
            ResponseContent::Bytes(_) => "bytes".into(),
        });
        let first = shapes.next();
        if shapes.any(|shape| Some(shape) != first) {
            return Err(refuse(
                "all success responses of an operation need the same schema".into(),
            ));
        }
        if operation.method == "GET" && operation.body.is_some() {
            return Err(refuse("a GET with a body is not supported".into()));
        }
    }
    Ok(())
}
