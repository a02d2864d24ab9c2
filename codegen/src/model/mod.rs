//! The document as the emitters see it: names are final, references are resolved, and everything in it is supported.

mod operation;
mod types;
mod values;

pub use operation::{
    BodyContent, ErrorCode, Form, Operation, RequestBody, Requirement, ResponseContent, ResponseHeader, SecurityKind,
    SecurityScheme, Success, Versions,
};
pub use types::{
    Alternative, Enumeration, EnumerationKind, Field, JoinedPart, ListStyle, OneWay, Others, Shape, Struct, Tagging,
    TypeDefinition, Types, Union, Variant, closure,
};
pub use values::{IntegerKind, MapRules, PLAUSIBLE_RANGE, StringRules, Type, exact, plausible_ranges};

use std::collections::BTreeSet;

use proc_macro2::Ident;

#[derive(Debug)]
pub struct Api {
    pub title: String,
    pub version: String,
    /// Tags, in document order.
    pub tags: Vec<Tag>,
    /// Operations, in document order.
    pub operations: Vec<Operation>,
    /// The component schemas that become types, in document order.
    pub types: Vec<TypeDefinition>,
    /// Error codes (`x-error-codes`) with their statuses, in order of first use.
    pub error_codes: Vec<ErrorCode>,
    pub security_schemes: Vec<SecurityScheme>,
}

#[derive(Debug)]
pub struct Tag {
    pub name: String,
    pub description: String,
    /// `externalDocs`: the description and the URL.
    pub external_docs: Option<(Option<String>, String)>,
}

impl Api {
    pub fn definition(&self, ident: &Ident) -> Option<&TypeDefinition> {
        self.types.iter().find(|definition| definition.ident == *ident)
    }

    pub fn shape(&self, ident: &Ident) -> Option<&Shape> {
        self.definition(ident).map(|definition| &definition.shape)
    }

    pub fn is_list(&self, ty: &Type) -> bool {
        self.list_items(ty).is_some()
    }

    /// The type of the items, if values of the type are lists.
    pub fn list_items<'t>(&'t self, mut ty: &'t Type) -> Option<&'t Type> {
        // Types that contain themselves are rejected elsewhere.
        for _ in 0..=self.types.len() {
            match ty {
                Type::Array { items, .. } => return Some(items),
                Type::Named(ident) => match self.shape(ident) {
                    Some(Shape::Newtype(inner)) => ty = inner,
                    _ => return None,
                },
                _ => return None,
            }
        }
        None
    }

    /// Whether a value of the type can be written as the text of a parameter. Dropshot's document has no `anyOf` there.
    pub fn is_text(&self, ty: &Type, with_any_of: bool) -> bool {
        self.is_text_within(ty, with_any_of, &mut BTreeSet::new())
    }

    fn is_text_within(&self, ty: &Type, with_any_of: bool, seen: &mut BTreeSet<Ident>) -> bool {
        let ident = match ty {
            Type::Named(ident) => ident,
            Type::Null | Type::Never | Type::Any | Type::Nullable(_) | Type::Boxed(_) => return false,
            Type::Array { .. } | Type::Map { .. } => return false,
            _ => return true,
        };
        // A type that was visited before is checked there.
        if !seen.insert(ident.clone()) {
            return true;
        }
        match self.shape(ident) {
            Some(Shape::Enum(_)) => true,
            Some(Shape::Newtype(ty)) => self.is_text_within(ty, with_any_of, seen),
            Some(Shape::Union(union)) => {
                let is_tried = match union.tagging {
                    Tagging::Value { exclusive } => exclusive || with_any_of,
                    Tagging::Member(_) | Tagging::Name => false,
                };
                let mut contents = union.alternatives.iter().map(|it| it.content.as_ref());
                is_tried && contents.all(|ty| ty.is_some_and(|ty| self.is_text_within(ty, with_any_of, seen)))
            }
            _ => false,
        }
    }

    /// Whether Dropshot's document and progenitor have the type of a parameter. All others are strings there.
    pub fn is_scalar_parameter(&self, field: &Field) -> bool {
        field.list != Some(ListStyle::Json) && self.is_text(&field.ty, false)
    }

