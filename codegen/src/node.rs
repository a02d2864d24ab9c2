//! A place in the document: a value with its JSON pointer.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use heck::ToUpperCamelCase;
use serde_json::{Map, Value};

use crate::Problem;
use crate::emit::operation_prefix;
use crate::read::{METHODS, unnamed};

/// A value of the document and where it stands.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    root: &'a Value,
    value: &'a Value,
    pointer: String,
    names: SharedNames,
}

/// The type names that the document gives, in Rust's case.
#[derive(Debug, Default)]
pub struct Names {
    /// Those of component schemas.
    pub schemas: BTreeSet<String>,
    /// Those made of operations' ids.
    pub operations: BTreeSet<String>,
}

/// Names in Rust that are not made of the document's own: another version of the API has those.
#[derive(Debug, Default)]
pub struct Renamed {
    /// What stands for a component schema's name.
    pub schemas: BTreeMap<String, String>,
    /// What stands for an operation's id, by path and method.
    pub operations: BTreeMap<(String, String), String>,
}

/// What all places of a document share: names that are gathered once, when they are first asked for.
#[derive(Debug, Default)]
pub struct Shared {
    names: OnceCell<Names>,
    renamed: Renamed,
    /// Names that were given to schemas without one, and where those stand.
    given: RefCell<BTreeMap<String, String>>,
}

/// It, for as many readings as there are.
pub type SharedNames = Rc<Shared>;

/// What the names of an operation's own types end with.
pub const OPERATION_TYPES: [&str; 5] = ["Path", "Query", "Headers", "Form", "Response"];

impl<'a> Node<'a> {
    /// The whole document.
    pub fn root(root: &'a Value) -> Self {
        Node::root_with(root, SharedNames::default())
    }

    /// The whole document, with other names in Rust.
    pub fn root_renamed(root: &'a Value, renamed: Renamed) -> Self {
        let shared = Shared {
            renamed,
            ..Shared::default()
        };
        Node::root_with(root, Rc::new(shared))
    }

    /// The whole document, with its names from another reading of it.
    pub fn root_with(root: &'a Value, names: SharedNames) -> Self {
        Node {
            root,
            value: root,
            pointer: "#".into(),
            names,
        }
    }

