//! The document as the emitters see it: names settled, references resolved, everything in it can be generated.

mod choices;
mod field;
mod operation;
mod security;
mod types;
mod values;

pub use choices::{Alternative, Enumeration, EnumerationKind, Tagging, Union, Variant};
pub use field::{Field, ListStyle, OneWay};
pub use operation::{BodyContent, Form, Operation, RequestBody, ResponseContent, ResponseHeader, Success, Versions};
pub use security::{Requirement, SecurityKind, SecurityScheme};
pub use types::{JoinedPart, Others, Shape, Struct, TypeDefinition};
pub use values::{IntegerKind, MapRules, StringRules, Type};

use proc_macro2::Ident;

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
    /// The ways to say who calls.
    pub security_schemes: Vec<SecurityScheme>,
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

impl Api {
    /// Whether values of the type are lists.
    pub fn is_list(&self, ty: &Type) -> bool {
        match ty {
            Type::Array { .. } => true,
            Type::Named(ident) => {
                let definition = self.types.iter().find(|definition| definition.ident == *ident);
                matches!(definition.map(|it| &it.shape), Some(Shape::Newtype(inner)) if self.is_list(inner))
            }
            _ => false,
        }
    }

    /// Whether one of the parameters is a list whose items each have its name.
    pub fn has_repeated(&self, fields: &[Field]) -> bool {
        let repeated = |field: &&Field| field.list == Some(ListStyle::Repeated);
        fields.iter().filter(repeated).any(|field| self.is_list(&field.ty))
    }

    /// The type of an operation's error bodies, where the document has several: an operation's errors then are of their
    /// own kind, `codegen_runtime::Failure`. With one for all, `ApiError` is it.
    pub fn failure<'a>(&self, operation: &'a Operation) -> Option<&'a Ident> {
        let mut all = self
            .operations
            .iter()
            .filter_map(|operation| operation.error_type.as_ref());
        let first = all.next()?;
        match all.any(|other| other != first) {
            true => operation.error_type.as_ref(),
            false => None,
        }
    }
}
