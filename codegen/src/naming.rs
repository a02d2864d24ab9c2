//! Names that the readers and the emitters share: those of operations and their types, and those that generated code
//! uses itself.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use heck::{ToSnakeCase, ToUpperCamelCase};
use proc_macro2::Ident;
use quote::format_ident;

/// The name of an operation's own type: its prefix and a suffix.
pub fn derived(id: &str, suffix: &str) -> Ident {
    format_ident!("{}{suffix}", operation_prefix(id))
}

/// The prefix of the names of an operation's own types.
pub fn operation_prefix(id: &str) -> String {
    let name = id.to_upper_camel_case();
    match name.starts_with(|first: char| first.is_ascii_digit()) {
        true => format!("N{name}"),
        false => name,
    }
}

/// The name itself, then with the numbers 2, 3 and so on.
pub fn numbered(name: String) -> impl Iterator<Item = String> {
    let numbered = name.clone();
    std::iter::once(name).chain((2..u32::MAX).map(move |count| format!("{numbered}{count}")))
}

/// The names of the variables in a path.
pub fn variables(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0))
}

/// The ID of an operation that declares none: `get_pets_by_id` for `GET /pets/{id}`.
pub fn unnamed(method: &str, path: &str) -> String {
    let mut id = method.to_string();
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        id += &format!("_{}", segment.replace('{', "_by_"));
    }
    id.to_snake_case()
}

/// The type names that come from the document, in upper camel case.
#[derive(Debug, Default)]
pub struct Names {
    /// Names of component schemas.
    pub schemas: BTreeSet<String>,
    /// Names derived from operation IDs.
    pub operations: BTreeSet<String>,
}

/// Rust names that replace those derived from the document, because another version of the API already uses them.
#[derive(Debug, Default)]
pub struct Renamed {
    /// Replacements for the names of component schemas.
    pub schemas: BTreeMap<String, String>,
    /// Replacements for operation IDs, by path and method.
    pub operations: BTreeMap<(String, String), String>,
}

/// State that all nodes of a document share.
#[derive(Debug, Default)]
pub struct Shared {
    pub(crate) names: OnceCell<Names>,
    pub(crate) renamed: Renamed,
    /// The names given to unnamed schemas, with the place of each.
    pub(crate) given: RefCell<BTreeMap<String, String>>,
}

/// A handle to [`Shared`] that several readings of a document can use.
pub type SharedNames = Rc<Shared>;

/// The suffixes of the names of an operation's own types.
pub const OPERATION_TYPES: [&str; 6] = ["Path", "Query", "Headers", "Cookies", "Form", "Response"];

/// The bare names that generated code uses, each with its full path. Names without a path are type parameters or local
/// types.
pub const USED: &[(&str, &str)] = &[
    ("A", ""),
    ("Api", ""),
    ("ApiDescription", "::dropshot::ApiDescription"),
    ("ApiDescriptionBuildErrors", "::dropshot::ApiDescriptionBuildErrors"),
    ("ApiEndpointResponse", "::dropshot::ApiEndpointResponse"),
    ("ApiError", ""),
    ("ArrayRules", "::codegen_runtime::ArrayRules"),
    ("BTreeMap", "::std::collections::BTreeMap"),
    ("Base64", "::codegen_runtime::Base64"),
    ("Body", "::dropshot::Body"),
    ("Box", "::std::boxed::Box"),
    ("Clone", "::std::clone::Clone"),
    ("Context", ""),
    ("Cookies", "::codegen_runtime::Cookies"),
    ("Copy", "::std::marker::Copy"),
    ("D", ""),
    ("DateTime", "::chrono::DateTime"),
    ("Debug", "::std::fmt::Debug"),
    ("Decimal", "::rust_decimal::Decimal"),
    ("Default", "::std::default::Default"),
    ("Deserialize", "::serde::Deserialize"),
    ("Deserializer", "::serde::Deserializer"),
    ("Dispatch", ""),
    ("EndpointTagPolicy", "::dropshot::EndpointTagPolicy"),
    ("Eq", "::std::cmp::Eq"),
    ("Err", "::std::result::Result::Err"),
    ("ErrorCode", ""),
    ("ExactNumber", "::codegen_runtime::ExactNumber"),
    ("Failure", "::codegen_runtime::Failure"),
    ("From", "::std::convert::From"),
    ("Gateway", ""),
    ("GatewayResponse", "::codegen_runtime::gateway::GatewayResponse"),
    ("Hash", "::std::hash::Hash"),
    ("Header", "::dropshot::Header"),
    ("HttpError", "::dropshot::HttpError"),
    ("HttpResponse", "::dropshot::HttpResponse"),
    ("Identified", "::codegen_runtime::Identified"),
    ("IdentifiedBody", "::codegen_runtime::IdentifiedBody"),
    ("Into", "::std::convert::Into"),
    ("JsonBody", "::codegen_runtime::JsonBody"),
    ("JsonSchema", "::schemars::JsonSchema"),
    ("ListForm", "::codegen_runtime::ListForm"),
    ("ListQuery", "::codegen_runtime::ListQuery"),
    ("MapRules", "::codegen_runtime::MapRules"),
    ("MultipartBody", "::dropshot::MultipartBody"),
    ("NaiveDate", "::chrono::NaiveDate"),
    ("None", "::std::option::Option::None"),
    ("NumberRules", "::codegen_runtime::NumberRules"),
    ("Ok", "::std::result::Result::Ok"),
    ("Option", "::std::option::Option"),
    ("Pattern", "::codegen_runtime::Pattern"),
    ("OptionalForm", "::codegen_runtime::OptionalForm"),
    ("OptionalJsonBody", "::codegen_runtime::OptionalJsonBody"),
    ("OptionalMultipart", "::codegen_runtime::OptionalMultipart"),
    ("PartialEq", "::std::cmp::PartialEq"),
    ("Path", "::dropshot::Path"),
    ("PlausibleRange", "::codegen_runtime::PlausibleRange"),
    ("Query", "::dropshot::Query"),
    ("RequestContext", "::dropshot::RequestContext"),
    ("Response", "::http::Response"),
    ("Result", "::std::result::Result"),
    ("S", ""),
    ("Schema", "::schemars::schema::Schema"),
    ("SchemaGenerator", "::schemars::r#gen::SchemaGenerator"),
    ("Serialize", "::serde::Serialize"),
    ("Serializer", "::serde::Serializer"),
    ("Some", "::std::option::Option::Some"),
    ("String", "::std::string::String"),
    ("StringRules", "::codegen_runtime::StringRules"),
    ("TypedBody", "::dropshot::TypedBody"),
    ("Unread", "::codegen_runtime::gateway::Unread"),
    ("UntypedBody", "::dropshot::UntypedBody"),
    ("Utc", "::chrono::Utc"),
    ("Vec", "::std::vec::Vec"),
    ("WebsocketUpgrade", "::dropshot::WebsocketUpgrade"),
];

/// Whether generated code uses this bare name.
pub fn is_used_by_generated_code(name: &str) -> bool {
    USED.iter().any(|(known, _)| *known == name)
}
