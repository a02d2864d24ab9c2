//! Enumerations of strings, numbers or booleans.

use std::str::FromStr;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::tokens::{deserialize, docs};
use crate::model::{Enumeration, EnumerationKind, TypeDefinition};

pub(super) fn tokens(definition: &TypeDefinition, of: &Enumeration) -> TokenStream {
    let ident = &definition.ident;
    let values: Vec<_> = of.variants.iter().map(|variant| &variant.value).collect();
    let idents: Vec<_> = of.variants.iter().map(|variant| &variant.ident).collect();
    let docs_of_variants = of.variants.iter().map(|variant| match variant.docs.as_str() {
        "" => docs(&format!("`{}`", variant.value)),
        about => docs(&format!("`{}`: {about}", variant.value)),
    });
    let is_text = of.kind == EnumerationKind::Text;
    let serialize = (is_text && definition.in_responses).then(|| quote! { Serialize, });
    let renames = values
        .iter()
        .map(|value| serialize.is_some().then(|| quote! { #[serde(rename = #value)] }));
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
