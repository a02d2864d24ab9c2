//! Comparison of schemas. The module `keywords` covers single keywords.

use serde_json::Value;

use super::keywords::{Effect, effect, step};
use super::{Comparison, Direction};
use crate::Severity;
use crate::document::{Node, below, keys_of_both, strings};

/// Keywords with several schemas, which are compared one by one.
const COMBINATIONS: [&str; 3] = ["allOf", "oneOf", "anyOf"];

impl Comparison {
    /// Compares the schemas under `key` in two places. A missing schema accepts everything.
    pub(super) fn schema_at(&mut self, direction: Direction, base: &Node<'_>, working: &Node<'_>, key: &str) {
        match (base.get(key), working.get(key)) {
            (Some(was), Some(is)) => self.schema(direction, &was, &is),
            (None, None) => {}
            (was, _) => {
                let effect = if was.is_some() { Effect::Wider } else { Effect::Narrower };
                self.keyword(direction, base, working, key, effect);
            }
        }
    }

    fn schema(&mut self, direction: Direction, base: &Node<'_>, working: &Node<'_>) {
        if !self
            .visited
            .insert((base.pointer.clone(), working.pointer.clone(), direction))
        {
            return;
        }
        for key in keys_of_both(Some(base), Some(working)) {
            match key {
                "properties" | "required" => {}
                "items" => self.schema_at(direction, base, working, key),
                "additionalProperties" => self.additional_properties(direction, base, working),
                "enum" => self.values(direction, base, working),
                "x-known-values" => self.known_values(base, working),
                "default" => self.default_value(direction, base, working),
                _ if COMBINATIONS.contains(&key) => self.combination(direction, base, working, key),
                _ => match effect(key, base.raw(key), working.raw(key)) {
                    Some(effect) => self.keyword(direction, base, working, key, effect),
                    None => self.other(base, working, key),
                },
            }
        }
        self.members(direction, base, working);
    }

    /// Reports a changed keyword. Clients must be able to send the same requests as before, and must not receive values that the
    /// released contract excludes.
    fn keyword(&mut self, direction: Direction, base: &Node<'_>, working: &Node<'_>, key: &str, effect: Effect) {
        let (severity, why) = match (effect, direction) {
            (Effect::None, _) => return,
            (Effect::Wider, Direction::Request) => (Severity::Addition, "more is accepted"),
            (Effect::Narrower, Direction::Request) => (Severity::Breaking, "accepted values are now rejected"),
            (Effect::Wider, Direction::Response) => (
                Severity::Breaking,
                "responses contain values that existing clients do not know",
            ),
            (Effect::Narrower, Direction::Response) => (Severity::Addition, "more is promised"),
            (Effect::Other, _) => (Severity::Breaking, "the accepted values changed"),
        };
        let what = format!(
            "`{key}` changed {} in {}: {why}",
            step(base.raw(key), working.raw(key)),
            direction.name()
        );
        self.report(severity, working.below(key), what);
    }

    /// Compares the members of an object.
    fn members(&mut self, direction: Direction, base: &Node<'_>, working: &Node<'_>) {
        let (required_before, required_now) = (strings(base.raw("required")), strings(working.raw("required")));
        let (properties_before, properties_now) = (base.get("properties"), working.get("properties"));
        let mut names = keys_of_both(properties_before.as_ref(), properties_now.as_ref());
        names.extend(&required_before);
        names.extend(&required_now);
        let way = direction.name();
        for name in names {
            let was = properties_before.as_ref().and_then(|properties| properties.get(name));
            let is = properties_now.as_ref().and_then(|properties| properties.get(name));
            // The place of the member itself, not of the component that it refers to.
            let here = |schema: &Node<'_>| below(&schema.below("properties"), name);
            let (was_required, is_required) = (required_before.contains(name), required_now.contains(name));
            match (&was, &is) {
                (Some(_), None) => {
                    self.breaking(here(base), format!("`{name}` was removed from {way}"));
                    continue;
                }
                (None, Some(_)) => {
                    match direction {
                        Direction::Request if is_required => {
                            self.breaking(
                                here(working),
                                format!("a required `{name}` was added to {way}: existing clients do not send it"),
                            );
                        }
                        Direction::Response if base.raw("additionalProperties") == Some(&Value::Bool(false)) => {
                            let what =
                                format!("`{name}` was added to {way} that were closed (additionalProperties: false)");
                            self.breaking(here(working), what);
                        }
                        _ => self.addition(here(working), format!("`{name}` was added to {way}")),
                    }
                    continue;
                }
                (Some(was), Some(is)) => self.schema(direction, was, is),
                (None, None) => {}
            }
            match (was_required, is_required, direction) {
                (false, true, Direction::Request) => {
                    self.breaking(
                        here(working),
                        format!("`{name}` is required in {way} now: existing clients may not send it"),
                    );
                }
                (true, false, Direction::Response) => {
                    self.breaking(here(working), format!("`{name}` may be absent from {way} now"));
                }
                (true, false, Direction::Request) => {
                    self.addition(here(working), format!("`{name}` is optional in {way} now"));
                }
                (false, true, Direction::Response) => {
                    self.addition(here(working), format!("`{name}` is always in {way} now"));
                }
                _ => {}
            }
        }
    }

