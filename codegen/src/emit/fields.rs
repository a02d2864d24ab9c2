//! Types in Rust, and the code that reads and writes a member.

use proc_macro2::TokenStream;
use quote::quote;
use serde_json::Value;

use crate::model::{Field, Type};

/// The type in Rust.
pub(super) fn rust_type(ty: &Type) -> TokenStream {
    match ty {
        Type::String { .. } => quote! { String },
        Type::Decimal { .. } => quote! { Decimal },
        Type::DateTime => quote! { DateTime<Utc> },
        Type::Uuid => quote! { uuid::Uuid },
        Type::Boolean => quote! { bool },
        Type::Integer { bits: 32, .. } => quote! { i32 },
        Type::Integer { .. } => quote! { i64 },
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
        Type::Named(ident) => quote! { #ident },
        Type::Any => quote! { serde_json::Value },
    }
}

/// How a member is written where serde's own way is not the document's.
pub(super) fn write_attribute(field: &Field) -> Option<TokenStream> {
    let absent = (!field.required).then(|| quote! { #[serde(skip_serializing_if = "Option::is_none")] });
    let absent = absent.filter(|_| field.is_option());
    let decimal = match field.ty {
        Type::Decimal { places } => {
            let function = if field.is_option() {
                "serialize_optional"
            } else {
                "serialize"
            };
            let path = format!("codegen_runtime::decimal::{function}::<{places}, _>");
            Some(quote! { #[serde(serialize_with = #path)] })
        }
        _ => None,
    };
    match (absent, decimal) {
        (None, None) => None,
        (absent, decimal) => Some(quote! { #absent #decimal }),
    }
}

/// The default value as an expression.
pub(super) fn default(field: &Field) -> Option<TokenStream> {
    match (&field.ty, field.default.as_ref()?) {
        (Type::Boolean, Value::Bool(value)) => Some(quote! { #value }),
        (Type::Integer { bits: 32, .. }, value) => {
            let value = i32::try_from(value.as_i64()?).ok()?;
            Some(quote! { #value })
        }
        (Type::Integer { .. }, value) => {
            let value = value.as_i64()?;
            Some(quote! { #value })
        }
        (Type::Number { .. }, value) => {
            let value = value.as_f64()?;
            Some(quote! { #value })
        }
        (Type::String { .. }, Value::String(value)) => Some(quote! { #value.to_string() }),
        _ => None,
    }
}

/// The body of the function that reads a member, with `deserializer` in scope; `None` where serde's own way will do.
pub(super) fn reader(field: &Field, parameter: bool) -> Option<TokenStream> {
    if parameter {
        return Some(parameter_reader(field));
    }
    let expression = body_reader(&field.ty);
    if field.is_option() {
        let nullable = field.nullable;
        let expression = expression.unwrap_or_else(|| quote! { Deserialize::deserialize(deserializer) });
        return Some(quote! {
            body::optional(deserializer, #nullable, |reader| reader.with(|deserializer| #expression))
        });
    }
    expression
}

fn body_reader(ty: &Type) -> Option<TokenStream> {
    match ty {
        Type::String {
            min_length: None,
            max_length: None,
            pattern: None,
        } => None,
        Type::String { .. } => {
            let rules = string_rules(ty);
            Some(quote! { { #rules body::string(deserializer, RULES) } })
        }
        Type::Integer {
            minimum: None,
            maximum: None,
            ..
        }
        | Type::Number {
            minimum: None,
            maximum: None,
        } => None,
        Type::Integer { .. } | Type::Number { .. } => {
            let rules = number_rules(ty);
            Some(quote! { body::number(deserializer, #rules) })
        }
        Type::ExactNumber { max_significant_digits } => {
            Some(quote! { body::exact_number(deserializer, #max_significant_digits) })
        }
        Type::Decimal { places } => Some(quote! { codegen_runtime::decimal::read(deserializer, #places) }),
        Type::DateTime => Some(quote! { body::date_time(deserializer) }),
        Type::Array {
            min_items: None,
            max_items: None,
            ..
        } => None,
        Type::Array {
            min_items, max_items, ..
        } => {
            let (min, max) = (option(min_items), option(max_items));
            Some(quote! { body::array(deserializer, ArrayRules { min_items: #min, max_items: #max }) })
        }
        Type::Map {
            values,
            min_properties,
            max_properties,
            key_pattern,
        } => {
            let (min, max) = (option(min_properties), option(max_properties));
            let (statics, pattern) = pattern_parts(key_pattern.as_deref());
            let rules = quote! { MapRules { min_properties: #min, max_properties: #max, key_pattern: #pattern } };
            Some(match &**values {
                Type::ExactNumber { max_significant_digits } => quote! {
                    { #statics body::exact_number_map(deserializer, #rules, #max_significant_digits) }
                },
                _ => quote! { { #statics body::map(deserializer, #rules) } },
            })
        }
        Type::Boolean | Type::Uuid | Type::Named(_) | Type::Any => None,
    }
}

fn parameter_reader(field: &Field) -> TokenStream {
    let name = &field.name;
    let read = match &field.ty {
        Type::Boolean => quote! { param::boolean(deserializer, #name) },
        Type::Integer { .. } => {
            let rules = number_rules(&field.ty);
            quote! { param::integer(deserializer, #name, #rules) }
        }
        Type::Number { .. } => {
            let rules = number_rules(&field.ty);
            quote! { param::number(deserializer, #name, #rules) }
        }
        Type::DateTime => quote! { param::date_time(deserializer, #name) },
        Type::Uuid => quote! { param::uuid(deserializer, #name) },
        Type::Named(ident) => quote! { param::one_of(deserializer, #name, #ident::VALUES, #ident::parse) },
        _ => {
            let rules = string_rules(&field.ty);
            quote! { { #rules param::string(deserializer, #name, RULES) } }
        }
    };
    if field.is_option() {
        quote! { #read.map(Some) }
    } else {
        read
    }
}

fn string_rules(ty: &Type) -> TokenStream {
    let (min, max, pattern) = match ty {
        Type::String {
            min_length,
            max_length,
            pattern,
        } => (option(min_length), option(max_length), pattern.as_deref()),
        _ => (quote! { None }, quote! { None }, None),
    };
    let (statics, pattern) = pattern_parts(pattern);
    quote! {
        #statics
        const RULES: StringRules = StringRules { min_length: #min, max_length: #max, pattern: #pattern };
    }
}

fn pattern_parts(pattern: Option<&str>) -> (TokenStream, TokenStream) {
    match pattern {
        None => (quote! {}, quote! { None }),
        Some(text) => (
            quote! {
                static PATTERN: codegen_runtime::rules::Pattern =
                    std::sync::LazyLock::new(|| codegen_runtime::pattern(#text));
            },
            quote! { Some((#text, &PATTERN)) },
        ),
    }
}

fn number_rules(ty: &Type) -> TokenStream {
    let (minimum, maximum) = match ty {
        Type::Integer {
            bits: 32,
            minimum,
            maximum,
        } => {
            let narrow = |bound: &Option<(i64, bool)>| match bound {
                Some((value, exclusive)) => {
                    let value = i32::try_from(*value).unwrap_or(if *value < 0 { i32::MIN } else { i32::MAX });
                    quote! { Some((#value, #exclusive)) }
                }
                None => quote! { None },
            };
            (narrow(minimum), narrow(maximum))
        }
        Type::Integer { minimum, maximum, .. } => (bound(minimum), bound(maximum)),
        Type::Number { minimum, maximum } => (bound(minimum), bound(maximum)),
        _ => (quote! { None }, quote! { None }),
    };
    quote! { NumberRules { minimum: #minimum, maximum: #maximum } }
}

fn bound<T: quote::ToTokens>(bound: &Option<(T, bool)>) -> TokenStream {
    match bound {
        Some((value, exclusive)) => quote! { Some((#value, #exclusive)) },
        None => quote! { None },
    }
}

fn option(value: &Option<usize>) -> TokenStream {
    match value {
        Some(value) => quote! { Some(#value) },
        None => quote! { None },
    }
}
