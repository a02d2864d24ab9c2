//! The error codes.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::quote;

use crate::model::Api;

pub(super) fn tokens(api: &Api, root: &TokenStream) -> TokenStream {
    let codes: Vec<_> = api.error_codes.iter().map(|error| &error.code).collect();
    let statuses: Vec<_> = api.error_codes.iter().map(|error| error.status).collect();
    let variants: Vec<_> = api.error_codes.iter().map(|error| &error.ident).collect();
    let all = api.error_codes.iter();
    let docs_of_codes = all.map(|error| format!(" `{}`, with status {}.", error.code, error.status));
    let all = api.operations.iter();
    let failures: BTreeSet<_> = all.filter_map(|operation| api.failure(operation)).collect();
    let conversions = failures.iter().map(|body| {
        quote! {
            impl From<ApiError> for Failure<#body, ApiError> {
                fn from(error: ApiError) -> Self {
                    Failure::Other(error)
                }
            }
        }
    });
    let uses = (!failures.is_empty()).then(|| {
        quote! {
            use codegen_runtime::Failure;
            use super::types::*;
            use #root::error::ApiError;
        }
    });
    let conversions = quote! { #(#conversions)* };
    quote! {
        #uses

        /// An error code. Each code has one status.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            #(#[doc = #docs_of_codes] #variants,)*
        }

        impl ErrorCode {
            /// All codes, in document order.
            pub const ALL: &'static [ErrorCode] = &[#(ErrorCode::#variants),*];

            /// The code on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    #(ErrorCode::#variants => #codes,)*
                }
            }

            /// The HTTP status of the code.
            pub const fn status(self) -> u16 {
                match self {
                    #(ErrorCode::#variants => #statuses,)*
                }
            }
        }

        #conversions
    }
}
