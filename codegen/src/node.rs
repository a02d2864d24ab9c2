//! A place in the document: a value and its JSON pointer.

use heck::ToUpperCamelCase;
use serde_json::{Map, Value};

use crate::error::Problem;
use crate::naming::{Names, OPERATION_TYPES, Renamed, SharedNames, operation_prefix, unnamed};

/// The members of a path item that are operations.
pub const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// A value of the document, with its JSON pointer.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    root: &'a Value,
    value: &'a Value,
    pointer: String,
    names: SharedNames,
}

impl<'a> Node<'a> {
    pub fn root(root: &'a Value) -> Self {
        Node::root_with(root, SharedNames::default())
    }

    /// The value at a pointer without `#`.
    pub fn at(root: &'a Value, value: &'a Value, pointer: &str) -> Self {
        Node {
            value,
            pointer: format!("#{pointer}"),
            ..Node::root(root)
        }
    }

    /// The whole document, with the names collected by another reading of it.
    pub fn root_with(root: &'a Value, names: SharedNames) -> Self {
        Node {
            root,
            value: root,
            pointer: "#".into(),
            names,
        }
    }

    /// The root of the document that contains this node.
    pub fn whole(&self) -> Node<'a> {
        Node::root_with(self.root, self.names.clone())
    }

    /// The type names that come from the document.
    pub fn names(&self) -> &Names {
        let Renamed {
            schemas: new,
            operations,
        } = &self.names.renamed;
        self.names.names.get_or_init(|| {
            let ids = members(self.root.get("paths")).flat_map(|(path, item)| {
                let methods = members(Some(item)).filter(|(method, _)| METHODS.contains(&method.as_str()));
                methods.map(move |(method, operation)| {
                    let id = operations.get(&(path.clone(), method.clone())).map(String::as_str);
                    let id = id.or(text_of(operation, "operationId")).map(str::to_string);
                    operation_prefix(&id.unwrap_or_else(|| unnamed(method, path)))
                })
            });
            Names {
                schemas: schemas(self.root)
                    .map(|(name, _)| new.get(name).unwrap_or(name).to_upper_camel_case())
                    .collect(),
                operations: ids
                    .flat_map(|id| OPERATION_TYPES.map(|suffix| format!("{id}{suffix}")))
                    .collect(),
            }
        })
    }

    /// The replacements for some Rust names.
    pub fn renamed(&self) -> &Renamed {
        &self.names.renamed
    }

    /// Reserves a Rust name for the schema at this node. Returns `false` if a schema at another place has reserved it.
    pub fn reserve(&self, name: &str) -> bool {
        let mut given = self.names.given.borrow_mut();
        *given.entry(name.to_string()).or_insert_with(|| self.pointer.clone()) == self.pointer
    }

    pub fn value(&self) -> &'a Value {
        self.value
    }

    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    pub fn reject(&self, reason: impl Into<String>) -> Problem {
        Problem::rejected(&self.pointer, reason)
    }

    pub fn get(&self, key: &str) -> Option<Node<'a>> {
        self.value.get(key).map(|value| self.child(key, value))
    }

    /// The member `key`.
    pub fn need(&self, key: &str) -> Result<Node<'a>, Problem> {
        self.get(key).ok_or_else(|| self.reject(format!("`{key}` is missing")))
    }

    /// The members of this object, in document order.
    pub fn members(&self) -> Result<Vec<(&'a str, Node<'a>)>, Problem> {
        let members = self.object()?.iter();
        Ok(members
            .map(|(key, value)| (key.as_str(), self.child(key, value)))
            .collect())
    }

    /// The items of this array.
    pub fn items(&self) -> Result<Vec<Node<'a>>, Problem> {
        let items = self.value.as_array().ok_or_else(|| self.reject("must be an array"))?;
        let items = items.iter().enumerate();
        Ok(items
            .map(|(index, value)| self.child(&index.to_string(), value))
            .collect())
    }

    pub fn text(&self) -> Result<&'a str, Problem> {
        self.value.as_str().ok_or_else(|| self.reject("must be a string"))
    }

    /// The members of the object in the member `key`; none without it.
    pub fn members_of(&self, key: &str) -> Result<Vec<(&'a str, Node<'a>)>, Problem> {
        self.get(key).map_or(Ok(Vec::new()), |node| node.members())
    }

    /// The items of the array in the member `key`; none without it.
    pub fn items_of(&self, key: &str) -> Result<Vec<Node<'a>>, Problem> {
        self.get(key).map_or(Ok(Vec::new()), |node| node.items())
    }

    /// The value at a pointer below this node.
    pub fn below(&self, keys: &[&str]) -> Option<Node<'a>> {
        keys.iter().try_fold(self.clone(), |node, key| node.get(key))
    }

    /// The string in the member `key`, if present.
    pub fn text_of(&self, key: &str) -> Result<Option<&'a str>, Problem> {
        self.get(key).map(|node| node.text()).transpose()
    }

    /// The trimmed `description`, or an empty string if there is none.
    pub fn description(&self) -> Result<String, Problem> {
        Ok(self.text_of("description")?.unwrap_or_default().trim().to_string())
    }

    /// Whether the member `key` is `true`. An absent member counts as `false`.
    pub fn flag(&self, key: &str) -> Result<bool, Problem> {
        match self.get(key) {
            None => Ok(false),
            Some(node) => node.value.as_bool().ok_or_else(|| node.reject("must be true or false")),
        }
    }

    /// The count in the member `key`, if present.
    pub fn count(&self, key: &str) -> Result<Option<usize>, Problem> {
        match self.get(key) {
            None => Ok(None),
            Some(node) => match node.value.as_u64().and_then(|count| usize::try_from(count).ok()) {
                Some(count) => Ok(Some(count)),
                None => Err(node.reject("must be a non-negative integer")),
            },
        }
    }

    pub fn object(&self) -> Result<&'a Map<String, Value>, Problem> {
        self.value.as_object().ok_or_else(|| self.reject("must be an object"))
    }

    /// Follows a `$ref` within the document, and those that its targets are. Any other node is returned unchanged.
    pub fn resolved(&self) -> Result<Node<'a>, Problem> {
        let mut node = self.clone();
        let mut followed = Vec::new();
        while let Some(reference) = node.text_of("$ref")? {
            if followed.contains(&reference) {
                return Err(self.reject(format!("`{reference}` refers only to itself; define it")));
            }
            followed.push(reference);
            let place = reference.strip_prefix('#').ok_or_else(|| {
                self.reject(format!(
                    "`{reference}` is outside the document; move its target into the document"
                ))
            })?;
            let value = self.root.pointer(place).ok_or_else(|| {
                self.reject(format!(
                    "`{reference}` does not exist in this document; define it or correct the reference"
                ))
            })?;
            node = Node {
                value,
                pointer: reference.to_string(),
                ..node
            };
        }
        Ok(node)
    }

    /// The parts of its `allOf` that are not empty; `None` without an `allOf`.
    pub fn all_of(&self) -> Result<Option<Vec<Node<'a>>>, Problem> {
        let Some(list) = self.get("allOf") else { return Ok(None) };
        let mut parts = list.items()?;
        if parts.len() > 1 {
            parts.retain(|part| part.value.as_object().is_none_or(|members| !members.is_empty()));
        }
        Ok(Some(parts))
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

/// The members of an object; none for any other value.
pub fn members(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flatten()
}

pub fn schemas(document: &Value) -> impl Iterator<Item = (&String, &Value)> {
    members(document.pointer("/components/schemas"))
}

/// The text in the member `key`.
pub fn text_of<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

/// The rest of a pointer below `around`; `None` if it is elsewhere.
pub fn below<'p>(pointer: &'p str, around: &str) -> Option<&'p str> {
    let rest = pointer.strip_prefix(around)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// A member name, escaped for use in a JSON pointer.
pub fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The member name of a token in a JSON pointer.
pub fn unescaped(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}
