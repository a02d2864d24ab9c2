//! The types of the document, and of the parameters of its operations.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use serde_json::{Map, Value, json};

use super::tokens::{docs, imports, reading};
use super::{members, readers, tokens, unions};
use crate::model::{
    Api, BodyContent, Field, Form, ListStyle, Operation, Others, Shape, Struct, Type, TypeDefinition, Types,
    plausible_ranges as ranges_of,
};
use crate::naming::derived;

pub(super) fn tokens(api: &Api) -> TokenStream {
    let definitions = needed(api).into_iter().map(|it| definition(it, api));
    let parameters = api.operations.iter().map(|operation| parameters(operation, api));
    let code = quote! { #(#definitions)* #(#parameters)* };
    let imports = imports(&["body", "param", "schema", "unions"], &code);
    quote! { #imports #code }
}

/// The types that requests or responses contain, and those that only their schemas refer to, such as the parts of an
/// `allOf`.
fn needed(api: &Api) -> Vec<&TypeDefinition> {
    let is_sent = |definition: &&TypeDefinition| definition.in_requests || definition.in_responses;
    let sent = api.types.iter().filter(is_sent);
    let idents = Types::of(&api.types).reached(sent.map(|it| it.ident.clone()), TypeDefinition::used);
    let needed = api.types.iter().filter(|it| idents.contains(&it.ident));
    needed.collect()
}

fn definition(definition: &TypeDefinition, api: &Api) -> TokenStream {
    let about = docs(&definition.docs);
    let body = match &definition.shape {
        Shape::Struct(object) => structure(definition, object, api),
        Shape::Enum(of) => unions::enumeration(definition, of),
        Shape::Union(union) => unions::tokens(definition, union),
        Shape::Checked(alternatives) => unions::checked(definition, alternatives),
        Shape::Joined(parts) => unions::joined(definition, parts),
        Shape::Newtype(ty) => newtype(definition, ty),
    };
    let schema = json_schema(definition);
    quote! { #about #body #schema }
}

/// The derives of a type, which depend on the directions in which it is sent.
fn directions(definition: &TypeDefinition) -> TokenStream {
    let deserialize = definition.in_requests.then(|| quote! { Deserialize, });
    let serialize = definition.in_responses.then(|| quote! { Serialize, });
    quote! { #deserialize #serialize }
}

fn structure(definition: &TypeDefinition, object: &Struct, api: &Api) -> TokenStream {
    let ident = &definition.ident;
    let derives = directions(definition);
    let (read, write) = (definition.in_requests, definition.in_responses);
    let reject = (read && matches!(object.others, Others::Rejected)).then(|| quote! { #[serde(deny_unknown_fields)] });
    let (members, readers) = members::tokens(definition, object, api);
    let remote = read.then(|| quote! { #[serde(remote = "Self")] });
    let read = read.then(|| quote! { codegen_runtime::read_object!(#ident); });
    let write = (read.is_some() && write).then(|| quote! { codegen_runtime::write_object!(#ident); });
    let plausible = object.fields.iter().filter_map(|field| plausible_ranges(ident, field));
    quote! {
        #[derive(Clone, Debug, PartialEq, #derives)]
        #remote
        #reject
        pub struct #ident { #(#members),* }
        #read
        #write
        #(#plausible)*
        #readers
    }
}

/// The `x-plausible-range` of a member, as a constant of the struct.
fn plausible_ranges(owner: &Ident, field: &Field) -> Option<TokenStream> {
    let ranges = ranges_of(&field.schema);
    if ranges.is_empty() {
        return None;
    }
    let plain = field.ident.to_string().trim_start_matches("r#").to_uppercase();
    let name = quote::format_ident!("{plain}_PLAUSIBLE_RANGES");
    let about = format!(" The plausible ranges of `{}`, by name.", field.name);
    let rows = ranges.iter().map(|(name, minimum, maximum)| {
        let (minimum, maximum) = (tokens::decimal(*minimum), tokens::decimal(*maximum));
        quote! { PlausibleRange { name: #name, minimum: #minimum, maximum: #maximum } }
    });
    Some(quote! {
        impl #owner {
            #[doc = #about]
            pub const #name: &'static [PlausibleRange] = &[#(#rows),*];
        }
    })
}

/// A newtype, whose rules are checked when it is read.
fn newtype(definition: &TypeDefinition, ty: &Type) -> TokenStream {
    let ident = &definition.ident;
    let attribute = tokens::serialize_attribute(ty, false).filter(|_| definition.in_responses);
    let serialize = definition.in_responses.then(|| quote! { Serialize, });
    let inner = tokens::rust_type(ty);
    let reading = definition.in_requests.then(|| {
        let mut helpers = Vec::new();
        let expression = readers::value(ty, "Read_", &mut helpers)
            .unwrap_or_else(|| quote! { Deserialize::deserialize(deserializer) });
        let body = quote! {
            let value: Result<#inner, D::Error> = #expression;
            value.map(#ident)
        };
        reading(ident, &helpers, &body)
    });
    quote! {
        #[derive(Clone, Debug, PartialEq, #serialize)]
        pub struct #ident(#[doc = " The value."] #attribute pub #inner);

        impl From<#inner> for #ident {
            fn from(value: #inner) -> Self {
                #ident(value)
            }
        }

        #reading
    }
}

fn json_schema(definition: &TypeDefinition) -> TokenStream {
    let (ident, schema, refers_to) = (&definition.ident, &definition.schema, &definition.refers_to);
    if !definition.inline {
        return schema_tokens(ident, &definition.name, schema, refers_to, false);
    }
    // For an unnamed schema, Dropshot uses the type's own name as the title.
    let title = schema.get("title").and_then(Value::as_str).unwrap_or(&definition.name);
    schema_tokens(ident, title, &nullable_reference(schema), refers_to, true)
}

/// A nullable reference as schemars writes it. Dropshot adds no title to this form.
fn nullable_reference(schema: &Value) -> Value {
    let reference = schema.pointer("/allOf/0/$ref").unwrap_or(&Value::Null);
    match *schema == json!({ "nullable": true, "allOf": [{ "$ref": reference }] }) {
        true => json!({ "$ref": reference, "nullable": true }),
        false => schema.clone(),
    }
}

/// The implementation of `JsonSchema`, which returns the document's schema and registers those that it refers to.
/// Inline schemas stay inline.
fn schema_tokens(ident: &Ident, name: &str, schema: &Value, refers_to: &[Ident], inline: bool) -> TokenStream {
    let json = schema.to_string();
    let generator = match refers_to.is_empty() {
        true => quote! { _ },
        false => quote! { generator },
    };
    let referenceable = inline.then(|| {
        quote! {
            fn is_referenceable() -> bool {
                false
            }
        }
    });
    quote! {
        impl JsonSchema for #ident {
            fn schema_name() -> String {
                #name.to_string()
            }

            #referenceable

            fn json_schema(#generator: &mut SchemaGenerator) -> Schema {
                #(schema::register::<#refers_to>(generator);)*
                schema::embedded(#json)
            }
        }
    }
}

fn parameters(operation: &Operation, api: &Api) -> TokenStream {
    let all = operation.groups().map(|(parameters, what, suffix)| {
        let what = what.trim_end_matches('s');
        let ident = derived(&operation.name, suffix);
        let about = docs(&format!("The {what} parameters of `{}`.", operation.id));
        let (members, readers) = members::parameters(&ident, parameters, api);
        let pagination = operation.pagination.as_ref().filter(|_| what == "query");
        let schema = parameters_schema(parameters, what == "header", api, pagination);
        let refers_to = referred(parameters, what == "header", api);
        let schema = schema_tokens(&ident, &ident.to_string(), &schema, &refers_to, false);
        quote! {
            #about
            #[derive(Clone, Debug, PartialEq, Deserialize)]
            pub struct #ident { #(#members),* }
            #readers
            #schema
        }
    });
    let form = match operation.content() {
        Some(BodyContent::Form(of)) => Some(form(operation, of, api)),
        _ => None,
    };
    quote! { #(#all)* #form }
}

/// A form, which is read like parameters and described by the document's schema.
fn form(operation: &Operation, form: &Form, api: &Api) -> TokenStream {
    let ident = derived(&operation.name, "Form");
    let about = docs(&format!("The form of `{}`.", operation.id));
    let (members, readers) = members::parameters(&ident, &form.fields, api);
    let reject = form.closed.then(|| quote! { #[serde(deny_unknown_fields)] });
    let schema = schema_tokens(&ident, &form.name, &form.schema, &form.refers_to, form.inline);
    quote! {
        #about
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        #reject
        pub struct #ident { #(#members),* }
        #readers
        #schema
    }
}

fn referred(parameters: &[Field], is_header: bool, api: &Api) -> Vec<Ident> {
    let mut all = BTreeSet::new();
    let described = parameters.iter().filter(|it| is_described(it, is_header, api));
    described.for_each(|parameter| parameter.ty.mentioned(&mut all));
    all.retain(|ident| !api.types.iter().any(|it| it.inline && it.ident == *ident));
    all.into_iter().collect()
}

/// Whether Dropshot's document has the type of a parameter: it accepts only scalars in path and query. All others are
/// described as strings.
fn is_described(parameter: &Field, is_header: bool, api: &Api) -> bool {
    api.is_scalar_parameter(parameter) || is_header && parameter.list != Some(ListStyle::Json)
}

fn parameters_schema(parameters: &[Field], is_header: bool, api: &Api, pagination: Option<&Value>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for parameter in parameters {
        let mut schema = parameter.schema.clone();
        if !is_described(parameter, is_header, api) {
            schema = json!({ "type": "string" });
        }
        if schema.get("$ref").is_some() {
            schema = json!({ "allOf": [schema] });
        }
        if !parameter.docs.is_empty() {
            schema["description"] = Value::String(parameter.docs.clone());
        }
        properties.insert(parameter.name.clone(), schema);
        if parameter.required {
            required.push(parameter.name.clone());
        }
    }
    let mut schema = json!({ "type": "object", "properties": properties, "required": required });
    if let Some(pagination) = pagination {
        // By this extension Dropshot recognizes the parameters of a paginated list.
        schema["x-dropshot-pagination-param"] = pagination.clone();
    }
    schema
}
