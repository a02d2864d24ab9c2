//! Unions: an enumeration of structs, told apart by one of their members.

use proc_macro2::TokenStream;
use quote::quote;

use super::docs;
use crate::model::{TypeDefinition, Union};

pub(super) fn tokens(definition: &TypeDefinition, union: &Union) -> TokenStream {
    let ident = &definition.ident;
    let tag = &union.tag;
    let variants = union.alternatives.iter().map(|alternative| {
        let values: Vec<_> = alternative.values.iter().map(|value| format!("`{value}`")).collect();
        let about = docs(&format!("`{tag}` is {}.", values.join(" or ")));
        let alternative = &alternative.ident;
        quote! { #about #alternative(#alternative) }
    });
    let read = definition.in_requests.then(|| {
        let values = union.alternatives.iter().flat_map(|alternative| &alternative.values);
        let arms = union.alternatives.iter().map(|alternative| {
            let values = &alternative.values;
            let alternative = &alternative.ident;
            quote! {
                #(#values)|* => tagged.read().map(#ident::#alternative)
            }
        });
        quote! {
            impl<'de> Deserialize<'de> for #ident {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let tagged = body::Tagged::of(deserializer, #tag)?;
                    match tagged.tag.as_str() {
                        #(#arms,)*
                        _ => Err(tagged.unknown(&[#(#values),*])),
                    }
                }
            }
        }
    });
    let write = definition.in_responses.then(|| {
        let arms = union.alternatives.iter().map(|alternative| {
            let values = &alternative.values;
            let field = &alternative.tag_field;
            let alternative = &alternative.ident;
            quote! {
                #ident::#alternative(value) => {
                    body::same_tag::<S::Error>(#tag, value.#field.as_str(), &[#(#values),*])?;
                    value.serialize(serializer)
                }
            }
        });
        quote! {
            impl Serialize for #ident {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    match self { #(#arms)* }
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
