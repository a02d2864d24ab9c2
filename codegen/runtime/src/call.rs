//! Arguments of operations that are called without Dropshot's server.
//!
//! This module is for code generated with `--dispatch calls`. It rejects the same requests as Dropshot's extractors do,
//! but reports the place of each error, and all errors of a body or query at once.
//!
//! The file is long because the readers of paths, queries, headers and bodies share how a text becomes a value.

use std::sync::LazyLock;

use bytes::Bytes;
use http::{HeaderMap, header};
use schemars::JsonSchema;
use schemars::r#gen::SchemaSettings;
use serde::de::value::{Error as TextError, MapDeserializer};
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::validation::{Path, ValidationError, ValidationErrors};
use crate::{json, plain};

/// Permits for reading large bodies, one for every second processor. An invalid body of a megabyte can take 10 ms, in which an async
/// thread would delay all its other requests.
static LARGE_BODIES: LazyLock<Semaphore> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Semaphore::new(processors.div_ceil(2))
});

/// The parts of a request from which the arguments of an operation are read.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The path variables, by their names in the template.
    pub variables: Vec<(&'static str, String)>,
    /// The query parameters.
    pub query: Query,
    /// The headers.
    pub headers: HeaderMap,
    /// The complete body.
    pub body: Bytes,
}

/// The query parameters that could be decoded, and the errors in the others.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The decoded parameters. Only lists may repeat a name.
    pub pairs: Vec<(String, String)>,
    /// Errors found while decoding. They are reported together with those found when the parameters are read.
    pub errors: Vec<ValidationError>,
}

/// Reads the path variables.
///
/// # Errors
/// An error for each invalid variable.
pub fn path<T: DeserializeOwned + JsonSchema>(request: &Request) -> Result<T, ValidationErrors> {
    let pairs = request.variables.iter().map(|(name, value)| (*name, value.as_str()));
    parameters(pairs.collect(), &[])
}

/// Reads the query parameters.
///
/// # Errors
/// An error for each missing or invalid parameter, and those found while decoding.
pub fn query<T: DeserializeOwned + JsonSchema>(request: &Request) -> Result<T, ValidationErrors> {
    let Query { pairs, errors } = &request.query;
    parameters(as_texts(pairs), errors)
}

/// Reads the query parameters if some are lists, which repeat their names for each item.
///
/// # Errors
/// The errors of [`query`], but only the first invalid parameter.
pub fn list_query<T: DeserializeOwned>(request: &Request) -> Result<T, ValidationErrors> {
    let Query { pairs, errors } = &request.query;
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs);
    let read = serde_html_form::from_str(&query.finish());
    let read = read.map_err(|error| form_error(as_texts(pairs), &error.to_string()));
    match (ValidationErrors::of(errors.iter().cloned()), read) {
        (None, read) => read.map_err(ValidationErrors::from),
        (Some(errors), Ok(_)) => Err(errors),
        (Some(mut errors), Err(error)) => {
            errors.push(error);
            Err(errors)
        }
    }
}

