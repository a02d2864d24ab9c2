//! Collection of all errors in a JSON document.
//!
//! Deserialization stops at the first error. A rejected document is therefore checked again with the schema that its
//! type embeds, using the same [`crate::rules`]. Alternatives (`oneOf`, `anyOf`) are not checked here; for those, the
//! reader's error is reported.

mod kind;
mod number;
mod objects;

use std::collections::HashMap;
use std::rc::Rc;

use schemars::JsonSchema;
use schemars::r#gen::SchemaSettings;
use serde_json::Value;
use serde_json::value::RawValue;

use self::kind::{Kind, other_kind};
use self::number::{integer, number};
use crate::fault::{Fault, Faults, Path};
use crate::format::Format;
use crate::pattern::Pattern;
use crate::rules::{ArrayRules, StringRules, canonical, not_among};
use crate::{decimal, param};

/// serde_json detects this only when it decodes a string.
const LONE_SURROGATE: &str = "an escape \\uD800 to \\uDFFF must come with its other half";

/// The errors in `text` as a `T`; `None` if only the reader can tell.
pub fn faults<T: JsonSchema>(text: &str) -> Option<Faults> {
    let root = SchemaSettings::openapi3().into_generator().into_root_schema_for::<T>();
    let root = serde_json::to_value(root).ok()?;
    let document: &RawValue = serde_json::from_str(text).ok()?;
    let mut diagnosis = Diagnosis {
        root: &root,
        patterns: HashMap::new(),
        faults: None,
        hints: Vec::new(),
    };
    diagnosis.value(document, &root, &Path::default());
    let Diagnosis { faults, hints, .. } = diagnosis;
    let mut faults = faults?;
    hints.into_iter().for_each(|hint| faults.push(hint));
    Some(faults)
}

struct Diagnosis<'s> {
    root: &'s Value,
    /// Compiled patterns, because an array may have many strings with the same one.
    patterns: HashMap<&'s str, Option<Rc<Pattern>>>,
    faults: Option<Faults>,
    /// Hints that are added only if there is an error.
    hints: Vec<Fault>,
}

impl<'s> Diagnosis<'s> {
    fn add(&mut self, path: &Path, message: impl Into<String>) {
        let fault = Fault::in_body(path, message);
        match &mut self.faults {
            Some(faults) => faults.push(fault),
            None => self.faults = Some(fault.into()),
        }
    }

    /// Adds the error of a check.
    fn check(&mut self, path: &Path, checked: Result<(), String>) {
        if let Err(message) = checked {
            self.add(path, message);
        }
    }

    fn pattern(&mut self, schema: &'s Value, key: &str) -> Option<Rc<Pattern>> {
        let text = schema.get(key)?.as_str()?;
        let compile = || Pattern::compiled(text).ok().map(Rc::new);
        self.patterns.entry(text).or_insert_with(compile).clone()
    }

    /// The schema that a reference points to.
    fn resolved(&self, mut schema: &'s Value) -> &'s Value {
        // The maximum number of references that are followed, which also ends cycles.
        for _ in 0..32 {
            let Some(name) = schema
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|it| it.rsplit('/').next())
            else {
                break;
            };
            let Some(target) = self.root.get("definitions").and_then(|all| all.get(name)) else {
                break;
            };
            schema = target;
        }
        schema
    }

    fn is_nullable(&self, schema: &'s Value) -> bool {
        flag(schema, "nullable") || flag(self.resolved(schema), "nullable")
    }

    fn value(&mut self, raw: &RawValue, schema: &'s Value, path: &Path) {
        let kind = Kind::of(raw);
        if kind == Kind::Null && self.is_nullable(schema) {
            return;
        }
        let schema = self.resolved(schema);
        if ["oneOf", "anyOf", "discriminator"]
            .iter()
            .any(|word| schema.get(word).is_some())
        {
            return;
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            self.one_of(raw, kind, values, path);
            return;
        }
        let parts = schema.get("allOf").and_then(Value::as_array);
        if let Some([part]) = parts.map(Vec::as_slice) {
            self.value(raw, part, path);
        }
        match (schema.get("type").and_then(Value::as_str), kind) {
            (Some("object"), Kind::Object) => self.object(raw, schema, path),
            (Some("array"), Kind::Array) => self.array(raw, schema, path),
            (Some("string"), Kind::Text) => self.text(raw, schema, path),
            (Some("integer"), Kind::Number) => self.check(path, integer(raw.get(), schema)),
            (Some("number"), Kind::Number) => self.check(path, number(raw.get(), schema)),
            (Some("boolean"), Kind::Boolean) => {}
            (None, Kind::Object)
                if schema.get("properties").is_some() || parts.is_some_and(|parts| parts.len() > 1) =>
            {
                self.object(raw, schema, path);
            }
            (Some(wanted), _) => {
                if let Some(message) = other_kind(wanted, kind, raw, schema) {
                    self.add(path, message);
                }
            }
            (None, _) => {}
        }
    }

    fn one_of(&mut self, raw: &RawValue, kind: Kind, values: &[Value], path: &Path) {
        let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        if values
            .iter()
            .any(|known| canonical(known.clone()) == canonical(value.clone()))
        {
            return;
        }
        let texts: Option<Vec<&str>> = values.iter().map(Value::as_str).collect();
        let message = match (texts, &value) {
            (Some(texts), Value::String(text)) => not_among(&texts, text),
            (Some(texts), _) => format!("must be one of {}, is {}", texts.join(", "), kind.named()),
            (None, _) => {
                let values: Vec<String> = values.iter().map(Value::to_string).collect();
                let is = if kind == Kind::Number { raw.get() } else { kind.named() };
                format!("must be one of {}, is {is}", values.join(", "))
            }
        };
        self.add(path, message);
    }

    fn array(&mut self, raw: &RawValue, schema: &'s Value, path: &Path) {
        let items: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
        let rules = ArrayRules {
            min_items: count(schema, "minItems"),
            max_items: count(schema, "maxItems"),
            unique_items: flag(schema, "uniqueItems"),
        };
        self.check(path, rules.check(items.len()));
        if let Some(of) = schema.get("items") {
            for (index, item) in items.iter().enumerate() {
                self.value(item, of, &path.item(index));
            }
        }
        self.check(path, rules.check_items(&items));
    }

    fn text(&mut self, raw: &RawValue, schema: &'s Value, path: &Path) {
        let Ok(text) = serde_json::from_str::<String>(raw.get()) else {
            self.add(path, format!("is no text: {LONE_SURROGATE}"));
            return;
        };
        let format = schema.get("format").and_then(Value::as_str);
        let checked = match format {
            Some("date-time") => param::parse_date_time(&text).map(drop),
            Some("date") => param::parse_date(&text).map(drop),
            Some("uuid") => param::parse_uuid(&text).map(drop),
            Some("byte") => crate::base64::parse(&text).map(drop),
            Some("decimal") => {
                let places = count(schema, "x-decimal-places").and_then(|places| u32::try_from(places).ok());
                decimal::parse(&text, places.unwrap_or(u32::MAX)).map(drop)
            }
            _ => StringRules {
                min_length: count(schema, "minLength"),
                max_length: count(schema, "maxLength"),
                pattern: self.pattern(schema, "pattern"),
                format: format.and_then(Format::named),
            }
            .check(&text),
        };
        self.check(path, checked);
    }
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

fn count(schema: &Value, key: &str) -> Option<usize> {
    schema.get(key)?.as_u64()?.try_into().ok()
}
