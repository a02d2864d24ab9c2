//! Templates, and the files to be written from them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::lines;
use super::values::Values;

use crate::emit::Dispatch;
use crate::error::Problem;
use crate::model::{Api, Operation};

/// A template.
#[derive(Clone, Debug)]
pub struct Template {
    /// The path of the file, with `{tag}` and `{operation}`, ending in `.template` or `.lines`.
    pub path: String,
    /// The content, with `{{names}}`.
    pub text: String,
}

/// Reads the templates in a folder.
///
/// # Errors
/// If the folder cannot be read, or contains another file.
pub fn templates(folder: &Path) -> Result<Vec<Template>, Problem> {
    let mut all = Vec::new();
    let mut next = vec![folder.to_path_buf()];
    while let Some(place) = next.pop() {
        for entry in std::fs::read_dir(&place).map_err(Problem::io(&place))? {
            let path = entry.map_err(Problem::io(&place))?.path();
            if path.is_dir() {
                next.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).map_err(Problem::io(&path))?;
            let inside = path
                .strip_prefix(folder)
                .unwrap_or(&path)
                .to_string_lossy()
                .replace('\\', "/");
            if !inside.ends_with(".template") && !inside.ends_with(".lines") {
                return Err(Problem::Scaffold(format!(
                    "{}: the name of a template must end in `.template` or `.lines`",
                    path.display()
                )));
            }
            all.push(Template { path: inside, text });
        }
    }
    // A module must exist before lines are added to it.
    all.sort_by_key(|template| (template.path.ends_with(".lines"), template.path.clone()));
    Ok(all)
}

/// The files to be written.
#[derive(Debug)]
pub struct Plan {
    folder: PathBuf,
    dispatch: Dispatch,
    /// The content of new and changed files.
    files: BTreeMap<PathBuf, String>,
    /// Which of them are new.
    new: BTreeSet<PathBuf>,
}

impl Plan {
    /// An empty plan.
    pub fn new(folder: &Path, dispatch: Dispatch) -> Self {
        Plan {
            folder: folder.into(),
            dispatch,
            files: BTreeMap::new(),
            new: BTreeSet::new(),
        }
    }

    /// Adds a new file.
    ///
    /// # Errors
    /// If the file exists.
    pub fn file(&mut self, path: &str, text: String) -> Result<(), Problem> {
        let path = self.folder.join(path);
        if self.current(&path)?.is_some() {
            return Err(Problem::Scaffold(format!(
                "{} already exists and is not overwritten",
                path.display()
            )));
        }
        self.new.insert(path.clone());
        self.files.insert(path, text);
        Ok(())
    }

    /// Adds the files and lines of an operation.
    ///
    /// # Errors
    /// If the operation's own file exists, or a template uses an unknown name.
    pub fn operation(&mut self, templates: &[Template], api: &Api, operation: &Operation) -> Result<(), Problem> {
        let values = Values::of(api, operation, self.dispatch);
        for template in templates {
            let path = values.path(&template.path);
            let text = values.text(&template.text).map_err(|name| {
                Problem::Scaffold(format!("{}: the name `{{{{{name}}}}}` is unknown", template.path))
            })?;
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

    /// Writes the files. Returns their paths, each with whether the file is new.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(self) -> Result<Vec<(PathBuf, bool)>, Problem> {
        let mut written = Vec::new();
        for (path, text) in self.files {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder).map_err(Problem::io(&path))?;
            }
            let is_new = self.new.contains(&path);
            match is_new {
                // A file that was created in the meantime is not overwritten.
                true => std::fs::File::create_new(&path)
                    .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
                    .map_err(Problem::io(&path))?,
                false => std::fs::write(&path, text).map_err(Problem::io(&path))?,
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
            Err(source) => Err(Problem::io(path)(source)),
        }
    }
}
