//! Responses: successes, and what is said of errors.

use proc_macro2::Ident;

use super::names;
use super::schema::{self, Derived};
use crate::Problem;
use crate::model::{ErrorCode, ResponseContent, ResponseHeader, Success};
use crate::node::Node;

/// The responses of an operation.
pub struct Responses {
    /// Success responses, in the document's order; never empty.
    pub successes: Vec<Success>,
    /// Error statuses with their codes.
    pub errors: Vec<(u16, Vec<ErrorCode>)>,
    /// The types of error bodies.
    pub error_types: Vec<Ident>,
    /// Whether all errors have the same kind of body.
    pub errors_alike: bool,
    last_error: Option<String>,
}

/// Reads the responses of the operation whose types begin with `owner`.
///
/// # Errors
/// What cannot be generated, with its place.
pub fn responses<'a>(node: &Node<'a>, owner: &str, derived: &mut Derived) -> Result<Responses, Problem> {
    let mut all = Responses {
        successes: Vec::new(),
        errors: Vec::new(),
        error_types: Vec::new(),
        errors_alike: true,
        last_error: None,
    };
    let mut first = None;
    for (status, place) in node.members()? {
        if status.starts_with("x-") {
            continue;
        }
        let response = place.resolved()?;
        if status == "default" {
            let others = node.members()?;
            let is_success = |status: &str| ["1", "2", "3"].iter().any(|first| status.starts_with(first));
            if others.iter().any(|(status, _)| is_success(status)) {
                let content = content(&response, &format!("{owner}ErrorDefault"), &mut None, derived)?;
                all.error_type(content);
            } else {
                all.successes.push(success(None, ResponseContent::Whole, &response)?);
            }
            continue;
        }
        let code: u16 = match status {
            "4XX" | "5XX" => {
                if let Some(place) = response.get("x-error-codes") {
                    return Err(place.refuse("a code comes with one status: name each status"));
                }
                let content = content(&response, &format!("{owner}Error{status}"), &mut None, derived)?;
                all.error_type(content);
                continue;
            }
            _ => status.parse().map_err(|_| {
                place.refuse(format!(
                    "`{status}`: name each status; of ranges, only `4XX` and `5XX` are supported"
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
                            ident: names::variant_name(item.text()?, &item)?,
                            status: code,
                            pointer: item.pointer().to_string(),
                        });
                    }
                }
                all.errors.push((code, codes));
                let content = content(&response, &format!("{owner}Error{status}"), &mut None, derived)?;
                all.error_type(content);
            }
            _ => {
                return Err(place.refuse(format!(
                    "status {code} is not supported; Dropshot answers with 101, 2xx, 3xx, 4xx and 5xx"
                )));
            }
        }
    }
    if all.successes.is_empty() {
        return Err(node.refuse("an operation needs a success response"));
    }
    Ok(all)
}

impl Responses {
    /// An error without a body, or with one that is not JSON, is the server's own affair.
    fn error_type(&mut self, content: ResponseContent) {
        let shape = content.shape();
        self.errors_alike &= self.last_error.as_ref().is_none_or(|last| *last == shape);
        self.last_error = Some(shape);
        if let ResponseContent::Json(ident, _) = content
            && !self.error_types.contains(&ident)
        {
            self.error_types.push(ident);
        }
    }
}

/// What a response holds. `first` is the schema that came before, which another of the same wording shares.
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
        _ => Err(content.refuse("a response needs exactly one media type")),
    }
}

/// Whether a media type is JSON, whatever it is called and its parameters are.
pub fn is_json(media_type: &str) -> bool {
    let name = media_type.split(';').next().unwrap_or_default().trim().to_lowercase();
    name == "application/json" || name.starts_with("application/") && name.ends_with("+json")
}

fn success(status: Option<u16>, content: ResponseContent, node: &Node<'_>) -> Result<Success, Problem> {
    let mut headers: Vec<ResponseHeader> = Vec::new();
    if let Some(list) = node.get("headers") {
        for (name, place) in list.members()? {
            let header = place.resolved()?;
            if header.text_of("x-supplied-by")?.is_some() {
                continue;
            }
            let ident = names::field_name(name, &place)?;
            if ident == "body" {
                return Err(place.refuse(format!("the header `{name}` has the name of the body's field")));
            }
            headers.push(ResponseHeader {
                name: name.to_string(),
                ident,
                docs: schema::docs(&header)?,
                required: header.flag("required")?,
            });
        }
        names::distinct(
            headers.iter().map(|header| (header.name.as_str(), &header.ident)),
            &list,
        )?;
    }
    Ok(Success {
        status,
        description: schema::docs(node)?,
        content,
        headers,
    })
}
