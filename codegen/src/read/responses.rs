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

/// The responses of an operation.
pub struct Responses {
    /// Success responses, in document order; never empty.
    pub successes: Vec<Success>,
    /// Error statuses with their codes.
    pub errors: Vec<(u16, Vec<ErrorCode>)>,
    /// The type of its error bodies.
    pub error_type: Option<Ident>,
}

/// Reads the responses of the operation whose types have the prefix `owner`.
///
/// # Errors
/// The first part that is not supported.
pub fn responses<'a>(node: &Node<'a>, owner: &str, derived: &mut Derived) -> Result<Responses, Problem> {
    let mut all = Responses {
        successes: Vec::new(),
        errors: Vec::new(),
        error_type: None,
    };
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
                all.successes.push(success(None, ResponseContent::Whole, &response)?);
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
                if !all.successes.iter().any(is_whole) {
                    all.successes.push(success(None, ResponseContent::Whole, &response)?);
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
            101 => all
                .successes
                .push(success(Some(code), ResponseContent::Upgraded, &response)?),
            200..=399 => {
                let content = content(&response, &format!("{owner}ResponseBody"), &mut first, derived)?;
                all.successes.push(success(Some(code), content, &response)?);
            }
            400..=599 => {
                let mut codes = Vec::new();
                if let Some(list) = response.get("x-error-codes") {
                    for item in list.items()? {
                        codes.push(ErrorCode {
                            code: item.text()?.to_string(),
                            ident: names::any_variant_name(item.text()?, &item),
                            status: code,
                            pointer: item.pointer().to_string(),
                        });
                    }
                }
                all.errors.push((code, codes));
                failures.add(&response, &format!("{owner}Error{status}"), derived)?;
            }
            _ => {
                return Err(place.reject(format!(
                    "the status {code} is not supported; use 101, 2xx, 3xx, 4xx or 5xx"
                )));
            }
        }
    }
    if all.successes.is_empty() {
        // The document leaves the success open, as with `default`.
        all.successes.push(success(None, ResponseContent::Whole, node)?);
    }
    all.error_type = failures.ty(node, owner, derived)?;
    Ok(all)
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
        let one_of: Value = self
            .all
            .iter()
            .map(|(_, schema)| embed::embedded(schema.value()))
            .collect();
        let alternatives = self.all.iter().map(|(ident, _)| Alternative {
            ident: ident.clone(),
            docs: String::new(),
            content: Some(Type::Named(ident.clone())),
            tag_field: None,
            values: vec![ident.unraw().to_string()],
        });
        let definition = TypeDefinition {
            ident: names::type_name(&name, node)?,
            docs: format!("An error body: `{}` or another type.", first.unraw()),
            shape: Shape::Union(Union {
                tagging: Tagging::Value { exclusive: false },
                alternatives: alternatives.collect(),
            }),
            schema: json!({ "oneOf": one_of }),
            refers_to,
            in_requests: false,
            in_responses: false,
            inline: true,
            pointer: node.pointer().to_string(),
            name,
        };
        let ident = definition.ident.clone();
        derived.push(definition);
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
    if let Some(list) = node.get("headers") {
        for (name, place) in list.members()? {
            let header = place.resolved()?;
            // A handler that builds the response sets its headers, too.
            let is_whole = matches!(content, ResponseContent::Whole);
            let is_supplied = is_whole || header.text_of("x-supplied-by")?.is_some();
            let mut ident = names::field_name(name, &place);
            if ident == "body" {
                // The field `body` already exists.
                ident = quote::format_ident!("body_header");
            }
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
    }
    Ok(Success {
        status,
        description: node.description()?,
        content,
        headers,
    })
}
