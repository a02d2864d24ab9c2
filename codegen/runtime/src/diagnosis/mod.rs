//! Collection of all errors in a JSON document.
//!
//! Deserialization stops at the first error. A rejected document is therefore checked again with the schema that its
//! type embeds, using the same [`crate::rules`]. Alternatives (`oneOf`, `anyOf`) are not checked here; for those, the
//! reader's error is reported.
//!
//! A document of a megabyte may have a hundred thousand errors, each of which costs far more than a valid value. The check
//! therefore ends after the errors that are reported, and skips what far exceeds the size of a list or a map.

mod objects;
mod values;

use std::collections::HashMap;
use std::rc::Rc;

use schemars::JsonSchema;
use schemars::r#gen::SchemaSettings;
use serde_json::Value;
use serde_json::value::RawValue;

use self::values::{Kind, integer, number, other_kind};
use crate::decimal;
use crate::format::{self, Format};
use crate::pattern::Pattern;
use crate::rules::{ArrayRules, StringRules, canonical, not_among};
use crate::validation::{MAX_ERRORS, Path, ValidationError, ValidationErrors};

/// serde_json detects this only when it decodes a string.
const LONE_SURROGATE: &str = "an escape \\uD800 to \\uDFFF must be part of a surrogate pair";

/// The errors in `text` as a `T`; `None` if the schema alone reveals none.
pub fn errors<T: JsonSchema>(text: &str) -> Option<ValidationErrors> {
    let root = SchemaSettings::openapi3().into_generator().into_root_schema_for::<T>();
    let root = serde_json::to_value(root).ok()?;
    let document: &RawValue = serde_json::from_str(text).ok()?;
    let mut diagnosis = Diagnosis::new(&root);
    diagnosis.value(document, &root, &Path::default());
    let Diagnosis { errors, hints, .. } = diagnosis;
    let mut errors = errors?;
    hints.into_iter().for_each(|hint| errors.push(hint));
    Some(errors)
}

struct Diagnosis<'s> {
    root: &'s Value,
    /// Compiled patterns, because an array may have many strings with the same one.
    patterns: HashMap<&'s str, Option<Rc<Pattern>>>,
    errors: Option<ValidationErrors>,
    /// Hints that are added only if there is an error.
    hints: Vec<ValidationError>,
    #[cfg(test)]
    checked_values: usize,
}

impl<'s> Diagnosis<'s> {
    fn new(root: &'s Value) -> Self {
        Diagnosis {
            root,
            patterns: HashMap::new(),
            errors: None,
            hints: Vec::new(),
            #[cfg(test)]
            checked_values: 0,
        }
    }

    /// Whether there are more errors than are reported, so that the rest need not be checked.
    fn is_complete(&self) -> bool {
        self.errors.as_ref().is_some_and(ValidationErrors::is_cut)
    }

    fn add(&mut self, path: &Path, message: impl Into<String>) {
        let error = ValidationError::in_body(path, message);
        match &mut self.errors {
            Some(errors) => errors.push(error),
            None => self.errors = Some(error.into()),
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
        #[cfg(test)]
        {
            self.checked_values += 1;
        }
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
        let checked = &items[..items.len().min(checked_count(rules.max_items))];
        if let Some(of) = schema.get("items") {
            for (index, item) in checked.iter().enumerate() {
                if self.is_complete() {
                    return;
                }
                self.value(item, of, &path.item(index));
            }
        }
        self.check(path, rules.check_items(checked));
    }

    fn text(&mut self, raw: &RawValue, schema: &'s Value, path: &Path) {
        let Ok(text) = serde_json::from_str::<String>(raw.get()) else {
            self.add(path, format!("is not valid text: {LONE_SURROGATE}"));
            return;
        };
        let format = schema.get("format").and_then(Value::as_str);
        let checked = match format {
            Some("date-time") => format::parse_date_time(&text).map(drop),
            Some("date") => format::parse_date(&text).map(drop),
            Some("uuid") => format::parse_uuid(&text).map(drop),
            Some("byte") => crate::format::base64(&text).map(drop),
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

/// The number of items or members that are checked if at most `max` are allowed: as many more as errors are reported.
fn checked_count(max: Option<usize>) -> usize {
    max.map_or(usize::MAX, |max| max.saturating_add(MAX_ERRORS))
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

fn count(schema: &Value, key: &str) -> Option<usize> {
    schema.get(key)?.as_u64()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the number of values that were checked, and the errors.
    fn checked(text: &str, schema: &Value) -> (usize, ValidationErrors) {
        let document: &RawValue = serde_json::from_str(text).unwrap();
        let mut diagnosis = Diagnosis::new(schema);
        diagnosis.value(document, schema, &Path::default());
        (diagnosis.checked_values, diagnosis.errors.unwrap())
    }

    /// KEY-10
    #[test]
    fn a_document_with_many_errors_is_checked_only_until_the_last_error_that_is_reported() {
        let members = |name: &str| {
            let members: Vec<String> = (0..100_000).map(|number| format!(r#""{name}{number}":1"#)).collect();
            format!("{{{}}}", members.join(","))
        };
        let map = json!({"type": "object", "maxProperties": 50, "x-key-pattern": "^[A-Z]+[0-9]+$",
            "additionalProperties": {"type": "number"}});
        let (checked_values, errors) = checked(&members("wrong code "), &map);
        assert_eq!(
            (checked_values, errors.iter().count(), errors.is_cut()),
            (1 + MAX_ERRORS, MAX_ERRORS, true)
        );
        let (checked_values, errors) = checked(&members("RIGHT"), &map);
        assert_eq!(
            (checked_values, errors.iter().count(), errors.is_cut()),
            (1 + 50 + MAX_ERRORS, 1, false)
        );

        let open = json!({"type": "object", "additionalProperties": {"type": "string"}, "properties": {"a": {}}});
        assert_eq!(checked(&members("a"), &open).0, 1 + MAX_ERRORS + 1);

        let items = |item: &str| format!("[{}]", vec![item; 100_000].join(","));
        let list = json!({"type": "array", "maxItems": 50, "uniqueItems": true, "items": {"type": "number"}});
        assert_eq!(checked(&items("true"), &list).0, 1 + MAX_ERRORS);
        assert_eq!(checked(&items("1"), &list).0, 1 + 50 + MAX_ERRORS);
    }
}
