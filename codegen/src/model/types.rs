//! Named types, with their members and alternatives.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Ident;
use serde_json::Value;

use super::values::{IntegerKind, Type};

#[derive(Debug)]
pub struct TypeDefinition {
    /// The name in the document.
    pub name: String,
    pub ident: Ident,
    pub docs: String,
    pub shape: Shape,
    /// The schema for embedding in generated code, in schemars' dialect of JSON Schema.
    pub schema: Value,
    /// The types that the schema refers to.
    pub refers_to: Vec<Ident>,
    /// Whether requests contain values of this type.
    pub in_requests: bool,
    /// Whether responses contain values of this type.
    pub in_responses: bool,
    /// Whether the schema is declared inline in another schema, from which its name is derived.
    pub inline: bool,
    pub pointer: String,
}

impl TypeDefinition {
    /// The type of an inline schema, which nothing uses yet.
    pub fn new(name: &str, ident: Ident, shape: Shape, pointer: &str) -> Self {
        TypeDefinition {
            name: name.into(),
            ident,
            docs: String::new(),
            shape,
            schema: Value::Null,
            refers_to: Vec::new(),
            in_requests: false,
            in_responses: false,
            inline: true,
            pointer: pointer.into(),
        }
    }

    /// The types of its members or alternatives, or of the wrapped value.
    pub fn types(&self) -> Box<dyn Iterator<Item = &Type> + '_> {
        match &self.shape {
            Shape::Struct(object) => Box::new(object.fields.iter().chain(object.kept()).map(|field| &field.ty)),
            Shape::Union(union) => Box::new(union.alternatives.iter().filter_map(|it| it.content.as_ref())),
            Shape::Checked(alternatives) => Box::new(alternatives.iter().filter_map(|it| it.content.as_ref())),
            Shape::Joined(parts) => Box::new(parts.iter().map(|part| &part.ty)),
            Shape::Newtype(ty) => Box::new(std::iter::once(ty)),
            Shape::Enum(_) => Box::new(std::iter::empty()),
        }
    }

    /// The named types that it uses.
    pub fn mentioned(&self) -> BTreeSet<Ident> {
        let mut found = BTreeSet::new();
        self.types().for_each(|ty| ty.mentioned(&mut found));
        found
    }

    /// The named types that it or its schema uses.
    pub fn used(&self) -> BTreeSet<Ident> {
        let mut used = self.mentioned();
        used.extend(self.refers_to.iter().cloned());
        used
    }

    /// The named types whose values are stored inline in a value of this type, not behind a box, an array or a map.
    pub fn held(&self) -> BTreeSet<Ident> {
        // A checked value is stored as JSON.
        let is_held = !matches!(self.shape, Shape::Checked(_));
        let held = self.types().filter(|_| is_held).filter_map(Type::held);
        held.cloned().collect()
    }
}

#[derive(Debug)]
pub enum Shape {
    Struct(Struct),
    /// An enumeration of strings, numbers or booleans.
    Enum(Enumeration),
    Union(Union),
    /// A value that matches at least one of these and is kept as JSON, because one alternative may declare members that
    /// another does not.
    Checked(Vec<Alternative>),
    /// An object with the members of all of these parts, which have no members in common.
    Joined(Vec<JoinedPart>),
    /// A wrapper around another type.
    Newtype(Type),
}

/// One of the types that make up an object.
#[derive(Debug)]
pub struct JoinedPart {
    /// The Rust name of its field.
    pub ident: Ident,
    pub ty: Type,
    /// The members of the object that belong to other parts.
    pub others: Vec<String>,
}

#[derive(Debug)]
pub struct Struct {
    pub fields: Vec<Field>,
    pub others: Others,
}

impl Struct {
    /// The field that keeps undeclared members.
    pub fn kept(&self) -> Option<&Field> {
        match &self.others {
            Others::Kept(field) => Some(field),
            Others::Ignored | Others::Rejected => None,
        }
    }
}

#[derive(Debug)]
pub enum Others {
    /// Ignored (no `additionalProperties`).
    Ignored,
    /// Rejected (`additionalProperties: false`).
    Rejected,
    /// Kept in a map, which is this field.
    Kept(Box<Field>),
}

/// The values of `from`, and all others to which `next` leads from them.
pub fn closure<T: Ord + Clone>(from: impl IntoIterator<Item = T>, next: impl Fn(&T) -> BTreeSet<T>) -> BTreeSet<T> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<T> = from.into_iter().collect();
    while let Some(one) = open.pop() {
        if reached.insert(one.clone()) {
            open.extend(next(&one));
        }
    }
    reached
}

pub struct Types<'a>(BTreeMap<String, &'a TypeDefinition>);

