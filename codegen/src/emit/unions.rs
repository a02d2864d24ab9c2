//! Unions, which are distinguished by a member, a name or their values; and values that match several alternatives and
//! stay JSON.

use std::str::FromStr;

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;

use super::readers;
use super::tokens::{self, deserialize, docs, reading};
use crate::model::{Alternative, Enumeration, EnumerationKind, JoinedPart, Tagging, Type, TypeDefinition, Union};

pub(super) fn tokens(definition: &TypeDefinition, union: &Union) -> TokenStream {
    let ident = &definition.ident;
    let variants = union.alternatives.iter().map(|alternative| {
        let values: Vec<_> = alternative.values.iter().map(|value| format!("`{value}`")).collect();
        let values = values.join(" or ");
        let about = docs(&match (&union.tagging, alternative.docs.as_str()) {
            (Tagging::Member(tag), _) => format!("`{tag}` is {values}."),
            (_, "") => values,
            (_, about) => format!("{values}: {about}"),
        });
        let variant = &alternative.ident;
        let content = alternative.content.as_ref().map(tokens::rust_type);
        let content = content.map(|content| quote! { (#content) });
        quote! { #about #variant #content }
    });
    let read = definition.in_requests.then(|| read(definition, union));
    let write = definition.in_responses.then(|| {
        let arms = (0..).zip(&union.alternatives);
        let arms = arms.map(|(index, alternative)| write(ident, union, index, alternative));
        quote! {
            impl Serialize for #ident {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    match self { #(#arms,)* }
                }
            }
        }
    });
    quote! {
        #[derive(Clone, Debug, PartialEq)]
        pub enum #ident { #(#variants),* }
        #read
        #write
    }
}

fn read(definition: &TypeDefinition, union: &Union) -> TokenStream {
    let ident = &definition.ident;
    let mut helpers = Vec::new();
    let body = match &union.tagging {
        Tagging::Member(tag) => {
            let values = union.alternatives.iter().flat_map(|alternative| &alternative.values);
            let arms = union.alternatives.iter().map(|alternative| {
                let (values, variant) = (&alternative.values, &alternative.ident);
                quote! { #(#values)|* => tagged.read().map(#ident::#variant) }
            });
            quote! {
                let tagged = unions::Tagged::of(deserializer, #tag)?;
                match tagged.tag.as_str() {
                    #(#arms,)*
                    _ => Err(tagged.unknown(&[#(#values),*])),
                }
            }
        }
        Tagging::Name => quote! { unions::named(deserializer) },
        Tagging::Value { exclusive } => {
            let names = union.alternatives.iter().map(Alternative::name);
            let tried = union.alternatives.iter().map(|alternative| {
                let read = content(ident, alternative, &mut helpers);
                quote! { value.read()#read }
            });
            let tried: Vec<_> = tried.collect();
            let choose = readers::choose(*exclusive);
            quote! {
                let value = unions::Tried::of(deserializer)?;
                unions::#choose([#(#names),*], [#(#tried),*])
            }
        }
    };
    if union.tagging == Tagging::Name {
        let named = by_name(ident, union, &mut helpers);
        helpers.push(named);
    }
    reading(ident, &helpers, &body)
}

/// A value that stays JSON. Each alternative that it matches can be read from it.
pub(super) fn checked(definition: &TypeDefinition, alternatives: &[Alternative]) -> TokenStream {
    let ident = &definition.ident;
    let mut helpers = Vec::new();
    let (mut checks, mut views) = (Vec::new(), Vec::new());
    for alternative in alternatives {
        let (variant, name) = (alternative.ident.unraw(), alternative.name());
        let ty = alternative.content.as_ref().unwrap_or(&Type::Any);
        let content = tokens::rust_type(ty);
        let helper = readers::helper(ty, &format!("Read_{variant}_"), &mut helpers);
        let read = match &helper {
            Some(helper) => quote! { self.0.read::<#helper>().ok().map(|value| value.0) },
            None => quote! { self.0.read().ok() },
        };
        let helper = helper.map_or(content.clone(), |helper| quote! { #helper });
        checks.push(quote! { (#name, |value| value.read::<#helper>().map(drop)) });
        let snake = heck::ToSnakeCase::to_snake_case(variant.to_string().as_str());
        let (view, make) = (format_ident!("as_{snake}"), format_ident!("from_{snake}"));
        let about = docs(&format!("The value as `{name}`, if it matches."));
        views.push(quote! { #about pub fn #view(&self) -> Option<#content> { #read } });
        if definition.in_responses {
            let about = docs(&format!("Serializes a `{name}`.\n\n# Errors\nIf serialization fails."));
            views.push(quote! {
                #about
                pub fn #make(value: &#content) -> Result<Self, serde_json::Error> {
                    codegen_runtime::RawJson::written(value).map(#ident)
                }
            });
        }
    }
    let serialize = definition.in_responses.then(|| quote! { Serialize });
    let read = definition.in_requests.then(|| {
        helpers.push(quote! { impl #ident { #(#views)* } });
        let body = quote! { codegen_runtime::RawJson::of(deserializer, &[#(#checks),*]).map(#ident) };
        reading(ident, &helpers, &body)
    });
    quote! {
        #[derive(Clone, Debug, PartialEq, #serialize)]
        pub struct #ident(codegen_runtime::RawJson);

        impl #ident {
            /// The value as received.
            pub fn raw_json(&self) -> &codegen_runtime::RawJson {
                &self.0
            }
        }

        #read
    }
}

/// An object with the members of several types.
pub(super) fn joined(definition: &TypeDefinition, parts: &[JoinedPart]) -> TokenStream {
    let ident = &definition.ident;
    let names: Vec<_> = parts.iter().map(|part| &part.ident).collect();
    let types: Vec<_> = parts.iter().map(|part| tokens::rust_type(&part.ty)).collect();
    let others = parts.iter().map(|part| &part.others);
    let others: Vec<_> = others.map(|all| quote! { &[#(#all),*] }).collect();
    let read = definition.in_requests.then(|| {
        let body = quote! {
            let whole = unions::Whole::of(deserializer)?;
            Ok(#ident { #(#names: whole.without(#others)?),* })
        };
        deserialize(ident, &body)
    });
    let write = definition.in_responses.then(|| {
        quote! {
            impl Serialize for #ident {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    let mut whole = unions::Joined::new();
                    #(whole.add(&self.#names)?;)*
                    whole.serialize(serializer)
                }
            }
        }
    });
    quote! {
        #[derive(Clone, Debug, PartialEq)]
        pub struct #ident {
            #(#[doc = " The members of this type."] pub #names: #types),*
        }
        #read
        #write
    }
}

/// The code that converts the value to the variant.
fn content(ident: &Ident, alternative: &Alternative, helpers: &mut Vec<TokenStream>) -> TokenStream {
    let variant = &alternative.ident;
    let ty = alternative.content.as_ref().unwrap_or(&Type::Null);
    // The trailing underscore distinguishes the helper for items of `A` from that of an alternative `AItem`.
    match readers::helper(ty, &format!("Read_{}_", variant.unraw()), helpers) {
        Some(helper) => quote! { .map(|value: #helper| #ident::#variant(value.0)) },
        None => quote! { .map(#ident::#variant) },
    }
}

fn by_name(ident: &Ident, union: &Union, helpers: &mut Vec<TokenStream>) -> TokenStream {
    let (mut texts, mut text_arms) = (Vec::new(), Vec::new());
    let (mut names, mut name_arms) = (Vec::new(), Vec::new());
    for alternative in &union.alternatives {
        let (name, variant) = (alternative.name(), &alternative.ident);
        if alternative.content.is_none() {
            text_arms.push(quote! { #name => Some(#ident::#variant) });
            texts.push(name);
        } else {
            let read = content(ident, alternative, helpers);
            name_arms.push(quote! { #name => map.next_value()#read.map(Some) });
            names.push(name);
        }
    }
    quote! {
        impl unions::Named for #ident {
            const TEXTS: &'static [&'static str] = &[#(#texts),*];
            const MEMBERS: &'static [&'static str] = &[#(#names),*];

            fn of_text(text: &str) -> Option<Self> {
                match text {
                    #(#text_arms,)*
                    _ => None,
                }
            }

            fn of_member<'de, A: serde::de::MapAccess<'de>>(
                name: &str,
                map: &mut A,
            ) -> Result<Option<Self>, A::Error> {
                match name {
                    #(#name_arms,)*
                    _ => Ok(None),
                }
            }
        }
    }
}

fn write(ident: &Ident, union: &Union, index: u32, alternative: &Alternative) -> TokenStream {
    let (variant, name) = (&alternative.ident, alternative.name());
    match (&union.tagging, &alternative.tag_field, &alternative.content) {
        (Tagging::Member(tag), Some(field), _) => {
            let values = &alternative.values;
            quote! {
                #ident::#variant(value) => {
                    unions::same_tag::<S::Error>(#tag, value.#field.as_str(), &[#(#values),*])?;
                    value.serialize(serializer)
                }
            }
        }
        (Tagging::Name, _, None) => quote! { #ident::#variant => serializer.serialize_str(#name) },
        (Tagging::Name, _, Some(_)) => {
            let union = ident.unraw().to_string();
            quote! {
                #ident::#variant(value) => serializer.serialize_newtype_variant(#union, #index, #name, value)
            }
        }
        _ => quote! { #ident::#variant(value) => value.serialize(serializer) },
    }
}

pub(super) fn enumeration(definition: &TypeDefinition, of: &Enumeration) -> TokenStream {
    let ident = &definition.ident;
    let values: Vec<_> = of.variants.iter().map(|variant| &variant.value).collect();
    let idents: Vec<_> = of.variants.iter().map(|variant| &variant.ident).collect();
    let docs_of_variants = of.variants.iter().map(|variant| match variant.docs.as_str() {
        "" => docs(&format!("`{}`", variant.value)),
        about => docs(&format!("`{}`: {about}", variant.value)),
    });
    let is_text = of.kind == EnumerationKind::Text;
    let serialize = (is_text && definition.in_responses).then(|| quote! { Serialize, });
    let renames = values.iter().map(|value| quote! { #[serde(rename = #value)] });
    let renames = renames.map(|rename| serialize.as_ref().map(|_| rename));
    // serde's derived implementation would also accept an object with one member.
    let reader = match is_text {
        true => quote! { one_of },
        false => quote! { one_of_values },
    };
    let read = definition.in_requests.then(|| {
        let read = quote! { body::#reader(deserializer, #ident::VALUES, #ident::parse) };
        deserialize(ident, &read)
    });
    let value = value(of);
    let write = (!is_text && definition.in_responses).then(|| {
        quote! {
            impl Serialize for #ident {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    self.value().serialize(serializer)
                }
            }
        }
    });
    quote! {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, #serialize)]
        pub enum #ident {
            #(#docs_of_variants #renames #idents,)*
        }

        impl #ident {
            /// All values, as sent.
            pub const VALUES: &'static [&'static str] = &[#(#values),*];

            /// The value as sent.
            pub const fn as_str(self) -> &'static str {
                match self { #(#ident::#idents => #values,)* }
            }

            /// Reads the value as sent.
            pub fn parse(value: &str) -> Option<Self> {
                match value {
                    #(#values => Some(#ident::#idents),)*
                    _ => None,
                }
            }

            #value
        }

        #read
        #write
    }
}

/// A function that returns the value of an enumeration that is not of strings.
fn value(of: &Enumeration) -> Option<TokenStream> {
    let kind = match of.kind {
        EnumerationKind::Text => return None,
        EnumerationKind::Integer(kind) => kind.name(),
        EnumerationKind::Number => "f64".into(),
        EnumerationKind::Boolean => "bool".into(),
    };
    let arms = of.variants.iter().map(|variant| {
        let ident = &variant.ident;
        let literal = match of.kind {
            EnumerationKind::Boolean => variant.value.clone(),
            _ => format!("{}{kind}", variant.value),
        };
        let literal = TokenStream::from_str(&literal).unwrap_or_default();
        quote! { Self::#ident => #literal }
    });
    let kind = format_ident!("{kind}");
    Some(quote! {
        /// The value.
        pub const fn value(self) -> #kind {
            match self { #(#arms,)* }
        }
    })
}
