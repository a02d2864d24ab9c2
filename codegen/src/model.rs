//! The document as the emitters see it: names settled, references resolved, everything in it can be generated.

use std::collections::BTreeSet;

use codegen_runtime::{ArrayRules, NumberRules, Pattern};
use proc_macro2::Ident;
use serde_json::Value;

/// What a string must be like.
pub type StringRules = codegen_runtime::StringRules<Pattern>;

/// What a map must be like.
pub type MapRules = codegen_runtime::MapRules<Pattern>;

/// A whole document.
#[derive(Debug)]
pub struct Api {
    /// `info.title`
    pub title: String,
    /// `info.version`
    pub version: String,
    /// Tags, in the document's order.
    pub tags: Vec<Tag>,
    /// Operations, in the document's order.
    pub operations: Vec<Operation>,
    /// The component schemas that become types, in the document's order.
    pub types: Vec<TypeDefinition>,
    /// Error codes (`x-error-codes`), each with its status, in order of first use.
    pub error_codes: Vec<ErrorCode>,
}

/// A tag.
#[derive(Debug)]
pub struct Tag {
    /// Its name.
    pub name: String,
    /// `description`
    pub description: String,
    /// `externalDocs`: the description, and the address.
    pub external_docs: Option<(Option<String>, String)>,
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
    /// Whether it opens a websocket.
    pub websocket: bool,
    /// `x-dropshot-pagination`
    pub pagination: Option<Value>,
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
    /// A form (`application/x-www-form-urlencoded`).
    Form(Form),
    /// Bytes as they are.
    Bytes,
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
    /// JSON of a named type, under this media type.
    Json(Ident, String),
    /// Bytes of this media type.
    Bytes(String),
    /// A websocket.
    Upgraded,
    /// The whole response is the handler's.
    Whole,
}

impl ResponseContent {
    /// What a client sees of it, in a word.
    pub fn shape(&self) -> String {
        match self {
            ResponseContent::Empty => String::new(),
            ResponseContent::Json(ident, _) => ident.to_string(),
            ResponseContent::Bytes(_) | ResponseContent::Whole => "bytes".into(),
            ResponseContent::Upgraded => "websocket".into(),
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

impl TypeDefinition {
    /// The types that its members, alternatives or value have.
    pub fn types(&self) -> Box<dyn Iterator<Item = &Type> + '_> {
        match &self.shape {
            Shape::Struct(object) => {
                let kept = match &object.others {
                    Others::Kept(field) => Some(&**field),
                    Others::Ignored | Others::Refused => None,
                };
                Box::new(object.fields.iter().chain(kept).map(|field| &field.ty))
            }
            Shape::Union(union) => Box::new(union.alternatives.iter().filter_map(|it| it.content.as_ref())),
            Shape::Newtype(ty) => Box::new(std::iter::once(ty)),
            Shape::Enum(_) => Box::new(std::iter::empty()),
        }
    }

    /// Adds the named types that it is made of.
    pub fn mentioned(&self, found: &mut BTreeSet<Ident>) {
        self.types().for_each(|ty| ty.mentioned(found));
    }

    /// The named types that a value of this one holds in itself, not behind a box, an array or a map.
    pub fn held(&self) -> impl Iterator<Item = &Ident> {
        self.types().filter_map(Type::held)
    }
}

/// What a named type is made of.
#[derive(Debug)]
pub enum Shape {
    /// An object with named members.
    Struct(Struct),
    /// A closed set of texts, numbers or booleans.
    Enum(Enumeration),
    /// One of several alternatives.
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

/// A closed set of values.
#[derive(Debug)]
pub struct Enumeration {
    /// What its values are.
    pub kind: EnumerationKind,
    /// Its values.
    pub variants: Vec<Variant>,
}

/// What the values of an enumeration are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnumerationKind {
    /// Texts.
    Text,
    /// Whole numbers.
    Integer(IntegerKind),
    /// Floating-point numbers.
    Number,
    /// `true` or `false`, one of the two.
    Boolean,
}

impl EnumerationKind {
    /// The text by which a variant has this value; `None` if it is of another kind.
    pub fn text(self, value: &Value) -> Option<String> {
        match (self, value) {
            (EnumerationKind::Text, Value::String(text)) => Some(text.clone()),
            (EnumerationKind::Integer(_), Value::Number(number)) if !number.is_f64() => Some(number.to_string()),
            (EnumerationKind::Number, Value::Number(number)) => Some(number.as_f64()?.to_string()),
            (EnumerationKind::Boolean, Value::Bool(value)) => Some(value.to_string()),
            _ => None,
        }
    }
}

/// A value of an enumeration.
#[derive(Debug)]
pub struct Variant {
    /// The value on the wire; of a number or boolean, its text.
    pub value: String,
    /// The Rust name.
    pub ident: Ident,
    /// What the document says of it.
    pub docs: String,
}

/// One of several alternatives.
#[derive(Debug)]
pub struct Union {
    /// How they are told apart.
    pub tagging: Tagging,
    /// The alternatives.
    pub alternatives: Vec<Alternative>,
}

/// How the alternatives of a union are told apart.
#[derive(Debug, PartialEq)]
pub enum Tagging {
    /// By the text in this member (a discriminator; serde's internal and adjacent tagging).
    Member(String),
    /// By the name of the only member, or by a text (serde's external tagging).
    Name,
    /// By what the value itself is: each alternative is tried (serde's `untagged`).
    Value {
        /// Whether a value must fit exactly one (`oneOf`), not at least one (`anyOf`), of which the first counts.
        exclusive: bool,
    },
}

/// One alternative of a union.
#[derive(Debug)]
pub struct Alternative {
    /// The Rust name of the variant.
    pub ident: Ident,
    /// What the document says of it.
    pub docs: String,
    /// What it holds; nothing where its name says all.
    pub content: Option<Type>,
    /// The Rust name of the member that tells it apart.
    pub tag_field: Option<Ident>,
    /// The values of that member, or the name, that stand for this alternative; what it is called in messages.
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
    /// `readOnly` or `writeOnly`
    pub one_way: Option<OneWay>,
    /// Whether its type also travels the way that the member does not go.
    pub two_way_type: bool,
    /// The member's schema, as in the document.
    pub schema: Value,
    /// The place, for refusals.
    pub pointer: String,
}

/// Which way a member goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneWay {
    /// `readOnly`: in responses.
    Responses,
    /// `writeOnly`: in requests.
    Requests,
}

impl Field {
    /// Whether the Rust field is an `Option`.
    pub fn is_option(&self) -> bool {
        let is_absent = self.one_way.is_some() && self.two_way_type && self.default.is_none();
        self.nullable || is_absent || (!self.required && self.default.is_none())
    }

