//! What the document says of each operation, as data for the server.

use proc_macro2::TokenStream;
use quote::quote;

use crate::model::{Api, Operation};

pub(super) fn tokens(api: &Api) -> TokenStream {
    let all = api.operations.iter().map(operation);
    let all = quote! { #(#all),* };
    quote! {
        use super::errors::ErrorCode;

        /// What the document says of an operation.
        #[derive(Debug)]
        pub struct Operation {
            /// `operationId`
            pub id: &'static str,
            /// The HTTP method.
            pub method: &'static str,
            /// The path template.
            pub path: &'static str,
            /// The names of its query parameters.
            pub query_parameters: &'static [&'static str],
            /// Whether it has a request body.
            pub has_body: bool,
            /// The success statuses.
            pub successes: &'static [u16],
            /// The error statuses with their codes.
            pub errors: &'static [(u16, &'static [ErrorCode])],
            /// Its `x-` members with text values.
            pub extensions: &'static [(&'static str, &'static str)],
        }

        impl Operation {
            /// The operation of this id.
            pub fn find(id: &str) -> Option<&'static Operation> {
                OPERATIONS.iter().find(|operation| operation.id == id)
            }

            /// The text of an `x-` member.
            pub fn extension(&self, name: &str) -> Option<&'static str> {
                self.extensions.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
            }
        }

        /// All operations, in the document's order.
        pub static OPERATIONS: &[Operation] = &[#all];
    }
}

fn operation(operation: &Operation) -> TokenStream {
    let Operation { id, method, path, .. } = operation;
    let query = operation.query_parameters.iter().map(|field| &field.name);
    let has_body = operation.body.is_some();
    let successes = operation.successes.iter().filter_map(|success| success.status);
    let errors = operation.errors.iter().map(|(status, codes)| {
        let codes = codes.iter().map(|code| &code.ident);
        quote! { (#status, &[#(ErrorCode::#codes),*]) }
    });
    let extensions = operation
        .extensions
        .iter()
        .map(|(key, value)| quote! { (#key, #value) });
    quote! {
        Operation {
            id: #id,
            method: #method,
            path: #path,
            query_parameters: &[#(#query),*],
            has_body: #has_body,
            successes: &[#(#successes),*],
            errors: &[#(#errors),*],
            extensions: &[#(#extensions),*],
        }
    }
}
