//! Dropshot's own document of each contract's generated trait says what the specification says, but for a declared list of
//! what Dropshot cannot say. Each entry of the list must still be needed.

#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;

use partner_api::generated::api::api_mod as partners;
use partner_api_inspector::generated::api::api_mod as inspectors;
use partner_api_tests::contract::{INSPECTORS, PARTNERS};
use serde_json::{Map, Value, json};

type Rewrite = fn(&mut Value);

/// What Dropshot 0.18 cannot say, each with the rewriting of the specification that makes both alike.
const CANNOT_SAY: &[(&str, Rewrite)] = &[
    (
        "servers, security schemes, contact, licence, external documents and extensions at the root",
        |spec| {
            let root = spec.as_object_mut().unwrap();
            for key in ["servers", "security", "externalDocs"] {
                root.remove(key);
            }
            root.retain(|key, _| !key.starts_with("x-"));
            let info = root["info"].as_object_mut().unwrap();
            info.retain(|key, _| ["title", "version"].contains(&key.as_str()));
        },
    ),
    ("whom an operation asks for", |spec| {
        each_operation(spec, |operation| {
            operation.as_object_mut().unwrap().remove("security");
        });
    }),
    ("components other than schemas", |spec| {
        inline_references(spec);
        let components = spec["components"].as_object_mut().unwrap();
        components.retain(|key, _| key == "schemas");
    }),
    ("single error statuses: it says 4XX and 5XX", |spec| {
        each_operation(spec, |operation| {
            let responses = operation["responses"].as_object_mut().unwrap();
            responses.retain(|status, _| status.starts_with('2'));
        });
    }),
    ("more than one success status: it says the first", |spec| {
        each_operation(spec, |operation| {
            let responses = operation["responses"].as_object_mut().unwrap();
            let first = responses.keys().find(|status| status.starts_with('2')).unwrap().clone();
            responses.retain(|status, _| *status == first || !status.starts_with('2'));
        });
    }),
    ("headers of a raw response", |spec| {
        each_operation(spec, |operation| {
            for response in operation["responses"].as_object_mut().unwrap().values_mut() {
                if is_raw(response) {
                    response.as_object_mut().unwrap().remove("headers");
                }
            }
        });
    }),
    ("examples and extensions of response headers", |spec| {
        each_operation(spec, |operation| {
            for response in operation["responses"].as_object_mut().unwrap().values_mut() {
                let headers = response.get_mut("headers").and_then(Value::as_object_mut);
                for header in headers.into_iter().flat_map(Map::values_mut) {
                    remove_extensions(header);
                    header.as_object_mut().unwrap().remove("example");
                }
            }
        });
    }),
    ("a media type other than JSON for a raw response", |spec| {
        each_operation(spec, |operation| {
            for response in operation["responses"].as_object_mut().unwrap().values_mut() {
                if is_raw(response) {
                    response["content"] = json!({ "*/*": { "schema": {} } });
                }
            }
        });
    }),
    ("examples of parameters and bodies", |spec| {
        each_operation(spec, remove_examples);
        // A schema's own example is said.
    }),
    ("defaults of parameters", |spec| {
        each_operation(spec, |operation| {
            for parameter in operation
                .get_mut("parameters")
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                parameter["schema"].as_object_mut().unwrap().remove("default");
            }
        });
    }),
    ("extensions of operations, bodies and responses", |spec| {
        each_operation(spec, |operation| {
            remove_extensions(operation);
            if let Some(body) = operation.get_mut("requestBody") {
                remove_extensions(body);
                body.as_object_mut().unwrap().remove("description");
            }
            for response in operation["responses"].as_object_mut().unwrap().values_mut() {
                remove_extensions(response);
            }
        });
    }),
];

/// Whether a response has a body that is no JSON.
fn is_raw(response: &Value) -> bool {
    let content = response.get("content").and_then(Value::as_object);
    content.is_some_and(|content| !content.contains_key("application/json"))
}

/// Each contract's specification, and what Dropshot makes of its trait.
fn contracts() -> [(Value, Value); 2] {
    let of_partners = |title: &str, version| {
        let description = partners::stub_api_description().unwrap();
        description.openapi(title, version).json().unwrap()
    };
    let of_inspectors = |title: &str, version| {
        let description = inspectors::stub_api_description().unwrap();
        description.openapi(title, version).json().unwrap()
    };
    [
        emitted(PARTNERS.document(), of_partners),
        emitted(INSPECTORS.document(), of_inspectors),
    ]
}

