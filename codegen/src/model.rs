//! The document as the emitters see it: names settled, references resolved, everything in it can be generated.

use proc_macro2::Ident;
use serde_json::Value;

/// A whole document.
#[derive(Debug)]
pub struct Api {
    /// `info.title`
    pub title: String,
    /// `info.version`
    pub version: String,
    /// Tags with their descriptions, in the document's order.
    pub tags: Vec<(String, String)>,
    /// Operations, in the document's order.
    pub operations: Vec<Operation>,
    /// The component schemas that become types, in the document's order.
    pub types: Vec<TypeDefinition>,
    /// Error codes (`x-error-codes`), each with its status, in order of first use.
    pub error_codes: Vec<ErrorCode>,
}

/// A code that errors carry, and the status it comes with.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorCode {
    /// The code as sent.
    pub code: String,
    /// The Rust name of its variant.
    pub ident: Ident,
    /// The HTTP status.
    pub status: u16,
    /// The place of its first use, for refusals.
    pub pointer: String,
}

/// One operation.
#[derive(Debug)]
pub struct Operation {
    /// `operationId`: snake_case, the name of everything that belongs to the operation.
    pub id: String,
    /// The Rust name of its function.
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
    /// Success responses, in the document's order; never empty.
    pub successes: Vec<Success>,
    /// Error statuses with their codes; `4XX` and `5XX` are not among them.
    pub errors: Vec<(u16, Vec<ErrorCode>)>,
    /// The types of error bodies.
    pub error_types: Vec<Ident>,
    /// Whether all errors have the same kind of body, as a client needs it.
    pub errors_alike: bool,
    /// `x-` members with text values, handed on to the server as they are.
    pub extensions: Vec<(String, String)>,
    /// The place of the operation, for refusals.
    pub pointer: String,
}

/// A request body.
#[derive(Debug)]
pub struct RequestBody {
    /// What it holds.
    pub content: BodyContent,
    /// `x-raw-body`: the handler is also given the exact bytes.
    pub raw: bool,
}

/// What a request body holds.
#[derive(Debug)]
pub enum BodyContent {
    /// JSON of a named type.
    Json(Ident),
    /// Bytes as they are.
    Bytes,
}

/// A success response.
#[derive(Debug)]
pub struct Success {
    /// The HTTP status.
    pub status: u16,
    /// `description`
    pub description: String,
    /// What it holds.
    pub content: ResponseContent,
    /// Headers that the handler supplies.
    pub headers: Vec<ResponseHeader>,
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
}

/// What a success response holds.
#[derive(Debug)]
pub enum ResponseContent {
    /// Nothing.
    Empty,
    /// JSON of a named type.
    Json(Ident),
    /// Bytes of this media type.
    Bytes(String),
}

impl ResponseContent {
    /// What a client sees of it, in a word.
    pub fn shape(&self) -> String {
        match self {
            ResponseContent::Empty => String::new(),
            ResponseContent::Json(ident) => ident.to_string(),
            ResponseContent::Bytes(_) => "bytes".into(),
        }
    }
}

/// A named type.
#[derive(Debug)]
pub struct TypeDefinition {
    /// The name in the document.
    pub name: String,
    /// The Rust name.
    pub ident: Ident,
    /// `description`
    pub docs: String,
    /// What it is made of.
    pub shape: Shape,
    /// The schema as embedded: JSON Schema in schemars' dialect.
    pub schema: Value,
    /// The types its schema refers to.
    pub refers_to: Vec<Ident>,
    /// Whether values of it arrive in requests.
    pub in_requests: bool,
    /// Whether values of it leave in responses.
    pub in_responses: bool,
    /// Whether it stands inside another schema and got its name from there.
    pub inline: bool,
    /// The place, for refusals.
    pub pointer: String,
}

/// What a named type is made of.
#[derive(Debug)]
pub enum Shape {
    /// An object with named members.
    Struct(Struct),
    /// A closed set of texts.
    Enum(Vec<Variant>),
    /// One of several objects, told apart by a member.
    Union(Union),
    /// A value of another type under a name of its own.
    Newtype(Type),
}

