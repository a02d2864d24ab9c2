//! Deserialization of members, parameters and named values, with their rules.

use codegen_runtime::{ArrayRules, NumberRules, Pattern};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;

use super::tokens::{deserialize, rust_type};
use crate::literals::integer;
use crate::model::{
    Alternative, Api, Field, IntegerKind, ListStyle, MapRules, Shape, StringRules, Tagging, Type, Union,
};

/// The body of the function that reads a member from `deserializer`; `None` if serde's derived implementation suffices.
/// `default` is the value of an omitted member. Helper types that check items and values are added to `helpers`.
pub(super) fn member(
    field: &Field,
    default: Option<&TokenStream>,
    helpers: &mut Vec<TokenStream>,
) -> Option<TokenStream> {
    // Type names of the document contain no underscores.
    let prefix = format!("Read_{}", field.ident.to_string().trim_start_matches("r#"));
    let null_is_a_value = matches!(field.ty, Type::Any | Type::Null);
    if field.is_option() {
        let must_be_there = !field.is_optional_in_requests() && !field.nullable;
        return Some(match helper(&field.ty, &prefix, helpers) {
            Some(helper) if must_be_there => quote! { #helper::deserialize(deserializer).map(|value| Some(value.0)) },
            _ if must_be_there || null_is_a_value => quote! { Deserialize::deserialize(deserializer).map(Some) },
            None => quote! { body::optional(deserializer) },
            Some(helper) => quote! {
                body::optional::<_, #helper>(deserializer).map(|value| value.map(|value| value.0))
            },
        });
    }
    match default.filter(|_| !null_is_a_value) {
        None => value(&field.ty, &prefix, helpers),
        Some(default) => Some(match helper(&field.ty, &prefix, helpers) {
            None => quote! { body::or_default(deserializer, || #default) },
            Some(helper) => quote! {
                body::or_default::<_, #helper>(deserializer, || #helper(#default)).map(|value| value.0)
            },
        }),
    }
}

/// The expression that reads a JSON value from `deserializer`; `None` if serde's derived implementation suffices.
pub(super) fn value(ty: &Type, prefix: &str, helpers: &mut Vec<TokenStream>) -> Option<TokenStream> {
    match ty {
        Type::String(rules) if *rules == StringRules::NONE => None,
        Type::String(rules) => {
            let (statics, rules) = string_rules(rules);
            Some(after(statics, quote! { body::string(deserializer, #rules) }))
        }
        Type::Integer { rules, .. } if *rules == NumberRules::NONE => None,
        Type::Integer { kind, rules } => {
            let rules = integer_rules(*kind, rules);
            Some(quote! { body::number(deserializer, #rules) })
        }
        Type::Number(rules) if *rules == NumberRules::NONE => None,
        Type::Number(rules) => {
            let rules = float_rules(rules);
            Some(quote! { body::number(deserializer, #rules) })
        }
        Type::ExactNumber { max_significant_digits } => {
            Some(quote! { body::exact_number(deserializer, #max_significant_digits) })
        }
        Type::Decimal { places } => Some(quote! { codegen_runtime::decimal::read(deserializer, #places) }),
        Type::DateTime => Some(quote! { body::date_time(deserializer) }),
        Type::Date => Some(quote! { body::date(deserializer) }),
        Type::Array { items, rules } => array(items, rules, prefix, helpers),
        Type::Map { values, rules } => {
            let (statics, rules) = map_rules(rules);
            if let Type::ExactNumber { max_significant_digits } = &**values {
                let read = quote! { body::exact_number_map(deserializer, #rules, #max_significant_digits) };
                return Some(after(statics, read));
            }
            let read = match helper(values, &format!("{prefix}Value"), helpers) {
                None => quote! { body::map(deserializer, #rules) },
                Some(helper) => quote! {
                    body::map::<_, #helper>(deserializer, #rules)
                        .map(|map| map.into_iter().map(|(name, value)| (name, value.0)).collect())
                },
            };
            Some(after(statics, read))
        }
        Type::Nullable(inner) => {
            let helper = helper(inner, &format!("{prefix}Value"), helpers)?;
            Some(quote! { Option::<#helper>::deserialize(deserializer).map(|value| value.map(|value| value.0)) })
        }
        Type::Boolean | Type::Null | Type::Never | Type::Bytes => None,
        Type::Uuid | Type::Boxed(_) | Type::Named(_) | Type::Any => None,
    }
}

fn array(items: &Type, rules: &ArrayRules, prefix: &str, helpers: &mut Vec<TokenStream>) -> Option<TokenStream> {
    let helper = helper(items, &format!("{prefix}Item"), helpers);
    if helper.is_none() && *rules == ArrayRules::NONE {
        return None;
    }
    let counts = ArrayRules {
        unique_items: false,
        ..*rules
    };
    let stated = array_rules(&counts);
    let read = match helper {
        None => quote! { body::array(deserializer, #stated) },
        Some(helper) => quote! {
            body::array::<_, #helper>(deserializer, #stated)
                .map(|items| items.into_iter().map(|item| item.0).collect())
        },
    };
    Some(match rules.unique_items {
        true => {
            let items = rust_type(items);
            quote! { #read.and_then(|items: Vec<#items>| body::distinct(items)) }
        }
        false => read,
    })
}

fn array_rules(rules: &ArrayRules) -> TokenStream {
    let ArrayRules {
        min_items,
        max_items,
        unique_items,
    } = *rules;
    let stated = [
        count("min_items", min_items),
        count("max_items", max_items),
        stated("unique_items", unique_items.then(|| quote! { true })),
    ];
    with_none(quote! { ArrayRules }, &stated)
}

/// A type that reads an item or value and checks its rules; `None` if its own type does that.
pub(super) fn helper(ty: &Type, name: &str, helpers: &mut Vec<TokenStream>) -> Option<Ident> {
    let expression = value(ty, name, helpers)?;
    let ident = format_ident!("{name}");
    let ty = rust_type(ty);
    let body = quote! {
        let value: Result<#ty, D::Error> = #expression;
        value.map(#ident)
    };
    let read = deserialize(&ident, &body);
    helpers.push(quote! { struct #ident(#ty); #read });
    Some(ident)
}

/// The body of the function that reads a parameter from `deserializer`. Helper types are added to `helpers`.
pub(super) fn parameter(field: &Field, api: &Api, helpers: &mut Vec<TokenStream>) -> TokenStream {
    let prefix = format!("Read_{}", field.ident.unraw());
    let mut text = Text {
        name: &field.name,
        style: field.list.unwrap_or(ListStyle::Separated(',')),
        api,
        helpers,
    };
    let read = match text.style {
        ListStyle::Json => text.json(&field.ty, &prefix),
        _ => text.read(&field.ty, &prefix),
    };
    match field.is_option() {
        true => quote! { #read.map(Some) },
        false => read,
    }
}

/// The code that reads values from the text of a parameter.
struct Text<'a> {
    name: &'a str,
    style: ListStyle,
    api: &'a Api,
    helpers: &'a mut Vec<TokenStream>,
}

impl Text<'_> {
    fn read(&mut self, ty: &Type, prefix: &str) -> TokenStream {
        let name = self.name;
        match ty {
            Type::Boolean => quote! { param::boolean(deserializer, #name) },
            Type::Integer { kind, rules } => {
                let rules = integer_rules(*kind, rules);
                quote! { param::integer(deserializer, #name, #rules) }
            }
            Type::Number(rules) => {
                let rules = float_rules(rules);
                quote! { param::number(deserializer, #name, #rules) }
            }
            Type::ExactNumber { max_significant_digits } => {
                quote! { param::exact_number(deserializer, #name, #max_significant_digits) }
            }
            Type::Decimal { places } => quote! { param::decimal(deserializer, #name, #places) },
            Type::Bytes => quote! { param::base64(deserializer, #name) },
            Type::DateTime => quote! { param::date_time(deserializer, #name) },
            Type::Date => quote! { param::date(deserializer, #name) },
            Type::Uuid => quote! { param::uuid(deserializer, #name) },
            Type::Array { items, rules } => {
                let style = match self.style {
                    ListStyle::Separated(by) => quote! { param::List::Separated(#by) },
                    ListStyle::Repeated | ListStyle::Json => quote! { param::List::Repeated },
                };
                let rules = array_rules(rules);
                let read = self.read(items, &format!("{prefix}Item"));
                quote! { param::list(deserializer, #name, #style, #rules, |deserializer| #read) }
            }
            Type::String(rules) => {
                let (statics, rules) = string_rules(rules);
                after(statics, quote! { param::string(deserializer, #name, #rules) })
            }
            Type::Named(ident) => match self.api.shape(ident) {
                Some(Shape::Enum(_)) => quote! { param::one_of(deserializer, #name, #ident::VALUES, #ident::parse) },
                Some(Shape::Newtype(inner)) => {
                    let read = self.read(inner, prefix);
                    quote! { #read.map(#ident) }
                }
                Some(Shape::Union(union)) => match union.tagging {
                    Tagging::Value { exclusive } => self.alternatives(ident, union, exclusive, prefix),
                    Tagging::Member(_) | Tagging::Name => self.json(ty, prefix),
                },
                _ => self.json(ty, prefix),
            },
            // A member of a form.
            _ => self.json(ty, prefix),
        }
    }

    /// Reads the text as JSON.
    fn json(&mut self, ty: &Type, prefix: &str) -> TokenStream {
        let name = self.name;
        match helper(ty, prefix, self.helpers) {
            None => quote! { param::json(deserializer, #name) },
            Some(helper) => quote! { param::json::<_, #helper>(deserializer, #name).map(|value| value.0) },
        }
    }

    /// Reads the text as one of several alternatives.
    fn alternatives(&mut self, ident: &Ident, union: &Union, exclusive: bool, prefix: &str) -> TokenStream {
        let (name, choose) = (self.name, choose(exclusive));
        let names = union.alternatives.iter().map(Alternative::name);
        let tried = union.alternatives.iter().map(|alternative| {
            let variant = &alternative.ident;
            let prefix = format!("{prefix}{}", variant.unraw());
            let read = alternative.content.as_ref().map(|ty| self.read(ty, &prefix));
            quote! { unions::read_text(text, #name, |deserializer| #read).map(#ident::#variant) }
        });
        let tried: Vec<_> = tried.collect();
        quote! {
            param::tried(deserializer, #name, |text| unions::#choose([#(#names),*], [#(#tried),*]))
        }
    }
}

/// The function that chooses among the alternatives that match.
pub(super) fn choose(exclusive: bool) -> TokenStream {
    match exclusive {
        true => quote! { only },
        false => quote! { first },
    }
}

/// An expression that needs other items before it.
fn after(items: TokenStream, expression: TokenStream) -> TokenStream {
    match items.is_empty() {
        true => expression,
        false => quote! { { #items #expression } },
    }
}

fn string_rules(rules: &StringRules) -> (TokenStream, TokenStream) {
    // Destructured here and below, so that the compiler points out a rule that is not generated.
    let StringRules {
        min_length,
        max_length,
        pattern: matched,
        format,
    } = rules;
    let (statics, pattern) = pattern("pattern", matched.as_ref());
    let format = format.map(|format| format_ident!("{format:?}"));
    let format = format.map(|name| quote! { Some(codegen_runtime::Format::#name) });
    let stated = [
        count("min_length", *min_length),
        count("max_length", *max_length),
        pattern,
        stated("format", format),
    ];
    (statics, with_none(quote! { StringRules }, &stated))
}

fn map_rules(rules: &MapRules) -> (TokenStream, TokenStream) {
    let MapRules {
        min_properties,
        max_properties,
        key_pattern,
    } = rules;
    let (statics, pattern) = pattern("key_pattern", key_pattern.as_ref());
    let stated = [
        count("min_properties", *min_properties),
        count("max_properties", *max_properties),
        pattern,
    ];
    (statics, with_none(quote! { MapRules }, &stated))
}

fn integer_rules(kind: IntegerKind, rules: &NumberRules<i128>) -> TokenStream {
    let (low, high) = kind.range();
    // A bound beyond the type's range is always satisfied and cannot be written as a literal.
    let within = |bound: &(i128, bool)| (low..=high).contains(&bound.0);
    let rules = NumberRules {
        minimum: rules.minimum.filter(within),
        maximum: rules.maximum.filter(within),
        ..*rules
    };
    number_rules(&rules, |value| integer(value, kind))
}

fn float_rules(rules: &NumberRules<f64>) -> TokenStream {
    number_rules(rules, |value| quote! { #value })
}

fn number_rules<T: Copy>(rules: &NumberRules<T>, literal: impl Fn(T) -> TokenStream) -> TokenStream {
    let bound = |bound: (T, bool)| {
        let (value, exclusive) = (literal(bound.0), bound.1);
        quote! { Some((#value, #exclusive)) }
    };
    let multiple = |unit: T| {
        let unit = literal(unit);
        quote! { Some(#unit) }
    };
    let NumberRules {
        minimum,
        maximum,
        multiple_of,
        not_zero,
    } = *rules;
    let stated = [
        stated("minimum", minimum.map(bound)),
        stated("maximum", maximum.map(bound)),
        stated("multiple_of", multiple_of.map(multiple)),
        stated("not_zero", not_zero.then(|| quote! { true })),
    ];
    with_none(quote! { NumberRules }, &stated)
}

/// The rules that are present; all others are taken from `NONE`.
fn with_none(rules: TokenStream, stated: &[Option<TokenStream>]) -> TokenStream {
    let fields: Vec<_> = stated.iter().flatten().collect();
    match fields.is_empty() {
        true => quote! { #rules::NONE },
        false => quote! { #rules { #(#fields,)* ..#rules::NONE } },
    }
}

fn stated(name: &str, value: Option<TokenStream>) -> Option<TokenStream> {
    let name = format_ident!("{name}");
    value.map(|value| quote! { #name: #value })
}

fn count(name: &str, value: Option<usize>) -> Option<TokenStream> {
    stated(name, value.map(|value| quote! { Some(#value) }))
}

/// A static with the compiled pattern, and the rule that refers to it.
fn pattern(name: &str, pattern: Option<&Pattern>) -> (TokenStream, Option<TokenStream>) {
    let Some(pattern) = pattern else {
        return (quote! {}, None);
    };
    let text = pattern.text();
    let rule = stated(name, Some(quote! { Some(&PATTERN) }));
    (quote! { static PATTERN: Pattern = Pattern::new(#text); }, rule)
}
