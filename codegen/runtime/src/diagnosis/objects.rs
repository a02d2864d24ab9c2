//! Checks of objects: missing, unknown, misspelled and repeated members.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::values::{Kind, no_value};
use super::{Diagnosis, LONE_SURROGATE, checked_count, count, flag};
use crate::names;
use crate::rules::MapRules;
use crate::validation::{MAX_ERRORS, Path, ValidationError};

impl<'s> Diagnosis<'s> {
    pub(super) fn object(&mut self, raw: &RawValue, schema: &'s Value, path: &Path) {
        let Ok(Entries(entries)) = serde_json::from_str(raw.get()) else {
            self.add(path, format!("has a name that is not valid text: {LONE_SURROGATE}"));
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
            if self.is_complete() {
                return;
            }
            let place = path.member(name);
            let Some(property) = known.property(name) else {
                match others {
                    Some(Value::Object(_)) => self.value(value, others.unwrap_or(&Value::Null), &place),
                    // The first unknown members suffice for the report.
                    _ if unknown.len() < MAX_ERRORS => unknown.push(name),
                    _ => {}
                }
                continue;
            };
            if !seen.insert(name.as_str()) {
                self.add(&place, "occurs twice; send it once");
            } else if Kind::of(value) != Kind::Null || known.required.contains(&name.as_str()) {
                // A null counts as an absent member, if the member is optional.
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
                (false, Some(near)) if !known.required.contains(&near) => self.hints.push(ValidationError::in_body(
                    &place,
                    format!("is unknown and is ignored; did you mean {near}?"),
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
        for (name, value) in entries.iter().take(checked_count(rules.max_properties)) {
            if self.is_complete() {
                return;
            }
            let place = path.member(name);
            if !seen.insert(name.as_str()) {
                self.add(&place, "occurs twice; send it once");
                continue;
            }
            let near = known_name(schema, name);
            if let Err(message) = rules.check_key(name) {
                let fits = |other: &String| other.len() <= 64 && rules.check_key(other).is_ok();
                let spellings = names::spellings(name);
                let hint = match (near, spellings.iter().find(|other| fits(other))) {
                    (Some(near), _) if !spellings.iter().any(|other| other == near) => {
                        format!("; did you mean {near}?")
                    }
                    (_, Some(other)) => format!("; write {other}"),
                    (_, None) => String::new(),
                };
                self.add(&place, format!("{message}{hint}"));
            } else if let Some(near) = near {
                self.hints.push(ValidationError::in_body(
                    &place,
                    format!("is not a name that this document lists; did you mean {near}?"),
                ));
            }
            let Some(of) = schema.get("additionalProperties") else {
                continue;
            };
            match no_value(value, self.resolved(of)) {
                Some(message) if !(Kind::of(value) == Kind::Null && self.is_nullable(of)) => self.add(&place, message),
                _ => self.value(value, of, &place),
            }
        }
    }

    /// The members that a schema declares, directly or in the parts of its `allOf`.
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
        // Requests need not contain read-only members.
        let properties = &found.properties;
        let is_sent = |name: &&str| {
            let mut same = properties.iter().filter(|(other, _)| other == name);
            !same.any(|(_, of)| flag(of, "readOnly") || flag(self.resolved(of), "readOnly"))
        };
        found.required.retain(is_sent);
    }
}

/// Returns the name in the map's `x-plausible-range` that is most similar to another name.
fn known_name<'s>(schema: &'s Value, name: &str) -> Option<&'s str> {
    let ranges = schema.get("x-plausible-range")?.as_object()?;
    if ranges.contains_key(name) {
        return None;
    }
    names::nearest(name, ranges.keys().map(String::as_str))
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

/// The members of an object, including repeated ones.
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
