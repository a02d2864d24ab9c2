//! The document as the emitters see it: names are final, references are resolved, and everything in it is supported.

mod choices;
mod field;
mod operation;
pub mod plausible;
mod security;
mod types;
mod values;

pub use choices::{Alternative, Enumeration, EnumerationKind, Tagging, Union, Variant};
pub use field::{Field, ListStyle, OneWay};
pub use operation::{
    BodyContent, ErrorCode, Form, Operation, RequestBody, ResponseContent, ResponseHeader, Success, Versions,
};
pub use security::{Requirement, SecurityKind, SecurityScheme};
pub use types::{JoinedPart, Others, Shape, Struct, TypeDefinition, close_over};
pub use values::{IntegerKind, MapRules, StringRules, Type};

use proc_macro2::Ident;

/// A whole document.
#[derive(Debug)]
pub struct Api {
    /// `info.title`
    pub title: String,
    /// `info.version`
    pub version: String,
    /// Tags, in document order.
    pub tags: Vec<Tag>,
    /// Operations, in document order.
    pub operations: Vec<Operation>,
    /// The component schemas that become types, in document order.
    pub types: Vec<TypeDefinition>,
    /// Error codes (`x-error-codes`) with their statuses, in order of first use.
    pub error_codes: Vec<ErrorCode>,
    /// The ways to authenticate.
    pub security_schemes: Vec<SecurityScheme>,
}

/// A tag.
#[derive(Debug)]
pub struct Tag {
    /// The name.
    pub name: String,
    /// `description`
    pub description: String,
    /// `externalDocs`: the description and the URL.
    pub external_docs: Option<(Option<String>, String)>,
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

    /// Whether one of the parameters is a list that repeats its name for each item.
    pub fn has_repeated(&self, fields: &[Field]) -> bool {
        let repeated = |field: &&Field| field.list == Some(ListStyle::Repeated);
        fields.iter().filter(repeated).any(|field| self.is_list(&field.ty))
    }

    /// The type of an operation's error bodies if the document has several: the operation's errors are then
    /// `codegen_runtime::Failure`. If all operations share one type, `ApiError` has it.
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