impl<'a> Types<'a> {
    /// Collects types, of which the last of a name counts.
    pub fn of(types: impl IntoIterator<Item = &'a TypeDefinition>) -> Self {
        let types = types.into_iter().map(|it| (it.ident.to_string(), it));
        Types(types.collect())
    }

    /// The types of `from`, and all others to which `next` leads from them.
    pub fn reached(
        &self,
        from: impl IntoIterator<Item = Ident>,
        next: impl Fn(&TypeDefinition) -> BTreeSet<Ident>,
    ) -> BTreeSet<Ident> {
        let known = |ident: &Ident| self.0.get(&ident.to_string()).copied();
        closure(from, |ident| known(ident).map(&next).unwrap_or_default())
    }
}

/// A member of an object, or a parameter.
#[derive(Debug)]
pub struct Field {
    /// The name on the wire.
    pub name: String,
    pub ident: Ident,
    pub docs: String,
    /// The type, without optionality.
    pub ty: Type,
    pub required: bool,
    pub nullable: bool,
    pub default: Option<Value>,
    pub deprecated: bool,
    /// How a parameter encodes a list, or another value that is not text.
    pub list: Option<ListStyle>,
    pub one_way: Option<OneWay>,
    /// Whether its type is also used in the direction in which the member is not.
    pub two_way_type: bool,
    /// The member's schema, as in the document.
    pub schema: Value,
    pub pointer: String,
}

/// How a parameter encodes a list, or another value that is not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListStyle {
    /// One occurrence of the name per item (`style: form` with `explode`, the default for queries).
    Repeated,
    /// One string with this separator between the items.
    Separated(char),
    /// The value as JSON, whatever its type is.
    Json,
}

/// The only direction in which a member is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneWay {
    /// In responses (`readOnly`).
    Responses,
    /// In requests (`writeOnly`).
    Requests,
}

impl Field {
    /// An optional member that may have any value.
    pub fn any(name: &str, ident: Ident, pointer: &str) -> Self {
        Field {
            name: name.into(),
            ident,
            docs: String::new(),
            ty: Type::Any,
            required: false,
            nullable: false,
            default: None,
            deprecated: false,
            list: None,
            one_way: None,
            two_way_type: false,
            schema: Value::Bool(true),
            pointer: pointer.into(),
        }
    }

    pub fn is_option(&self) -> bool {
        let is_absent = self.one_way.is_some() && self.two_way_type && self.default.is_none();
        self.nullable || is_absent || (!self.required && self.default.is_none())
    }

    pub fn is_optional_in_requests(&self) -> bool {
        !self.required || self.one_way == Some(OneWay::Responses)
    }
}

/// A closed set of values.
#[derive(Debug)]
pub struct Enumeration {
    pub kind: EnumerationKind,
    pub variants: Vec<Variant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnumerationKind {
    Text,
    Integer(IntegerKind),
    Number,
    /// A single boolean.
    Boolean,
}

impl EnumerationKind {
    /// The text that identifies the variant of a value; `None` if the value has another type.
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

#[derive(Debug)]
pub struct Variant {
    /// The value on the wire, or the text of a number or boolean.
    pub value: String,
    pub ident: Ident,
    pub docs: String,
}

#[derive(Debug)]
pub struct Union {
    pub tagging: Tagging,
    pub alternatives: Vec<Alternative>,
}

/// How the alternatives of a union are distinguished.
#[derive(Debug, PartialEq)]
pub enum Tagging {
    /// By the string in this member (a discriminator; serde's internal and adjacent tagging).
    Member(String),
    /// By the name of the only member, or by a string (serde's external tagging).
    Name,
    /// By trying each alternative (serde's `untagged`).
    Value {
        /// Whether a value must match exactly one alternative (`oneOf`) rather than at least one (`anyOf`), of which
        /// the first is taken.
        exclusive: bool,
    },
}

#[derive(Debug)]
pub struct Alternative {
    /// The Rust name of the variant.
    pub ident: Ident,
    pub docs: String,
    /// The type of its content; `None` if the alternative is only a name.
    pub content: Option<Type>,
    /// The Rust name of the member that identifies the alternative.
    pub tag_field: Option<Ident>,
    /// The values of that member, or the names, that identify this alternative. Messages use the first.
    pub values: Vec<String>,
}

impl Alternative {
    /// An alternative with one name.
    pub fn new(ident: Ident, name: String, content: Option<Type>) -> Self {
        Alternative {
            ident,
            docs: String::new(),
            content,
            tag_field: None,
            values: vec![name],
        }
    }

    /// The name on the wire or in messages.
    pub fn name(&self) -> &str {
        self.values.first().map_or("", String::as_str)
    }
}