    /// Whether one of the parameters is a list that repeats its name for each item.
    pub fn has_repeated(&self, fields: &[Field]) -> bool {
        let repeated = |field: &&Field| field.list == Some(ListStyle::Repeated);
        fields.iter().filter(repeated).any(|field| self.is_list(&field.ty))
    }

    /// The type of an operation's error bodies if the document has several: the operation's errors are then
    /// `codegen_runtime::Failure`. If all operations share one type, `ApiError` has it.
    pub fn failure<'a>(&self, operation: &'a Operation) -> Option<&'a Ident> {
        match self.error_body() {
            None => operation.error_type.as_ref(),
            Some(_) => None,
        }
    }

    /// The type of the bodies of all errors, if it is one.
    pub fn error_body(&self) -> Option<&Ident> {
        let mut all = self.operations.iter().filter_map(|it| it.error_type.as_ref());
        let first = all.next()?;
        all.all(|other| other == first).then_some(first)
    }

    /// The members of the error body that contain the ID of the request, each as the path to its field.
    pub fn request_ids(&self) -> Vec<Vec<RequestIdStep<'_>>> {
        let mut found = Vec::new();
        if let Some(body) = self.error_body() {
            self.request_ids_in(body, &mut Vec::new(), &mut Vec::new(), &mut found);
        }
        found
    }

    fn request_ids_in<'a>(
        &'a self,
        ident: &'a Ident,
        around: &mut Vec<&'a Ident>,
        path: &mut Vec<RequestIdStep<'a>>,
        found: &mut Vec<Vec<RequestIdStep<'a>>>,
    ) {
        if around.contains(&ident) {
            return;
        }
        around.push(ident);
        let steps: Vec<RequestIdStep<'a>> = match self.shape(ident) {
            Some(Shape::Struct(object)) => {
                let fields = object.fields.iter();
                fields
                    .map(|field| (&field.ident, &field.ty, field.is_option(), &*field.name))
                    .collect()
            }
            Some(Shape::Joined(parts)) => parts.iter().map(|part| (&part.ident, &part.ty, false, "")).collect(),
            _ => Vec::new(),
        };
        for step in steps {
            path.push(step);
            let is_id = error_member(step.3) == Some(ErrorMember::RequestId);
            match step.1 {
                Type::Uuid if is_id => found.push(path.clone()),
                Type::String(rules) if is_id && rules.check(EXAMPLE_ID).is_ok() => found.push(path.clone()),
                Type::Named(inner) => self.request_ids_in(inner, around, path, found),
                _ => {}
            }
            path.pop();
        }
        around.pop();
    }
}

/// A field on the path to a request ID: its name in Rust, its type, whether it is an `Option`, and the member's name.
pub type RequestIdStep<'a> = (&'a Ident, &'a Type, bool, &'a str);

/// An ID in the form of Dropshot's.
const EXAMPLE_ID: &str = "0197c2a4-6f00-7a10-8b3c-2f4d5e6a7b8c";

/// The data that a server has about every error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorMember {
    /// The message for people.
    Message,
    /// The code for programs.
    Code,
    Status,
    /// The ID of the request.
    RequestId,
}

/// The content of a member of an error body, by its name.
pub fn error_member(name: &str) -> Option<ErrorMember> {
    let name: String = name.chars().filter(|it| it.is_ascii_alphanumeric()).collect();
    let name = name.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    match () {
        () if has(&["requestid", "correlationid", "traceid"]) => Some(ErrorMember::RequestId),
        () if has(&["status"]) => Some(ErrorMember::Status),
        () if has(&["code"]) => Some(ErrorMember::Code),
        () if has(&["message", "detail", "description", "reason", "error", "title"]) => Some(ErrorMember::Message),
        () => None,
    }
}

/// How requests reach their operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Dispatch {
    /// Generate `dispatch.rs`, which implements the API trait, for Dropshot's server
    #[default]
    Dropshot,
    /// Generate `calls.rs`, a table of functions that each take a `codegen_runtime::call::Request`, and a `dispatch.rs` that
    /// implements the API trait with a gateway
    Calls,
}
