//! The types of the document, and the parameters of its operations.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use serde_json::{Map, Value, json};

use super::{derived, docs, fields, imports};
use crate::model::{Api, Field, Operation, Shape, TypeDefinition};

pub(super) fn tokens(api: &Api) -> TokenStream {
    let definitions = api
        .types
        .iter()
        .filter(|definition| definition.in_requests || definition.in_responses)
        .map(definition);
    let parameters = api.operations.iter().map(parameters);
    let code = quote! { #(#definitions)* #(#parameters)* };
    let imports = imports(
        &[
            "chrono::DateTime",
            "chrono::Utc",
            "codegen_runtime::ArrayRules",
            "codegen_runtime::ExactNumber",
            "codegen_runtime::MapRules",
            "codegen_runtime::NumberRules",
            "codegen_runtime::StringRules",
            "codegen_runtime::body",
            "codegen_runtime::param",
            "codegen_runtime::schema",
            "rust_decimal::Decimal",
            "schemars::JsonSchema",
            "schemars::r#gen::SchemaGenerator",
            "schemars::schema::Schema",
            "serde::Deserialize",
            "serde::Deserializer",
            "serde::Serialize",
        ],
        &code,
    );
    quote! { #imports #code }
}

fn definition(definition: &TypeDefinition) -> TokenStream {
    let TypeDefinition { name, ident, .. } = definition;
    let about = docs(&definition.docs);
    let deserialize = definition.in_requests.then(|| quote! { Deserialize, });
    let serialize = definition.in_responses.then(|| quote! { Serialize, });
    let body = match &definition.shape {
        Shape::Struct(members) => {
            let (members, readers) = members_of(ident, members, definition.in_requests, definition.in_responses, false);
            quote! {
                #about
                #[derive(Clone, Debug, PartialEq, #deserialize #serialize)]
                pub struct #ident { #(#members),* }
                #readers
            }
        }
        Shape::Enum(variants) => {
            let values: Vec<_> = variants.iter().map(|(value, _)| value).collect();
            let idents: Vec<_> = variants.iter().map(|(_, ident)| ident).collect();
            let abouts = values.iter().map(|value| format!(" `{value}`"));
            quote! {
                #about
                #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, #deserialize #serialize)]
                pub enum #ident {
                    #(#[doc = #abouts] #[serde(rename = #values)] #idents,)*
                }

                impl #ident {
                    /// All values as sent.
                    pub const VALUES: &'static [&'static str] = &[#(#values),*];

                    /// The value as sent.
                    pub const fn as_str(self) -> &'static str {
                        match self { #(#ident::#idents => #values,)* }
                    }

                    /// Reads the value as sent.
                    pub fn parse(value: &str) -> Option<Self> {
                        match value {
                            #(#values => Some(#ident::#idents),)*
                            _ => None,
                        }
                    }
                }
            }
        }
        Shape::Alias(ty) => {
            let ty = fields::rust_type(ty);
            return quote! { #about pub type #ident = #ty; };
        }
    };
    let schema = json_schema(ident, name, &definition.schema, &definition.refers_to);
    quote! { #body #schema }
}

/// A type's schema is the document's own, and the schemas it refers to come with it.
fn json_schema(ident: &Ident, name: &str, schema: &Value, refers_to: &[Ident]) -> TokenStream {
    let json = schema.to_string();
    let generator = if refers_to.is_empty() {
        quote! { _ }
    } else {
        quote! { generator }
    };
    quote! {
        impl JsonSchema for #ident {
            fn schema_name() -> String {
                #name.to_string()
            }

            fn json_schema(#generator: &mut SchemaGenerator) -> Schema {
                #(schema::register::<#refers_to>(generator);)*
                schema::embedded(#json)
            }
        }
    }
}

fn parameters(operation: &Operation) -> TokenStream {
    let groups = [
        (&operation.path_parameters, "Path", "path"),
        (&operation.query_parameters, "Query", "query"),
        (&operation.header_parameters, "Headers", "header"),
    ];
    let all = groups
        .into_iter()
        .filter(|(parameters, ..)| !parameters.is_empty())
        .map(|(parameters, suffix, what)| {
            let ident = derived(&operation.id, suffix);
            let about = docs(&format!("The {what} parameters of `{}`.", operation.id));
            let (members, readers) = members_of(&ident, parameters, true, false, true);
            let schema = json_schema(
                &ident,
                &ident.to_string(),
                &parameters_schema(parameters),
                &referred(parameters),
            );
            quote! {
                #about
                #[derive(Clone, Debug, PartialEq, Deserialize)]
                pub struct #ident { #(#members),* }
                #readers
                #schema
            }
        });
    quote! { #(#all)* }
}

fn referred(parameters: &[Field]) -> Vec<Ident> {
    let mut all = Vec::new();
    for parameter in parameters {
        if let crate::model::Type::Named(ident) = &parameter.ty
            && !all.contains(ident)
        {
            all.push(ident.clone());
        }
    }
    all
}

fn parameters_schema(parameters: &[Field]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for parameter in parameters {
        let mut schema = parameter.schema.clone();
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
    json!({ "type": "object", "properties": properties, "required": required })
}

/// The members of a struct, and the module of functions that read them.
fn members_of(
    owner: &Ident,
    all: &[Field],
    read: bool,
    write: bool,
    parameters: bool,
) -> (Vec<TokenStream>, TokenStream) {
    let module = format_ident!(
        "{}_reading",
        heck::ToSnakeCase::to_snake_case(owner.to_string().as_str())
    );
    let mut members = Vec::new();
    let mut readers = Vec::new();
    for field in all {
        let Field { name, ident, .. } = field;
        let about = docs(&field.docs);
        let mut ty = fields::rust_type(&field.ty);
        if field.is_option() {
            ty = quote! { Option<#ty> };
        }
        let plain = ident.to_string().trim_start_matches("r#").to_string();
        let mut attributes = Vec::new();
        if plain != *name {
            attributes.push(quote! { #[serde(rename = #name)] });
        }
        if write {
            attributes.extend(fields::write_attribute(field));
        }
        if read {
            let function = format_ident!("{}", ident);
            if let Some(reader) = fields::reader(field, parameters) {
                readers.push(quote! {
                    pub(super) fn #function<'de, D: Deserializer<'de>>(deserializer: D) -> Result<#ty, D::Error> {
                        #reader
                    }
                });
                let path = format!("{module}::{ident}");
                attributes.push(quote! { #[serde(deserialize_with = #path)] });
            }
            if let Some(default) = fields::default(field) {
                let function = format_ident!("default_{}", plain);
                readers.push(quote! { pub(super) fn #function() -> #ty { #default } });
                let path = format!("{module}::{function}");
                attributes.push(quote! { #[serde(default = #path)] });
            } else if !field.required {
                attributes.push(quote! { #[serde(default)] });
            }
        }
        members.push(quote! { #about #(#attributes)* pub #ident: #ty });
    }
    let readers = if readers.is_empty() {
        quote! {}
    } else {
        quote! { mod #module { use super::*; #(#readers)* } }
    };
    (members, readers)
}
