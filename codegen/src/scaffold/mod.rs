//! Files that are written once and then belong to the user: a crate around generated code, the file of an operation,
//! and the line that declares it in its module.
//!
//! They are created from templates. `a/{tag}/{operation}.rs` is the file of each operation; its `{{names}}` are replaced.
//! `a/{tag}/mod.rs.lines` contains lines that are added, in alphabetical order, to a file that does not have them. Existing
//! files are never overwritten.

mod crates;
mod error_body;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::emit::Dispatch;
use crate::error::Problem;
use crate::model::{Api, Operation};
use values::Values;

pub use crates::{OF_EACH_OPERATION, Runtime, init};

/// Returns the templates in an archive, each with its path. A module comes before the lines that are added to it.
pub fn templates(archive: &str) -> Vec<(String, String)> {
    let mut all = crate::archive::files(archive);
    all.sort_by_key(|(path, _)| path.ends_with(".lines"));
    all
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
            let reason = format!("{} already exists and is not overwritten", path.display());
            return Err(Problem::Refused(reason));
        }
        self.new.insert(path.clone());
        self.files.insert(path, text);
        Ok(())
    }

    /// Adds the files and lines of an operation.
    ///
    /// # Errors
    /// If the operation's own file exists, or a template uses an unknown name.
    pub fn operation(
        &mut self,
        templates: &[(String, String)],
        api: &Api,
        operation: &Operation,
    ) -> Result<(), Problem> {
        let values = Values::of(api, operation, self.dispatch);
        for (template, text) in templates {
            let path = values.path(template);
            let text = values
                .text(text)
                .map_err(|name| Problem::Refused(format!("{template}: the name `{{{{{name}}}}}` is unknown")))?;
            if let Some(path) = path.strip_suffix(".lines") {
                let path = self.folder.join(path);
                let before = self.current(&path)?;
                let after = with_lines(before.as_deref().unwrap_or_default(), &text);
                if before.is_none() {
                    self.new.insert(path.clone());
                }
                if before.as_ref() != Some(&after) {
                    self.files.insert(path, after);
                }
            } else if template.contains("{operation}") || self.current(&self.folder.join(&path))?.is_none() {
                self.file(&path, text)?;
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

/// Adds those lines of `new` that the text does not have. Lines in a block, `mod x {` … `}`, are added to the same
/// block.
fn with_lines(text: &str, new: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    let new: Vec<&str> = new.lines().filter(|line| !line.trim().is_empty()).collect();
    match new.as_slice() {
        [first, inner @ .., last] if first.ends_with('{') => {
            let Some(start) = lines.iter().position(|line| line == first) else {
                return text.to_string() + &new.join("\n") + "\n";
            };
            for line in inner {
                let after = lines[start..].iter().position(|line| line == last);
                let end = after.map_or(lines.len(), |after| start + after);
                insert(&mut lines, start + 1, end, line);
            }
        }
        _ => {
            for line in new {
                let end = lines.len();
                insert(&mut lines, 0, end, line);
            }
        }
    }
    lines.join("\n") + "\n"
}

/// Inserts a line in alphabetical order among the lines of `start..end` with the same first word, or after the last.
fn insert(lines: &mut Vec<String>, start: usize, end: usize, line: &str) {
    let name = |line: &str| line.trim().trim_end_matches(';').replace("r#", "");
    let kind = line.rsplit_once(' ').map_or("", |(kind, _)| kind);
    let is_alike = |index: &usize| lines[*index].rsplit_once(' ').is_some_and(|(other, _)| other == kind);
    let alike: Vec<usize> = (start..end).filter(is_alike).collect();
    if alike.iter().any(|index| lines[*index] == line) {
        return;
    }
    let place = alike.iter().find(|index| name(&lines[**index]) > name(line));
    let place = place.copied().or(alike.last().map(|last| last + 1)).unwrap_or(end);
    lines.insert(place, line.to_string());
}
