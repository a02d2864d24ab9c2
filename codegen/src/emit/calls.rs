//! The operations as a table of functions, which each read their arguments and call the operation's handler.

use proc_macro2::TokenStream;
use quote::quote;

use super::api;
use super::tokens::imports;
use crate::error::Problem;
use crate::model::{Api, BodyContent, Operation};

pub(super) fn tokens(all: &Api, root: &TokenStream) -> Result<TokenStream, Problem> {
    if let Some(operation) = all.operations.iter().find(|operation| operation.websocket) {
        return Err(Problem::refused(
            &operation.pointer,
            "websockets require Dropshot's server; generate without `--dispatch calls`",
        ));
    }
    let takes_parts = |operation: &&Operation| {
        let content = operation.body.as_ref().map(|body| &body.content);
        matches!(content, Some(BodyContent::Multipart))
    };
    if let Some(operation) = all.operations.iter().find(takes_parts) {
        return Err(Problem::refused(
            &operation.pointer,
            "multipart bodies require Dropshot's server; generate without `--dispatch calls`",
        ));
    }
    let rows = all.operations.iter().enumerate().map(|(index, operation)| {
        let name = &operation.ident;
        quote! {
            Route {
                operation: &OPERATIONS[#index],
                call: |context, caller, request| Box::pin(#name(context, caller, request)),
            }
        }
    });
    let functions = all.operations.iter().map(|operation| function(operation, all, root));
    let code = quote! {
        /// Reads an operation's arguments from the request and passes them, with the caller, to
        /// `endpoints::<tag>::<operation_id>::handle`.
        pub type Call = for<'r> fn(&'r Context, &'r Caller, &'r Request) -> Answer<'r>;

        /// The future result of a call.
        pub type Answer<'r> = Pin<Box<dyn Future<Output = Result<Response<Body>, ApiError>> + Send + 'r>>;

        /// An operation and the function that calls it.
        pub struct Route {
            /// The operation's description from the document.
            pub operation: &'static Operation,
            /// Calls the operation.
            pub call: Call,
        }

        /// All operations, in document order.
        pub static ROUTES: &[Route] = &[#(#rows),*];

        #(#functions)*
    };
    let imports = imports(&["codegen_runtime::Failure", "codegen_runtime::call"], &code);
    let has_failures = all.operations.iter().any(|operation| all.failure(operation).is_some());
    let types = has_failures.then(|| quote! { use super::types::*; });
    Ok(quote! {
        use std::pin::Pin;

        use codegen_runtime::call::Request;
        use dropshot::{Body, HttpResponse};
        use http::Response;
        #imports
        use super::operations::{OPERATIONS, Operation};
        #types
        use #root::context::Context;
        use #root::error::ApiError;
        use #root::gateway::Caller;

        #code
    })
}

fn function(operation: &Operation, all: &Api, root: &TokenStream) -> TokenStream {
    let name = &operation.ident;
    let about = format!(" `{}`", operation.id);
    let file = match &operation.tag {
        Some(tag) => quote! { #root::endpoints::#tag::#name },
        None => quote! { #root::endpoints::#name },
    };
    let mut values: Vec<TokenStream> = api::arguments(operation, all)
        .iter()
        .map(|(name, _)| match (name.to_string().as_str(), &operation.body) {
            ("path", _) => quote! { call::path(request)? },
            ("query", _) if all.has_repeated(&operation.query_parameters) => quote! { call::list_query(request)? },
            ("query", _) => quote! { call::query(request)? },
            ("headers", _) => quote! { call::headers(request)? },
            (_, Some(body)) if matches!(body.content, BodyContent::Bytes) => quote! { request.body.clone() },
            (_, Some(body)) if matches!(body.content, BodyContent::Form(_)) => quote! { call::form(request)? },
            (_, Some(body)) if body.optional => quote! { call::optional_body(request)? },
            (_, Some(body)) if body.further_faults => quote! { call::body_and(request, #file::faults)? },
            _ => quote! { call::body(request)? },
        })
        .collect();
    if operation.body.as_ref().is_some_and(|body| body.raw) {
        values.push(quote! { request.body.clone() });
    }
    let request = if values.is_empty() {
        quote! { _request }
    } else {
        quote! { request }
    };
    let call = quote! { #file::handle(context, caller, #(#values),*).await };
    let call = match all.failure(operation) {
        None => quote! {
            let response = #call?;
            response.to_result().map_err(ApiError::from)
        },
        Some(body) => quote! {
            let answer: Result<_, Failure<#body, ApiError>> = #call.map_err(Into::into);
            match answer {
                Ok(response) => response.to_result().map_err(ApiError::from),
                Err(failure) => failure.answer(),
            }
        },
    };
    quote! {
        #[doc = #about]
        async fn #name(context: &Context, caller: &Caller, #request: &Request) -> Result<Response<Body>, ApiError> {
            #call
        }
    }
}
