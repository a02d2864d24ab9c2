//! The success responses of each operation: an enum with a variant per status.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use serde_json::{Map, json};

use super::tokens::docs;
use crate::model::{Api, Operation, ResponseContent, Success};
use crate::naming::derived;

pub(super) fn tokens(api: &Api) -> TokenStream {
    let all = api.operations.iter().map(response);
    let mut successes = api.operations.iter().flat_map(|operation| &operation.successes);
    let has_types = successes.any(|success| matches!(success.content, ResponseContent::Json(..)));
    let types = has_types.then(|| quote! { use super::types::*; });
    quote! {
        use codegen_runtime::response;
        use dropshot::{ApiEndpointResponse, Body, HttpError, HttpResponse};
        use http::Response;

        #types

        #(#all)*
    }
}

fn variant(success: &Success) -> Ident {
    match success.status {
        None => format_ident!("Whole"),
        Some(101) => format_ident!("SwitchingProtocols"),
        Some(200) => format_ident!("Ok"),
        Some(201) => format_ident!("Created"),
        Some(202) => format_ident!("Accepted"),
        Some(204) => format_ident!("NoContent"),
        Some(other) => format_ident!("Status{other}"),
    }
}

fn response(operation: &Operation) -> TokenStream {
    let name = derived(&operation.name, "Response");
    let about = docs(&format!("The success responses of `{}`.", operation.id));
    let variants = operation.successes.iter().map(|success| {
        let variant = variant(success);
        let about = docs(&match success.status {
            Some(status) => format!("{status}: {}", success.description),
            None => format!("A complete response, which the handler builds. {}", success.description),
        });
        let body = body_type(success);
        if success.handlers().is_empty() {
            let fields = body.map(|body| quote! { (#body) });
            return quote! { #about #variant #fields };
        }
        let body = body.map(|body| quote! { #[doc = " The body."] body: #body, });
        let headers = success.handlers().into_iter().map(|header| {
            let field = &header.ident;
            let about = docs(&format!("Header `{}`: {}", header.name, header.docs));
            let ty = match header.required {
                true => quote! { String },
                false => quote! { Option<String> },
            };
            quote! { #about #field: #ty }
        });
        quote! { #about #variant { #body #(#headers),* } }
    });
    let results = operation.successes.iter().map(result);
    let statuses = operation.successes.iter().map(|success| {
        let variant = variant(success);
        match success.status.map(status) {
            Some(status) => quote! { #name::#variant { .. } => #status },
            None => quote! { #name::#variant(response) => response.status() },
        }
    });
    let metadata = operation.successes.first().map(|first| {
        let status = first.status.map(status);
        let description = &first.description;
        let metadata = match &first.content {
            ResponseContent::Whole => quote! { response::whole_metadata(#description) },
            ResponseContent::Upgraded => quote! { response::websocket_metadata(#description) },
            ResponseContent::Json(ty, _) => quote! { response::json_metadata::<#ty>(#status, #description) },
            ResponseContent::Bytes(_) => quote! { response::bytes_metadata(#status, #description) },
            ResponseContent::Empty => quote! { response::empty_metadata(#status, #description) },
        };
        with_headers(metadata, first)
    });
    quote! {
        #about
        pub enum #name { #(#variants),* }

        impl HttpResponse for #name {
            fn to_result(self) -> Result<Response<Body>, HttpError> {
                match self { #(#name::#results),* }
            }

            fn response_metadata() -> ApiEndpointResponse {
                #metadata
            }

            fn status_code(&self) -> http::StatusCode {
                match self { #(#statuses),* }
            }
        }
    }
}

/// The metadata, extended by the headers that the document declares.
fn with_headers(metadata: TokenStream, success: &Success) -> TokenStream {
    if success.headers.is_empty() {
        return metadata;
    }
    let mut properties = Map::new();
    for header in &success.headers {
        let mut schema = header.schema.clone();
        if !header.docs.is_empty() && schema.is_object() {
            schema["description"] = header.docs.clone().into();
        }
        properties.insert(header.name.clone(), schema);
    }
    let required = success.headers.iter().filter(|header| header.required);
    let required: Vec<&String> = required.map(|header| &header.name).collect();
    let schema = json!({ "type": "object", "properties": properties, "required": required }).to_string();
    // Type names of the document contain no underscores.
    quote! {
        enum Headers_ {}

        impl response::DeclaredHeaders for Headers_ {
            const SCHEMA: &'static str = #schema;
        }

        response::with_headers::<Headers_>(#metadata)
    }
}

fn body_type(success: &Success) -> Option<TokenStream> {
    match &success.content {
        ResponseContent::Json(ty, _) => Some(quote! { #ty }),
        ResponseContent::Upgraded => Some(quote! { response::Upgraded }),
        ResponseContent::Whole => Some(quote! { Response<Body> }),
        ResponseContent::Bytes(_) => Some(quote! { Body }),
        ResponseContent::Empty => None,
    }
}

fn result(success: &Success) -> TokenStream {
    let variant = variant(success);
    let status = success.status.map(status);
    let handlers = success.handlers();
    let fields: Vec<_> = handlers.iter().map(|header| &header.ident).collect();
    let headers = handlers.iter().map(|header| {
        let field = &header.ident;
        let wire = header.name.to_lowercase();
        match header.required {
            true => quote! { (#wire, Some(#field)) },
            false => quote! { (#wire, #field) },
        }
    });
    let headers = quote! { &[#(#headers),*] };
    let pattern = match (handlers.is_empty(), &success.content) {
        (true, ResponseContent::Empty) => quote! { #variant },
        (true, _) => quote! { #variant(body) },
        (false, ResponseContent::Empty) => quote! { #variant { #(#fields),* } },
        (false, _) => quote! { #variant { body, #(#fields),* } },
    };
    match &success.content {
        ResponseContent::Json(_, media_type) if media_type == "application/json" => {
            quote! { #pattern => response::json(#status, &body, #headers) }
        }
        ResponseContent::Json(_, media_type) => {
            quote! { #pattern => response::json_as(#status, #media_type, &body, #headers) }
        }
        ResponseContent::Upgraded | ResponseContent::Whole => quote! { #variant(body) => body.to_result() },
        ResponseContent::Bytes(media_type) => {
            // A response cannot have a media type range as its content type.
            let media_type = match media_type.as_str() {
                range if range.contains('*') => "application/octet-stream",
                one => one,
            };
            quote! { #pattern => response::bytes(#status, Some(#media_type), body, #headers) }
        }
        ResponseContent::Empty => quote! { #pattern => response::bytes(#status, None, Body::empty(), #headers) },
    }
}

/// The expression for a status: a constant of `StatusCode`, or a call of its constructor.
fn status(code: u16) -> TokenStream {
    let name = match code {
        200 => "OK",
        201 => "CREATED",
        202 => "ACCEPTED",
        204 => "NO_CONTENT",
        206 => "PARTIAL_CONTENT",
        _ => return quote! { http::StatusCode::from_u16(#code).unwrap_or(http::StatusCode::OK) },
    };
    let name = quote::format_ident!("{name}");
    quote! { http::StatusCode::#name }
}
