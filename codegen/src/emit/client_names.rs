//! Replaces names from which progenitor would derive conflicting Rust names. The names on the wire are restored in the
//! generated code.

use std::collections::{BTreeMap, BTreeSet};

use heck::{ToSnakeCase, ToUpperCamelCase};
use proc_macro2::{Literal, TokenStream, TokenTree};
use quote::ToTokens;
use serde_json::{Map, Value};

use super::tokens::rewritten;
use crate::naming::numbered;
use crate::node::{METHODS, members, text_of};

/// Methods that progenitor's builders have for every operation, or for those with a body or pages.
const BUILDER_METHODS: [&str; 6] = ["new", "send", "client", "body", "body_map", "stream"];

/// Members that contain data rather than schemas.
const DATA: [&str; 4] = ["example", "examples", "default", "enum"];

/// The maximum number of references that are followed, which also ends cycles.
const MAX_REFERENCES: usize = 32;

/// Placeholders, and the names that they replace.
pub(super) struct Placeholders {
    /// The text of the document, in which no placeholder occurs.
    text: String,
    by_name: BTreeMap<String, String>,
}

impl Placeholders {
    /// Replaces the names of parameters, members and enumeration values in `document` that conflict.
    pub(super) fn insert_into(document: &mut Value) -> Self {
        let mut all = Placeholders {
            text: document.to_string(),
            by_name: BTreeMap::new(),
        };
        all.parameters(document);
        walk(document, &mut |schema| all.members(schema));
        let mut words = BTreeMap::new();
        walk(document, &mut |schema| {
            if let Some(Value::Array(values)) = schema.get_mut("enum") {
                all.enumeration(values, &mut words);
            }
        });
        if !all.by_name.is_empty() {
            defaults(document, &words, &all.by_name);
        }
        all
    }

    /// Restores the names on the wire in the generated code.
    pub(super) fn restored(&self, tokens: TokenStream) -> TokenStream {
        if self.by_name.is_empty() {
            return tokens;
        }
        let is_known = |text: &str| self.by_name.keys().any(|name| text.contains(name));
        rewritten(tokens, &mut |tree, _, _| {
            Some(match &tree {
                TokenTree::Literal(literal) => match syn::parse2::<syn::LitStr>(literal.to_token_stream()) {
                    Ok(text) if is_known(&text.value()) => Literal::string(&self.original(text.value())).into(),
                    _ => tree,
                },
                _ => tree,
            })
        })
    }

    fn original(&self, text: String) -> String {
        match self.by_name.get(&text) {
            Some(original) => original.clone(),
            // In documentation. Longer names come before their prefixes.
            None => {
                let names = self.by_name.iter().rev();
                names.fold(text, |text, (name, original)| text.replace(name, original))
            }
        }
    }

    /// The first name that does not occur in the document and that progenitor does not convert to one of `used`.
    fn placeholder(
        &mut self,
        names: impl Iterator<Item = String>,
        original: &str,
        rust: fn(&str) -> String,
        used: &mut BTreeSet<String>,
    ) -> String {
        for name in names {
            let is_known = self.text.contains(&name) || self.by_name.contains_key(&name);
            if !is_known && used.insert(rust(&name)) {
                self.by_name.insert(name.clone(), original.to_string());
                return name;
            }
        }
        original.to_string()
    }

    /// Replaces the names of parameters, which all become methods of one builder. If a parameter is renamed, the
    /// parameters of its path item are inlined into the operations, because shared parameters keep their names.
    fn parameters(&mut self, document: &mut Value) {
        let mut new = Map::new();
        for (path, item) in members(document.get("paths")) {
            let renamed = self.of_path(document, path, item);
            let (path, item) = renamed.unwrap_or_else(|| (path.clone(), item.clone()));
            new.insert(path, item);
        }
        document["paths"] = new.into();
    }

