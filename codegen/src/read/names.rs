//! Names in Rust for names in the document.

use heck::{ToSnakeCase, ToUpperCamelCase};
use proc_macro2::{Ident, Span};

use crate::Problem;
use crate::node::Node;

/// Names that generated files use themselves: a schema of the same name would stand in their way.
const TAKEN: [&str; 56] = [
    "Api",
    "ApiDescription",
    "ApiDescriptionBuildErrors",
    "ApiEndpointResponse",
    "ApiError",
    "ArrayRules",
    "Base64",
    "Body",
    "Box",
    "Clone",
    "Context",
    "Copy",
    "DateTime",
    "Debug",
    "Decimal",
    "Deserialize",
    "Deserializer",
    "Dispatch",
    "EndpointTagPolicy",
    "Eq",
    "Err",
    "ErrorCode",
    "ExactNumber",
    "Fn",
    "From",
    "Hash",
    "Header",
    "HttpError",
    "HttpResponse",
    "Into",
    "Iterator",
    "JsonBody",
    "JsonSchema",
    "MapRules",
    "NaiveDate",
    "None",
    "NumberRules",
    "Ok",
    "Option",
    "PartialEq",
    "Path",
    "Query",
    "RequestContext",
    "Response",
    "Result",
    "Schema",
    "SchemaGenerator",
    "Send",
    "Serialize",
    "Serializer",
    "Some",
    "String",
    "StringRules",
    "UntypedBody",
    "Utc",
    "Vec",
];

/// A type's name.
///
/// # Errors
/// When nothing of the name can stand in Rust, or generated code uses it itself.
pub fn type_name(name: &str, node: &Node<'_>) -> Result<Ident, Problem> {
    let ident = identifier(&name.to_upper_camel_case(), name, true, node)?;
    if TAKEN.contains(&ident.to_string().as_str()) {
        return Err(node.refuse(format!(
            "generated code uses the name `{ident}` itself; rename the schema"
        )));
    }
    Ok(ident)
}

/// A field's, function's or module's name; keywords become raw identifiers.
///
/// # Errors
/// When nothing of the name can stand in Rust.
pub fn field_name(name: &str, node: &Node<'_>) -> Result<Ident, Problem> {
    identifier(&name.to_snake_case(), name, false, node)
}

/// The name of an operation's function: Dropshot's macro takes no raw identifiers.
///
/// # Errors
/// When nothing of the name can stand in Rust.
pub fn function_name(name: &str, node: &Node<'_>) -> Result<Ident, Problem> {
    let ident = field_name(name, node)?;
    match ident.to_string().strip_prefix("r#") {
        Some(keyword) => identifier(&format!("{keyword}_"), name, false, node),
        None => Ok(ident),
    }
}

/// An enumeration variant's name.
///
/// # Errors
/// When nothing of the name can stand in Rust.
pub fn variant_name(value: &str, node: &Node<'_>) -> Result<Ident, Problem> {
    identifier(&value.to_upper_camel_case(), value, true, node)
}

fn identifier(text: &str, original: &str, is_type: bool, node: &Node<'_>) -> Result<Ident, Problem> {
    let text = match text.chars().next() {
        Some(first) if first.is_ascii_digit() => format!("{}{text}", if is_type { 'N' } else { 'n' }),
        _ => text.to_string(),
    };
    if syn::parse_str::<Ident>(&text).is_ok() {
        return Ok(Ident::new(&text, Span::call_site()));
    }
    // `self`, `Self`, `super` and `crate` cannot even be raw.
    for candidate in [format!("r#{text}"), format!("{text}_")] {
        if let Ok(ident) = syn::parse_str::<Ident>(&candidate) {
            return Ok(ident);
        }
    }
    Err(node.refuse(format!(
        "no Rust name can be made of `{original}`; use letters, digits and underscores"
    )))
}

/// Refuses two names that become one in Rust.
///
/// # Errors
/// Names both.
pub fn distinct<'n>(pairs: impl Iterator<Item = (&'n str, &'n Ident)>, node: &Node<'_>) -> Result<(), Problem> {
    let mut seen: Vec<(&str, &Ident)> = Vec::new();
    for (name, ident) in pairs {
        if let Some((other, _)) = seen.iter().find(|(_, known)| *known == ident) {
            return Err(node.refuse(format!("`{other}` and `{name}` are both `{ident}` in Rust; rename one")));
        }
        seen.push((name, ident));
    }
    Ok(())
}
