//! The implementation of the API trait, which passes each request to the operation's handler or to a gateway.

use proc_macro2::TokenStream;
use quote::quote;

use super::Dispatch;
use super::api;
use super::tokens::{endpoint, error_type, imports};
use crate::model::{Api, BodyContent, Operation};
use crate::naming::derived;

pub(super) fn tokens(all: &Api, root: &TokenStream, dispatch: Dispatch) -> TokenStream {
    let methods = all.operations.iter().map(|operation| match dispatch {
        Dispatch::Dropshot => method(operation, all, root),
        Dispatch::Calls => gateway_method(operation, all),
    });
    let (about, state) = match dispatch {
        Dispatch::Dropshot => (
            " Passes each request, with the caller, to `endpoints::<tag>::<operation_id>::handle`.",
            quote! { Context },
        ),
        Dispatch::Calls => (" Passes each request to the gateway.", quote! { Gateway }),
    };
    let code = quote! {
        #[doc = #about]
        pub enum Dispatch {}

        /// The API for Dropshot's server.
        ///
        /// # Errors
        /// If Dropshot rejects a route. The result is the same for every call.
        pub fn description() -> Result<ApiDescription<#state>, ApiDescriptionBuildErrors> {
            api_mod::api_description::<Dispatch>()
        }

        impl Api for Dispatch {
            type Context = #state;

            #(#methods)*
        }
    };
    let imports = imports(&[], &code);
    let types = api::types_import(all);
    let used = match dispatch {
        Dispatch::Dropshot => quote! {
            use #root::context::Context;
            use #root::error::ApiError;
            use #root::gateway::caller;
        },
        Dispatch::Calls => quote! {
            use #root::error::ApiError;
            use #root::gateway::Gateway;
        },
    };
    quote! {
        #imports
        use super::api::{Api, api_mod};
        use super::responses::*;
        #types
        #used

        #code
    }
}

fn method(operation: &Operation, all: &Api, root: &TokenStream) -> TokenStream {
    let name = &operation.ident;
    let response = derived(&operation.name, "Response");
    let (arguments, _) = api::signature(operation, all, Dispatch::Dropshot);
    let parameters = arguments.iter().map(|(name, ty)| quote! { #name: #ty });
    let is_identified = !all.request_ids().is_empty();
    let taken = is_identified.then(|| quote! { .into_inner() });
    let is_bytes = match &operation.body {
        Some(body) if matches!(body.content, BodyContent::Multipart) => !body.optional,
        body => matches!(body, Some(body) if matches!(body.content, BodyContent::Bytes)),
    };
    let mut values: Vec<TokenStream> = arguments
        .iter()
        .map(|(name, _)| match name.to_string().as_str() {
            "body" if is_bytes => quote! { body #taken },
            "upgrade" => quote! { upgrade #taken },
            _ => quote! { #name #taken.into_inner() },
        })
        .collect();
    let raw = operation
        .has_raw_body()
        .then(|| quote! { let raw = #root::gateway::raw_body()?; });
    values.extend(raw.as_ref().map(|_| quote! { raw }));
    let place = endpoint(operation, root);
    let error = error_type(all, operation);
    // The handler may also return an `ApiError`.
    let as_failure = all.failure(operation).map(|_| quote! { .map_err(Into::into) });
    let call = quote! {
        let caller = caller()?;
        #raw
        #place::handle(rqctx.context(), &caller, #(#values),*).await #as_failure
    };
    let call = match is_identified {
        false => call,
        true => quote! {
            let result: Result<_, ApiError> = async { #call }.await;
            result.map_err(|error| error.of_request(&rqctx.request_id))
        },
    };
    quote! {
        async fn #name(rqctx: RequestContext<Context>, #(#parameters),*) -> Result<#response, #error> {
            #call
        }
    }
}

/// A method that passes the request to the gateway, which responds to it.
fn gateway_method(operation: &Operation, all: &Api) -> TokenStream {
    let name = &operation.ident;
    let (arguments, response) = api::signature(operation, all, Dispatch::Calls);
    let parameters = arguments.iter().map(|(name, ty)| quote! { #name: #ty });
    let error = error_type(all, operation);
    quote! {
        async fn #name(rqctx: RequestContext<Gateway>, #(#parameters),*) -> Result<#response, #error> {
            Ok(Gateway::serve(rqctx, request.into_request()).await.into())
        }
    }
}
