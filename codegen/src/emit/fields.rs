//! Types in Rust, and the code that writes a member.

use std::str::FromStr;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use serde_json::Value;

use crate::model::{Api, Field, Shape, Type};

/// The type in Rust.
pub(super) fn rust_type(ty: &Type) -> TokenStream {
    match ty {
        Type::String { .. } => quote! { String },
        Type::Decimal { .. } => quote! { Decimal },
        Type::DateTime => quote! { DateTime<Utc> },
        Type::Date => quote! { NaiveDate },
        Type::Bytes => quote! { Base64 },
        Type::Uuid => quote! { uuid::Uuid },
        Type::Boolean => quote! { bool },
        Type::Integer { kind, .. } => {
            let kind = format_ident!("{kind}");
            quote! { #kind }
        }
        Type::Number { .. } => quote! { f64 },
        Type::ExactNumber { .. } => quote! { ExactNumber },
        Type::Array { items, .. } => {
            let items = rust_type(items);
            quote! { Vec<#items> }
        }
        Type::Map { values, .. } => {
            let values = rust_type(values);
            quote! { std::collections::BTreeMap<String, #values> }
        }
        Type::Nullable(inner) => {
            let inner = rust_type(inner);
            quote! { Option<#inner> }
        }
        Type::Named(ident) => quote! { #ident },
        Type::Any => quote! { serde_json::Value },
    }
}

/// How a member is written where serde's own way is not the document's.
pub(super) fn write_attribute(field: &Field) -> Option<TokenStream> {
    let absent = (!field.required).then(|| quote! { #[serde(skip_serializing_if = "Option::is_none")] });
    let absent = absent.filter(|_| field.is_option());
    let decimal = decimal_attribute(&field.ty, field.is_option());
    match (absent, decimal) {
        (None, None) => None,
        (absent, decimal) => Some(quote! { #absent #decimal }),
    }
}

/// How a decimal amount is written.
pub(super) fn decimal_attribute(ty: &Type, is_option: bool) -> Option<TokenStream> {
    let Type::Decimal { places } = ty else { return None };
    let function = if is_option { "serialize_optional" } else { "serialize" };
    let path = format!("codegen_runtime::decimal::{function}::<{places}, _>");
    Some(quote! { #[serde(serialize_with = #path)] })
}

/// The default value as an expression. Reading the document has checked that it is a value of the type.
pub(super) fn default(field: &Field, api: &Api) -> Option<TokenStream> {
    let default = field.default.as_ref().filter(|_| !field.required)?;
    let value = match (&field.ty, default) {
        (_, Value::Null) => return Some(quote! { None }),
        (Type::Boolean, Value::Bool(value)) => quote! { #value },
        (Type::Integer { kind, .. }, Value::Number(value)) => number(&value.to_string(), kind),
        (Type::Number { .. }, value) => {
            let value = value.as_f64()?;
            quote! { #value }
        }
        (Type::String { .. }, Value::String(value)) => quote! { #value.to_string() },
        (Type::Named(ident), Value::String(value)) => {
            let definition = api.types.iter().find(|definition| definition.ident == *ident)?;
            let Shape::Enum(variants) = &definition.shape else {
                return None;
            };
            let variant = &variants.iter().find(|variant| variant.value == *value)?.ident;
            quote! { #ident::#variant }
        }
        (Type::Array { .. }, _) => quote! { Vec::new() },
        (Type::Map { .. }, _) => quote! { std::collections::BTreeMap::new() },
        _ => return None,
    };
    Some(match field.is_option() {
        true => quote! { Some(#value) },
        false => value,
    })
}

/// A whole number as a literal of its type.
pub(super) fn number(value: &str, kind: &str) -> TokenStream {
    TokenStream::from_str(&format!("{value}{kind}")).unwrap_or_default()
}
