//! An operation called without Dropshot's server: its arguments are read from a request that something else has taken in.
//!
//! Generated with `--dispatch calls`. What is refused, and in which words, is the same as through Dropshot's extractors.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, header};
use serde::de::value::{Error as TextError, MapDeserializer};
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Visitor};

use crate::json::{self, JsonRefusal};

/// What the arguments of an operation are read from.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The path's variables, by the names that the template gives them.
    pub variables: Vec<(&'static str, String)>,
    /// The query's parameters, decoded; each name once, but for lists.
    pub query: Vec<(String, String)>,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

/// Why an argument cannot be read; each is a 400.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A parameter in path, query or header; the message names it.
    Parameter(String),
    /// The body is of a kind that the operation does not take.
    ContentType(String),
    /// The body is no such document.
    Body(JsonRefusal),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Parameter(message) => f.write_str(message),
            Refusal::ContentType(message) => write!(f, "{message}; send the header Content-Type: application/json"),
            Refusal::Body(JsonRefusal {
                path,
                reason,
                line,
                column,
            }) => {
                let path = if path.is_empty() {
                    String::new()
                } else {
                    format!("{path}: ")
                };
                // In brackets the position does not run into the sentence before it.
                write!(f, "body: {path}{reason} (line {line}, column {column})")
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// Reads the path's variables.
///
/// # Errors
/// For a variable that is not what the document says.
pub fn path<T: DeserializeOwned>(request: &Request) -> Result<T, Refusal> {
    parameters(request.variables.iter().map(|(name, value)| (*name, value.as_str())))
}

/// Reads the query's parameters.
///
/// # Errors
/// For a parameter that is missing or not what the document says.
pub fn query<T: DeserializeOwned>(request: &Request) -> Result<T, Refusal> {
    parameters(
        request
            .query
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    )
}

/// Reads the query's parameters, of which some are lists: their names occur once for each item.
///
/// # Errors
/// For a parameter that is missing or not what the document says.
pub fn list_query<T: DeserializeOwned>(request: &Request) -> Result<T, Refusal> {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(&request.query);
    serde_html_form::from_str(&query.finish()).map_err(|error| Refusal::Parameter(error.to_string()))
}

/// Reads header parameters. A value that is no text is passed over, as Dropshot does.
///
/// # Errors
/// For a header that is missing or not what the document says.
pub fn headers<T: DeserializeOwned>(request: &Request) -> Result<T, Refusal> {
    parameters(
        request
            .headers
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?))),
    )
}

/// Reads a JSON body; without a `Content-Type` it is taken for JSON.
///
/// # Errors
/// For another media type, and for a body that is not what the document says.
pub fn body<T: DeserializeOwned>(request: &Request) -> Result<T, Refusal> {
    check_json(&request.headers)?;
    json::read(&request.body).map_err(Refusal::Body)
}

/// Reads a JSON body that may be left out: no bytes are none.
///
/// # Errors
/// As [`body`]'s.
pub fn optional_body<T: DeserializeOwned>(request: &Request) -> Result<Option<T>, Refusal> {
    match request.body.is_empty() {
        true => Ok(None),
        false => body(request).map(Some),
    }
}

/// Reads a form, as parameters are read; of lists among its members, the name occurs once for each item.
///
/// # Errors
/// For another media type, and for a member that is missing or not what the document says.
pub fn form<T: DeserializeOwned>(request: &Request) -> Result<T, Refusal> {
    const FORM: &str = "application/x-www-form-urlencoded";
    let sent = request.headers.get(header::CONTENT_TYPE).map(|value| value.to_str());
    let essence = match sent {
        Some(Ok(sent)) => sent.split(';').next().unwrap_or_default().trim(),
        _ => "",
    };
    if !essence.eq_ignore_ascii_case(FORM) {
        let message = format!("the body must be a form; send the header Content-Type: {FORM}");
        return Err(Refusal::Parameter(message));
    }
    serde_html_form::from_bytes(&request.body).map_err(|error| {
        // The library does not say of which member several values are unsupported.
        let repeated = repeated(&request.body)
            .map(|name| format!(" (`{name}` was sent more than once)"))
            .unwrap_or_default();
        Refusal::Parameter(format!("{error}{repeated}"))
    })
}

/// The first member that a form has more than once.
fn repeated(form: &[u8]) -> Option<String> {
    let mut seen = std::collections::HashSet::new();
    url::form_urlencoded::parse(form)
        .map(|(name, _)| name.into_owned())
        .find(|name| !seen.insert(name.clone()))
}

