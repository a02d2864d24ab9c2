//! The code that reads a member, a parameter or a named value under its rules.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::fields::{number, rust_type};
use crate::model::{Api, Field, Shape, Type};
use crate::read::range;

/// The body of the function that reads a member, with `deserializer` in scope; `None` where serde's own way will do.
/// `helpers` gets the types that read items and values under rules of their own.
pub(super) fn member(field: &Field, helpers: &mut Vec<TokenStream>) -> Option<TokenStream> {
    // The document's types have no underscore in their names.
    let prefix = format!("Read_{}", field.ident.to_string().trim_start_matches("r#"));
    let expression = value(&field.ty, &prefix, helpers);
    if field.is_option() {
        let nullable = field.nullable;
        let expression = expression.unwrap_or_else(|| quote! { Deserialize::deserialize(deserializer) });
        return Some(quote! {
            body::optional(deserializer, #nullable, |reader| reader.with(|deserializer| #expression))
        });
    }
    expression
}

/// The expression that reads a value in JSON, with `deserializer` in scope; `None` where serde's own way will do.
pub(super) fn value(ty: &Type, prefix: &str, helpers: &mut Vec<TokenStream>) -> Option<TokenStream> {
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
        Type::Date => Some(quote! { body::date(deserializer) }),
        Type::Array {
            items,
            min_items,
            max_items,
        } => array(items, *min_items, *max_items, prefix, helpers),
        Type::Map {
            values,
            min_properties,
            max_properties,
            key_pattern,
        } => {
            let (min, max) = (option(*min_properties), option(*max_properties));
            let (statics, pattern) = pattern_parts(key_pattern.as_deref());
            let rules = quote! { MapRules { min_properties: #min, max_properties: #max, key_pattern: #pattern } };
            if let Type::ExactNumber { max_significant_digits } = &**values {
                return Some(quote! {
                    { #statics body::exact_number_map(deserializer, #rules, #max_significant_digits) }
                });
            }
            Some(match helper(values, &format!("{prefix}Value"), helpers) {
                None => quote! { { #statics body::map(deserializer, #rules) } },
                Some(helper) => quote! {
                    {
                        #statics
                        body::map::<_, #helper>(deserializer, #rules)
                            .map(|map| map.into_iter().map(|(name, value)| (name, value.0)).collect())
                    }
                },
            })
        }
        Type::Nullable(inner) => {
            let helper = helper(inner, &format!("{prefix}Value"), helpers)?;
            Some(quote! { Option::<#helper>::deserialize(deserializer).map(|value| value.map(|value| value.0)) })
        }
        Type::Boolean | Type::Bytes | Type::Uuid | Type::Named(_) | Type::Any => None,
    }
}

fn array(
    items: &Type,
    min: Option<usize>,
    max: Option<usize>,
    prefix: &str,
    helpers: &mut Vec<TokenStream>,
) -> Option<TokenStream> {
    let helper = helper(items, &format!("{prefix}Item"), helpers);
    if helper.is_none() && min.is_none() && max.is_none() {
        return None;
    }
    let (min, max) = (option(min), option(max));
    let rules = quote! { ArrayRules { min_items: #min, max_items: #max } };
    Some(match helper {
        None => quote! { body::array(deserializer, #rules) },
        Some(helper) => quote! {
            body::array::<_, #helper>(deserializer, #rules)
                .map(|items| items.into_iter().map(|item| item.0).collect())
        },
    })
}

/// A type that reads one item or value under its rules; `None` where the value's own type does.
fn helper(ty: &Type, name: &str, helpers: &mut Vec<TokenStream>) -> Option<Ident> {
    let expression = value(ty, name, helpers)?;
    let ident = format_ident!("{name}");
    let ty = rust_type(ty);
    helpers.push(quote! {
        struct #ident(#ty);

        impl<'de> Deserialize<'de> for #ident {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value: Result<#ty, D::Error> = #expression;
                value.map(#ident)
            }
        }
    });
    Some(ident)
}

/// The body of the function that reads a parameter, with `deserializer` in scope.
pub(super) fn parameter(field: &Field, api: &Api) -> TokenStream {
    let read = text(&field.ty, &field.name, api);
    if field.is_option() {
        quote! { #read.map(Some) }
    } else {
        read
    }
}

fn text(ty: &Type, name: &str, api: &Api) -> TokenStream {
    match ty {
        Type::Boolean => quote! { param::boolean(deserializer, #name) },
        Type::Integer { .. } => {
            let rules = number_rules(ty);
            quote! { param::integer(deserializer, #name, #rules) }
        }
        Type::Number { .. } => {
            let rules = number_rules(ty);
            quote! { param::number(deserializer, #name, #rules) }
        }
        Type::DateTime => quote! { param::date_time(deserializer, #name) },
        Type::Date => quote! { param::date(deserializer, #name) },
        Type::Uuid => quote! { param::uuid(deserializer, #name) },
        Type::Named(ident) => {
            let definition = api.types.iter().find(|definition| definition.ident == *ident);
            match definition.map(|definition| &definition.shape) {
                Some(Shape::Newtype(inner)) => {
                    let read = text(inner, name, api);
                    quote! { #read.map(#ident) }
                }
                _ => quote! { param::one_of(deserializer, #name, #ident::VALUES, #ident::parse) },
            }
        }
        _ => {
            let rules = string_rules(ty);
            quote! { { #rules param::string(deserializer, #name, RULES) } }
        }
    }
}

fn string_rules(ty: &Type) -> TokenStream {
    let (min, max, pattern) = match ty {
        Type::String {
            min_length,
            max_length,
            pattern,
        } => (option(*min_length), option(*max_length), pattern.as_deref()),
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
        Type::Integer { kind, minimum, maximum } => {
            let bound = |bound: &Option<(i128, bool)>| match bound {
                Some((value, exclusive)) => {
                    let (low, high) = range(kind);
                    let value = number(&value.clamp(&low, &high).to_string(), kind);
                    quote! { Some((#value, #exclusive)) }
                }
                None => quote! { None },
            };
            (bound(minimum), bound(maximum))
        }
        Type::Number { minimum, maximum } => (float(minimum), float(maximum)),
        _ => (quote! { None }, quote! { None }),
    };
    quote! { NumberRules { minimum: #minimum, maximum: #maximum } }
}

fn float(bound: &Option<(f64, bool)>) -> TokenStream {
    match bound {
        Some((value, exclusive)) => quote! { Some((#value, #exclusive)) },
        None => quote! { None },
    }
}

fn option(value: Option<usize>) -> TokenStream {
    match value {
        Some(value) => quote! { Some(#value) },
        None => quote! { None },
    }
}
