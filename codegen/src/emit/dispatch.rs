//! The one implementation of the API trait: it hands each request to the operation's own file.

use proc_macro2::TokenStream;
use quote::quote;

use super::{api, derived, error_type, imports};
use crate::model::{Api, BodyContent, Operation};

pub(super) fn tokens(all: &Api, root: &TokenStream) -> TokenStream {
    let methods = all.operations.iter().map(|operation| method(operation, all, root));
    let code = quote! {
        /// Hands each request to `endpoints::<tag>::<operation_id>::handle`, with who called.
        pub enum Dispatch {}

        /// The API as Dropshot registers it.
        ///
        /// # Errors
        /// When Dropshot refuses a route; a test of the start shows it.
        pub fn description() -> Result<ApiDescription<Context>, ApiDescriptionBuildErrors> {
            api_mod::api_description::<Dispatch>()
        }

        impl Api for Dispatch {
            type Context = Context;

            #(#methods)*
        }
    };
    let imports = imports(
        &[
            "codegen_runtime::Failure",
            "codegen_runtime::JsonBody",
            "codegen_runtime::ListForm",
            "codegen_runtime::ListQuery",
            "codegen_runtime::OptionalJsonBody",
            "dropshot::ApiDescription",
            "dropshot::ApiDescriptionBuildErrors",
            "dropshot::Header",
            "dropshot::MultipartBody",
            "dropshot::Path",
            "dropshot::Query",
            "dropshot::RequestContext",
            "dropshot::TypedBody",
            "dropshot::UntypedBody",
            "dropshot::WebsocketUpgrade",
        ],
        &code,
    );
    let types = api::types_import(all);
    quote! {
        #imports
        use super::api::{Api, api_mod};
        use super::responses::*;
        #types
        use #root::context::Context;
        use #root::error::ApiError;
        use #root::front_door::caller;

        #code
    }
}

fn method(operation: &Operation, all: &Api, root: &TokenStream) -> TokenStream {
    let name = &operation.ident;
    let response = derived(&operation.name, "Response");
    let arguments = api::arguments(operation, all);
    let parameters = arguments.iter().map(|(name, ty)| quote! { #name: #ty });
    let is_bytes =
        matches!(&operation.body, Some(body) if matches!(body.content, BodyContent::Bytes | BodyContent::Multipart));
    let mut values: Vec<TokenStream> = arguments
        .iter()
        .map(|(name, _)| match name.to_string().as_str() {
            "body" if is_bytes => quote! { body },
            "upgrade" => quote! { upgrade },
            _ => quote! { #name.into_inner() },
        })
        .collect();
    if operation.body.as_ref().is_some_and(|body| body.raw) {
        values.push(quote! { raw });
    }
    let raw = operation
        .body
        .as_ref()
        .is_some_and(|body| body.raw)
        .then(|| quote! { let raw = #root::front_door::raw_body()?; });
    let place = match &operation.tag {
        Some(tag) => quote! { #root::endpoints::#tag::#name::handle },
        None => quote! { #root::endpoints::#name::handle },
    };
    let error = error_type(all, operation);
    // The handler's error may also be an `ApiError`.
    let as_failure = all.failure(operation).map(|_| quote! { .map_err(Into::into) });
    quote! {
        async fn #name(rqctx: RequestContext<Context>, #(#parameters),*) -> Result<#response, #error> {
            let caller = caller()?;
            #raw
            #place(rqctx.context(), &caller, #(#values),*).await #as_failure
        }
    }
}
