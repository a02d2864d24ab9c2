//! What generated code expects of a server, as small as it compiles.

use codegen::emit::File;
use codegen::model::{Api, BodyContent, Operation};
use heck::ToUpperCamelCase;
use quote::{format_ident, quote};

/// The module of a fixture, beside its `server`: re-exports of the common stubs, and a handler for each operation.
pub fn files(api: &Api) -> Vec<File> {
    let mut tags: Vec<(Option<String>, Vec<&Operation>)> = Vec::new();
    for operation in &api.operations {
        let tag = operation.tag.as_ref().map(ToString::to_string);
        match tags.iter_mut().find(|(known, _)| *known == tag) {
            Some((_, operations)) => operations.push(operation),
            None => tags.push((tag, vec![operation])),
        }
    }
    let endpoints = tags.iter().map(|(_, operations)| {
        let handlers = operations.iter().map(|operation| handler(operation));
        match &operations[0].tag {
            Some(tag) => quote! { pub mod #tag { #(#handlers)* } },
            None => quote! { #(#handlers)* },
        }
    });
    let code = quote! {
        #[path = "../server/mod.rs"]
        pub mod server;

        pub use crate::stub::{context, error, front_door};

        pub mod endpoints { #(#endpoints)* }
    };
    let text = prettyplease::unparse(&syn::parse2(code).unwrap());
    vec![File {
        name: "mod.rs".into(),
        text: format!("//! Written by the tests, so that the code beside it compiles.\n\n{text}"),
    }]
}

fn handler(operation: &Operation) -> proc_macro2::TokenStream {
    let name = &operation.ident;
    let camel = operation.id.to_upper_camel_case();
    let mut arguments = Vec::new();
    for (fields, suffix) in [
        (&operation.path_parameters, "Path"),
        (&operation.query_parameters, "Query"),
        (&operation.header_parameters, "Headers"),
    ] {
        if !fields.is_empty() {
            let ty = format_ident!("{camel}{suffix}");
            arguments.push(quote! { _: types::#ty });
        }
    }
    if let Some(body) = &operation.body {
        arguments.push(match &body.content {
            BodyContent::Json(ident) => quote! { _: types::#ident },
            BodyContent::Bytes => quote! { _: dropshot::UntypedBody },
        });
        if body.raw {
            arguments.push(quote! { _: Vec<u8> });
        }
    }
    let is_typed = arguments.iter().any(|argument| argument.to_string().contains("types"));
    let types = is_typed.then(|| quote! { types, });
    let response = format_ident!("{camel}Response");
    // From the handler's module up to the fixture's: past `endpoints`, and the tag's module.
    let up = match operation.tag {
        Some(_) => quote! { super::super::super },
        None => quote! { super::super },
    };
    quote! {
        pub mod #name {
            use #up::server::{#types responses};
            use crate::stub::context::Context;
            use crate::stub::error::{self, ApiError};
            use crate::stub::front_door::Caller;

            pub async fn handle(
                _: &Context,
                _: &Caller,
                #(#arguments),*
            ) -> Result<responses::#response, ApiError> {
                Err(error::nothing_here())
            }
        }
    }
}
