//! Merging several versions of one API into one trait, in which operations and types that do not change between
//! consecutive versions occur once.
//!
//! Dropshot gives each endpoint a range of versions and emits a document for each version. Where operations or schemas
//! differ between versions, the newest keeps the plain Rust name. On the wire and in the emitted documents all names
//! stay the same.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Ident;
use semver::Version;
use serde_json::{Value, json};

use crate::error::Problem;
use crate::lint;
use crate::load::Document;
use crate::model::{Api, BodyContent, Operation, ResponseContent, TypeDefinition, Types, Versions};
use crate::naming::{Renamed, unnamed};
use crate::node::{METHODS, escaped, members, schemas};
use crate::read;

/// An operation's path and method.
type Place = (String, String);

/// Merges the documents into one model.
pub fn merged(documents: &[Document]) -> Result<Api, Problem> {
    let versions = ordered(documents)?;
    let new_names = renamed_schemas(&versions);
    let operations = operations(&versions);
    // The newest version comes first, because it keeps the plain names.
    let mut whole: Option<Api> = None;
    for (index, (_, document)) in versions.iter().enumerate().rev() {
        let located = |problem| document.locate(problem);
        let here: Vec<&Run> = operations.iter().filter(|run| run.last == index).collect();
        let names = here
            .iter()
            .filter_map(|run| Some((run.place.clone(), run.name.clone()?)));
        let renamed = Renamed {
            schemas: new_names[index].clone(),
            operations: names.collect(),
        };
        let mut api = read::api_renamed(&document.value, renamed).map_err(located)?;
        api.operations.retain_mut(|operation| {
            let run = here.iter().find(|run| run.is_of(operation));
            operation.versions = run.map(|run| run.versions(&versions)).unwrap_or_default();
            run.is_some()
        });
        whole = Some(match whole {
            None => api,
            Some(newer) => joined(newer, api).map_err(located)?,
        });
    }
    let (_, newest) = &versions[versions.len() - 1];
    let located = |problem| newest.locate(problem);
    let Some(mut api) = whole else {
        return Err(Problem::rejected("#", "at least one document must be given"));
    };
    api.error_codes = read::error_codes(&api.operations).map_err(located)?;
    read::mark_directions(&mut api.types, &api.operations);
    match lint::check(&api, newest.dispatch).into_iter().next() {
        Some(problem) => Err(located(problem)),
        None => Ok(api),
    }
}

/// The documents by version, oldest first.
fn ordered(documents: &[Document]) -> Result<Vec<(Version, &Document)>, Problem> {
    let mut all: Vec<(Version, &Document)> = Vec::new();
    for document in documents {
        let text = document.value["info"]["version"].as_str().unwrap_or_default();
        let rejected = |reason: String| Err(document.locate(Problem::rejected("#/info/version", reason)));
        let version = match text.parse::<Version>() {
            Ok(version) if version.pre.is_empty() && version.build.is_empty() => version,
            _ => return rejected(format!("`{text}` is not a semantic version; write it as `1.0.0`")),
        };
        if let Some((_, other)) = all.iter().find(|(known, _)| *known == version) {
            let other = other.path.display();
            return rejected(format!("{other} has the same version; each document must have its own"));
        }
        all.push((version, document));
    }
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(all)
}

/// Whether two values are equal, including everything that they refer to.
fn same(one: (&Value, &Value), other: (&Value, &Value), assumed: &mut BTreeSet<String>) -> bool {
    match (one.1, other.1) {
        (Value::Object(here), Value::Object(there)) => {
            let known = |members: &serde_json::Map<String, Value>| members.get("$ref")?.as_str().map(str::to_string);
            if let (Some(reference), Some(same_reference)) = (known(here), known(there)) {
                let at = reference.trim_start_matches('#');
                return reference == same_reference
                    && (!assumed.insert(reference.clone())
                        || match (one.0.pointer(at), other.0.pointer(at)) {
                            (Some(here), Some(there)) => same((one.0, here), (other.0, there), assumed),
                            _ => false,
                        });
            }
            here.len() == there.len()
                && here.iter().all(|(key, value)| {
                    let beside = there.get(key);
                    beside.is_some_and(|beside| same((one.0, value), (other.0, beside), assumed))
                })
        }
        (Value::Array(here), Value::Array(there)) => {
            let mut pairs = here.iter().zip(there);
            here.len() == there.len() && pairs.all(|(here, there)| same((one.0, here), (other.0, there), assumed))
        }
        (here, there) => here == there,
    }
}

/// For each document, new names for the schemas that a newer document defines differently.
fn renamed_schemas(versions: &[(Version, &Document)]) -> Vec<BTreeMap<String, String>> {
    let all = versions.iter().map(|(_, document)| schemas(&document.value).collect());
    let all: Vec<BTreeMap<&String, &Value>> = all.collect();
    let names: BTreeSet<&String> = all.iter().flat_map(|schemas| schemas.keys().copied()).collect();
    let mut renamed = vec![BTreeMap::new(); versions.len()];
    for name in names {
        // The newest version of each definition, with its name.
        let mut definitions: Vec<(usize, Option<String>)> = Vec::new();
        for index in (0..versions.len()).rev().filter(|index| all[*index].contains_key(name)) {
            let value = |index: usize| (&versions[index].1.value, all[index][name]);
            let is_same = |(known, _): &&(usize, _)| same(value(index), value(*known), &mut BTreeSet::new());
            let rust = match definitions.iter().find(is_same) {
                Some((_, rust)) => rust.clone(),
                None => {
                    let rust = (!definitions.is_empty()).then(|| format!("{name}V{}", short(index, versions)));
                    definitions.push((index, rust.clone()));
                    rust
                }
            };
            if let Some(rust) = rust {
                renamed[index].insert(name.clone(), rust);
            }
        }
    }
    renamed
}

