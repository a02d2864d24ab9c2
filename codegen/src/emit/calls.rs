//! The operations as a table of functions, which each read their arguments and call the operation's handler.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::api;
use super::tokens::{endpoint, imports};
use crate::lint;
use crate::model::{Api, BodyContent, Operation};

pub(super) fn tokens(all: &Api, root: &TokenStream) -> TokenStream {
    // A path with a literal comes before one with a variable in the same place, which may be a part of the segment, so that
    // the first match is correct.
    let mut operations: Vec<(usize, &Operation)> = all.operations.iter().enumerate().collect();
    let is_ordered = !lint::conflicts(&all.operations).is_empty();
    if is_ordered {
        let kind = |segment: &str| (segment.contains('{'), !lint::is_partial(segment));
        operations.sort_by_key(|(_, operation)| operation.path.split('/').map(kind).collect::<Vec<_>>());
    }
    let rows = operations.into_iter().map(|(index, operation)| {
        let name = &operation.ident;
        quote! {
            Route {
                operation: &OPERATIONS[#index],
                call: |context, caller, request| Box::pin(#name(context, caller, request)),
            }
        }
    });
    let functions = all.operations.iter().map(|operation| function(operation, all, root));
    let about = match is_ordered {
        true => quote! { #[doc = " All operations. The first one whose path matches handles the request."] },
        false => quote! { #[doc = " All operations, in document order."] },
    };
    let code = quote! {
        /// Reads an operation's arguments from the request and passes them, with the caller, to
        /// `endpoints::<tag>::<operation_id>::handle`.
        pub type Call = for<'r> fn(&'r Context, &'r Caller, &'r Request) -> CallFuture<'r>;

        /// The future result of a call.
        pub type CallFuture<'r> = Pin<Box<dyn Future<Output = Result<Response<Body>, ApiError>> + Send + 'r>>;

        /// An operation and the function that calls it.
        pub struct Route {
            /// The operation's description from the document.
            pub operation: &'static Operation,
            /// Calls the operation.
            pub call: Call,
        }

        #about
        pub static ROUTES: &[Route] = &[#(#rows),*];

        #(#functions)*
    };
    let imports = imports(&["call"], &code);
    let has_failures = all.operations.iter().any(|operation| all.failure(operation).is_some());
    let types = has_failures.then(|| quote! { use super::types::*; });
    quote! {
        use std::pin::Pin;

        use codegen_runtime::call::Request;
        #imports
        use dropshot::HttpResponse;
        use super::operations::{OPERATIONS, Operation};
        #types
        use #root::caller::Caller;
        use #root::context::Context;
        use #root::error::ApiError;

        #code
    }
}

fn function(operation: &Operation, all: &Api, root: &TokenStream) -> TokenStream {
    let name = &operation.ident;
    let about = format!(" `{}`", operation.id);
    let file = endpoint(operation, root);
    let mut values: Vec<TokenStream> = api::arguments(operation, all)
        .iter()
        .map(|(name, _)| match (name.to_string().as_str(), &operation.body) {
            ("path", _) => quote! { call::path(request)? },
            ("query", _) if all.has_repeated(&operation.parameters[1]) => quote! { call::list_query(request)? },
            ("query", _) => quote! { call::query(request)? },
            ("headers", _) => quote! { call::headers(request)? },
            ("cookies", _) => quote! { codegen_runtime::extractors::cookies(&request.headers)? },
            (_, Some(body)) if matches!(body.content, BodyContent::Bytes) => quote! { request.body.clone() },
            (_, Some(body)) if matches!(body.content, BodyContent::Form(_)) => match body.optional {
                true => quote! { call::optional_form(request)? },
                false => quote! { call::form(request)? },
            },
            (_, Some(body)) if body.optional => quote! { call::optional_body(request).await? },
            (_, Some(body)) if body.further_errors => {
                quote! { call::body_and(request, #file::further_errors).await? }
            }
            _ => quote! { call::body(request).await? },
        })
        .collect();
    if operation.has_raw_body() {
        values.push(quote! { request.body.clone() });
    }
    let request = format_ident!("{}", if values.is_empty() { "_request" } else { "request" });
    let call = quote! { #file::handle(context, caller, #(#values),*).await };
    let call = match all.failure(operation) {
        None => quote! {
            let response = #call?;
            response.to_result().map_err(ApiError::from)
        },
        Some(body) => quote! {
            let result: Result<_, Failure<#body, ApiError>> = #call.map_err(Into::into);
            match result {
                Ok(response) => response.to_result().map_err(ApiError::from),
                Err(failure) => failure.into_response(),
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
