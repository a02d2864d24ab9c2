//! Success and error responses.

use proc_macro2::Ident;
use serde_json::{Value, json};
use syn::ext::IdentExt;

use super::schema::{self, Derived};
use super::{embed, names};
use crate::error::Problem;
use crate::keywords::is_json;
use crate::model::{
    Alternative, ErrorCode, ResponseContent, ResponseHeader, Shape, Success, Tagging, Type, TypeDefinition, Union,
};
use crate::node::Node;

/// The success responses in document order, of which there is at least one; the error statuses with their codes; and the
/// type of the error bodies.
type Responses = (Vec<Success>, Vec<(u16, Vec<ErrorCode>)>, Option<Ident>);

/// Reads the responses of the operation whose types have the prefix `owner`.
pub fn responses<'a>(node: &Node<'a>, owner: &str, derived: &mut Derived) -> Result<Responses, Problem> {
    let (mut successes, mut errors) = (Vec::new(), Vec::new());
    let (mut first, mut failures) = (None, Failures::default());
    for (status, place) in node.members()? {
        if status.starts_with("x-") {
            continue;
        }
        let response = place.resolved()?;
        if status == "default" {
            let others = node.members()?;
            let is_success = |status: &str| ["1", "2", "3"].iter().any(|first| status.starts_with(first));
            if others.iter().any(|(status, _)| is_success(status)) {
                failures.add(&response, &format!("{owner}ErrorDefault"), derived)?;
            } else {
                successes.push(success(None, ResponseContent::Whole, &response)?);
            }
            continue;
        }
        let code: u16 = match status {
            "4XX" | "5XX" => {
                if let Some(place) = response.get("x-error-codes") {
                    return Err(place.reject("error codes must not be declared for a range; declare each status"));
                }
                failures.add(&response, &format!("{owner}Error{status}"), derived)?;
                continue;
            }
            "2XX" | "3XX" => {
                let is_whole = |known: &Success| matches!(known.content, ResponseContent::Whole);
                if !successes.iter().any(is_whole) {
                    successes.push(success(None, ResponseContent::Whole, &response)?);
                }
                continue;
            }
            _ => status.parse().map_err(|_| {
                place.reject(format!(
                    "the range `{status}` is not supported; declare each status, or use `2XX` to `5XX`"
                ))
            })?,
        };
        match code {
            101 => successes.push(success(Some(code), ResponseContent::Upgraded, &response)?),
            200..=399 => {
                let content = content(&response, &format!("{owner}ResponseBody"), &mut first, derived)?;
                successes.push(success(Some(code), content, &response)?);
            }
            400..=599 => {
                let mut codes = Vec::new();
                for item in response.items_of("x-error-codes")? {
                    codes.push(ErrorCode {
                        code: item.text()?.to_string(),
                        ident: names::any_variant_name(item.text()?, &item),
                        status: code,
                        pointer: item.pointer().to_string(),
                    });
                }
                errors.push((code, codes));
                failures.add(&response, &format!("{owner}Error{status}"), derived)?;
            }
            _ => {
                return Err(place.reject(format!(
                    "the status {code} is not supported; use 101, 2xx, 3xx, 4xx or 5xx"
                )));
            }
        }
    }
    if successes.is_empty() {
        // The document leaves the success open, as with `default`.
        successes.push(success(None, ResponseContent::Whole, node)?);
    }
    Ok((successes, errors, failures.ty(node, owner, derived)?))
}

/// The types of an operation's error bodies.
#[derive(Default)]
struct Failures<'a> {
    first: Option<Node<'a>>,
    all: Vec<(Ident, Node<'a>)>,
}

impl<'a> Failures<'a> {
    /// Adds an error response. Those without a JSON body are ignored, because their format is up to the server.
    fn add(&mut self, response: &Node<'a>, proposed: &str, derived: &mut Derived) -> Result<(), Problem> {
        if let ResponseContent::Json(ident, _) = content(response, proposed, &mut self.first, derived)?
            && let Some(schema) = &self.first
            && !self.all.iter().any(|(known, _)| *known == ident)
        {
            self.all.push((ident, schema.clone()));
        }
        Ok(())
    }

    /// The type of all error bodies: a union if there are several, because Dropshot declares one schema for all errors.
    fn ty(self, node: &Node<'a>, owner: &str, derived: &mut Derived) -> Result<Option<Ident>, Problem> {
        let [(first, _), _, ..] = self.all.as_slice() else {
            return Ok(self.all.into_iter().next().map(|(ident, _)| ident));
        };
        let name = names::derived_name(&format!("{owner}Error"), node);
        let mut refers_to = Vec::new();
        for (_, schema) in &self.all {
            embed::references(schema, &mut refers_to)?;
        }
        let schemas = self.all.iter().map(|(_, schema)| schema.value());
        let one_of: Value = schemas.map(embed::embedded).collect();
        let alternatives = self.all.iter().map(|(ident, _)| {
            let content = Type::Named(ident.clone());
            Alternative::new(ident.clone(), ident.unraw().to_string(), Some(content))
        });
        let shape = Shape::Union(Union {
            tagging: Tagging::Value { exclusive: false },
            alternatives: alternatives.collect(),
        });
        let ident = names::type_name(&name, node)?;
        derived.push(TypeDefinition {
            docs: format!("An error body: `{}` or another type.", first.unraw()),
            schema: json!({ "oneOf": one_of }),
            refers_to,
            ..TypeDefinition::new(&name, ident.clone(), shape, node.pointer())
        });
        Ok(Some(ident))
    }
}

/// The content of a response. A schema equal to `first`, that of an earlier response, shares its type.
fn content<'a>(
    node: &Node<'a>,
    proposed: &str,
    first: &mut Option<Node<'a>>,
    derived: &mut Derived,
) -> Result<ResponseContent, Problem> {
    let Some(content) = node.get("content") else {
        return Ok(ResponseContent::Empty);
    };
    match content.members()?.as_slice() {
        [(media_type, media)] if is_json(media_type) => {
            let schema = media.need("schema")?;
            let same = first.take().filter(|first| first.value() == schema.value());
            let schema = first.insert(same.unwrap_or(schema));
            let ident = schema::named_type(schema, proposed, derived)?;
            Ok(ResponseContent::Json(ident, (*media_type).to_string()))
        }
        [(media_type, _)] => Ok(ResponseContent::Bytes((*media_type).to_string())),
        _ => Err(content.reject(super::operation::CHOOSE)),
    }
}

fn success(status: Option<u16>, content: ResponseContent, node: &Node<'_>) -> Result<Success, Problem> {
    let mut headers: Vec<ResponseHeader> = Vec::new();
    for (name, place) in node.members_of("headers")? {
        let header = place.resolved()?;
        // A handler that builds the response sets its headers, too.
        let is_whole = matches!(content, ResponseContent::Whole);
        let is_supplied = is_whole || header.text_of("x-supplied-by")?.is_some();
        let ident = match names::field_name(name, &place) {
            // The field `body` already exists.
            ident if ident == "body" => quote::format_ident!("body_header"),
            ident => ident,
        };
        headers.push(ResponseHeader {
            name: name.to_string(),
            ident,
            docs: header.description()?,
            required: header.flag("required")?,
            schema: match header.get("schema") {
                Some(schema) => embed::alone(&schema, &[])?,
                // The handler formats the value itself.
                None => json!({ "type": "string" }),
            },
            is_supplied,
        });
    }
    let handlers = headers.iter_mut().filter(|header| !header.is_supplied);
    names::distinct(handlers.map(|header| &mut header.ident));
    Ok(Success {
        status,
        description: node.description()?,
        content,
        headers,
    })
}
