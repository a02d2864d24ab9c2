//! Everything that is wrong with a JSON document, told at once.
//!
//! A reader stops at the first thing that is wrong. Only when it has refused a document is the document gone through
//! again, by the schema that its type carries, which is the OpenAPI document's own: the rules are those of
//! [`crate::rules`], as the reader's are. Alternatives (`oneOf`, `anyOf`) are left to the reader's word.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::rc::Rc;

use schemars::JsonSchema;
use schemars::r#gen::SchemaSettings;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::fault::{Fault, Faults, MOST, Path};
use crate::format::Format;
use crate::names;
use crate::pattern::Pattern;
use crate::rules::{ArrayRules, MapRules, Multiple, NumberRules, StringRules, canonical, not_among};
use crate::{ExactNumber, decimal, param};

/// What serde_json finds only when it reads a text as one.
const LONE_SURROGATE: &str = "an escape \\uD800 to \\uDFFF must come with its other half";

/// What is wrong with `text` as a `T`; nothing where only the reader can tell.
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
    /// Those that were compiled: an array may have many texts under one of them.
    patterns: HashMap<&'s str, Option<Rc<Pattern>>>,
    faults: Option<Faults>,
    /// What is no fault, and worth telling where there is one.
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

    /// Adds what a check has found.
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

    /// The schema that a reference leads to.
    fn resolved(&self, mut schema: &'s Value) -> &'s Value {
        // Far beyond any document, but the end of a circle.
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

    fn object(&mut self, raw: &RawValue, schema: &'s Value, path: &Path) {
        let Ok(Entries(entries)) = serde_json::from_str(raw.get()) else {
            self.add(path, format!("has a name that is no text: {LONE_SURROGATE}"));
            return;
        };
        let mut known = Members::default();
        self.members(schema, &mut known, 0);
        let others = schema.get("additionalProperties");
        if known.properties.is_empty() && matches!(others, Some(Value::Object(_))) {
            self.map(&entries, schema, path);
            return;
        }
        let mut seen = HashSet::new();
        let mut unknown: Vec<&str> = Vec::new();
        for (name, value) in &entries {
            let place = path.member(name);
            let Some(property) = known.property(name) else {
                match others {
                    Some(Value::Object(_)) => self.value(value, others.unwrap_or(&Value::Null), &place),
                    // Of many, the first are enough to be told of.
                    _ if unknown.len() < MOST => unknown.push(name),
                    _ => {}
                }
                continue;
            };
            if !seen.insert(name.as_str()) {
                self.add(&place, "occurs twice; send it once");
            } else if Kind::of(value) != Kind::Null || known.required.contains(&name.as_str()) {
                // A null stands for a member that is left out, where it may be.
                self.value(value, property, &place);
            }
        }
        let absent = |name: &&str| !seen.contains(name);
        let missing: Vec<&str> = known.required.iter().copied().filter(absent).collect();
        let unused: Vec<&str> = known.names().filter(absent).collect();
        let meant = |name: &str| names::nearest(name, unused.iter().copied());
        for name in missing {
            let message = match unknown.iter().find(|sent| meant(sent) == Some(name)) {
                Some(sent) => format!("is missing; you sent {sent}: did you mean {name}?"),
                None => "is missing".to_string(),
            };
            self.add(&path.member(name), message);
        }
        let is_closed = others == Some(&Value::Bool(false));
        for name in unknown {
            let place = path.member(name);
            match (is_closed, meant(name)) {
                (true, Some(near)) => self.add(&place, format!("is unknown; did you mean {near}?")),
                (true, None) => {
                    let all: Vec<&str> = known.names().collect();
                    self.add(&place, format!("is unknown; the members are {}", all.join(", ")));
                }
                (false, Some(near)) if !known.required.contains(&near) => self.hints.push(Fault::in_body(
                    &place,
                    format!("is unknown, and ignored; did you mean {near}?"),
                )),
                (false, _) => {}
            }
        }
    }

    fn map(&mut self, entries: &[(String, &RawValue)], schema: &'s Value, path: &Path) {
        let rules = MapRules {
            min_properties: count(schema, "minProperties"),
            max_properties: count(schema, "maxProperties"),
            key_pattern: self.pattern(schema, "x-key-pattern"),
        };
        self.check(path, rules.check(entries.len()));
        let mut seen = HashSet::new();
        for (name, value) in entries {
            let place = path.member(name);
            if !seen.insert(name.as_str()) {
                self.add(&place, "occurs twice; send it once");
                continue;
            }
            if let Err(message) = rules.check_key(name) {
                let fits = |other: &String| other.len() <= 64 && rules.check_key(other).is_ok();
                self.add(
                    &place,
                    match names::spellings(name).into_iter().find(fits) {
                        Some(other) => format!("{message}; write {other}"),
                        None => message,
                    },
                );
            }
            if let Some(of) = schema.get("additionalProperties") {
                self.value(value, of, &place);
            }
        }
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

    /// The members that a schema names, in its own words or in the parts of its `allOf`.
    fn members(&self, schema: &'s Value, found: &mut Members<'s>, depth: usize) {
        if depth > 32 {
            return;
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.members(self.resolved(part), found, depth + 1);
        }
        if let Some(Value::Object(properties)) = schema.get("properties") {
            found
                .properties
                .extend(properties.iter().map(|(name, of)| (name.as_str(), of)));
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let names = required.filter_map(Value::as_str);
        found.required.extend(names);
        // What only answers have is no request's to send.
        let properties = &found.properties;
        let is_sent = |name: &&str| {
            let mut same = properties.iter().filter(|(other, _)| other == name);
            !same.any(|(_, of)| flag(of, "readOnly") || flag(self.resolved(of), "readOnly"))
        };
        found.required.retain(is_sent);
    }
}

#[derive(Default)]
struct Members<'s> {
    properties: Vec<(&'s str, &'s Value)>,
    required: Vec<&'s str>,
}

impl<'s> Members<'s> {
    fn property(&self, name: &str) -> Option<&'s Value> {
        let mut same = self.properties.iter().filter(|(known, _)| *known == name);
        same.next().map(|(_, of)| *of)
    }

    fn names(&self) -> impl Iterator<Item = &'s str> {
        self.properties.iter().map(|(name, _)| *name)
    }
}

