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
    Api, BodyContent, ErrorCode, OneWay, Operation, ResponseContent, Shape, Tag, Type, TypeDefinition, Types, closure,
};
use crate::naming::{Renamed, Shared, SharedNames};
use crate::node::{METHODS, Node};

pub use object::is_weaker;
pub use operation::PARAMETER;
pub use union::target_of_mapping;

/// A part of a document that can be read on its own: a component schema, or a member of the path item of a path.
pub type Part = (Option<String>, String);

/// The parts of a document. Malformed parts are left out; reading the whole document reports them.
pub fn parts(document: &Value) -> Vec<Part> {
    let root = Node::root(document);
    let names = |node: Option<Node<'_>>| -> Vec<String> {
        let members = node.and_then(|node| node.object().ok()).into_iter();
        members.flat_map(|members| members.keys().cloned()).collect()
    };
    let schemas = names(root.below(&SCHEMAS)).into_iter();
    let mut all: Vec<Part> = schemas.map(|name| (None, name)).collect();
    for path in names(root.get("paths")) {
        let item = root.below(&["paths", &path]).and_then(|item| item.resolved().ok());
        all.extend(names(item).into_iter().map(|member| (Some(path.clone()), member)));
    }
    all
}

/// The keys around the component schemas.
const SCHEMAS: [&str; 2] = ["components", "schemas"];

/// Reads one part. All parts of a document share `names`.
pub fn part(document: &Value, (path, name): &Part, names: &SharedNames) -> Result<(), Problem> {
    let root = Node::root_with(document, names.clone());
    let mut derived = Vec::new();
    match path {
        None => {
            if let Some(node) = root.below(&["components", "schemas", name]) {
                schema::definition(name, &node, &mut derived)?;
            }
        }
        Some(path) => {
            let item = root.below(&["paths", path]).map(|item| item.resolved()).transpose()?;
            if let Some((item, node)) = item.and_then(|item| Some((item.clone(), item.get(name)?))) {
                path_member(path, name, &item, &node, &mut derived)?;
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

pub fn api(document: &Value) -> Result<Api, Problem> {
    api_renamed(document, Renamed::default())
}

/// Reads the whole document, with replacements for some Rust names.
pub fn api_renamed(document: &Value, renamed: Renamed) -> Result<Api, Problem> {
    let names = Shared {
        renamed,
        ..Shared::default()
    };
    let root = Node::root_with(document, names.into());
    let info = root.need("info")?;
    let mut types = Vec::new();
    let schemas = root.below(&SCHEMAS);
    for (name, node) in schemas.map_or(Ok(Vec::new()), |schemas| schemas.members())? {
        let mut derived = Vec::new();
        types.push(schema::definition(name, &node, &mut derived)?);
        // A part that several schemas share is read several times but defines one type.
        derived.retain(|new| !is_known(&types, new));
        types.append(&mut derived);
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
    for tag in root.items_of("tags")? {
        let external_docs = tag.get("externalDocs").map(|docs| {
            let description = docs.text_of("description")?.map(ToString::to_string);
            Ok((description, docs.need("url")?.text()?.to_string()))
        });
        tags.push(Tag {
            name: tag.need("name")?.text()?.to_string(),
            description: tag.description()?,
            external_docs: external_docs.transpose()?,
        });
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
    let mut types = types.iter();
    types.any(|known| known.pointer == new.pointer && known.ident == new.ident)
}

/// Collects the error codes. Each code has the same status everywhere.
pub fn error_codes(operations: &[Operation]) -> Result<Vec<ErrorCode>, Problem> {
    let mut all: Vec<ErrorCode> = Vec::new();
    let codes = operations.iter().flat_map(|operation| &operation.errors);
    for code in codes.flat_map(|(_, codes)| codes) {
        let reason = match all.iter().find(|known| known.ident == code.ident) {
            None => {
                all.push(code.clone());
                continue;
            }
            Some(known) if known.code != code.code => format!(
                "`{}` and `{}` have the same Rust name `{}`; rename one",
                known.code, code.code, code.ident
            ),
            Some(known) if known.status == code.status => continue,
            Some(known) => format!(
                "`{}` has status {} here but {} at {}; use another code",
                code.code, code.status, known.status, known.pointer
            ),
        };
        return Err(Problem::rejected(&code.pointer, reason));
    }
    Ok(all)
}

/// Marks each type with the directions in which it is sent, so that only the necessary implementations are generated.
pub fn mark_directions(types: &mut [TypeDefinition], operations: &[Operation]) {
    let mut requests = BTreeSet::new();
    let mut responses = BTreeSet::new();
    for operation in operations {
        if let Some(BodyContent::Json(ident)) = operation.content() {
            requests.insert(ident.clone());
        }
        for parameter in operation.inputs() {
            parameter.ty.mentioned(&mut requests);
        }
        responses.extend(operation.error_type.iter().cloned());
        for success in &operation.successes {
            if let ResponseContent::Json(ident, _) = &success.content {
                responses.insert(ident.clone());
            }
        }
    }
    let by_name = Types::of(&*types);
    loop {
        let before = requests.len() + responses.len();
        requests = by_name.reached(requests, TypeDefinition::mentioned);
        // Unique items are compared in serialized form.
        for definition in types.iter().filter(|definition| requests.contains(&definition.ident)) {
            compared(definition, &mut responses);
        }
        responses = by_name.reached(responses, TypeDefinition::mentioned);
        // A kept value is deserialized again when it is read as one of its alternatives.
        let is_kept = |it: &&TypeDefinition| matches!(it.shape, Shape::Checked(_)) && responses.contains(&it.ident);
        requests.extend(types.iter().filter(is_kept).map(|it| it.ident.clone()));
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

fn check_defaults(types: &[TypeDefinition], operations: &[Operation]) -> Result<(), Problem> {
    let members = types.iter().filter_map(|definition| match &definition.shape {
        Shape::Struct(object) => Some(&object.fields),
        _ => None,
    });
    let parameters = operations.iter().flat_map(Operation::inputs);
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
                definition.map(TypeDefinition::held).unwrap_or_default()
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
