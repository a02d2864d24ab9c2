//! Access to an OpenAPI document that follows references.

use std::collections::BTreeSet;

use serde_json::Value;

/// The maximum length of a chain of references. A longer one counts as a cycle.
const MAX_CHAIN: usize = 32;

/// A value and its place in the document. References on the way to it are followed.
#[derive(Clone, Debug)]
pub(crate) struct Node<'a> {
    document: &'a Value,
    /// The value itself.
    pub(crate) value: &'a Value,
    /// Its JSON pointer.
    pub(crate) pointer: String,
}

impl<'a> Node<'a> {
    /// Returns the whole document.
    pub(crate) fn root(document: &'a Value) -> Self {
        Self {
            document,
            value: document,
            pointer: String::new(),
        }
    }

    /// Returns the member or element `key`, with its reference followed. A dangling reference is returned as it is.
    pub(crate) fn get(&self, key: &str) -> Option<Self> {
        let value = match self.value {
            Value::Array(elements) => elements.get(key.parse::<usize>().ok()?)?,
            other => other.get(key)?,
        };
        Some(
            Self {
                document: self.document,
                value,
                pointer: self.below(key),
            }
            .followed(),
        )
    }

    /// Returns the pointer of the member `key`, which need not exist.
    pub(crate) fn below(&self, key: &str) -> String {
        below(&self.pointer, key)
    }

    /// Returns the member `key` without following a reference.
    pub(crate) fn raw(&self, key: &str) -> Option<&'a Value> {
        self.value.get(key)
    }

    /// Returns whether the member `key` is `true`.
    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.raw(key) == Some(&Value::Bool(true))
    }

    /// Returns the names of the members.
    pub(crate) fn keys(&self) -> BTreeSet<&'a str> {
        self.value
            .as_object()
            .map(|members| members.keys().map(String::as_str).collect())
            .unwrap_or_default()
    }

    /// Returns the elements, each with its reference followed.
    pub(crate) fn elements(&self) -> Vec<Self> {
        let count = self.value.as_array().map_or(0, Vec::len);
        (0..count).filter_map(|index| self.get(&index.to_string())).collect()
    }

    fn followed(mut self) -> Self {
        for _ in 0..MAX_CHAIN {
            let Some(target) = self
                .raw("$ref")
                .and_then(Value::as_str)
                .and_then(|target| target.strip_prefix('#'))
            else {
                break;
            };
            let Some(value) = self.document.pointer(target) else {
                break;
            };
            self = Self {
                document: self.document,
                value,
                pointer: target.to_owned(),
            };
        }
        self
    }
}

/// Returns the pointer of the member `key` of the value at `pointer`.
pub(crate) fn below(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// A member of one or both of two values.
pub(crate) struct Pair<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Its pointer in the working document, or, if it was removed, in the released one.
    pub(crate) place: String,
    /// Its value in the released document.
    pub(crate) was: Option<Node<'a>>,
    /// Its value in the working document.
    pub(crate) is: Option<Node<'a>>,
}

/// Returns the members of two values, paired by name.
pub(crate) fn pairs<'a>(base: Option<&Node<'a>>, working: Option<&Node<'a>>) -> Vec<Pair<'a>> {
    keys_of_both(base, working)
        .into_iter()
        .map(|name| {
            let holder = [working, base]
                .into_iter()
                .flatten()
                .find(|node| node.raw(name).is_some());
            Pair {
                name,
                place: holder.map(|node| node.below(name)).unwrap_or_default(),
                was: base.and_then(|node| node.get(name)),
                is: working.and_then(|node| node.get(name)),
            }
        })
        .collect()
}

/// Returns the names of the members of either value.
pub(crate) fn keys_of_both<'a>(base: Option<&Node<'a>>, working: Option<&Node<'a>>) -> BTreeSet<&'a str> {
    base.into_iter().chain(working).flat_map(Node::keys).collect()
}

/// Returns the strings of an array; empty if there is none.
pub(crate) fn strings(value: Option<&Value>) -> BTreeSet<&str> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}