/// What is wrong with a value of another kind than its schema's.
fn other_kind(wanted: &str, kind: Kind, raw: &RawValue, schema: &Value) -> Option<String> {
    let expected = match wanted {
        "object" => match example_entry(schema) {
            Some(entry) => format!("a JSON object such as {entry}"),
            None => "a JSON object".to_string(),
        },
        "array" => "an array".to_string(),
        "string" => "a string".to_string(),
        "integer" => "a whole number".to_string(),
        "number" => "a number".to_string(),
        "boolean" => "true or false".to_string(),
        _ => return None,
    };
    let hint = match (wanted, kind) {
        (_, Kind::Null) => "; leave it out where it may be left out".to_string(),
        ("string", Kind::Number | Kind::Boolean) => "; put it in quotes".to_string(),
        ("number" | "integer" | "boolean", Kind::Text) => unquoted(wanted, raw),
        _ => String::new(),
    };
    Some(match kind {
        Kind::Null => "must not be null".to_string(),
        _ => format!("must be {expected}, is {}{hint}", kind.named()),
    })
}

/// What to write instead of a text that stands for a number or a boolean.
fn unquoted(wanted: &str, raw: &RawValue) -> String {
    let text: String = serde_json::from_str(raw.get()).unwrap_or_default();
    let text = text.trim();
    let dotted = text.replacen(',', ".", 1);
    let is_wanted = |text: &str| match wanted {
        "boolean" => matches!(text, "true" | "false"),
        _ => serde_json::from_str::<serde_json::Number>(text).is_ok(),
    };
    match () {
        () if text.len() > 32 => String::new(),
        () if is_wanted(text) => format!("; send {text} without quotes"),
        () if is_wanted(&dotted) => format!("; send {dotted} without quotes, with a dot"),
        () => String::new(),
    }
}

