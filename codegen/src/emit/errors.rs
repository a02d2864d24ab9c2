//! The error codes.

use proc_macro2::TokenStream;
use quote::quote;

use crate::model::Api;

pub(super) fn tokens(api: &Api) -> TokenStream {
    let codes: Vec<_> = api.error_codes.iter().map(|error| &error.code).collect();
    let statuses: Vec<_> = api.error_codes.iter().map(|error| error.status).collect();
    let variants: Vec<_> = api.error_codes.iter().map(|error| &error.ident).collect();
    let abouts = api
        .error_codes
        .iter()
        .map(|error| format!(" `{}`, with status {}.", error.code, error.status));
    quote! {
        /// A code that errors carry; each comes with one status.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            #(#[doc = #abouts] #variants,)*
        }

        impl ErrorCode {
            /// All codes, in the document's order.
            pub const ALL: &'static [ErrorCode] = &[#(ErrorCode::#variants),*];

            /// The code as sent.
            pub const fn as_str(self) -> &'static str {
                match self {
                    #(ErrorCode::#variants => #codes,)*
                }
            }

            /// The HTTP status it comes with.
            pub const fn status(self) -> u16 {
                match self {
                    #(ErrorCode::#variants => #statuses,)*
                }
            }
        }
    }
}
