//! Who may call, as the document says it.

/// A way to say who calls.
#[derive(Debug)]
pub struct SecurityScheme {
    /// The name by which operations ask for it.
    pub name: String,
    /// What it is.
    pub kind: SecurityKind,
}

/// What a security scheme is.
#[derive(Debug)]
pub enum SecurityKind {
    /// A secret in a header, the query or a cookie.
    ApiKey {
        /// `header`, `query` or `cookie`.
        location: String,
        /// The header's or parameter's name.
        name: String,
    },
    /// The header `Authorization`.
    Http {
        /// `basic`, `bearer` or another one.
        scheme: String,
    },
    /// OAuth 2.
    OAuth2,
    /// OpenID Connect.
    OpenIdConnect {
        /// Where it is described.
        url: String,
    },
    /// The client's certificate.
    MutualTls,
}

/// A scheme that a caller must meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// The scheme's name.
    pub scheme: String,
    /// What it must allow.
    pub scopes: Vec<String>,
}
