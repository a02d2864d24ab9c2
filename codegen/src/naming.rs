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
    pub schemas: BTreeSet<String>,
    /// Names derived from operation IDs.
    pub operations: BTreeSet<String>,
}

/// Rust names that replace those derived from the document, because another version of the API already uses them.
#[derive(Debug, Default)]
pub struct Renamed {
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

/// The bare names that generated code uses, by the module that defines them. Those without a module are type parameters or
/// local types.
const USED: [(&str, &str); 26] = [
    ("", "A Api ApiError Context D Dispatch ErrorCode Gateway S"),
    (
        "::dropshot",
        "ApiDescription ApiDescriptionBuildErrors ApiEndpointResponse Body EndpointTagPolicy Header HttpError \
         HttpResponse MultipartBody Path Query RequestContext TypedBody UntypedBody WebsocketUpgrade",
    ),
    (
        "::codegen_runtime",
        "ArrayRules Base64 Cookies ExactNumber Failure Identified IdentifiedBody JsonBody ListForm ListQuery \
         MapRules NumberRules OptionalForm OptionalJsonBody OptionalMultipart Pattern PlausibleRange StringRules",
    ),
    ("::std::collections", "BTreeMap"),
    ("::std::boxed", "Box"),
    ("::std::clone", "Clone"),
    ("::std::marker", "Copy"),
    ("::chrono", "DateTime NaiveDate Utc"),
    ("::std::fmt", "Debug"),
    ("::rust_decimal", "Decimal"),
    ("::std::default", "Default"),
    ("::serde", "Deserialize Deserializer Serialize Serializer"),
    ("::std::cmp", "Eq PartialEq"),
    ("::std::result::Result", "Err Ok"),
    ("::std::convert", "From Into"),
    ("::codegen_runtime::gateway", "GatewayResponse Unread"),
    ("::std::hash", "Hash"),
    ("::schemars", "JsonSchema"),
    ("::std::option::Option", "None Some"),
    ("::std::option", "Option"),
    ("::http", "Response"),
    ("::std::result", "Result"),
    ("::schemars::schema", "Schema"),
    ("::schemars::r#gen", "SchemaGenerator"),
    ("::std::string", "String"),
    ("::std::vec", "Vec"),
];

/// The modules and names of [`USED`].
pub fn used() -> impl Iterator<Item = (&'static str, &'static str)> {
    let names = |(module, names): (&'static str, &'static str)| names.split(' ').map(move |name| (module, name));
    USED.into_iter().flat_map(names)
}

/// Whether generated code uses this bare name.
pub fn is_used_by_generated_code(name: &str) -> bool {
    used().any(|(_, known)| known == name)
}
