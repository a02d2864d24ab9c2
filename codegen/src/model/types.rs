//! Named types, with their members and alternatives.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Ident;
use serde_json::Value;

use super::values::{IntegerKind, Type};

/// A named type.
#[derive(Debug)]
pub struct TypeDefinition {
    /// The name in the document.
    pub name: String,
    /// The Rust name.
    pub ident: Ident,
    /// `description`
    pub docs: String,
    /// The structure.
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
    /// The JSON pointer, for errors.
    pub pointer: String,
}

impl TypeDefinition {
    /// The types of its members or alternatives, or of the wrapped value.
    pub fn types(&self) -> Box<dyn Iterator<Item = &Type> + '_> {
        match &self.shape {
            Shape::Struct(object) => {
                let others = match &object.others {
                    Others::Kept(field) => Some(&**field),
                    Others::Ignored | Others::Rejected => None,
                };
                Box::new(object.fields.iter().chain(others).map(|field| &field.ty))
            }
            Shape::Union(union) => Box::new(union.alternatives.iter().filter_map(|it| it.content.as_ref())),
            Shape::Checked(alternatives) => Box::new(alternatives.iter().filter_map(|it| it.content.as_ref())),
            Shape::Joined(parts) => Box::new(parts.iter().map(|part| &part.ty)),
            Shape::Newtype(ty) => Box::new(std::iter::once(ty)),
            Shape::Enum(_) => Box::new(std::iter::empty()),
        }
    }

    /// Collects the named types that it uses.
    pub fn mentioned(&self, found: &mut BTreeSet<Ident>) {
        self.types().for_each(|ty| ty.mentioned(found));
    }

    /// The named types that it or its schema uses.
    pub fn used(&self) -> Vec<Ident> {
        let mut used = BTreeSet::from_iter(self.refers_to.iter().cloned());
        self.mentioned(&mut used);
        used.into_iter().collect()
    }

    /// The named types whose values are stored inline in a value of this type, not behind a box, an array or a map.
    pub fn held(&self) -> impl Iterator<Item = &Ident> {
        // A checked value is stored as JSON.
        let is_held = !matches!(self.shape, Shape::Checked(_));
        self.types().filter(move |_| is_held).filter_map(Type::held)
    }
}

/// The structure of a named type.
#[derive(Debug)]
pub enum Shape {
    /// An object with declared members.
    Struct(Struct),
    /// An enumeration of strings, numbers or booleans.
    Enum(Enumeration),
    /// A union of several alternatives.
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
    /// The type.
    pub ty: Type,
    /// The members of the object that belong to other parts.
    pub others: Vec<String>,
}

/// An object with declared members.
#[derive(Debug)]
pub struct Struct {
    /// The members.
    pub fields: Vec<Field>,
    /// The handling of undeclared members.
    pub others: Others,
}

/// The handling of undeclared members.
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
pub fn closure<T: Ord + Clone>(from: impl IntoIterator<Item = T>, next: impl Fn(&T) -> Vec<T>) -> BTreeSet<T> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<T> = from.into_iter().collect();
    while let Some(one) = open.pop() {
        if reached.insert(one.clone()) {
            open.extend(next(&one));
        }
    }
    reached
}

/// Adds the types that the types in `reached` use, transitively.
pub fn close_over(types: &[TypeDefinition], reached: &mut BTreeSet<Ident>) {
    let by_name: BTreeMap<&Ident, &TypeDefinition> = types.iter().map(|it| (&it.ident, it)).collect();
    *reached = closure(std::mem::take(reached), |ident| {
        let mut mentioned = BTreeSet::new();
        by_name
            .get(ident)
            .iter()
            .for_each(|definition| definition.mentioned(&mut mentioned));
        mentioned.into_iter().collect()
    });
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
    /// Whether it is listed in `required`.
    pub required: bool,
    /// `nullable`
    pub nullable: bool,
    /// `default`
    pub default: Option<Value>,
    /// `deprecated`
    pub deprecated: bool,
    /// How a parameter encodes a list, or another value that is not text.
    pub list: Option<ListStyle>,
    /// `readOnly` or `writeOnly`
    pub one_way: Option<OneWay>,
    /// Whether its type is also used in the direction in which the member is not.
    pub two_way_type: bool,
    /// The member's schema, as in the document.
    pub schema: Value,
    /// The JSON pointer, for errors.
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

    /// Whether the Rust field is an `Option`.
    pub fn is_option(&self) -> bool {
        let is_absent = self.one_way.is_some() && self.two_way_type && self.default.is_none();
        self.nullable || is_absent || (!self.required && self.default.is_none())
    }

    /// Whether requests may omit the member.
    pub fn is_optional_in_requests(&self) -> bool {
        !self.required || self.one_way == Some(OneWay::Responses)
    }
}

/// A closed set of values.
#[derive(Debug)]
pub struct Enumeration {
    /// The type of the values.
    pub kind: EnumerationKind,
    /// The values.
    pub variants: Vec<Variant>,
}

/// The type of an enumeration's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnumerationKind {
    /// Strings.
    Text,
    /// Integers.
    Integer(IntegerKind),
    /// Floating-point numbers.
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

/// A value of an enumeration.
#[derive(Debug)]
pub struct Variant {
    /// The value on the wire, or the text of a number or boolean.
    pub value: String,
    /// The Rust name.
    pub ident: Ident,
    /// The description.
    pub docs: String,
}

/// A union of several alternatives.
#[derive(Debug)]
pub struct Union {
    /// How the alternatives are distinguished.
    pub tagging: Tagging,
    /// The alternatives.
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

/// One alternative of a union.
#[derive(Debug)]
pub struct Alternative {
    /// The Rust name of the variant.
    pub ident: Ident,
    /// The description.
    pub docs: String,
    /// The type of its content; `None` if the alternative is only a name.
    pub content: Option<Type>,
    /// The Rust name of the member that identifies the alternative.
    pub tag_field: Option<Ident>,
    /// The values of that member, or the names, that identify this alternative. Messages use the first.
    pub values: Vec<String>,
}

impl Alternative {
    /// The name on the wire or in messages.
    pub fn name(&self) -> &str {
        self.values.first().map_or("", String::as_str)
    }
}
