//! Operations, their parameters and their request bodies.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Comparison, Direction, keywords};
use crate::consistency::METHODS;
use crate::document::Node;

/// Identifies an operation by its path template, with empty parameter names, and its method.
type OperationKey = (String, &'static str);

/// Identifies a parameter by its location, and its name or its position in the path.
type ParameterKey = (String, String);

/// An operation and its path item.
struct Operation<'a> {
    template: &'a str,
    item: Node<'a>,
    node: Node<'a>,
}

impl Comparison {
    pub(super) fn operations(&mut self, base: &Node<'_>, working: &Node<'_>) {
        let (released, now) = (operations(base), operations(working));
        for (key, was) in &released {
            match now.get(key) {
                Some(is) => {
                    self.operation(was, is);
                    let effective = |root: &Node<'_>, operation: &Operation<'_>| {
                        operation.node.raw("security").or(root.raw("security")).cloned()
                    };
                    let (before, after) = (effective(base, was), effective(working, is));
                    if before != after {
                        let what = format!(
                            "the callers it admits changed {}",
                            keywords::step(before.as_ref(), after.as_ref())
                        );
                        self.breaking(is.node.below("security"), what);
                    }
                }
                None => self.breaking(
                    &was.node.pointer,
                    format!("the operation{} was removed", name(&was.node)),
                ),
            }
        }
        for (key, is) in &now {
            if !released.contains_key(key) {
                self.addition(&is.node.pointer, format!("the operation{} was added", name(&is.node)));
            }
        }
    }

    fn operation(&mut self, was: &Operation<'_>, is: &Operation<'_>) {
        let (base, working) = (&was.node, &is.node);
        let known = [
            "operationId",
            "parameters",
            "requestBody",
            "responses",
            "security",
            "x-required-scope",
        ];
        self.rest(base, working, &known);
        self.rest(&was.item, &is.item, &[METHODS.as_slice(), &["parameters"]].concat());
        if base.raw("operationId") != working.raw("operationId") {
            let what = "the operationId changed: generated clients use it as the name of their method";
            self.breaking(working.below("operationId"), what);
        }
        match (base.raw("x-required-scope"), working.raw("x-required-scope")) {
            (was, is) if was == is => {}
            (Some(_), None) => self.addition(working.below("x-required-scope"), "no scope is required any longer"),
            (was, is) => {
                let what = format!(
                    "the scope changed {}: keys without it are now rejected",
                    keywords::step(was, is)
                );
                self.breaking(working.below("x-required-scope"), what);
            }
        }
        let (released, now) = (parameters(was), parameters(is));
        self.parameters(&released, &now);
        self.request_body(base, working);
        let is_new = |name: &&str| {
            let key = ("header".to_owned(), (*name).to_owned());
            now.contains_key(&key) && !released.contains_key(&key)
        };
        let is_newly_conditional = ["if-none-match", "if-modified-since"].iter().any(is_new);
        self.responses(base, working, is_newly_conditional);
    }

    fn parameters(&mut self, released: &BTreeMap<ParameterKey, Node<'_>>, now: &BTreeMap<ParameterKey, Node<'_>>) {
        for (key, was) in released {
            match now.get(key) {
                Some(is) => self.parameter(was, is),
                // Unknown parameters are rejected with 400.
                None => self.breaking(&was.pointer, format!("the parameter{} was removed", name(was))),
            }
        }
        for (key, is) in now {
            if released.contains_key(key) {
                continue;
            }
            if is.is_true("required") {
                self.breaking(
                    &is.pointer,
                    format!(
                        "a required parameter{} was added: existing clients do not send it",
                        name(is)
                    ),
                );
            } else {
                self.addition(&is.pointer, format!("an optional parameter{} was added", name(is)));
            }
        }
    }

    fn parameter(&mut self, base: &Node<'_>, working: &Node<'_>) {
        self.rest(base, working, &["name", "in", "required", "schema", "content"]);
        self.requirement(base, working, "parameter");
        self.schema_at(Direction::Request, base, working, "schema");
        self.content(Direction::Request, base, working);
    }

    fn request_body(&mut self, base: &Node<'_>, working: &Node<'_>) {
        match (base.get("requestBody"), working.get("requestBody")) {
            (None, None) => {}
            (Some(was), None) => self.breaking(was.pointer, "the request body was removed"),
            (None, Some(is)) if is.is_true("required") => {
                self.breaking(is.pointer, "a required request body was added")
            }
            (None, Some(is)) => self.addition(is.pointer, "an optional request body was added"),
            (Some(was), Some(is)) => {
                self.rest(&was, &is, &["required", "content"]);
                self.requirement(&was, &is, "request body");
                self.content(Direction::Request, &was, &is);
            }
        }
    }

    fn requirement(&mut self, base: &Node<'_>, working: &Node<'_>, what: &str) {
        match (base.is_true("required"), working.is_true("required")) {
            (false, true) => self.breaking(working.below("required"), format!("the {what} is required now")),
            (true, false) => self.addition(working.below("required"), format!("the {what} is optional now")),
            _ => {}
        }
    }
}

/// Returns an operation's or a parameter's name in backticks, after a space.
fn name(node: &Node<'_>) -> String {
    let name = node.raw("operationId").or(node.raw("name")).and_then(Value::as_str);
    name.map(|name| format!(" `{name}`")).unwrap_or_default()
}

/// Removes the names of parameters from a path template, because clients do not send them: `/reports/{id}` and
/// `/reports/{reportId}` are the same path.
fn without_names(template: &str) -> String {
    let mut parts = template.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |path, part| {
        path + "{}" + part.split_once('}').map_or("", |(_, after)| after)
    })
}

fn operations<'a>(document: &Node<'a>) -> BTreeMap<OperationKey, Operation<'a>> {
    let mut found = BTreeMap::new();
    let Some(paths) = document.get("paths") else {
        return found;
    };
    for template in paths.keys() {
        let Some(item) = paths.get(template) else { continue };
        for method in METHODS {
            if let Some(node) = item.get(method) {
                found.insert(
                    (without_names(template), method),
                    Operation {
                        template,
                        item: item.clone(),
                        node,
                    },
                );
            }
        }
    }
    found
}

/// Returns the parameters of the operation, and those of its path item that it does not override.
fn parameters<'a>(operation: &Operation<'a>) -> BTreeMap<ParameterKey, Node<'a>> {
    let mut found = BTreeMap::new();
    for holder in [&operation.item, &operation.node] {
        for parameter in holder.get("parameters").iter().flat_map(Node::elements) {
            let text = |key| parameter.raw(key).and_then(Value::as_str).unwrap_or_default();
            let name = match text("in") {
                // The position in the path.
                "path" => operation
                    .template
                    .find(&format!("{{{}}}", text("name")))
                    .map_or_else(String::new, |end| {
                        operation.template[..end].matches('{').count().to_string()
                    }),
                "header" => text("name").to_ascii_lowercase(),
                _ => text("name").to_owned(),
            };
            found.insert((text("in").to_owned(), name), parameter);
        }
    }
    found
}
