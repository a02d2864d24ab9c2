//! Generated files and the files there are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::Problem;
use crate::emit::File;

/// How a folder differs from what would be generated.
#[derive(Debug, PartialEq)]
pub enum Difference {
    /// The file is not what would be generated: the first line that differs, from 1.
    Stale(PathBuf, usize),
    /// The file is not there.
    Missing(PathBuf),
    /// The file is there, but nothing would generate it.
    Orphaned(PathBuf),
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Difference::Stale(path, line) => write!(f, "stale: {}:{line}", path.display()),
            Difference::Missing(path) => write!(f, "missing: {}", path.display()),
            Difference::Orphaned(path) => write!(f, "orphaned: {}", path.display()),
        }
    }
}

/// Compares the files in `folder` with `files`.
///
/// # Errors
/// When the folder cannot be read; a folder that is not there is empty.
pub fn differences(folder: &Path, files: &[File]) -> Result<Vec<Difference>, Problem> {
    let mut all = Vec::new();
    for file in files {
        let path = folder.join(&file.name);
        match std::fs::read_to_string(&path) {
            Ok(text) if text == file.text => {}
            Ok(text) => all.push(Difference::Stale(path, first_difference(&text, &file.text))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => all.push(Difference::Missing(path)),
            Err(source) => return Err(Problem::Io { path, source }),
        }
    }
    all.extend(orphans(folder, files)?.into_iter().map(Difference::Orphaned));
    Ok(all)
}

/// Makes `folder` hold `files` and nothing else; returns the paths that changed.
///
/// Each file is replaced at once: whoever reads meanwhile sees the old or the new one, whole.
///
/// # Errors
/// When something cannot be written.
pub fn write(folder: &Path, files: &[File]) -> Result<Vec<PathBuf>, Problem> {
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |source| Problem::Io { path, source }
    };
    std::fs::create_dir_all(folder).map_err(io(folder))?;
    let mut changed = Vec::new();
    for difference in differences(folder, files)? {
        let path = match difference {
            Difference::Stale(path, _) | Difference::Missing(path) => path,
            Difference::Orphaned(path) => {
                std::fs::remove_file(&path).map_err(io(&path))?;
                changed.push(path);
                continue;
            }
        };
        let Some(file) = files.iter().find(|file| folder.join(&file.name) == path) else {
            continue;
        };
        let beside = path.with_extension("rs.new");
        std::fs::write(&beside, &file.text).map_err(io(&beside))?;
        std::fs::rename(&beside, &path).map_err(io(&path))?;
        changed.push(path);
    }
    Ok(changed)
}

fn orphans(folder: &Path, files: &[File]) -> Result<BTreeSet<PathBuf>, Problem> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(source) => {
            return Err(Problem::Io {
                path: folder.into(),
                source,
            });
        }
    };
    let mut orphans = BTreeSet::new();
    for entry in entries {
        let entry = entry.map_err(|source| Problem::Io {
            path: folder.into(),
            source,
        })?;
        if !files.iter().any(|file| entry.file_name() == file.name.as_str()) {
            orphans.insert(entry.path());
        }
    }
    Ok(orphans)
}

fn first_difference(one: &str, other: &str) -> usize {
    let same = one
        .lines()
        .zip(other.lines())
        .take_while(|(one, other)| one == other)
        .count();
    same + 1
}
