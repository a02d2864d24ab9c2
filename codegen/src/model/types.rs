//! Named types.

use std::collections::BTreeSet;

use proc_macro2::Ident;
use serde_json::Value;

use super::{Alternative, Enumeration, Field, Type, Union};

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
            Shape::Checked(alternatives) => Box::new(alternatives.iter().filter_map(|it| it.content.as_ref())),
            Shape::Joined(parts) => Box::new(parts.iter().map(|part| &part.ty)),
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
        // A checked value is kept as JSON.
        let is_held = !matches!(self.shape, Shape::Checked(_));
        self.types().filter(move |_| is_held).filter_map(Type::held)
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
    /// A value that fits at least one of these, and is kept whole: what one of them does not name, another may.
    Checked(Vec<Alternative>),
    /// An object that has the members of each of these, which have no member in common.
    Joined(Vec<JoinedPart>),
    /// A value of another type under a name of its own.
    Newtype(Type),
}

/// A part of an object, which is a type of its own.
#[derive(Debug)]
pub struct JoinedPart {
    /// The Rust name of its field.
    pub ident: Ident,
    /// What it is.
    pub ty: Type,
    /// The members of the object that are not its own.
    pub others: Vec<String>,
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