/// Reads header parameters, ignoring the case of their names. Like Dropshot, ignores values that are not text. Repeated
/// headers are joined with commas (RFC 9110, 5.3).
///
/// # Errors
/// An error for each missing or invalid header.
pub fn headers<T: DeserializeOwned + JsonSchema>(request: &Request) -> Result<T, ValidationErrors> {
    let mut sent: Vec<(&'static str, String)> = Vec::new();
    for name in declared::<T>() {
        let lines = request.headers.get_all(*name).iter();
        let lines: Vec<&str> = lines.filter_map(|line| line.to_str().ok()).collect();
        if !lines.is_empty() {
            sent.push((*name, lines.join(", ")));
        }
    }
    parameters(as_texts(&sent), &[])
}

/// Reads a JSON body. A missing `Content-Type` counts as JSON. A body of more than [`json::MAX_DIAGNOSED`] bytes is read on a thread for
/// blocking work, few at a time.
///
/// # Errors
/// An error for another media type, or for each invalid value in the body.
pub async fn body<T>(request: &Request) -> Result<T, ValidationErrors>
where
    T: DeserializeOwned + JsonSchema + Send + 'static,
{
    check_json(&request.headers)?;
    let read = if request.body.len() <= json::MAX_DIAGNOSED {
        json::read(&request.body)
    } else {
        read_large(request.body.clone()).await
    };
    read.map_err(|errors| compressed(&request.headers).map_or(errors, ValidationErrors::from))
}

async fn read_large<T>(body: Bytes) -> Result<T, ValidationErrors>
where
    T: DeserializeOwned + JsonSchema + Send + 'static,
{
    // The semaphore is never closed.
    let permit = LARGE_BODIES.acquire().await.ok();
    let reading = spawn_blocking(move || {
        let read = json::read(&body);
        drop(permit);
        read
    });
    match reading.await {
        Ok(read) => read,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Reads a JSON body. If the body is invalid, `further` adds errors that the document does not describe. It is not
/// called for a valid body, which the handler checks, nor for one of more than [`json::MAX_DIAGNOSED`] bytes.
///
/// # Errors
/// The errors of [`body`], and those that `further` adds.
pub async fn body_and<T>(
    request: &Request,
    further: impl FnOnce(&serde_json::Value) -> Vec<ValidationError> + Send,
) -> Result<T, ValidationErrors>
where
    T: DeserializeOwned + JsonSchema + Send + 'static,
{
    body(request).await.map_err(|mut errors| {
        if request.body.len() <= json::MAX_DIAGNOSED
            && let Ok(document) = serde_json::from_slice(&request.body)
        {
            let others = further(&document);
            let others: Vec<ValidationError> = others.into_iter().filter(|error| !errors.has(&error.field)).collect();
            others.into_iter().for_each(|error| errors.push(error));
        }
        errors
    })
}

/// Reads an optional JSON body. An empty body counts as absent.
///
/// # Errors
/// The errors of [`body`].
pub async fn optional_body<T>(request: &Request) -> Result<Option<T>, ValidationErrors>
where
    T: DeserializeOwned + JsonSchema + Send + 'static,
{
    match request.body.is_empty() {
        true => Ok(None),
        false => body(request).await.map(Some),
    }
}

/// Reads a form like parameters. A list repeats its name for each item.
///
/// # Errors
/// An error for another media type, or for a missing or invalid member.
pub fn form<T: DeserializeOwned>(request: &Request) -> Result<T, ValidationErrors> {
    const FORM: &str = "application/x-www-form-urlencoded";
    let sent = content_type(&request.headers)?;
    if !sent.is_some_and(|sent| sent.eq_ignore_ascii_case(FORM)) {
        let message = format!("must be {FORM}, {}", is(sent));
        return Err(ValidationError::of_parameter(CONTENT_TYPE, message).into());
    }
    serde_html_form::from_bytes(&request.body).map_err(|error| {
        let pairs: Vec<_> = url::form_urlencoded::parse(&request.body).collect();
        let pairs = pairs.iter().map(|(name, value)| (&**name, &**value)).collect();
        form_error(pairs, &error.to_string()).into()
    })
}

/// Reads an optional form. An empty body counts as absent.
///
/// # Errors
/// The errors of [`form`].
pub fn optional_form<T: DeserializeOwned>(request: &Request) -> Result<Option<T>, ValidationErrors> {
    match request.body.is_empty() {
        true => Ok(None),
        false => form(request).map(Some),
    }
}

pub(crate) fn as_texts<N: AsRef<str>>(pairs: &[(N, String)]) -> Vec<(&str, &str)> {
    let texts = pairs.iter().map(|(name, value)| (name.as_ref(), value.as_str()));
    texts.collect()
}

/// Splits an error of the form reader into its place and its message. Generated readers start their messages with the
/// parameter's name; the library does not.
fn form_error(pairs: Vec<(&str, &str)>, text: &str) -> ValidationError {
    if let Some((name, problem)) = text.split_once(": ")
        && pairs.iter().any(|(known, _)| *known == name)
    {
        return ValidationError::of_parameter(name, plain::message(problem));
    }
    if let Some(name) = missing(text) {
        return ValidationError::of_parameter(name, "is missing");
    }
    // The library does not name the parameter that is repeated.
    let mut seen = std::collections::HashSet::new();
    let repeated = pairs.iter().find(|(name, _)| !seen.insert(*name));
    match repeated {
        Some((name, _)) => ValidationError::of_parameter(name, "was sent more than once; send it once"),
        None => ValidationError::in_body(&Path::default(), plain::message(text)),
    }
}

/// The name in serde's message about a missing field.
fn missing(text: &str) -> Option<&str> {
    text.strip_prefix("missing field `")?.strip_suffix('`')
}

const CONTENT_TYPE: &str = "Content-Type";

fn check_json(headers: &HeaderMap) -> Result<(), ValidationErrors> {
    const JSON: &str = "application/json";
    let Some(essence) = content_type(headers)? else {
        return Ok(());
    };
    let name = essence.to_ascii_lowercase();
    match name == JSON || name.starts_with("application/") && name.ends_with("+json") {
        true => Ok(()),
        false => {
            let message = format!("must be {JSON}, {}", is(Some(essence)));
            Err(ValidationError::of_parameter(CONTENT_TYPE, message).into())
        }
    }
}

/// The media type of the header, without parameters; a charset does not matter for JSON.
fn content_type(headers: &HeaderMap) -> Result<Option<&str>, ValidationErrors> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return Ok(None);
    };
    let sent = value
        .to_str()
        .map_err(|_| ValidationError::of_parameter(CONTENT_TYPE, "must be visible ASCII"))?;
    Ok(Some(sent.split(';').next().unwrap_or_default().trim()))
}

fn is(sent: Option<&str>) -> String {
    match sent {
        None => "is missing".to_string(),
        Some("") => "is empty".to_string(),
        Some(sent) => format!("is {}", sent.chars().take(64).collect::<String>()),
    }
}

/// The error for a compressed body, which its header declares.
fn compressed(headers: &HeaderMap) -> Option<ValidationError> {
    const NAME: &str = "Content-Encoding";
    let sent = headers.get(header::CONTENT_ENCODING)?.to_str().ok()?;
    (!sent.eq_ignore_ascii_case("identity")).then(|| {
        ValidationError::of_parameter(
            NAME,
            "compressed bodies are not accepted; send the JSON itself, without this header",
        )
    })
}

/// Reads parameters. Invalid ones are removed and the others are read again, so that all errors are found.
pub(crate) fn parameters<T: DeserializeOwned + JsonSchema>(
    mut pairs: Vec<(&str, &str)>,
    before: &[ValidationError],
) -> Result<T, ValidationErrors> {
    let mut errors = ValidationErrors::of(before.iter().cloned());
    loop {
        let texts = pairs.iter().map(|(name, value)| (*name, Text(value)));
        let error = match T::deserialize(MapDeserializer::<_, TextError>::new(texts)) {
            Ok(value) => return errors.map_or(Ok(value), Err),
            Err(error) => error.to_string(),
        };
        let wrong = error
            .split_once(": ")
            .filter(|(name, _)| pairs.iter().any(|(known, _)| known == name));
        match wrong {
            Some((name, problem)) => {
                add(
                    &mut errors,
                    ValidationError::of_parameter(name, plain::message(problem)),
                );
                pairs.retain(|(known, _)| *known != name);
            }
            None => {
                for missing in missing_parameters::<T>(&pairs, &error) {
                    add(&mut errors, missing);
                }
                return Err(errors.unwrap_or_else(|| ValidationError::of_parameter("", plain::message(&error)).into()));
            }
        }
    }
}

/// Adds an error, unless one is known for the same place.
fn add(errors: &mut Option<ValidationErrors>, error: ValidationError) {
    match errors {
        Some(errors) if errors.has(&error.field) => {}
        Some(errors) => errors.push(error),
        None => *errors = Some(error.into()),
    }
}

/// The required parameters that are missing. Those that were removed as invalid are reported here once more and ignored
/// by `add`.
fn missing_parameters<T: JsonSchema>(pairs: &[(&str, &str)], error: &str) -> Vec<ValidationError> {
    let root = SchemaSettings::openapi3().into_generator().into_root_schema_for::<T>();
    let required = root.schema.object.map(|object| object.required).unwrap_or_default();
    let mut names: Vec<String> = required.into_iter().collect();
    names.extend(missing(error).map(str::to_string));
    names.retain(|name| !pairs.iter().any(|(known, _)| known == name));
    names.dedup();
    let missing = names
        .iter()
        .map(|name| ValidationError::of_parameter(name, "is missing"));
    missing.collect()
}

/// The names of a struct's members on the wire.
pub(crate) fn declared<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // The deserializer provides no data. It only records the names that the struct asks for.
    let _ = T::deserialize(Names(&mut names));
    names
}

struct Names<'n>(&'n mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = TextError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, TextError> {
        Err(serde::de::Error::custom("no struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TextError> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The text of a parameter, which deserializes to any scalar type.
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