fn emitted(specification: &Value, document: impl Fn(&str, semver::Version) -> Value) -> (Value, Value) {
    let info = &specification["info"];
    let version = info["version"].as_str().unwrap().parse().unwrap();
    let mut document = document(info["title"].as_str().unwrap(), version);
    // What its 4XX and 5XX refer to.
    document["components"]
        .as_object_mut()
        .unwrap()
        .remove("responses")
        .unwrap();
    (specification.clone(), document)
}

#[test]
fn dropshots_document_equals_the_specification_under_the_declared_list() {
    for (mut rewritten, emitted) in contracts() {
        for (_, rewrite) in CANNOT_SAY {
            rewrite(&mut rewritten);
        }
        let (ours, theirs) = (normal(&rewritten), normal(&emitted));
        let mut differences = Vec::new();
        compare("#", &ours, &theirs, &mut differences);
        assert!(
            differences.is_empty(),
            "the specification {} (left) and Dropshot's document differ:\n{}",
            rewritten["info"]["title"],
            differences.join("\n")
        );
    }
}

#[test]
fn each_entry_of_the_declared_list_is_still_needed() {
    let contracts = contracts();
    for (left_out, (what, _)) in CANNOT_SAY.iter().enumerate() {
        let is_needed = contracts.iter().any(|(specification, emitted)| {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let mut rewritten = specification.clone();
                for (index, (_, rewrite)) in CANNOT_SAY.iter().enumerate() {
                    if index != left_out {
                        rewrite(&mut rewritten);
                    }
                }
                let mut differences = Vec::new();
                compare("#", &normal(&rewritten), &normal(emitted), &mut differences);
                differences.len()
            }));
            // A later rewriting may stumble over what was left: that, too, shows the entry is needed.
            result.is_err() || result.unwrap() > 0
        });
        assert!(is_needed, "no longer needed: {what}");
    }
}

/// One shape for both: errors aside, parameters and tags by name, texts without their outer blanks.
fn normal(document: &Value) -> Value {
    let mut document = document.clone();
    each_operation(&mut document, |operation| {
        let responses = operation["responses"].as_object_mut().unwrap();
        responses.retain(|status, _| !status.ends_with("XX"));
        for response in responses.values_mut() {
            response
                .as_object_mut()
                .unwrap()
                .entry("description")
                .or_insert(json!(""));
            let headers = response.get_mut("headers").and_then(Value::as_object_mut);
            for header in headers.into_iter().flat_map(Map::values_mut) {
                header.as_object_mut().unwrap().remove("style");
            }
        }
        if let Some(parameters) = operation.get_mut("parameters").and_then(Value::as_array_mut) {
            parameters.sort_by_key(|parameter| parameter["name"].to_string());
            for parameter in parameters {
                let parameter = parameter.as_object_mut().unwrap();
                parameter.retain(|_, value| *value != json!(false));
                // Dropshot says an optional parameter's schema as nullable.
                if let Some(schema) = parameter.get_mut("schema").and_then(Value::as_object_mut) {
                    schema.remove("nullable");
                    schema.remove("example");
                    schema.remove("description");
                    schema.remove("title");
                }
                parameter.remove("style");
            }
        }
        // Dropshot's title is the trait's documentation: its first line, then the rest.
        let summary = operation.as_object_mut().unwrap().remove("summary").unwrap_or_default();
        let description = operation
            .as_object_mut()
            .unwrap()
            .remove("description")
            .unwrap_or_default();
        let text = format!(
            "{} {}",
            summary.as_str().unwrap_or_default(),
            description.as_str().unwrap_or_default()
        );
        operation["description"] = json!(words(&text));
    });
    let root = document.as_object_mut().unwrap();
    let used = used_schemas(root);
    let components = root["components"].as_object_mut().unwrap();
    components["schemas"]
        .as_object_mut()
        .unwrap()
        .retain(|name, _| used.contains_key(name));
    if let Some(tags) = root.get_mut("tags").and_then(Value::as_array_mut) {
        tags.sort_by_key(|tag| tag["name"].to_string());
    }
    let mut document = Value::Object(root.clone());
    trim(&mut document);
    document
}

