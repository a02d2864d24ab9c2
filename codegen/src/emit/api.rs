//! The API trait.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::Dispatch;
use super::tokens::{docs, error_type, imports};
use crate::model::{Api, BodyContent, Operation, Versions};
use crate::naming::derived;

pub(super) fn tokens(api: &Api, root: &TokenStream, dispatch: Dispatch) -> TokenStream {
    let methods = api.operations.iter().map(|operation| method(operation, api, dispatch));
    let about = docs(&format!("{} {}.", api.title, api.version));
    let tags = api.tags.iter().map(|tag| {
        let name = &tag.name;
        let described = |text: &String| quote! { description = #text };
        let description = Some(&tag.description).filter(|text| !text.is_empty()).map(described);
        let docs = tag.external_docs.as_ref().map(|(description, url)| {
            let description = description.iter().map(described);
            quote! { external_docs = { #(#description,)* url = #url } }
        });
        let about = description.into_iter().chain(docs);
        quote! { #name = { #(#about),* } }
    });
    // Dropshot rejects undeclared tags.
    let is_declared = |tag: &String| api.tags.iter().any(|known| known.name == *tag);
    let mut used = api.operations.iter().flat_map(|operation| &operation.tags);
    let others = used
        .any(|tag| !is_declared(tag))
        .then(|| quote! { allow_other_tags = true, });
    let tag_config = (!api.tags.is_empty()).then(|| {
        quote! { { tag_config = { tags = { #(#tags),* }, #others policy = EndpointTagPolicy::Any } } }
    });
    let code = quote! {
        #about
        #[dropshot::api_description #tag_config]
        pub trait Api {
            /// The state shared by all handlers.
            type Context;

            #(#methods)*
        }
    };
    let imports = imports(&[], &code);
    let types = types_import(api);
    quote! {
        #imports
        use super::responses::*;
        #types
        use #root::error::ApiError;

        #code
    }
}

/// The import of the types; nothing if no operation uses a type of the document.
pub(super) fn types_import(api: &Api) -> Option<TokenStream> {
    let names_types = |operation: &Operation| !arguments(operation, api).is_empty() || api.failure(operation).is_some();
    let is_needed = api.operations.iter().any(names_types);
    is_needed.then(|| quote! { use super::types::*; })
}

fn method(operation: &Operation, api: &Api, dispatch: Dispatch) -> TokenStream {
    let name = &operation.ident;
    let id = &operation.id;
    let method = format_ident!("{}", operation.method);
    let path = &operation.path;
    let tags = &operation.tags;
    let deprecated = operation.deprecated.then(|| quote! { deprecated = true, });
    let about = docs(&operation.docs);
    let content_type = match operation.content() {
        Some(BodyContent::Form(_)) => quote! { content_type = "application/x-www-form-urlencoded", },
        Some(BodyContent::Multipart) => quote! { content_type = "multipart/form-data", },
        _ => quote! {},
    };
    let Versions { from, until } = &operation.versions;
    let versions = (operation.versions != Versions::default()).then(|| quote! { versions = #from .. #until, });
    let (arguments, response) = signature(operation, api, dispatch);
    let arguments = arguments.into_iter().map(|(name, ty)| quote! { #name: #ty });
    let error = error_type(api, operation);
    quote! {
        #about
        #[endpoint { method = #method, path = #path, operation_id = #id, tags = [#(#tags),*], #content_type #deprecated #versions }]
        async fn #name(
            rqctx: RequestContext<Self::Context>,
            #(#arguments),*
        ) -> Result<#response, #error>;
    }
}

type Argument = (TokenStream, TokenStream);

/// The extractors of an operation's method, and its response. Behind a gateway, the method takes the whole request and returns a finished response.
pub(super) fn signature(operation: &Operation, api: &Api, dispatch: Dispatch) -> (Vec<Argument>, TokenStream) {
    let arguments = arguments(operation, api);
    let response = derived(&operation.name, "Response");
    match dispatch {
        // `ApiError` is made from what an extractor returns, and then needs the request's ID.
        Dispatch::Dropshot if !api.request_ids().is_empty() => {
            let identified = arguments.into_iter().map(|(name, ty)| {
                let ty = match name.to_string().as_str() {
                    "body" | "upgrade" => quote! { IdentifiedBody<#ty> },
                    _ => quote! { Identified<#ty> },
                };
                (name, ty)
            });
            (identified.collect(), quote! { #response })
        }
        Dispatch::Dropshot => (arguments, quote! { #response }),
        Dispatch::Calls => {
            let types = arguments.iter().map(|(_, ty)| quote! { #ty, });
            let request = (quote! { request }, quote! { Unread<(#(#types)*)> });
            (vec![request], quote! { GatewayResponse<#response> })
        }
    }
}

/// The extractors of an operation, in Dropshot's order.
pub(super) fn arguments(operation: &Operation, api: &Api) -> Vec<Argument> {
    let mut all = Vec::new();
    for (fields, name, suffix) in operation.groups() {
        let ty = derived(&operation.name, suffix);
        let extractor = match name {
            "path" => quote! { Path },
            "query" if api.has_repeated(fields) => quote! { ListQuery },
            "query" => quote! { Query },
            "cookies" => quote! { Cookies },
            _ => quote! { Header },
        };
        let name = format_ident!("{name}");
        all.push((quote! { #name }, quote! { #extractor<#ty> }));
    }
    if operation.websocket {
        all.push((quote! { upgrade }, quote! { WebsocketUpgrade }));
    }
    let Some(body) = &operation.body else { return all };
    let ty = match &body.content {
        BodyContent::Json(ident) if body.optional => quote! { OptionalJsonBody<#ident> },
        BodyContent::Json(ident) => quote! { JsonBody<#ident> },
        BodyContent::Form(form) => {
            let ty = derived(&operation.name, "Form");
            match api.has_repeated(&form.fields) {
                _ if body.optional => quote! { OptionalForm<#ty> },
                true => quote! { ListForm<#ty> },
                false => quote! { TypedBody<#ty> },
            }
        }
        BodyContent::Bytes => quote! { UntypedBody },
        BodyContent::Multipart if body.optional => quote! { OptionalMultipart },
        BodyContent::Multipart => quote! { MultipartBody },
    };
    all.push((quote! { body }, ty));
    all
}