    /// Whether requests may leave the member out.
    pub fn is_optional_in_requests(&self) -> bool {
        !self.required || self.one_way == Some(OneWay::Responses)
    }
}

/// The Rust type of a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegerKind {
    /// `format: int8`
    I8,
    /// `format: int16`
    I16,
    /// `format: int32`
    I32,
    /// `format: int64`, or none
    I64,
    /// `format: uint8`
    U8,
    /// `format: uint16`
    U16,
    /// `format: uint32`
    U32,
    /// `format: uint64` or `uint`
    U64,
}

impl IntegerKind {
    /// The name in Rust.
    pub fn name(self) -> &'static str {
        match self {
            IntegerKind::I8 => "i8",
            IntegerKind::I16 => "i16",
            IntegerKind::I32 => "i32",
            IntegerKind::I64 => "i64",
            IntegerKind::U8 => "u8",
            IntegerKind::U16 => "u16",
            IntegerKind::U32 => "u32",
            IntegerKind::U64 => "u64",
        }
    }

    /// The least and the greatest value.
    pub fn range(self) -> (i128, i128) {
        match self {
            IntegerKind::I8 => (i8::MIN.into(), i8::MAX.into()),
            IntegerKind::I16 => (i16::MIN.into(), i16::MAX.into()),
            IntegerKind::I32 => (i32::MIN.into(), i32::MAX.into()),
            IntegerKind::I64 => (i64::MIN.into(), i64::MAX.into()),
            IntegerKind::U8 => (0, u8::MAX.into()),
            IntegerKind::U16 => (0, u16::MAX.into()),
            IntegerKind::U32 => (0, u32::MAX.into()),
            IntegerKind::U64 => (0, u64::MAX.into()),
        }
    }
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// Text.
    String(StringRules),
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
    /// `null` (`enum: [null]`)
    Null,
    /// No value at all (`not: {}`).
    Never,
    /// A whole number.
    Integer {
        /// The Rust type.
        kind: IntegerKind,
        /// What it must be like.
        rules: NumberRules<i128>,
    },
    /// A floating-point number.
    Number(NumberRules<f64>),
    /// A number whose decimal text is kept (`type: number, format: decimal`).
    ExactNumber {
        /// `x-max-significant-digits`, by default 28.
        max_significant_digits: u32,
    },
    /// A list.
    Array {
        /// The type of its items.
        items: Box<Type>,
        /// What it must be like.
        rules: ArrayRules,
    },
    /// An object whose members' names are data.
    Map {
        /// The type of its values.
        values: Box<Type>,
        /// What it must be like.
        rules: MapRules,
    },
    /// An item or a map's value that may be null.
    Nullable(Box<Type>),
    /// A value that would hold itself without end if it stood here itself.
    Boxed(Box<Type>),
    /// A named type.
    Named(Ident),
    /// Any JSON value.
    Any,
}

impl Type {
    /// Adds the named types that it is made of.
    pub fn mentioned(&self, found: &mut BTreeSet<Ident>) {
        match self {
            Type::Named(ident) => {
                found.insert(ident.clone());
            }
            Type::Array { items: inner, .. }
            | Type::Map { values: inner, .. }
            | Type::Nullable(inner)
            | Type::Boxed(inner) => inner.mentioned(found),
            _ => {}
        }
    }

    /// The named type that a value of this one holds in itself.
    pub fn held(&self) -> Option<&Ident> {
        match self {
            Type::Named(ident) => Some(ident),
            Type::Nullable(inner) => inner.held(),
            _ => None,
        }
    }

    /// The type without its box.
    pub fn unboxed(&self) -> &Type {
        match self {
            Type::Boxed(inner) => inner,
            other => other,
        }
    }
}
