//! The error type of a new crate.

use syn::ext::IdentExt;

use crate::model::{Api, Field, Others, Shape, Struct, Type};

/// An error type that has the body that the document declares for all errors.
pub struct DeclaredError {
    /// The body's Rust type.
    pub ty: String,
    /// The lines that fill its fields from `status`, `message` and `code`.
    pub members: String,
    /// Whether `code` is used.
    pub has_code: bool,
    /// The names of the members that are always sent.
    pub always: Vec<String>,
}

/// The declared error body, if all errors have the same and it can be filled from an error of Dropshot.
pub fn declared(api: &Api) -> Option<DeclaredError> {
    let ident = api
        .operations
        .iter()
        .find_map(|operation| operation.error_type.as_ref())?;
    if api.operations.iter().any(|operation| api.failure(operation).is_some()) {
        return None;
    }
    let definition = api.types.iter().find(|definition| definition.ident == *ident)?;
    let Shape::Struct(Struct { fields, others }) = &definition.shape else {
        return None;
    };
    let mut members = String::new();
    for field in fields {
        members += &format!("            {}: {},\n", field.ident, value(field)?);
    }
    if let Others::Kept(field) = others {
        members += &format!("            {}: Default::default(),\n", field.ident);
    }
    let always = fields.iter().filter(|field| field.required && !field.nullable);
    members.contains("message").then(|| DeclaredError {
        ty: ident.unraw().to_string(),
        has_code: members.contains("code.") || members.contains(": code,"),
        members,
        always: always.map(|field| field.name.clone()).collect(),
    })
}

/// The expression for a field; `None` if a required field cannot be filled.
fn value(field: &Field) -> Option<String> {
    let name = field.name.to_lowercase();
    let is_named = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let is_code = is_named(&["code", "status"]);
    let known = match &field.ty {
        Type::String(rules) if rules.pattern.is_none() && rules.format.is_none() => match is_code {
            true if field.is_option() => return Some("code".into()),
            true => Some("code.unwrap_or_else(|| status.as_u16().to_string())"),
            false if is_named(&["message", "detail", "description", "reason", "error", "title"]) => {
                Some("message.clone()")
            }
            false if field.is_option() => None,
            false => Some("String::new()"),
        },
        Type::Integer { kind, .. } if is_code && kind.range().1 >= u16::MAX.into() => Some("status.as_u16().into()"),
        _ => None,
    };
    match known {
        Some(known) if field.is_option() => Some(format!("Some({known})")),
        Some(known) => Some(known.into()),
        None => field.is_option().then(|| "None".into()),
    }
}
