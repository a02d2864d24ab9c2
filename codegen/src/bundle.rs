//! References to other files: what they name is brought into the document.
//!
//! A schema becomes a component with a name of its own; anything else stands where it was referred to.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use crate::Problem;
use crate::node::escaped;
use crate::positions::{Foreign, Positions};

/// How far references may lead from file to file: far beyond any document, but the end of a circle.
const DEEPEST: usize = 64;

/// A file as it is read.
type Read<'r> = &'r dyn Fn(&Path) -> Result<(Value, Positions), Problem>;

/// Brings what other files hold into the document of the file `path`; `read` reads a file.
///
/// # Errors
/// A reference to what is not there or not a file, with its place.
pub fn bundled(path: &Path, value: &mut Value, positions: &mut Positions, read: Read<'_>) -> Result<(), Problem> {
    let mut bundle = Bundle {
        root: plain(path),
        read,
        files: BTreeMap::new(),
        named: BTreeMap::new(),
        taken: Vec::new(),
        next: Vec::new(),
        origins: Vec::new(),
    };
    let schemas = value.pointer("/components/schemas").and_then(Value::as_object);
    bundle
        .taken
        .extend(schemas.into_iter().flat_map(|schemas| schemas.keys().cloned()));
    let root = bundle.root.clone();
    bundle.walk(value, "#", &root, false, 0)?;
    while let Some((file, fragment, name)) = bundle.next.pop() {
        let at = format!("#/components/schemas/{}", escaped(&name));
        let mut schema = bundle.target(&file, &fragment, &at)?;
        bundle.origins.push((at.clone(), file.clone(), fragment));
        bundle.walk(&mut schema, &at, &file, true, 0)?;
        for (holder, key) in [("", "components"), ("/components", "schemas")] {
            if let Some(Value::Object(members)) = value.pointer_mut(holder) {
                members.entry(key).or_insert_with(|| json!({}));
            }
        }
        if let Some(Value::Object(schemas)) = value.pointer_mut("/components/schemas") {
            schemas.insert(name, schema);
        }
    }
    for (at, path, fragment) in bundle.origins {
        if let Some((_, positions_there)) = bundle.files.get(&path) {
            positions.add(Foreign {
                at,
                path,
                inner: format!("#{fragment}"),
                positions: positions_there.clone(),
            });
        }
    }
    Ok(())
}

struct Bundle<'r> {
    root: PathBuf,
    read: Read<'r>,
    files: BTreeMap<PathBuf, (Value, Positions)>,
    /// The component that a schema in a file has become.
    named: BTreeMap<(PathBuf, String), String>,
    /// The names of components.
    taken: Vec<String>,
    /// Schemas that have a name but are not in the document yet.
    next: Vec<(PathBuf, String, String)>,
    /// Where what was brought in comes from.
    origins: Vec<(String, PathBuf, String)>,
}

