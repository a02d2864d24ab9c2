//! Conversion of a document to the model. Anything unsupported is rejected with its place and the reason.

mod embed;
mod enumerations;
mod field;
mod kinds;
mod names;
mod object;
mod operation;
mod responses;
mod scalar;
mod schema;
mod security;
mod union;

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Ident;
use serde_json::Value;

use crate::error::Problem;
use crate::literals;
use crate::model::{
    Api, BodyContent, ErrorCode, OneWay, Operation, RequestBody, ResponseContent, Shape, Tag, Type, TypeDefinition,
    close_over, closure,
};
use crate::naming::{Renamed, SharedNames};
use crate::node::{METHODS, Node};

pub use object::is_weaker;
pub use operation::PARAMETER;

/// A part of a document that can be read on its own.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A component schema, by its name.
    Schema(String),
    /// A member of a path item, usually an operation.
    PathMember {
        /// The path.
        path: String,
        /// The member's name, usually a method.
        member: String,
    },
}

/// The parts of a document. Malformed parts are left out; reading the whole document reports them.
pub fn parts(document: &Value) -> Vec<Part> {
    let root = Node::root(document);
    let names = |node: Option<Node<'_>>| -> Vec<String> {
        let members = node.and_then(|node| node.object().ok());
        members
            .into_iter()
            .flat_map(|members| members.keys().cloned())
            .collect()
    };
    let schemas = root.get("components").and_then(|components| components.get("schemas"));
    let mut all: Vec<Part> = names(schemas).into_iter().map(Part::Schema).collect();
    let paths = root.get("paths");
    for path in names(paths.clone()) {
        let item = paths.as_ref().and_then(|paths| paths.get(&path));
        let item = item.and_then(|item| item.resolved().ok());
        all.extend(names(item).into_iter().map(|member| Part::PathMember {
            path: path.clone(),
            member,
        }));
    }
    all
}

/// Reads one part. All parts of a document share `names`.
///
/// # Errors
/// The first thing in the part that is not supported.
pub fn part(document: &Value, part: &Part, names: &SharedNames) -> Result<(), Problem> {
    let root = Node::root_with(document, names.clone());
    let mut derived = Vec::new();
    match part {
        Part::Schema(name) => {
            let schemas = root.get("components").and_then(|components| components.get("schemas"));
            if let Some(node) = schemas.and_then(|schemas| schemas.get(name)) {
                schema::definition(name, &node, &mut derived)?;
            }
        }
        Part::PathMember { path, member } => {
            if let Some(item) = root.get("paths").and_then(|paths| paths.get(path)) {
                let item = item.resolved()?;
                if let Some(node) = item.get(member) {
                    path_member(path, member, &item, &node, &mut derived)?;
                }
            }
        }
    }
    Ok(())
}

/// Reads a member of a path item. Returns `None` if nothing is generated for it.
fn path_member(
    path: &str,
    member: &str,
    item: &Node<'_>,
    node: &Node<'_>,
    derived: &mut schema::Derived,
) -> Result<Option<Operation>, Problem> {
    if METHODS.contains(&member) {
        return operation::operation(path, member, item, node, derived).map(Some);
    }
    if ["parameters", "summary", "description", "servers"].contains(&member) || member.starts_with("x-") {
        return Ok(None);
    }
    Err(node.reject(format!("`{member}` is not supported on a path; remove it")))
}

/// Reads the whole document.
///
/// # Errors
/// The first thing that is not supported.
pub fn api(document: &Value) -> Result<Api, Problem> {
    api_renamed(document, Renamed::default())
}

