//! Files that are written once and belong to their owner from then on: a crate around generated code, the file of an
//! operation, the line that names it in its module.
//!
//! They come from templates. `a/{tag}/{operation}.rs.template` is the file of each operation: `{{names}}` in its text are
//! replaced. `a/{tag}/mod.rs.lines` are lines that a file gets if it does not have them, in their alphabetical place
//! among those that begin alike; `mod x {` … `}` puts its lines into that block. Nothing that exists is overwritten.

mod crates;
mod lines;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub use crates::{Runtime, init, operation_templates};
use values::Values;

use crate::Problem;
use crate::emit::Dispatch;
use crate::model::{Api, Operation};

/// A template: where its file goes, and its text.
#[derive(Clone, Debug)]
pub struct Template {
    /// The path, with `{tag}` and `{operation}`, ending in `.template` or `.lines`.
    pub path: String,
    /// The text, with `{{names}}`.
    pub text: String,
}

/// The templates in a folder.
///
/// # Errors
/// When it cannot be read, or holds something that is no template.
pub fn templates(folder: &Path) -> Result<Vec<Template>, Problem> {
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |source| Problem::Io { path, source }
    };
    let mut all = Vec::new();
    let mut next = vec![folder.to_path_buf()];
    while let Some(place) = next.pop() {
        for entry in std::fs::read_dir(&place).map_err(io(&place))? {
            let path = entry.map_err(io(&place))?.path();
            if path.is_dir() {
                next.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).map_err(io(&path))?;
            let inside = path
                .strip_prefix(folder)
                .unwrap_or(&path)
                .to_string_lossy()
                .replace('\\', "/");
            if !inside.ends_with(".template") && !inside.ends_with(".lines") {
                return Err(Problem::Scaffold(format!(
                    "{}: a template ends in `.template` or `.lines`",
                    path.display()
                )));
            }
            all.push(Template { path: inside, text });
        }
    }
    // A module before the lines that go into it.
    all.sort_by_key(|template| (template.path.ends_with(".lines"), template.path.clone()));
    Ok(all)
}

/// What would be written below a folder.
#[derive(Debug)]
pub struct Plan {
    folder: PathBuf,
    dispatch: Dispatch,
    /// The texts of new and of changed files.
    files: BTreeMap<PathBuf, String>,
    /// Those of them that are new.
    new: BTreeSet<PathBuf>,
}

impl Plan {
    /// Nothing yet.
    pub fn new(folder: &Path, dispatch: Dispatch) -> Self {
        Plan {
            folder: folder.into(),
            dispatch,
            files: BTreeMap::new(),
            new: BTreeSet::new(),
        }
    }

    /// A file that must not be there.
    ///
    /// # Errors
    /// When it is.
    pub fn file(&mut self, path: &str, text: String) -> Result<(), Problem> {
        let path = self.folder.join(path);
        if self.current(&path)?.is_some() {
            return Err(Problem::Scaffold(format!(
                "{} is there already, and is not overwritten",
                path.display()
            )));
        }
        self.new.insert(path.clone());
        self.files.insert(path, text);
        Ok(())
    }

    /// Everything that the templates say of an operation.
    ///
    /// # Errors
    /// When the operation's own file is there, or a template names something that is not known.
    pub fn operation(&mut self, templates: &[Template], api: &Api, operation: &Operation) -> Result<(), Problem> {
        let values = Values::of(api, operation, self.dispatch);
        for template in templates {
            let path = values.path(&template.path);
            let text = values
                .text(&template.text)
                .map_err(|name| Problem::Scaffold(format!("{}: `{{{{{name}}}}}` is not known", template.path)))?;
            if let Some(path) = path.strip_suffix(".lines") {
                let path = self.folder.join(path);
                let before = self.current(&path)?;
                let after = lines::with(before.as_deref().unwrap_or_default(), &text);
                if before.is_none() {
                    self.new.insert(path.clone());
                }
                if before.as_ref() != Some(&after) {
                    self.files.insert(path, after);
                }
            } else if let Some(path) = path.strip_suffix(".template") {
                let is_its_own = template.path.contains("{operation}");
                if is_its_own || self.current(&self.folder.join(path))?.is_none() {
                    self.file(path, text)?;
                }
            }
        }
        Ok(())
    }

    /// Writes everything; returns the paths, each with whether it is new.
    ///
    /// # Errors
    /// When something cannot be written.
    pub fn write(self) -> Result<Vec<(PathBuf, bool)>, Problem> {
        let mut written = Vec::new();
        for (path, text) in self.files {
            let io = |source| Problem::Io {
                path: path.clone(),
                source,
            };
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder).map_err(io)?;
            }
            let is_new = self.new.contains(&path);
            match is_new {
                // Whoever was faster keeps theirs.
                true => std::fs::File::create_new(&path)
                    .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
                    .map_err(io)?,
                false => std::fs::write(&path, text).map_err(io)?,
            }
            written.push((path, is_new));
        }
        Ok(written)
    }

    fn current(&self, path: &Path) -> Result<Option<String>, Problem> {
        if let Some(text) = self.files.get(path) {
            return Ok(Some(text.clone()));
        }
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Problem::Io {
                path: path.into(),
                source,
            }),
        }
    }
}