/// An object with named members.
#[derive(Debug)]
pub struct Struct {
    /// The members.
    pub fields: Vec<Field>,
    /// What becomes of members that are not named.
    pub others: Others,
}

/// What becomes of members that an object does not name.
#[derive(Debug)]
pub enum Others {
    /// They are passed over (no `additionalProperties`).
    Ignored,
    /// They are refused (`additionalProperties: false`).
    Refused,
    /// They are kept in a map, which is this field.
    Kept(Box<Field>),
}

/// A value of an enumeration.
#[derive(Debug)]
pub struct Variant {
    /// The value on the wire.
    pub value: String,
    /// The Rust name.
    pub ident: Ident,
    /// What the document says of it.
    pub docs: String,
}

/// One of several objects, told apart by a member.
#[derive(Debug)]
pub struct Union {
    /// The member's name on the wire (`discriminator.propertyName`).
    pub tag: String,
    /// The alternatives.
    pub alternatives: Vec<Alternative>,
}

/// One alternative of a union.
#[derive(Debug)]
pub struct Alternative {
    /// The Rust name of the variant and of the type it holds.
    pub ident: Ident,
    /// The Rust name of the member that tells it apart.
    pub tag_field: Ident,
    /// The values of that member that stand for this alternative.
    pub values: Vec<String>,
}

/// A member of an object, or a parameter.
#[derive(Debug)]
pub struct Field {
    /// The name on the wire.
    pub name: String,
    /// The Rust name.
    pub ident: Ident,
    /// `description`
    pub docs: String,
    /// The type, without optionality.
    pub ty: Type,
    /// Listed in `required`.
    pub required: bool,
    /// `nullable`
    pub nullable: bool,
    /// `default`
    pub default: Option<Value>,
    /// `deprecated`
    pub deprecated: bool,
    /// The member's schema, as in the document.
    pub schema: Value,
    /// The place, for refusals.
    pub pointer: String,
}

impl Field {
    /// Whether the Rust field is an `Option`.
    pub fn is_option(&self) -> bool {
        self.nullable || (!self.required && self.default.is_none())
    }
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// Text.
    String {
        /// `minLength`
        min_length: Option<usize>,
        /// `maxLength`
        max_length: Option<usize>,
        /// `pattern`
        pattern: Option<String>,
    },
    /// A decimal amount in a string (`format: decimal`).
    Decimal {
        /// `x-decimal-places`
        places: u32,
    },
    /// RFC 3339 (`format: date-time`).
    DateTime,
    /// A calendar day (`format: date`).
    Date,
    /// Bytes in Base64 (`format: byte`).
    Bytes,
    /// `format: uuid`
    Uuid,
    /// `true` or `false`
    Boolean,
    /// A whole number.
    Integer {
        /// The Rust type, `i64` and the like.
        kind: &'static str,
        /// `minimum`, and whether it is exclusive.
        minimum: Option<(i128, bool)>,
        /// `maximum`, and whether it is exclusive.
        maximum: Option<(i128, bool)>,
    },
    /// A floating-point number.
    Number {
        /// `minimum`, and whether it is exclusive.
        minimum: Option<(f64, bool)>,
        /// `maximum`, and whether it is exclusive.
        maximum: Option<(f64, bool)>,
    },
    /// A number whose decimal text is kept (`type: number, format: decimal`).
    ExactNumber {
        /// `x-max-significant-digits`, by default 28.
        max_significant_digits: u32,
    },
    /// A list.
    Array {
        /// The type of its items.
        items: Box<Type>,
        /// `minItems`
        min_items: Option<usize>,
        /// `maxItems`
        max_items: Option<usize>,
    },
    /// An object whose members' names are data.
    Map {
        /// The type of its values.
        values: Box<Type>,
        /// `minProperties`
        min_properties: Option<usize>,
        /// `maxProperties`
        max_properties: Option<usize>,
        /// `x-key-pattern`
        key_pattern: Option<String>,
    },
    /// An item or a map's value that may be null.
    Nullable(Box<Type>),
    /// A named type.
    Named(Ident),
    /// Any JSON value.
    Any,
}