fn words(text: &str) -> String {
    let text: String = text.replace("```json", "").replace("```text", "").replace("```", "");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Texts by their words; names that Dropshot gives to schemas are dropped.
fn trim(value: &mut Value) {
    match value {
        Value::String(text) => *text = words(text),
        Value::Array(items) => items.iter_mut().for_each(trim),
        Value::Object(members) => {
            // `required` is a set.
            if let Some(required) = members.get_mut("required").and_then(Value::as_array_mut) {
                required.sort_by_key(ToString::to_string);
            }
            members.values_mut().for_each(trim);
        }
        _ => {}
    }
}

fn used_schemas(root: &Map<String, Value>) -> BTreeMap<String, ()> {
    let mut used = BTreeMap::new();
    let mut pending = vec![root["paths"].clone()];
    while let Some(value) = pending.pop() {
        let mut found = Vec::new();
        references(&value, &mut found);
        for name in found {
            if used.insert(name.clone(), ()).is_none() {
                pending.push(root["components"]["schemas"][&name].clone());
            }
        }
    }
    used
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if let Some(name) = members
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|r| r.strip_prefix("#/components/schemas/"))
            {
                found.push(name.to_string());
            }
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn each_operation(document: &mut Value, mut change: impl FnMut(&mut Value)) {
    for item in document["paths"].as_object_mut().unwrap().values_mut() {
        let item = item.as_object_mut().unwrap();
        for (method, operation) in item {
            if ["get", "post", "put", "delete", "patch", "head", "options"].contains(&method.as_str()) {
                change(operation);
            }
        }
    }
}

/// Puts parameters and responses where they are referred to; and a path's parameters into its operations.
fn inline_references(spec: &mut Value) {
    let components = spec["components"].clone();
    for item in spec["paths"].as_object_mut().unwrap().values_mut() {
        let shared = item.as_object_mut().unwrap().remove("parameters").unwrap_or(json!([]));
        for operation in item.as_object_mut().unwrap().values_mut() {
            let own = operation
                .as_object_mut()
                .unwrap()
                .entry("parameters")
                .or_insert(json!([]));
            own.as_array_mut().unwrap().extend(shared.as_array().unwrap().clone());
            if own.as_array().unwrap().is_empty() {
                operation.as_object_mut().unwrap().remove("parameters");
            }
        }
    }
    each_operation(spec, |operation| {
        for parameter in operation
            .get_mut("parameters")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            resolve(parameter, &components);
        }
        for response in operation["responses"].as_object_mut().unwrap().values_mut() {
            resolve(response, &components);
            let headers = response.get_mut("headers").and_then(Value::as_object_mut);
            for header in headers.into_iter().flat_map(Map::values_mut) {
                resolve(header, &components);
            }
        }
    });
}

fn resolve(value: &mut Value, components: &Value) {
    if let Some(place) = value
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|r| r.strip_prefix("#/components"))
    {
        *value = components.pointer(place).unwrap().clone();
    }
}

fn remove_examples(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("example");
            members.remove("examples");
            members.values_mut().for_each(remove_examples);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_examples),
        _ => {}
    }
}

fn remove_extensions(value: &mut Value) {
    value.as_object_mut().unwrap().retain(|key, _| !key.starts_with("x-"));
}

fn compare(place: &str, ours: &Value, theirs: &Value, differences: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, value) in ours {
                match theirs.get(key) {
                    Some(other) => compare(&format!("{place}/{key}"), value, other, differences),
                    None => differences.push(format!("{place}/{key}: only in the specification: {value}")),
                }
            }
            for (key, value) in theirs.iter().filter(|(key, _)| !ours.contains_key(*key)) {
                differences.push(format!("{place}/{key}: only in Dropshot's: {value}"));
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (index, (one, other)) in ours.iter().zip(theirs).enumerate() {
                compare(&format!("{place}/{index}"), one, other, differences);
            }
        }
        (Value::Number(one), Value::Number(other)) if one.as_f64() == other.as_f64() => {}
        (one, other) if one == other => {}
        (one, other) => differences.push(format!("{place}: {one} ≠ {other}")),
    }
}
