//! A Postman collection of the document: a folder for each tag, a request for each operation, and one script that signs all.

use serde_json::{Value, json};

use crate::document::{Operation, text};
use crate::{Document, operations};

/// Signs every request before it is sent.
const SIGN: &str = include_str!("../assets/postman-sign.js");

/// Members of bodies that are filled in when a request is sent, for an example's value is nobody's.
const FILLED: [&str; 2] = ["branch_code", "external_id"];

/// The collection, format 2.1.
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
            "description": "Set base_url, key_id and secret (in an environment, the secret as a secret variable): each request is \
                signed when it is sent. Run from top to bottom, later requests take their ids from earlier answers.",
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
    let body = operations::body(document, operation);
    let mut request = json!({
        "method": operation.method,
        "description": text(operation.value.get("description")),
        "header": [],
        "url": url(document, operation),
    });
    if !body.is_null() {
        request["header"] = json!([{ "key": "Content-Type", "value": "application/json" }]);
        let mut body = body.clone();
        for name in FILLED {
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

/// Its address: variables of the path are the collection's, and parameters of the query are there, switched off.
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

/// A value of a query, in which a plus would be a space.
fn encoded(value: &str) -> String {
    value.replace('+', "%2B")
}

/// What is expected of its answer, and what later requests take from it.
fn test(document: &Document, operation: Operation<'_>) -> Vec<String> {
    let successes: Vec<&str> = document
        .responses(operation)
        .into_iter()
        .map(|(status, _)| status)
        .filter(|status| status.starts_with('2'))
        .collect();
    let mut lines = vec![
        format!(
            "pm.test('it answers {}', () => pm.expect(pm.response.code).to.be.oneOf([{}]));",
            successes.join(" or "),
            successes.join(", ")
        ),
        "pm.test('it has an id', () => pm.expect(pm.response.headers.has('X-Request-Id')).to.be.true);".to_owned(),
    ];
    let mut takes: Vec<(String, &str)> = document
        .operations()
        .into_iter()
        .filter_map(|other| {
            let (before, rest) = other.path.split_once("/{")?;
            let (variable, _) = rest.split_once('}')?;
            (before == operation.path).then(|| (variable.to_owned(), "id"))
        })
        .collect();
    takes.dedup();
    if operation.path.ends_with("/branches") {
        takes.push(("branch_code".to_owned(), "code"));
    }
    if !takes.is_empty() {
        lines.push("const listed = pm.response.code === 200 ? pm.response.json().data : [];".to_owned());
        lines.push("const first = listed.find(({ status }) => status === 'published') || listed[0];".to_owned());
        for (variable, member) in takes {
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
    fn the_collection_that_is_kept_is_what_the_document_says() {
        let sources = Sources::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")).unwrap();
        let kept: serde_json::Value = serde_json::from_str(sources.postman()).unwrap();
        let now = super::collection(&sources.document);
        assert!(
            kept == now,
            "the document has changed: write the collection anew with `cargo postman`"
        );
    }
}
