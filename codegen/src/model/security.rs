//! Authentication, as declared by the document.

/// A way to authenticate.
#[derive(Debug)]
pub struct SecurityScheme {
    /// The name that operations refer to.
    pub name: String,
    /// Its kind.
    pub kind: SecurityKind,
}

/// The kind of a security scheme.
#[derive(Debug)]
pub enum SecurityKind {
    /// A secret in a header, the query or a cookie.
    ApiKey {
        /// `header`, `query` or `cookie`.
        location: String,
        /// The header's or parameter's name.
        name: String,
    },
    /// An `Authorization` header.
    Http {
        /// `basic`, `bearer` or another scheme.
        scheme: String,
    },
    /// OAuth 2.
    OAuth2,
    /// OpenID Connect.
    OpenIdConnect {
        /// The discovery URL.
        url: String,
    },
    /// A client certificate.
    MutualTls,
}

/// A scheme that a caller must satisfy.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// The scheme's name.
    pub scheme: String,
    /// The scopes that the caller must have.
    pub scopes: Vec<String>,
}