/// The first member of a map's example, as an object.
fn example_entry(schema: &Value) -> Option<String> {
    if schema.get("properties").is_some() {
        return None;
    }
    let (name, value) = schema.get("example")?.as_object()?.iter().next()?;
    Some(format!("{{{name:?}: {value}}}"))
}

fn integer(text: &str, schema: &Value) -> Result<(), String> {
    let (low, high, bits) = match schema.get("format").and_then(Value::as_str) {
        Some("int8") => (i8::MIN.into(), i8::MAX.into(), 8),
        Some("int16") => (i16::MIN.into(), i16::MAX.into(), 16),
        Some("int32") => (i32::MIN.into(), i32::MAX.into(), 32),
        Some("uint8") => (0, u8::MAX.into(), 8),
        Some("uint16") => (0, u16::MAX.into(), 16),
        Some("uint32") => (0, u32::MAX.into(), 32),
        Some("uint64" | "uint") => (0, u64::MAX.into(), 64),
        Some("int128" | "uint128") => (i128::MIN, i128::MAX, 128),
        _ => (i64::MIN.into(), i64::MAX.into(), 64),
    };
    let value: i128 = text
        .parse()
        .map_err(|_| format!("must be a whole number, is {}", cut(text)))?;
    let of = |key: &str| schema.get(key).and_then(Value::as_f64).map(|bound| bound as i128);
    let rules = NumberRules {
        minimum: bound(of("minimum"), of("exclusiveMinimum")),
        maximum: bound(of("maximum"), of("exclusiveMaximum")),
        multiple_of: of("multipleOf"),
        not_zero: schema.get("not").is_some(),
    };
    rules.check(value)?;
    match (low..=high).contains(&value) {
        true => Ok(()),
        false => Err(format!(
            "must be a whole number of at most {bits} bits, is {}",
            cut(text)
        )),
    }
}

fn number(text: &str, schema: &Value) -> Result<(), String> {
    if schema.get("format").and_then(Value::as_str) == Some("decimal") {
        let digits = count(schema, "x-max-significant-digits").and_then(|digits| u32::try_from(digits).ok());
        return ExactNumber::parse(text, digits.unwrap_or(28)).map(drop);
    }
    let out_of_range = || "is out of the range of a number".to_string();
    let value: f64 = text.parse().map_err(|_| out_of_range())?;
    if !value.is_finite() {
        return Err(out_of_range());
    }
    let of = |key: &str| schema.get(key).and_then(Value::as_f64);
    let rules = NumberRules {
        minimum: bound(of("minimum"), of("exclusiveMinimum")),
        maximum: bound(of("maximum"), of("exclusiveMaximum")),
        multiple_of: of("multipleOf"),
        not_zero: false,
    };
    rules.check(value)
}

/// As schemars writes bounds: one that excludes itself stands by itself.
fn bound<T: Multiple>(inclusive: Option<T>, exclusive: Option<T>) -> Option<(T, bool)> {
    match exclusive {
        Some(bound) => Some((bound, true)),
        None => inclusive.map(|bound| (bound, false)),
    }
}

/// A number as a message quotes it.
fn cut(text: &str) -> String {
    match text.len() > 32 {
        true => format!("{}…", &text[..32]),
        false => text.to_string(),
    }
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

fn count(schema: &Value, key: &str) -> Option<usize> {
    schema.get(key)?.as_u64()?.try_into().ok()
}

/// What kind of value a JSON text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Null,
    Boolean,
    Number,
    Text,
    Array,
    Object,
}

impl Kind {
    fn of(raw: &RawValue) -> Self {
        match raw.get().as_bytes().first() {
            Some(b'n') => Kind::Null,
            Some(b't' | b'f') => Kind::Boolean,
            Some(b'"') => Kind::Text,
            Some(b'[') => Kind::Array,
            Some(b'{') => Kind::Object,
            _ => Kind::Number,
        }
    }

    fn named(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Boolean => "a boolean",
            Kind::Number => "a number",
            Kind::Text => "a string",
            Kind::Array => "an array",
            Kind::Object => "an object",
        }
    }
}

/// The members of an object as they came, also those that came twice.
struct Entries<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(All)
    }
}
