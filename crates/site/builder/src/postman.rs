//! Builds a Postman collection of the document: a folder for each tag, a request for each operation, and a script that signs all of them.

use serde_json::{Value, json};

use crate::Document;
use crate::document::{Operation, text};

/// The script that signs every request before it is sent.
const SIGN: &str = include_str!("../assets/postman-sign.js");

/// Members of bodies that are replaced by variables, because the example's values do not exist.
const REPLACED_MEMBERS: [&str; 2] = ["branch_code", "external_id"];

/// Builds the collection in format 2.1.
pub fn collection(document: &Document) -> Value {
    let folders: Vec<Value> = document
        .tags()
        .into_iter()
        .filter(|(_, _, operations)| !operations.is_empty())
        .map(|(name, description, operations)| {
            let requests: Vec<Value> = operations
                .into_iter()
                .map(|operation| item(document, operation))
                .collect();
            json!({ "name": name, "description": description, "item": requests })
        })
        .collect();
    json!({
        "info": {
            "name": document.title(),
            "version": document.version(),
            "description": "Set base_url, key_id and secret in an environment, with the secret as a secret variable. Each request is \
                signed when it is sent. Run the requests from top to bottom: later ones take their ids from earlier responses.",
            "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json",
        },
        "auth": { "type": "noauth" },
        "event": [{ "listen": "prerequest", "script": { "type": "text/javascript", "exec": lines(SIGN) } }],
        "variable": [
            { "key": "base_url", "value": "http://127.0.0.1:8080" },
            { "key": "key_id", "value": "" },
            { "key": "secret", "value": "" },
        ],
        "item": folders,
    })
}

fn lines(script: &str) -> Vec<&str> {
    script.lines().collect()
}

fn item(document: &Document, operation: Operation<'_>) -> Value {
    let body = document.example_body(operation);
    let mut request = json!({
        "method": operation.method,
        "description": text(operation.value.get("description")),
        "header": [],
        "url": url(document, operation),
    });
    if !body.is_null() {
        request["header"] = json!([{ "key": "Content-Type", "value": "application/json" }]);
        let mut body = body.clone();
        for name in REPLACED_MEMBERS {
            if let Some(member) = body.get_mut(name) {
                *member = json!(format!("{{{{{name}}}}}"));
            }
        }
        let raw = serde_json::to_string_pretty(&body).unwrap_or_default();
        request["body"] = json!({ "mode": "raw", "raw": raw, "options": { "raw": { "language": "json" } } });
    }
    json!({
        "name": operation.summary(),
        "event": [{ "listen": "test", "script": { "type": "text/javascript", "exec": test(document, operation) } }],
        "request": request,
    })
}

/// Returns the URL: variables in the path are variables of the collection, and query parameters are included but disabled.
fn url(document: &Document, operation: Operation<'_>) -> Value {
    let path = operation.path.replace('{', "{{").replace('}', "}}");
    let parameters = document.parameters(operation).into_iter();
    let query: Vec<Value> = parameters
        .filter(|parameter| text(parameter.get("in")) == "query")
        .map(|parameter| {
            let example = parameter.get("example").unwrap_or(&Value::Null);
            json!({
                "key": text(parameter.get("name")),
                "value": example.as_str().map_or_else(|| example.to_string(), encoded),
                "description": text(parameter.get("description")),
                "disabled": true,
            })
        })
        .collect();
    json!({
        "raw": format!("{{{{base_url}}}}{path}"),
        "host": ["{{base_url}}"],
        "path": path.split('/').filter(|segment| !segment.is_empty()).collect::<Vec<_>>(),
        "query": query,
    })
}

/// Encodes a plus in a query value, because it would be read as a space.
fn encoded(value: &str) -> String {
    value.replace('+', "%2B")
}

/// Returns the test script: it checks the response and sets the variables for later requests.
fn test(document: &Document, operation: Operation<'_>) -> Vec<String> {
    let successes: Vec<&str> = document
        .responses(operation)
        .into_iter()
        .map(|(status, _)| status)
        .filter(|status| status.starts_with('2'))
        .collect();
    let mut lines = vec![
        format!(
            "pm.test('responds with {}', () => pm.expect(pm.response.code).to.be.oneOf([{}]));",
            successes.join(" or "),
            successes.join(", ")
        ),
        "pm.test('has a request ID', () => pm.expect(pm.response.headers.has('X-Request-Id')).to.be.true);".to_owned(),
    ];
    let mut variables: Vec<(String, &str)> = document
        .operations()
        .into_iter()
        .filter_map(|other| {
            let (before, rest) = other.path.split_once("/{")?;
            let (variable, _) = rest.split_once('}')?;
            (before == operation.path).then(|| (variable.to_owned(), "id"))
        })
        .collect();
    variables.dedup();
    if operation.path.ends_with("/branches") {
        variables.push(("branch_code".to_owned(), "code"));
    }
    if !variables.is_empty() {
        lines.push("const listed = pm.response.code === 200 ? pm.response.json().data : [];".to_owned());
        lines.push("const first = listed.find(({ status }) => status === 'published') || listed[0];".to_owned());
        for (variable, member) in variables {
            lines.push(format!(
                "if (first) pm.collectionVariables.set('{variable}', first.{member});"
            ));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::Sources;

    #[test]
    fn the_collection_is_up_to_date() {
        let sources = Sources::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")).unwrap();
        let committed: serde_json::Value = serde_json::from_str(sources.postman()).unwrap();
        let expected = super::collection(&sources.document);
        assert!(
            committed == expected,
            "the Postman collection is out of date; run `cargo postman`"
        );
    }
}