    /// Compares `additionalProperties`. Absent means `true`.
    fn additional_properties(&mut self, direction: Direction, base: &Node<'_>, working: &Node<'_>) {
        let key = "additionalProperties";
        // 0: none, 1: those that the schema accepts, 2: any.
        let accepted = |node: &Node<'_>| match node.raw(key) {
            Some(Value::Bool(false)) => 0,
            Some(Value::Object(_)) => 1,
            _ => 2,
        };
        match accepted(working) - accepted(base) {
            0 if accepted(base) == 1 => self.schema_at(direction, base, working, key),
            0 => {}
            step => self.keyword(
                direction,
                base,
                working,
                key,
                if step > 0 { Effect::Wider } else { Effect::Narrower },
            ),
        }
    }

    /// Compares an enum, which is closed. A new value is an addition in a request, and unknown to clients in a response. A
    /// removed value is rejected in a request; in a response its meaning has moved to another value, and generated clients lose
    /// its name.
    fn values(&mut self, direction: Direction, base: &Node<'_>, working: &Node<'_>) {
        let values = |node: &Node<'_>| node.raw("enum").and_then(Value::as_array).cloned();
        let (Some(was), Some(is)) = (values(base), values(working)) else {
            let effect = if base.raw("enum").is_some() {
                Effect::Wider
            } else {
                Effect::Narrower
            };
            return self.keyword(direction, base, working, "enum", effect);
        };
        let (pointer, way) = (working.below("enum"), direction.name());
        for value in was.iter().filter(|value| !is.contains(value)) {
            self.breaking(&pointer, format!("the value {value} was removed from {way}"));
        }
        for value in is.iter().filter(|value| !was.contains(value)) {
            match direction {
                Direction::Request => self.addition(&pointer, format!("the value {value} was added to {way}")),
                Direction::Response => {
                    self.breaking(
                        &pointer,
                        format!("the value {value} was added to {way}: existing clients do not know it"),
                    );
                }
            }
        }
    }

    /// Compares a list of known values, which may grow but not shrink.
    fn known_values(&mut self, base: &Node<'_>, working: &Node<'_>) {
        let (was, is) = (
            strings(base.raw("x-known-values")),
            strings(working.raw("x-known-values")),
        );
        let pointer = working.below("x-known-values");
        for value in was.difference(&is) {
            self.breaking(&pointer, format!("the known value `{value}` was removed"));
        }
        for value in is.difference(&was) {
            self.addition(&pointer, format!("the known value `{value}` was added"));
        }
    }

    /// Compares the default, which in a request is the meaning of an omitted value.
    fn default_value(&mut self, direction: Direction, base: &Node<'_>, working: &Node<'_>) {
        let (was, is) = (base.raw("default"), working.raw("default"));
        if was == is {
            return;
        }
        let what = format!("`default` changed {} in {}", step(was, is), direction.name());
        match direction {
            Direction::Request => {
                self.breaking(
                    working.below("default"),
                    what + ": omitting the value has another meaning",
                );
            }
            Direction::Response => self.report(Severity::Wording, working.below("default"), what),
        }
    }

    fn combination(&mut self, direction: Direction, base: &Node<'_>, working: &Node<'_>, key: &str) {
        let elements = |node: &Node<'_>| node.raw(key).and_then(Value::as_array).map_or(0, Vec::len);
        if elements(base) != elements(working) {
            return self.keyword(direction, base, working, key, Effect::Other);
        }
        let (Some(was), Some(is)) = (base.get(key), working.get(key)) else {
            return;
        };
        for (was, is) in was.elements().iter().zip(&is.elements()) {
            self.schema(direction, was, is);
        }
    }
}
