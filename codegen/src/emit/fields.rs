//! Rust types, and the serialization of members.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use rust_decimal::Decimal;

use crate::model::{Field, OneWay, Type};

/// The Rust type.
pub(super) fn rust_type(ty: &Type) -> TokenStream {
    match ty {
        Type::String(_) => quote! { String },
        Type::Decimal { .. } => quote! { Decimal },
        Type::DateTime => quote! { DateTime<Utc> },
        Type::Date => quote! { NaiveDate },
        Type::Bytes => quote! { Base64 },
        Type::Uuid => quote! { uuid::Uuid },
        Type::Boolean => quote! { bool },
        Type::Null => quote! { () },
        Type::Never => quote! { codegen_runtime::Never },
        Type::Integer { kind, .. } => {
            let kind = format_ident!("{}", kind.name());
            quote! { #kind }
        }
        Type::Number(_) => quote! { f64 },
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
        Type::Boxed(inner) => {
            let inner = rust_type(inner);
            quote! { Box<#inner> }
        }
        Type::Named(ident) => quote! { #ident },
        Type::Any => quote! { serde_json::Value },
    }
}

/// The attribute for members that serde does not serialize as the document requires.
pub(super) fn write_attribute(field: &Field) -> Option<TokenStream> {
    if field.one_way == Some(OneWay::Requests) {
        return Some(quote! { #[serde(skip_serializing)] });
    }
    // Responses contain members that are read-only and required, although requests omit them.
    let is_set = field.required && !field.nullable && field.is_option();
    if is_set && !matches!(field.ty, Type::Decimal { .. }) {
        return Some(quote! { #[serde(serialize_with = "codegen_runtime::body::set")] });
    }
    let absent = (!field.required).then(|| quote! { #[serde(skip_serializing_if = "Option::is_none")] });
    let absent = absent.filter(|_| field.is_option());
    let decimal = decimal_attribute(&field.ty, field.is_option());
    match (absent, decimal) {
        (None, None) => None,
        (absent, decimal) => Some(quote! { #absent #decimal }),
    }
}

/// The attribute that serializes a decimal amount.
pub(super) fn decimal_attribute(ty: &Type, is_option: bool) -> Option<TokenStream> {
    let Type::Decimal { places } = ty else { return None };
    let function = if is_option { "serialize_optional" } else { "serialize" };
    let path = format!("codegen_runtime::decimal::{function}::<{places}, _>");
    Some(quote! { #[serde(serialize_with = #path)] })
}

/// A constant expression for a decimal number.
pub(super) fn decimal(value: Decimal) -> TokenStream {
    let parts = value.unpack();
    let (lo, mid, hi, negative, scale) = (parts.lo, parts.mid, parts.hi, parts.negative, parts.scale);
    quote! { Decimal::from_parts(#lo, #mid, #hi, #negative, #scale) }
}