impl Bundle<'_> {
    /// Replaces references in a value that comes from `file` and stands at the pointer `at`.
    fn walk(&mut self, value: &mut Value, at: &str, file: &Path, is_schema: bool, depth: usize) -> Result<(), Problem> {
        let refuse = |reason: String| Err(Problem::refused(at, reason));
        if let Some(reference) = value.get("$ref").and_then(Value::as_str).map(str::to_string) {
            let Some((target, fragment)) = self.place(&reference, file, at)? else {
                return Ok(());
            };
            if target == self.root {
                value["$ref"] = format!("#{fragment}").into();
                return Ok(());
            }
            if is_schema {
                value["$ref"] = self.component(target, fragment, at)?.into();
                return Ok(());
            }
            if depth > DEEPEST {
                return refuse(format!(
                    "`{reference}` leads in a circle; take one of its references out"
                ));
            }
            *value = self.target(&target, &fragment, at)?;
            self.origins.push((at.to_string(), target.clone(), fragment));
            return self.walk(value, at, &target, false, depth + 1);
        }
        match value {
            Value::Object(members) => {
                // Members of objects may be called like keywords.
                let are_names = is_schema && at.ends_with("/properties");
                for (key, value) in members.iter_mut() {
                    let is_data =
                        key.starts_with("x-") || ["example", "examples", "default", "enum"].contains(&key.as_str());
                    if is_data && !are_names {
                        continue;
                    }
                    let inner = format!("{at}/{}", escaped(key));
                    if is_schema && key == "mapping" && !are_names {
                        self.mapping(value, &inner, file)?;
                        continue;
                    }
                    let is_schema = is_schema || key == "schema" || inner == "#/components/schemas";
                    self.walk(value, &inner, file, is_schema, depth)?;
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.walk(item, &format!("{at}/{index}"), file, is_schema, depth)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A discriminator's mapping: a value is a schema's name or a reference.
    fn mapping(&mut self, value: &mut Value, at: &str, file: &Path) -> Result<(), Problem> {
        for (key, target) in value.as_object_mut().into_iter().flatten() {
            let Some(text) = target.as_str().filter(|text| text.contains(['#', '/', '.'])) else {
                continue;
            };
            let at = format!("{at}/{}", escaped(key));
            if let Some((path, fragment)) = self.place(text, file, &at)? {
                *target = match path == self.root {
                    true => format!("#{fragment}"),
                    false => self.component(path, fragment, &at)?,
                }
                .into();
            }
        }
        Ok(())
    }

    /// The file and the fragment that a reference names; `None` if it stays within the document itself.
    fn place(&self, reference: &str, file: &Path, at: &str) -> Result<Option<(PathBuf, String)>, Problem> {
        let (path, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if path.contains("://") || path.starts_with('/') {
            return Err(Problem::refused(
                at,
                format!("`{reference}` is no file beside this one; put it there, and refer to it by a relative path"),
            ));
        }
        Ok(match path {
            "" if file == self.root => None,
            "" => Some((file.to_path_buf(), fragment.to_string())),
            path => {
                let folder = file.parent().unwrap_or(Path::new(""));
                Some((plain(&folder.join(path)), fragment.to_string()))
            }
        })
    }

    /// The reference to the component that a schema in another file becomes.
    fn component(&mut self, file: PathBuf, fragment: String, at: &str) -> Result<String, Problem> {
        let key = (file, fragment);
        if let Some(name) = self.named.get(&key) {
            return Ok(format!("#/components/schemas/{name}"));
        }
        let (file, fragment) = &key;
        self.target(file, fragment, at)?;
        let last = fragment.rsplit('/').next().filter(|last| !last.is_empty());
        let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let usual: String = last
            .map(str::to_string)
            .or(stem)
            .unwrap_or_default()
            .chars()
            .map(|it| if it.is_alphanumeric() { it } else { '_' })
            .collect();
        let mut name = usual.clone();
        let mut count = 1;
        while self.taken.contains(&name) {
            count += 1;
            name = format!("{usual}{count}");
        }
        self.taken.push(name.clone());
        self.next.push((file.clone(), fragment.clone(), name.clone()));
        self.named.insert(key, name.clone());
        Ok(format!("#/components/schemas/{name}"))
    }

    /// What stands in a file at a fragment.
    fn target(&mut self, file: &Path, fragment: &str, at: &str) -> Result<Value, Problem> {
        let refuse = |reason: String| Err(Problem::refused(at, reason));
        if !self.files.contains_key(file) {
            match (self.read)(file) {
                Ok(read) => drop(self.files.insert(file.to_path_buf(), read)),
                Err(Problem::Io { source, .. }) => {
                    let file = file.display();
                    return refuse(format!(
                        "`{file}` cannot be read ({}); put it there, or bring what it holds in",
                        source.kind()
                    ));
                }
                Err(other) => return Err(other),
            }
        }
        match self.files.get(file).and_then(|(value, _)| value.pointer(fragment)) {
            Some(value) => Ok(value.clone()),
            None => refuse(format!(
                "`{}` has nothing at `{fragment}`; define it, or name another",
                file.display()
            )),
        }
    }
}

/// A path without `.` and `..`, so that one file has one name.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), Some(Component::Normal(_))) => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}