fn check_json(headers: &HeaderMap) -> Result<(), Refusal> {
    const JSON: &str = "application/json";
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let sent = value
        .to_str()
        .map_err(|_| Refusal::ContentType("invalid content type: it is no text".into()))?;
    // Media types are case-insensitive; their parameters (a charset) say nothing about JSON.
    let essence = sent.split(';').next().unwrap_or_default().trim();
    let name = essence.to_ascii_lowercase();
    match name == JSON || name.starts_with("application/") && name.ends_with("+json") {
        true => Ok(()),
        false => Err(Refusal::ContentType(format!(
            "unsupported content-type: {}",
            essence.chars().take(64).collect::<String>()
        ))),
    }
}

fn parameters<'r, T: DeserializeOwned>(pairs: impl Iterator<Item = (&'r str, &'r str)>) -> Result<T, Refusal> {
    let pairs = pairs.map(|(name, value)| (name, Text(value)));
    T::deserialize(MapDeserializer::<_, TextError>::new(pairs)).map_err(|error| Refusal::Parameter(error.to_string()))
}

/// A parameter's text, read as whatever type it is wanted as.
struct Text<'r>(&'r str);

impl<'de> IntoDeserializer<'de, TextError> for Text<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! parsed {
    ($($method:ident => $visit:ident,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
            match self.0.parse() {
                Ok(value) => visitor.$visit(value),
                Err(_) => visitor.visit_borrowed_str(self.0),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Text<'de> {
    type Error = TextError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_borrowed_str(self.0)
    }

    parsed! {
        deserialize_bool => visit_bool,
        deserialize_i8 => visit_i8,
        deserialize_i16 => visit_i16,
        deserialize_i32 => visit_i32,
        deserialize_i64 => visit_i64,
        deserialize_u8 => visit_u8,
        deserialize_u16 => visit_u16,
        deserialize_u32 => visit_u32,
        deserialize_u64 => visit_u64,
        deserialize_f32 => visit_f32,
        deserialize_f64 => visit_f64,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, TextError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TextError> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    serde::forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Pets {
        name: String,
        #[serde(default)]
        limit: Option<u8>,
        #[serde(default)]
        alive: bool,
    }

    fn request(query: &[(&str, &str)]) -> Request {
        Request {
            query: query
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
            ..Request::default()
        }
    }

    fn sent(body: &'static [u8]) -> Request {
        Request {
            body: Bytes::from_static(body),
            ..Request::default()
        }
    }

    #[test]
    fn parameters_are_read_as_the_types_they_are_wanted_as() {
        let pets: Pets = query(&request(&[("name", "7"), ("limit", "5"), ("alive", "true")])).unwrap();
        let expected = Pets {
            name: "7".into(),
            limit: Some(5),
            alive: true,
        };
        assert_eq!(pets, expected);
        let refused = query::<Pets>(&request(&[("limit", "5")])).unwrap_err();
        assert_eq!(refused.to_string(), "missing field `name`");
        let refused = query::<Pets>(&request(&[("name", "a"), ("limit", "many")])).unwrap_err();
        assert_eq!(refused.to_string(), "invalid type: string \"many\", expected u8");
    }

    #[test]
    fn a_body_of_another_kind_is_refused_by_name() {
        let mut request = sent(b"{\"name\":\"a\"}");
        for taken in [
            None,
            Some("application/json"),
            Some("Application/JSON; charset=utf-8"),
            Some("application/vnd.pets+json"),
        ] {
            request.headers.clear();
            if let Some(value) = taken {
                request.headers.insert(header::CONTENT_TYPE, value.parse().unwrap());
            }
            assert!(body::<Pets>(&request).is_ok(), "{taken:?}");
        }
        request
            .headers
            .insert(header::CONTENT_TYPE, "text/plain".parse().unwrap());
        assert_eq!(
            body::<Pets>(&request).unwrap_err().to_string(),
            "unsupported content-type: text/plain; send the header Content-Type: application/json"
        );
    }

    #[test]
    fn a_form_is_read_as_parameters_are() {
        let mut request = sent(b"name=a+b%26&limit=5");
        assert_eq!(
            form::<Pets>(&request).unwrap_err().to_string(),
            "the body must be a form; send the header Content-Type: application/x-www-form-urlencoded"
        );
        let form_type = "application/x-www-form-urlencoded; charset=utf-8";
        request.headers.insert(header::CONTENT_TYPE, form_type.parse().unwrap());
        let pets: Pets = form(&request).unwrap();
        assert_eq!((pets.name.as_str(), pets.limit), ("a b&", Some(5)));
        request.body = Bytes::from_static(b"name=a&name=b");
        assert_eq!(
            form::<Pets>(&request).unwrap_err().to_string(),
            "unsupported value (`name` was sent more than once)"
        );
    }

    #[test]
    fn a_refused_body_names_its_place() {
        let request = sent(b"{\"name\":5}");
        assert_eq!(
            body::<Pets>(&request).unwrap_err().to_string(),
            "body: name: invalid type: integer `5`, expected a string (line 1, column 9)"
        );
    }
}