/// A version as part of a name, shortened as far as it stays unique.
fn short(index: usize, versions: &[(Version, &Document)]) -> String {
    let (version, _) = &versions[index];
    let others = || {
        let others = versions.iter().map(|(other, _)| other);
        others.filter(|other| *other != version)
    };
    if others().all(|other| other.major != version.major) {
        return version.major.to_string();
    }
    match others().all(|other| (other.major, other.minor) != (version.major, version.minor)) {
        true => format!("{}_{}", version.major, version.minor),
        false => format!("{}_{}_{}", version.major, version.minor, version.patch),
    }
}

/// An operation that is unchanged in consecutive versions.
struct Run {
    place: Place,
    /// The first and last version, by index.
    first: usize,
    last: usize,
    /// Its name, if a newer operation has its ID.
    name: Option<String>,
}

impl Run {
    fn is_of(&self, operation: &Operation) -> bool {
        self.place == (operation.path.clone(), operation.method.to_lowercase())
    }

    fn versions(&self, all: &[(Version, &Document)]) -> Versions {
        Versions {
            from: (self.first > 0).then(|| all[self.first].0.to_string()),
            until: all.get(self.last + 1).map(|(version, _)| version.to_string()),
        }
    }
}

fn operations(versions: &[(Version, &Document)]) -> Vec<Run> {
    // The operation together with the parameters of its path item.
    let declaration = |index: usize, (path, method): &Place| {
        let item = versions[index].1.value.pointer(&format!("/paths/{}", escaped(path)))?;
        Some(json!([item.get("parameters"), item.get(method)?]))
    };
    let value = |index: usize| &versions[index].1.value;
    let is_same = |one: (usize, &Value), other: (usize, &Value)| {
        same((value(one.0), one.1), (value(other.0), other.1), &mut BTreeSet::new())
    };
    let mut places: BTreeSet<Place> = BTreeSet::new();
    for (_, document) in versions {
        for (path, _) in members(document.value.get("paths")) {
            places.extend(METHODS.map(|method| (path.clone(), method.to_string())));
        }
    }
    let mut runs: Vec<(Run, String)> = Vec::new();
    for place in places {
        let mut open: Option<(Run, Value)> = None;
        for index in 0..versions.len() {
            let here = declaration(index, &place);
            open = match (open, here) {
                (Some((run, before)), Some(here)) if is_same((run.last, &before), (index, &here)) => {
                    Some((Run { last: index, ..run }, here))
                }
                (before, here) => {
                    runs.extend(before.map(named));
                    let run = Run {
                        place: place.clone(),
                        first: index,
                        last: index,
                        name: None,
                    };
                    here.map(|here| (run, here))
                }
            };
        }
        runs.extend(open.map(named));
    }
    let mut newest: BTreeMap<String, usize> = BTreeMap::new();
    for (run, id) in &runs {
        let last = newest.entry(id.clone()).or_default();
        *last = run.last.max(*last);
    }
    for (run, id) in &mut runs {
        run.name = (newest[id] != run.last).then(|| format!("{id}_v{}", short(run.last, versions)));
    }
    runs.into_iter().map(|(run, _)| run).collect()
}

/// A run with the ID of its operation.
fn named((run, declaration): (Run, Value)) -> (Run, String) {
    let id = declaration[1]["operationId"].as_str().map(str::to_string);
    let id = id.unwrap_or_else(|| unnamed(&run.place.1, &run.place.0));
    (run, id)
}

/// Adds to the newer model everything that only the older version has.
fn joined(mut newer: Api, older: Api) -> Result<Api, Problem> {
    let mut needed = BTreeSet::new();
    for operation in &older.operations {
        mentioned(operation, &mut needed);
    }
    let needed = Types::of(&older.types).reached(needed, TypeDefinition::used);
    for definition in older.types {
        if !needed.contains(&definition.ident) {
            continue;
        }
        match newer.types.iter().find(|known| known.ident == definition.ident) {
            None => newer.types.push(definition),
            Some(known) if known.schema == definition.schema && known.name == definition.name => {}
            Some(known) => {
                let reason = format!(
                    "`{}` is also the Rust name of {} in a newer version; rename one",
                    definition.ident, known.pointer
                );
                return Err(Problem::rejected(&definition.pointer, reason));
            }
        }
    }
    newer.operations.extend(older.operations);
    let is_new = |name: &String| !newer.tags.iter().any(|tag| tag.name == *name);
    let tags: Vec<_> = older.tags.into_iter().filter(|tag| is_new(&tag.name)).collect();
    newer.tags.extend(tags);
    let is_new = |name: &String| !newer.security_schemes.iter().any(|(known, _)| known == name);
    let schemes = older.security_schemes.into_iter();
    let schemes: Vec<_> = schemes.filter(|(name, _)| is_new(name)).collect();
    newer.security_schemes.extend(schemes);
    Ok(newer)
}

/// Collects the types that an operation mentions.
fn mentioned(operation: &Operation, found: &mut BTreeSet<Ident>) {
    for field in operation.inputs() {
        field.ty.mentioned(found);
    }
    match operation.content() {
        Some(BodyContent::Json(ident)) => drop(found.insert(ident.clone())),
        Some(BodyContent::Form(form)) => found.extend(form.refers_to.iter().cloned()),
        Some(BodyContent::Bytes | BodyContent::Multipart) | None => {}
    }
    found.extend(operation.error_type.iter().cloned());
    for success in &operation.successes {
        if let ResponseContent::Json(ident, _) = &success.content {
            found.insert(ident.clone());
        }
    }
}
