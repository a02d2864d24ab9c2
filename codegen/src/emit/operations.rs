//! Data about each operation, for use by the server.

use proc_macro2::TokenStream;
use quote::quote;

use crate::model::{Api, Operation, Requirement, SecurityKind, Versions};

pub(super) fn tokens(api: &Api) -> TokenStream {
    let all = api.operations.iter().map(|it| operation(it, api));
    let all = quote! { #(#all),* };
    let has_security = !api.security_schemes.is_empty();
    let security = has_security.then(|| {
        quote! {
            /// `security`: a caller must satisfy all requirements of one of these lists. If there are none, callers
            /// need not authenticate.
            pub security: &'static [&'static [Requirement]],
        }
    });
    let versions = is_versioned(api).then(|| {
        quote! {
            /// The first version that has the operation; `None` for the oldest.
            pub since: Option<&'static str>,
            /// The first version that does not have it any more.
            pub until: Option<&'static str>,
        }
    });
    let schemes = has_security.then(|| schemes(api));
    quote! {
        use super::errors::ErrorCode;

        /// An operation, as described by the document.
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
            #versions
            #security
            /// The `x-` members with string values.
            pub extensions: &'static [(&'static str, &'static str)],
        }

        impl Operation {
            /// The operation with this ID.
            pub fn find(id: &str) -> Option<&'static Operation> {
                OPERATIONS.iter().find(|operation| operation.id == id)
            }

            /// The value of an `x-` member.
            pub fn extension(&self, name: &str) -> Option<&'static str> {
                self.extensions.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
            }
        }

        /// All operations, in document order.
        pub static OPERATIONS: &[Operation] = &[#all];

        #schemes
    }
}

/// Whether some operations do not exist in all versions.
fn is_versioned(api: &Api) -> bool {
    let mut all = api.operations.iter();
    all.any(|operation| operation.versions != Versions::default())
}

/// The security schemes, and their types.
fn schemes(api: &Api) -> TokenStream {
    let all = api.security_schemes.iter().map(|(name, kind)| {
        let kind = match kind {
            SecurityKind::ApiKey { location, name } => quote! { ApiKey { location: #location, name: #name } },
            SecurityKind::Http { scheme } => quote! { Http { scheme: #scheme } },
            SecurityKind::OAuth2 => quote! { OAuth2 },
            SecurityKind::OpenIdConnect { url } => quote! { OpenIdConnect { url: #url } },
            SecurityKind::MutualTls => quote! { MutualTls },
        };
        quote! { SecurityScheme { name: #name, kind: SecurityKind::#kind } }
    });
    quote! {
        /// A security scheme that a caller must satisfy.
        #[derive(Debug)]
        pub struct Requirement {
            /// The scheme's name.
            pub scheme: &'static str,
            /// The scopes that the caller must have.
            pub scopes: &'static [&'static str],
        }

        /// A way to authenticate. The code that receives requests must check it.
        #[derive(Debug)]
        pub struct SecurityScheme {
            /// The name that operations refer to.
            pub name: &'static str,
            /// Its kind.
            pub kind: SecurityKind,
        }

        /// The kind of a security scheme.
        #[derive(Debug)]
        pub enum SecurityKind {
            /// A secret in a header, the query or a cookie.
            ApiKey {
                /// `header`, `query` or `cookie`.
                location: &'static str,
                /// The header's or parameter's name.
                name: &'static str,
            },
            /// An `Authorization` header.
            Http {
                /// `basic`, `bearer` or another scheme.
                scheme: &'static str,
            },
            /// OAuth 2.
            OAuth2,
            /// OpenID Connect.
            OpenIdConnect {
                /// The discovery URL.
                url: &'static str,
            },
            /// A client certificate.
            MutualTls,
        }

        /// The security schemes of the document.
        pub static SECURITY_SCHEMES: &[SecurityScheme] = &[#(#all),*];
    }
}

fn operation(operation: &Operation, api: &Api) -> TokenStream {
    let Operation { id, method, path, .. } = operation;
    let query = operation.parameters[1].iter().map(|field| &field.name);
    let has_body = operation.body.is_some();
    let successes = operation.successes.iter().filter_map(|success| success.status);
    let errors = operation.errors.iter().map(|(status, codes)| {
        let codes = codes.iter().map(|code| &code.ident);
        quote! { (#status, &[#(ErrorCode::#codes),*]) }
    });
    let extensions = operation.extensions.iter();
    let extensions = extensions.map(|(key, value)| quote! { (#key, #value) });
    let text = |version: &Option<String>| match version {
        Some(version) => quote! { Some(#version) },
        None => quote! { None },
    };
    let (since, until) = (text(&operation.versions.from), text(&operation.versions.until));
    let versions = is_versioned(api).then(|| quote! { since: #since, until: #until, });
    let alternatives = operation.security.iter().map(|together| {
        let together = together.iter().map(|Requirement { scheme, scopes }| {
            quote! { Requirement { scheme: #scheme, scopes: &[#(#scopes),*] } }
        });
        quote! { &[#(#together),*] }
    });
    let security = quote! { security: &[#(#alternatives),*], };
    let security = (!api.security_schemes.is_empty()).then_some(security);
    quote! {
        Operation {
            id: #id,
            method: #method,
            path: #path,
            query_parameters: &[#(#query),*],
            has_body: #has_body,
            successes: &[#(#successes),*],
            errors: &[#(#errors),*],
            #versions
            #security
            extensions: &[#(#extensions),*],
        }
    }
}