    /// The path and its new content, if one of its parameters was renamed.
    fn of_path(&mut self, document: &Value, path: &str, item: &Value) -> Option<(String, Value)> {
        let (mut new_path, mut new_item) = (path.to_string(), item.clone());
        let mut in_path: BTreeMap<String, String> = BTreeMap::new();
        let mut has_changed = false;
        for method in METHODS {
            let Some(operation) = item.get(method) else { continue };
            let mut all = effective(document, item, operation);
            // Path variables come first, because all operations of the path share them.
            all.sort_by_key(|parameter| parameter["in"] != "path");
            let mut used: BTreeSet<String> = BUILDER_METHODS.map(str::to_string).into();
            for parameter in &mut all {
                let (Some(location), Some(original)) = (parameter["in"].as_str(), parameter["name"].as_str()) else {
                    continue;
                };
                if used.insert(snake(original)) {
                    continue;
                }
                let (location, original) = (location.to_string(), original.to_string());
                let name = match in_path.get(&original).filter(|_| location == "path") {
                    Some(known) => {
                        used.insert(snake(known));
                        known.clone()
                    }
                    None => {
                        let first = format!("{}_{location}", snake(&original));
                        self.placeholder(numbered(first), &original, snake, &mut used)
                    }
                };
                if location == "path" {
                    new_path = new_path.replace(&format!("{{{original}}}"), &format!("{{{name}}}"));
                    in_path.insert(original, name.clone());
                }
                parameter["name"] = name.into();
                has_changed = true;
            }
            new_item[method]["parameters"] = all.into();
        }
        if let Some(members) = new_item.as_object_mut() {
            members.shift_remove("parameters");
        }
        has_changed.then_some((new_path, new_item))
    }

    /// Replaces the names of members, which become fields.
    fn members(&mut self, schema: &mut Map<String, Value>) {
        let Some(Value::Object(properties)) = schema.get("properties") else {
            return;
        };
        let mut used = BTreeSet::new();
        let first: Vec<bool> = properties.keys().map(|name| used.insert(snake(name))).collect();
        if first.iter().all(|is_first| *is_first) {
            return;
        }
        let (mut new, mut renamed) = (Map::new(), BTreeMap::new());
        for ((name, property), is_first) in properties.clone().into_iter().zip(first) {
            if is_first {
                new.insert(name, property);
                continue;
            }
            // progenitor adds a serde attribute to fields whose wire name differs from the Rust name.
            let base = snake(&name).to_upper_camel_case();
            let names = numbered(base).skip(1).filter(|name| snake(name) != *name);
            let placeholder = self.placeholder(names, &name, snake, &mut used);
            new.insert(placeholder.clone(), property);
            renamed.insert(name, placeholder);
        }
        schema.insert("properties".into(), new.into());
        let required = schema.get_mut("required").and_then(Value::as_array_mut);
        for name in required.into_iter().flatten() {
            if let Some(placeholder) = name.as_str().and_then(|name| renamed.get(name)) {
                *name = placeholder.clone().into();
            }
        }
    }

    /// Replaces the values of an enumeration, which become variants.
    fn enumeration(&mut self, all: &mut [Value], words: &mut BTreeMap<String, String>) {
        let texts: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
        let is_unique = |name: &dyn Fn(&str) -> String| {
            let names: BTreeSet<String> = texts.iter().map(|text| name(text)).collect();
            names.len() == texts.len()
        };
        // progenitor tries these two conversions.
        if is_unique(&pascal) || is_unique(&|text| pascal(&text.replace(|it| it == '_' || !is_part(it), "X"))) {
            return;
        }
        let mut used = BTreeSet::new();
        let first: Vec<bool> = texts.iter().map(|text| used.insert(pascal(text))).collect();
        for (word, is_first) in all.iter_mut().filter(|word| word.is_string()).zip(first) {
            let text = word.as_str().unwrap_or_default().to_string();
            if is_first {
                continue;
            }
            let placeholder = match words.get(&text) {
                Some(known) if used.insert(pascal(known)) => known.clone(),
                _ => {
                    // As above, the name must differ from the variant's.
                    let names = numbered(pascal(&text).to_lowercase()).skip(1);
                    let names = names.map(|name| match pascal(&name) == name {
                        true => format!("x{name}"),
                        false => name,
                    });
                    self.placeholder(names, &text, pascal, &mut used)
                }
            };
            words.insert(text, placeholder.clone());
            *word = placeholder.into();
        }
    }
}

