//! Operations with their requests, responses and authentication.

use proc_macro2::Ident;
use serde_json::Value;

use super::types::Field;
use crate::naming::OPERATION_TYPES;

#[derive(Debug)]
pub struct Operation {
    /// The `operationId`, or a name derived from method and path.
    pub id: String,
    /// The base of the names of its types and its function. It differs from `id` if another version has a different
    /// operation with that ID.
    pub name: String,
    /// The versions that have it, if there are several documents.
    pub versions: Versions,
    /// Whether the document declares no `operationId`.
    pub is_unnamed: bool,
    /// The Rust name of everything that belongs to the operation: `name` in snake case.
    pub ident: Ident,
    /// GET, PUT, POST, DELETE, PATCH, HEAD or OPTIONS.
    pub method: String,
    pub path: String,
    /// The first tag, which is the name of the endpoint's module; `None` for the root module.
    pub tag: Option<Ident>,
    pub tags: Vec<String>,
    /// `summary` and `description`.
    pub docs: String,
    pub deprecated: bool,
    /// The parameters in path, query, headers and cookies.
    pub parameters: [Vec<Field>; 4],
    pub body: Option<RequestBody>,
    pub websocket: bool,
    pub pagination: Option<Value>,
    /// Success responses, in document order; never empty.
    pub successes: Vec<Success>,
    /// Error statuses with their codes, without `4XX` and `5XX`.
    pub errors: Vec<(u16, Vec<ErrorCode>)>,
    /// The type of its error bodies; a union if they differ.
    pub error_type: Option<Ident>,
    /// `security`: a caller must satisfy one of these lists of requirements. If there are none, callers need not
    /// authenticate.
    pub security: Vec<Vec<Requirement>>,
    /// `x-` members with string values, which are passed on to the server.
    pub extensions: Vec<(String, String)>,
    pub pointer: String,
}

impl Operation {
    /// The parameters by location, each with the name of the handler's argument and the suffix of its type.
    pub fn groups(&self) -> impl Iterator<Item = (&[Field], &'static str, &'static str)> {
        let names = ["path", "query", "headers", "cookies"].into_iter().zip(OPERATION_TYPES);
        let all = self
            .parameters
            .iter()
            .zip(names)
            .filter(|(fields, _)| !fields.is_empty());
        all.map(|(fields, (name, suffix))| (fields.as_slice(), name, suffix))
    }

    /// The parameters, and the members of the form.
    pub fn inputs(&self) -> impl Iterator<Item = &Field> {
        self.parameters.iter().flatten().chain(self.form())
    }

    pub fn content(&self) -> Option<&BodyContent> {
        self.body.as_ref().map(|body| &body.content)
    }

    /// Whether the handler also receives the exact bytes of the body.
    pub fn has_raw_body(&self) -> bool {
        self.body.as_ref().is_some_and(|body| body.raw)
    }

    /// The members of the form, if the body is one.
    pub fn form(&self) -> &[Field] {
        match self.content() {
            Some(BodyContent::Form(form)) => &form.fields,
            _ => &[],
        }
    }
}

/// A range of API versions such as `1.2.3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// The first version; `None` for the oldest.
    pub from: Option<String>,
    /// The first version after the range; `None` if there is none.
    pub until: Option<String>,
}

#[derive(Debug)]
pub struct RequestBody {
    pub content: BodyContent,
    /// `x-raw-body`: the handler also receives the exact bytes.
    pub raw: bool,
    /// `x-further-faults`: if the body is rejected, a function of the operation reports further errors in it.
    pub further_errors: bool,
    /// Whether a request may omit the body.
    pub optional: bool,
}

#[derive(Debug)]
pub enum BodyContent {
    /// JSON of a named type.
    Json(Ident),
    /// A form (`application/x-www-form-urlencoded`).
    Form(Form),
    Bytes,
    /// Parts (`multipart/form-data`), which the handler reads.
    Multipart,
}

/// A form, whose members are read like parameters.
#[derive(Debug)]
pub struct Form {
    pub fields: Vec<Field>,
    /// Whether unknown members are rejected.
    pub closed: bool,
    pub name: String,
    /// Whether the schema is declared inline in the operation.
    pub inline: bool,
    /// The schema, for embedding in generated code.
    pub schema: Value,
    /// The types that the schema refers to.
    pub refers_to: Vec<Ident>,
}

#[derive(Debug)]
pub struct Success {
    /// The HTTP status; `None` if the handler chooses it (`default`).
    pub status: Option<u16>,
    pub description: String,
    pub content: ResponseContent,
    pub headers: Vec<ResponseHeader>,
}

impl Success {
    /// The headers that the handler sets.
    pub fn handlers(&self) -> Vec<&ResponseHeader> {
        self.headers.iter().filter(|header| !header.is_supplied).collect()
    }
}

#[derive(Debug)]
pub struct ResponseHeader {
    /// The name on the wire.
    pub name: String,
    pub ident: Ident,
    pub docs: String,
    pub required: bool,
    /// The schema, for embedding in generated code.
    pub schema: Value,
    /// Whether another layer sets the header (`x-supplied-by`), so that the handler does not.
    pub is_supplied: bool,
}

#[derive(Debug)]
pub enum ResponseContent {
    Empty,
    /// JSON of a named type, with this media type.
    Json(Ident, String),
    /// Bytes with this media type.
    Bytes(String),
    Upgraded,
    /// A complete response, which the handler builds.
    Whole,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ErrorCode {
    /// The code on the wire.
    pub code: String,
    /// The Rust name of its variant.
    pub ident: Ident,
    pub status: u16,
    /// The JSON pointer of its first use, for errors.
    pub pointer: String,
}

/// A way to authenticate, with the name that operations refer to.
pub type SecurityScheme = (String, SecurityKind);

#[derive(Debug)]
pub enum SecurityKind {
    /// A secret in a header, the query or a cookie.
    ApiKey {
        location: String,
        name: String,
    },
    /// An `Authorization` header with a scheme such as `bearer`.
    Http {
        scheme: String,
    },
    OAuth2,
    OpenIdConnect {
        url: String,
    },
    /// A client certificate.
    MutualTls,
}

/// A scheme that a caller must satisfy.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    pub scheme: String,
    pub scopes: Vec<String>,
}