    /// The document that this place is in.
    pub fn whole(&self) -> Node<'a> {
        Node {
            root: self.root,
            value: self.root,
            pointer: "#".into(),
            names: self.names.clone(),
        }
    }

    /// The type names that the document gives.
    pub fn names(&self) -> &Names {
        self.names.names.get_or_init(|| {
            let members = |value: Option<&'a Value>| value.and_then(Value::as_object).into_iter().flatten();
            let ids = members(self.root.get("paths"))
                .flat_map(|(path, item)| members(Some(item)).map(move |(method, value)| (path, method, value)))
                .filter(|(_, method, _)| METHODS.contains(&method.as_str()))
                .map(|(path, method, operation)| {
                    let id = operation.get("operationId").and_then(Value::as_str).map(str::to_string);
                    let renamed = self
                        .names
                        .renamed
                        .operations
                        .get(&(path.clone(), method.clone()))
                        .cloned();
                    operation_prefix(&renamed.or(id).unwrap_or_else(|| unnamed(method, path)))
                });
            Names {
                schemas: members(self.root.pointer("/components/schemas"))
                    .map(|(name, _)| {
                        self.names
                            .renamed
                            .schemas
                            .get(name)
                            .unwrap_or(name)
                            .to_upper_camel_case()
                    })
                    .collect(),
                operations: ids
                    .flat_map(|id| OPERATION_TYPES.map(|suffix| format!("{id}{suffix}")))
                    .collect(),
            }
        })
    }

    /// The names that are not made of the document's own.
    pub fn renamed(&self) -> &Renamed {
        &self.names.renamed
    }

    /// Gives the schema here this name in Rust; `false` where one at another place has it.
    pub fn give(&self, name: &str) -> bool {
        let mut given = self.names.given.borrow_mut();
        *given.entry(name.to_string()).or_insert_with(|| self.pointer.clone()) == self.pointer
    }

    /// The value here.
    pub fn value(&self) -> &'a Value {
        self.value
    }

    /// The JSON pointer of this place.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// A refusal that names this place.
    pub fn refuse(&self, reason: impl Into<String>) -> Problem {
        Problem::refused(&self.pointer, reason)
    }

    /// The member `key`, if there is one.
    pub fn get(&self, key: &str) -> Option<Node<'a>> {
        self.value.get(key).map(|value| self.child(key, value))
    }

    /// The member `key`.
    ///
    /// # Errors
    /// When it is missing.
    pub fn need(&self, key: &str) -> Result<Node<'a>, Problem> {
        self.get(key).ok_or_else(|| self.refuse(format!("`{key}` is missing")))
    }

    /// The members of an object, in the document's order.
    ///
    /// # Errors
    /// When this is no object.
    pub fn members(&self) -> Result<Vec<(&'a str, Node<'a>)>, Problem> {
        Ok(self
            .object()?
            .iter()
            .map(|(key, value)| (key.as_str(), self.child(key, value)))
            .collect())
    }

    /// The items of an array.
    ///
    /// # Errors
    /// When this is no array.
    pub fn items(&self) -> Result<Vec<Node<'a>>, Problem> {
        let items = self.value.as_array().ok_or_else(|| self.refuse("must be an array"))?;
        Ok(items
            .iter()
            .enumerate()
            .map(|(index, value)| self.child(&index.to_string(), value))
            .collect())
    }

    /// The text here.
    ///
    /// # Errors
    /// When this is no string.
    pub fn text(&self) -> Result<&'a str, Problem> {
        self.value.as_str().ok_or_else(|| self.refuse("must be a string"))
    }

    /// The text of the member `key`, if there is one.
    ///
    /// # Errors
    /// When it is no string.
    pub fn text_of(&self, key: &str) -> Result<Option<&'a str>, Problem> {
        self.get(key).map(|node| node.text()).transpose()
    }

    /// Whether the member `key` is `true`; absent is `false`.
    ///
    /// # Errors
    /// When it is no boolean.
    pub fn flag(&self, key: &str) -> Result<bool, Problem> {
        match self.get(key) {
            None => Ok(false),
            Some(node) => node.value.as_bool().ok_or_else(|| node.refuse("must be true or false")),
        }
    }

    /// The count in the member `key`, if there is one.
    ///
    /// # Errors
    /// When it is no whole number from 0.
    pub fn count(&self, key: &str) -> Result<Option<usize>, Problem> {
        match self.get(key) {
            None => Ok(None),
            Some(node) => match node.value.as_u64().and_then(|count| usize::try_from(count).ok()) {
                Some(count) => Ok(Some(count)),
                None => Err(node.refuse("must be a whole number from 0")),
            },
        }
    }

    /// The object here.
    ///
    /// # Errors
    /// When this is no object.
    pub fn object(&self) -> Result<&'a Map<String, Value>, Problem> {
        self.value.as_object().ok_or_else(|| self.refuse("must be an object"))
    }

    /// Follows a `$ref` inside the document; anything else is returned as it is.
    ///
    /// # Errors
    /// When the reference leads out of the document or to nothing.
    pub fn resolved(&self) -> Result<Node<'a>, Problem> {
        let Some(reference) = self.text_of("$ref")? else {
            return Ok(self.clone());
        };
        let place = reference
            .strip_prefix('#')
            .ok_or_else(|| self.refuse(format!("`{reference}` leads out of the document; bring it in")))?;
        let value = self.root.pointer(place).ok_or_else(|| {
            self.refuse(format!(
                "`{reference}` names nothing in this document; define it, or name another"
            ))
        })?;
        let target = Node {
            root: self.root,
            value,
            pointer: reference.to_string(),
            names: self.names.clone(),
        };
        if target.get("$ref").is_some() {
            return Err(self.refuse(format!("`{reference}` is itself a reference; name its target directly")));
        }
        Ok(target)
    }

    fn child(&self, key: &str, value: &'a Value) -> Node<'a> {
        Node {
            root: self.root,
            value,
            pointer: format!("{}/{}", self.pointer, escaped(key)),
            names: self.names.clone(),
        }
    }
}

/// A member's name as JSON pointers write it.
pub fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
