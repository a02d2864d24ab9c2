//! Operations: what they take, and what they answer.

use proc_macro2::Ident;
use serde_json::Value;

use super::{ErrorCode, Field, Requirement};

/// One operation.
#[derive(Debug)]
pub struct Operation {
    /// `operationId`; without one, a name made of method and path.
    pub id: String,
    /// What the names of its types and its function are made of: the id, unless another version has an operation of it.
    pub name: String,
    /// The versions that have it, where there are several documents.
    pub versions: Versions,
    /// Whether the document has no `operationId`.
    pub is_unnamed: bool,
    /// The Rust name of everything that belongs to the operation: its name in snake_case.
    pub ident: Ident,
    /// GET, PUT, POST, DELETE, PATCH, HEAD or OPTIONS.
    pub method: String,
    /// The path template.
    pub path: String,
    /// The first tag, which names the endpoint's module; `None` puts it into the root.
    pub tag: Option<Ident>,
    /// All tags.
    pub tags: Vec<String>,
    /// `summary` and `description`.
    pub docs: String,
    /// `deprecated`
    pub deprecated: bool,
    /// Path parameters.
    pub path_parameters: Vec<Field>,
    /// Query parameters.
    pub query_parameters: Vec<Field>,
    /// Header parameters.
    pub header_parameters: Vec<Field>,
    /// The request body.
    pub body: Option<RequestBody>,
    /// Whether it opens a websocket.
    pub websocket: bool,
    /// `x-dropshot-pagination`
    pub pagination: Option<Value>,
    /// Success responses, in the document's order; never empty.
    pub successes: Vec<Success>,
    /// Error statuses with their codes; `4XX` and `5XX` are not among them.
    pub errors: Vec<(u16, Vec<ErrorCode>)>,
    /// The type of its error bodies: where they differ, a union of theirs.
    pub error_type: Option<Ident>,
    /// `security`: one of these lists of schemes lets a caller in; without any, nobody is asked.
    pub security: Vec<Vec<Requirement>>,
    /// `x-` members with text values, handed on to the server as they are.
    pub extensions: Vec<(String, String)>,
    /// The place of the operation, for refusals.
    pub pointer: String,
}

/// Versions of an API, `1.2.3`: from one on, and before another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// The first; `None` for the first that there is.
    pub from: Option<String>,
    /// The first that is none of them; `None` where there is none.
    pub until: Option<String>,
}

/// A request body.
#[derive(Debug)]
pub struct RequestBody {
    /// What it holds.
    pub content: BodyContent,
    /// `x-raw-body`: the handler is also given the exact bytes.
    pub raw: bool,
    /// `x-further-faults`: of a body that is refused, the operation's file says what else is wrong with it.
    pub further_faults: bool,
    /// Whether a request may go without it.
    pub optional: bool,
}

/// What a request body holds.
#[derive(Debug)]
pub enum BodyContent {
    /// JSON of a named type.
    Json(Ident),
    /// A form (`application/x-www-form-urlencoded`).
    Form(Form),
    /// Bytes as they are.
    Bytes,
    /// Parts (`multipart/form-data`), which the handler reads.
    Multipart,
}

/// A form, whose members arrive as parameters do.
#[derive(Debug)]
pub struct Form {
    /// The members.
    pub fields: Vec<Field>,
    /// Whether members that it does not name are refused.
    pub closed: bool,
    /// The name of its schema.
    pub name: String,
    /// Whether the schema stands in the operation itself.
    pub inline: bool,
    /// The schema, as embedded.
    pub schema: Value,
    /// The types that the schema refers to.
    pub refers_to: Vec<Ident>,
}

/// A success response.
#[derive(Debug)]
pub struct Success {
    /// The HTTP status; `None` where the handler says it (`default`).
    pub status: Option<u16>,
    /// `description`
    pub description: String,
    /// What it holds.
    pub content: ResponseContent,
    /// Its headers.
    pub headers: Vec<ResponseHeader>,
}

impl Success {
    /// The headers that the handler supplies.
    pub fn handlers(&self) -> Vec<&ResponseHeader> {
        self.headers.iter().filter(|header| !header.is_supplied).collect()
    }
}

/// A header of a response.
#[derive(Debug)]
pub struct ResponseHeader {
    /// The name on the wire.
    pub name: String,
    /// The Rust name.
    pub ident: Ident,
    /// `description`
    pub docs: String,
    /// `required`
    pub required: bool,
    /// The schema, as embedded.
    pub schema: Value,
    /// Whether something before the handler sets it (`x-supplied-by`): the handler has no part in it.
    pub is_supplied: bool,
}

/// What a success response holds.
#[derive(Debug)]
pub enum ResponseContent {
    /// Nothing.
    Empty,
    /// JSON of a named type, under this media type.
    Json(Ident, String),
    /// Bytes of this media type.
    Bytes(String),
    /// A websocket.
    Upgraded,
    /// The whole response is the handler's.
    Whole,
}