/// Reads the whole document, with replacements for some Rust names.
///
/// # Errors
/// The first thing that is not supported.
pub fn api_renamed(document: &Value, renamed: Renamed) -> Result<Api, Problem> {
    let root = Node::root_renamed(document, renamed);
    let info = root.need("info")?;
    let mut types = Vec::new();
    if let Some(schemas) = root.get("components").and_then(|components| components.get("schemas")) {
        for (name, node) in schemas.members()? {
            let mut derived = Vec::new();
            types.push(schema::definition(name, &node, &mut derived)?);
            // A part that several schemas share is read several times but defines one type.
            derived.retain(|new| !is_known(&types, new));
            types.append(&mut derived);
        }
    }
    let mut operations = Vec::new();
    let mut derived = Vec::new();
    for (path, item) in root.need("paths")?.members()? {
        if path.starts_with("x-") {
            continue;
        }
        let item = item.resolved()?;
        for (member, node) in item.members()? {
            operations.extend(path_member(path, member, &item, &node, &mut derived)?);
        }
    }
    derived.retain(|new| !is_known(&types, new));
    types.append(&mut derived);
    place_boxes(&mut types);
    mark_directions(&mut types, &operations);
    check_defaults(&types, &operations)?;
    let mut tags = Vec::new();
    if let Some(node) = root.get("tags") {
        for tag in node.items()? {
            let docs = tag.get("externalDocs");
            let external_docs = docs.map(|docs| {
                let description = docs.text_of("description")?.map(ToString::to_string);
                Ok((description, docs.need("url")?.text()?.to_string()))
            });
            tags.push(Tag {
                name: tag.need("name")?.text()?.to_string(),
                description: tag.text_of("description")?.unwrap_or_default().trim().to_string(),
                external_docs: external_docs.transpose()?,
            });
        }
    }
    let error_codes = error_codes(&operations)?;
    Ok(Api {
        title: info.need("title")?.text()?.to_string(),
        version: info.need("version")?.text()?.to_string(),
        tags,
        operations,
        types,
        error_codes,
        security_schemes: security::schemes(&root)?,
    })
}

fn is_known(types: &[TypeDefinition], new: &TypeDefinition) -> bool {
    types
        .iter()
        .any(|known| known.pointer == new.pointer && known.ident == new.ident)
}

/// Collects the error codes. Each code has the same status everywhere.
///
/// # Errors
/// If a code has two statuses, or two codes have the same Rust name.
pub fn error_codes(operations: &[Operation]) -> Result<Vec<ErrorCode>, Problem> {
    let mut all: Vec<ErrorCode> = Vec::new();
    for operation in operations {
        for (status, codes) in &operation.errors {
            for code in codes {
                match all.iter().find(|known| known.ident == code.ident) {
                    None => all.push(code.clone()),
                    Some(known) if known.code != code.code => {
                        let reason = format!(
                            "`{}` and `{}` have the same Rust name `{}`; rename one",
                            known.code, code.code, code.ident
                        );
                        return Err(Problem::rejected(&code.pointer, reason));
                    }
                    Some(known) if known.status == *status => {}
                    Some(known) => {
                        let (pointer, code, other, place) = (&code.pointer, &code.code, known.status, &known.pointer);
                        let reason =
                            format!("`{code}` has status {status} here but {other} at {place}; use another code");
                        return Err(Problem::rejected(pointer, reason));
                    }
                }
            }
        }
    }
    Ok(all)
}

