//! Named types.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Ident;
use serde_json::Value;

use super::choices::{Alternative, Enumeration, Union};
use super::field::Field;
use super::values::Type;

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