/// The parameters of an operation including those of its path item, inlined.
fn effective(document: &Value, item: &Value, operation: &Value) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for holder in [item, operation] {
        for parameter in holder.get("parameters").and_then(Value::as_array).into_iter().flatten() {
            let parameter = resolved(document, parameter);
            all.retain(|known| known["in"] != parameter["in"] || known["name"] != parameter["name"]);
            all.push(parameter.clone());
        }
    }
    all
}

fn is_part(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}

/// progenitor's conversion of a text to the name of a type or variant.
fn pascal(text: &str) -> String {
    let text = text.replace('\'', "").replace(|it| !is_part(it), "-");
    match text.to_upper_camel_case() {
        name if name.starts_with(|it: char| it.is_alphabetic()) => name,
        name => format!("X{name}"),
    }
}

/// progenitor's conversion of a text to the name of a field or function.
fn snake(text: &str) -> String {
    let text = text.replace('\'', "").replace(|it| !is_part(it), "-");
    match text.to_snake_case() {
        name if name.starts_with(|it: char| it.is_alphabetic()) => name,
        name => format!("x{name}"),
    }
}

/// The target of a value's references, or the value itself.
pub(super) fn resolved<'v>(document: &'v Value, value: &'v Value) -> &'v Value {
    let mut value = value;
    for _ in 0..MAX_REFERENCES {
        let reference = text_of(value, "$ref");
        match reference.and_then(|reference| document.pointer(reference.trim_start_matches('#'))) {
            Some(target) => value = target,
            None => break,
        }
    }
    value
}

/// Replaces enumeration values in defaults. Defaults that contain a renamed value or member are removed; the server
/// applies them to omitted members anyway.
fn defaults(document: &mut Value, words: &BTreeMap<String, String>, by_name: &BTreeMap<String, String>) {
    let before = document.clone();
    let is_enumeration = |schema: &Value| {
        let only = match schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
            Some([only]) => only,
            _ => schema,
        };
        resolved(&before, only).get("enum").is_some()
    };
    walk(document, &mut |schema| {
        let Some(default) = schema.get("default") else { return };
        let placeholder = default.as_str().and_then(|text| words.get(text));
        match placeholder {
            Some(name) if is_enumeration(&Value::Object(schema.clone())) => {
                schema.insert("default".into(), name.clone().into());
            }
            None if default.is_array() || default.is_object() => {
                let text = default.to_string();
                let mut names = by_name.values().map(|name| Value::from(name.as_str()).to_string());
                if names.any(|name| text.contains(&name)) {
                    schema.shift_remove("default");
                }
            }
            _ => {}
        }
    });
}

/// Removes defaults that are not scalars, because progenitor does not support some of them for `anyOf`. The server
/// applies them to omitted members anyway.
pub(super) fn without_composed_defaults(document: &mut Value) {
    walk(document, &mut |schema| {
        if schema.get("default").is_some_and(|it| it.is_array() || it.is_object()) {
            schema.shift_remove("default");
        }
    });
}

/// Visits every object of a document that is not data.
pub(super) fn walk(value: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            change(members);
            for (key, inner) in members {
                match inner {
                    // These are schemas, whatever their names.
                    Value::Object(named) if key == "properties" || key == "schemas" => {
                        named.values_mut().for_each(|inner| walk(inner, change));
                    }
                    _ if DATA.contains(&key.as_str()) => {}
                    _ => walk(inner, change),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, change)),
        _ => {}
    }
}