/// Marks each type with the directions in which it is sent, so that only the necessary implementations are generated.
pub fn mark_directions(types: &mut [TypeDefinition], operations: &[Operation]) {
    let mut requests = BTreeSet::new();
    let mut responses = BTreeSet::new();
    for operation in operations {
        if let Some(RequestBody {
            content: BodyContent::Json(ident),
            ..
        }) = &operation.body
        {
            requests.insert(ident.clone());
        }
        for parameter in operation.parameters().chain(operation.form()) {
            parameter.ty.mentioned(&mut requests);
        }
        responses.extend(operation.error_type.iter().cloned());
        for success in &operation.successes {
            if let ResponseContent::Json(ident, _) = &success.content {
                responses.insert(ident.clone());
            }
        }
    }
    loop {
        let before = requests.len() + responses.len();
        close_over(types, &mut requests);
        // Unique items are compared in serialized form.
        for definition in types.iter().filter(|definition| requests.contains(&definition.ident)) {
            compared(definition, &mut responses);
        }
        close_over(types, &mut responses);
        // A kept value is deserialized again when it is read as one of its alternatives.
        let is_checked = |definition: &&TypeDefinition| {
            matches!(definition.shape, Shape::Checked(_)) && responses.contains(&definition.ident)
        };
        requests.extend(
            types
                .iter()
                .filter(is_checked)
                .map(|definition| definition.ident.clone()),
        );
        if requests.len() + responses.len() == before {
            break;
        }
    }
    for definition in types {
        definition.in_requests = requests.contains(&definition.ident);
        definition.in_responses = responses.contains(&definition.ident);
        if let Shape::Struct(object) = &mut definition.shape {
            for field in &mut object.fields {
                field.two_way_type = match field.one_way {
                    Some(OneWay::Responses) => definition.in_requests,
                    Some(OneWay::Requests) => definition.in_responses,
                    None => false,
                };
            }
        }
    }
}

/// The types of items that must be unique.
fn compared(definition: &TypeDefinition, found: &mut BTreeSet<Ident>) {
    fn collect(ty: &Type, found: &mut BTreeSet<Ident>) {
        match ty {
            Type::Array { items, rules } if rules.unique_items => items.mentioned(found),
            Type::Array { items: inner, .. } | Type::Map { values: inner, .. } | Type::Nullable(inner) => {
                collect(inner, found);
            }
            _ => {}
        }
    }
    definition.types().for_each(|ty| collect(ty, found));
}

/// Checks every default.
///
/// # Errors
/// The first default that does not match its type.
fn check_defaults(types: &[TypeDefinition], operations: &[Operation]) -> Result<(), Problem> {
    let members = types.iter().filter_map(|definition| match &definition.shape {
        Shape::Struct(object) => Some(&object.fields),
        _ => None,
    });
    let parameters = operations.iter().flat_map(|it| it.parameters().chain(it.form()));
    for field in members.flatten().chain(parameters) {
        if let (Some(default), Err(literals::NoValue)) = (&field.default, literals::default(field, types)) {
            let reason = format!("the default {default} is not a value of this schema");
            return Err(Problem::rejected(&format!("{}/default", field.pointer), reason));
        }
    }
    Ok(())
}

/// Boxes the members and alternatives through which a type contains itself. Cycles that consist only of names remain.
fn place_boxes(types: &mut [TypeDefinition]) {
    let by_name: BTreeMap<Ident, usize> = types.iter().map(|it| it.ident.clone()).zip(0..).collect();
    for index in 0..types.len() {
        let mut count = 0;
        while let Some(ty) = nth(&mut types[index], count) {
            count += 1;
            let Some(held) = ty.held().cloned() else { continue };
            let reached = closure([held], |ident| {
                let definition = by_name.get(ident).map(|index| &types[*index]);
                definition.into_iter().flat_map(|it| it.held().cloned()).collect()
            });
            if !reached.contains(&types[index].ident) {
                continue;
            }
            if let Some(ty) = nth(&mut types[index], count - 1) {
                enclose(ty);
            }
        }
    }
}

/// The type of the nth member or alternative.
fn nth(definition: &mut TypeDefinition, index: usize) -> Option<&mut Type> {
    match &mut definition.shape {
        Shape::Struct(object) => object.fields.get_mut(index).map(|field| &mut field.ty),
        Shape::Union(union) => {
            let mut contents = union.alternatives.iter_mut().filter_map(|it| it.content.as_mut());
            contents.nth(index)
        }
        Shape::Joined(parts) => parts.get_mut(index).map(|part| &mut part.ty),
        Shape::Checked(_) | Shape::Newtype(_) | Shape::Enum(_) => None,
    }
}

fn enclose(ty: &mut Type) {
    match ty {
        Type::Nullable(inner) => enclose(inner),
        other => *other = Type::Boxed(Box::new(std::mem::replace(other, Type::Any))),
    }
}
