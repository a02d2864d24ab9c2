//! Replaces references to other files with the referenced parts.
//!
//! A referenced schema becomes a component with its own name. Anything else is inlined.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::error::Problem;
use crate::hoist;
use crate::naming::numbered;
use crate::node::{escaped, schemas, text_of};
use crate::positions::{Foreign, Positions};

/// The maximum length of a chain of references between files, which also ends cycles.
const MAX_CHAIN: usize = 64;

type Read<'r> = &'r dyn Fn(&Path) -> Result<(Value, Positions), Problem>;

/// Adds everything that the document at `path` refers to in other files, using `read` to read them.
pub fn bundled(path: &Path, value: &mut Value, positions: &mut Positions, read: Read<'_>) -> Result<(), Problem> {
    let mut bundle = Bundle {
        root: plain(path),
        read,
        files: BTreeMap::new(),
        named: BTreeMap::new(),
        used_names: Vec::new(),
        next: Vec::new(),
        origins: Vec::new(),
    };
    bundle.used_names.extend(schemas(value).map(|(name, _)| name.clone()));
    let root = bundle.root.clone();
    bundle.walk(value, "#", &root, false, 0)?;
    while let Some((file, fragment, name)) = bundle.next.pop() {
        let at = format!("#/components/schemas/{}", escaped(&name));
        let mut schema = bundle.target(&file, &fragment, &at)?;
        bundle.origins.push((at.clone(), file.clone(), fragment));
        bundle.walk(&mut schema, &at, &file, true, 0)?;
        hoist::insert(value, &name, schema);
    }
    for (at, path, fragment) in bundle.origins {
        if let Some((_, there)) = bundle.files.get(&path) {
            positions.foreign.push(Foreign {
                at,
                inner: format!("#{fragment}"),
                positions: there.clone(),
            });
        }
    }
    Ok(())
}

struct Bundle<'r> {
    root: PathBuf,
    read: Read<'r>,
    files: BTreeMap<PathBuf, (Value, Positions)>,
    /// The component made of a schema in another file, by file and fragment.
    named: BTreeMap<(PathBuf, String), String>,
    used_names: Vec<String>,
    /// Schemas that have a name and are still to be added to the document.
    next: Vec<(PathBuf, String, String)>,
    /// The file and fragment that each added part comes from.
    origins: Vec<(String, PathBuf, String)>,
}

impl Bundle<'_> {
    /// Replaces the references in `value`, which comes from `file` and is at the pointer `at`.
    fn walk(&mut self, value: &mut Value, at: &str, file: &Path, is_schema: bool, depth: usize) -> Result<(), Problem> {
        let reject = |reason: String| Err(Problem::rejected(at, reason));
        if let Some(reference) = text_of(value, "$ref").map(str::to_string) {
            let (target, fragment) = self.place(&reference, file, at)?;
            if target == self.root {
                value["$ref"] = format!("#{fragment}").into();
                return Ok(());
            }
            if is_schema {
                value["$ref"] = self.component(target, fragment, at)?.into();
                return Ok(());
            }
            if depth > MAX_CHAIN {
                return reject(format!(
                    "`{reference}` is part of a reference cycle; remove one of the references"
                ));
            }
            *value = self.target(&target, &fragment, at)?;
            self.origins.push((at.to_string(), target.clone(), fragment));
            return self.walk(value, at, &target, false, depth + 1);
        }
        match value {
            Value::Object(members) => {
                // Members of `properties` may have the names of keywords.
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

    /// Handles a discriminator's mapping, whose values are schema names or references.
    fn mapping(&mut self, value: &mut Value, at: &str, file: &Path) -> Result<(), Problem> {
        for (key, target) in value.as_object_mut().into_iter().flatten() {
            let Some(text) = target.as_str().filter(|text| text.contains(['#', '/', '.'])) else {
                continue;
            };
            let at = format!("{at}/{}", escaped(key));
            let (path, fragment) = self.place(text, file, &at)?;
            *target = match path == self.root {
                true => format!("#{fragment}"),
                false => self.component(path, fragment, &at)?,
            }
            .into();
        }
        Ok(())
    }

    /// The file and fragment that a reference points to. A reference is a URL, so its characters may be percent-encoded.
    fn place(&self, reference: &str, file: &Path, at: &str) -> Result<(PathBuf, String), Problem> {
        let (path, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if path.contains("://") || path.starts_with('/') {
            return Err(Problem::rejected(
                at,
                format!("`{reference}` is not a local file; store it beside this one and use a relative path"),
            ));
        }
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let target = match decoded(path).as_str() {
            "" => file.to_path_buf(),
            path => plain(&file.parent().unwrap_or(Path::new("")).join(path)),
        };
        Ok((target, decoded(fragment)))
    }

    /// A reference to the component that a schema in another file becomes.
    fn component(&mut self, file: PathBuf, fragment: String, at: &str) -> Result<String, Problem> {
        let key = (file, fragment);
        if let Some(name) = self.named.get(&key) {
            return Ok(format!("#/components/schemas/{name}"));
        }
        let (file, fragment) = &key;
        self.target(file, fragment, at)?;
        let usual = match fragment.rsplit('/').next() {
            Some("") | None => file.file_stem().unwrap_or_default().to_string_lossy(),
            Some(last) => last.into(),
        };
        let usual = usual.replace(|it: char| !it.is_alphanumeric(), "_");
        let is_free = |name: &String| !self.used_names.contains(name);
        let name = numbered(usual).find(is_free).unwrap_or_default();
        self.used_names.push(name.clone());
        self.next.push((file.clone(), fragment.clone(), name.clone()));
        self.named.insert(key, name.clone());
        Ok(format!("#/components/schemas/{name}"))
    }

    /// The value at a fragment of a file.
    fn target(&mut self, file: &Path, fragment: &str, at: &str) -> Result<Value, Problem> {
        let reject = |reason: String| Err(Problem::rejected(at, reason));
        if !self.files.contains_key(file) {
            match (self.read)(file) {
                Ok(read) => drop(self.files.insert(file.to_path_buf(), read)),
                Err(Problem::Io { source, .. }) => {
                    let file = file.display();
                    return reject(format!(
                        "failed to read `{file}` ({}); create the file, or move its content into this document",
                        source.kind()
                    ));
                }
                Err(other) => return Err(other),
            }
        }
        match self.files.get(file).and_then(|(value, _)| value.pointer(fragment)) {
            Some(value) => Ok(value.clone()),
            None => reject(format!(
                "`{}` has nothing at `{fragment}`; define it or correct the reference",
                file.display()
            )),
        }
    }
}

/// The path without `.` and `..`, so that each file has one name.
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
