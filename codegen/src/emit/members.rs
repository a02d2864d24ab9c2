//! The members of structs, and the functions that read them.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;

use super::tokens::docs;
use super::{readers, tokens};
use crate::literals;
use crate::model::{Api, Field, Struct, TypeDefinition};

/// The name of the module with the functions that read `owner`.
pub(super) fn module(owner: &Ident) -> Ident {
    let is_raw = owner.to_string().starts_with("r#");
    let owner = heck::ToSnakeCase::to_snake_case(owner.unraw().to_string().as_str());
    match is_raw {
        // An operation's own type of the same name has the usual module name.
        true => format_ident!("{owner}_reading_"),
        false => format_ident!("{owner}_reading"),
    }
}

/// The members of a struct with their attributes, and the functions that read them.
pub(super) fn tokens(definition: &TypeDefinition, object: &Struct, api: &Api) -> (Vec<TokenStream>, TokenStream) {
    let mut writer = Writer::new(&definition.ident, &object.fields, api);
    writer.is_read = definition.in_requests;
    writer.is_written = definition.in_responses;
    let flatten = object.kept().map(|field| (field, Some(quote! { #[serde(flatten)] })));
    for (field, flatten) in object.fields.iter().map(|field| (field, None)).chain(flatten) {
        let default = literals::default(field, &api.types).ok().flatten();
        let mut read = || readers::member(field, default.as_ref(), &mut writer.helpers);
        let reader = if definition.in_requests { read() } else { None };
        writer.member(field, reader, flatten);
    }
    writer.finish()
}

/// The same for the parameters of an operation.
pub(super) fn parameters(owner: &Ident, all: &[Field], api: &Api) -> (Vec<TokenStream>, TokenStream) {
    let mut writer = Writer::new(owner, all, api);
    for field in all {
        let reader = readers::parameter(field, api, &mut writer.helpers);
        writer.member(field, Some(reader), None);
    }
    writer.finish()
}

struct Writer<'a> {
    module: Ident,
    all: &'a [Field],
    is_read: bool,
    is_written: bool,
    api: &'a Api,
    members: Vec<TokenStream>,
    readers: Vec<TokenStream>,
    helpers: Vec<TokenStream>,
}

impl<'a> Writer<'a> {
    fn new(owner: &Ident, all: &'a [Field], api: &'a Api) -> Self {
        Writer {
            module: module(owner),
            all,
            is_read: true,
            is_written: false,
            api,
            members: Vec::new(),
            readers: Vec::new(),
            helpers: Vec::new(),
        }
    }

    fn member(&mut self, field: &Field, reader: Option<TokenStream>, flatten: Option<TokenStream>) {
        let Field { name, ident, .. } = field;
        let module = &self.module;
        let about = docs(&field.docs);
        let mut ty = tokens::rust_type(&field.ty);
        if field.is_option() {
            ty = quote! { Option<#ty> };
        }
        let plain = ident.to_string().trim_start_matches("r#").to_string();
        let mut attributes = Vec::new();
        let is_sent = self.is_read || self.is_written;
        if plain != *name && is_sent && flatten.is_none() {
            attributes.push(quote! { #[serde(rename = #name)] });
        }
        attributes.extend(flatten.filter(|_| is_sent));
        if self.is_written {
            attributes.extend(tokens::write_attribute(field));
        }
        if self.is_read {
            if let Some(reader) = reader {
                self.readers.push(quote! {
                    pub(super) fn #ident<'de, D: Deserializer<'de>>(deserializer: D) -> Result<#ty, D::Error> {
                        #reader
                    }
                });
                let path = format!("{module}::{ident}");
                attributes.push(quote! { #[serde(deserialize_with = #path)] });
            }
            // The readers have checked that the default matches the type.
            if let Ok(Some(default)) = literals::default(field, &self.api.types) {
                let mut name = format!("default_{plain}");
                while self.all.iter().any(|other| other.ident == name.as_str()) {
                    name.push('_');
                }
                let function = format_ident!("{name}");
                self.readers
                    .push(quote! { pub(super) fn #function() -> #ty { #default } });
                let path = format!("{module}::{function}");
                attributes.push(quote! { #[serde(default = #path)] });
            } else if field.is_optional_in_requests() {
                attributes.push(quote! { #[serde(default)] });
            }
        }
        self.members.push(quote! { #about #(#attributes)* pub #ident: #ty });
    }

    fn finish(self) -> (Vec<TokenStream>, TokenStream) {
        let (module, helpers, readers) = (self.module, self.helpers, self.readers);
        match readers.is_empty() {
            true => (self.members, quote! {}),
            false => (
                self.members,
                quote! { mod #module { use super::*; #(#helpers)* #(#readers)* } },
            ),
        }
    }
}
