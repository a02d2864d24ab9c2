//! Generated folders: what is in them against what would be, and replacing the one by the other.
//!
//! A generated folder carries a [`MARKER`], which lists the files that were written. Only those, and files that say of
//! themselves that they were generated, are ever replaced or removed; a folder without a marker is taken only while it
//! is empty.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crate::Problem;
use crate::emit::{File, GENERATED};

/// The file that makes a folder a generated one.
pub const MARKER: &str = ".codegen";

const MARKER_HEAD: &str = "\
# This folder belongs to codegen, which replaces and removes the files below and no others. Keep this file beside them.
";

/// What a file is called until it is whole.
const UNFINISHED: &str = ".codegen-unfinished";

/// How a folder differs from what would be generated.
#[derive(Debug, PartialEq)]
pub enum Difference {
    /// The file is not what would be generated: the first line that differs, from 1.
    Stale(PathBuf, usize),
    /// The file is not there.
    Missing(PathBuf),
    /// The file was generated once, but nothing would generate it now.
    Orphaned(PathBuf),
    /// Somebody else's file or folder: it is left alone, but has no business here.
    Foreign(PathBuf),
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Difference::Stale(path, line) => write!(f, "stale: {}:{line}", path.display()),
            Difference::Missing(path) => write!(f, "missing: {}", path.display()),
            Difference::Orphaned(path) => write!(f, "orphaned: {}", path.display()),
            Difference::Foreign(path) => write!(f, "foreign: {}: not generated; move it elsewhere", path.display()),
        }
    }
}

/// Compares the files in `folder` with `files`.
///
/// # Errors
/// When the folder cannot be read, or holds something without being a generated one; a folder that is not there is
/// empty.
pub fn differences(folder: &Path, files: &[File]) -> Result<Vec<Difference>, Problem> {
    let found = Found::of(folder)?;
    let mut all = Vec::new();
    for file in files
        .iter()
        .chain([&marker(files.iter().map(|file| file.name.as_str()))])
    {
        let path = folder.join(&file.name);
        match std::fs::read(&path) {
            Ok(bytes) if bytes == file.text.as_bytes() => {}
            Ok(bytes) => {
                let line = first_difference(&String::from_utf8_lossy(&bytes), &file.text);
                all.push(Difference::Stale(path, line));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => all.push(Difference::Missing(path)),
            Err(source) => return Err(Problem::Io { path, source }),
        }
    }
    let is_generated_now = |name: &&String| files.iter().any(|file| file.name == **name);
    let orphans = found.ours.iter().filter(|name| !is_generated_now(name));
    all.extend(orphans.map(|name| Difference::Orphaned(folder.join(name))));
    let foreign = found.foreign.iter();
    all.extend(foreign.map(|name| Difference::Foreign(folder.join(name))));
    Ok(all)
}

/// Makes `folder` hold `files` and nothing else that was generated; returns the paths that changed.
///
/// All files are written in full beside the old ones before the first is replaced, and each is replaced at once. A run
/// that is interrupted leaves a folder that the next one mends: the marker lists both the old and the new files until
/// the end.
///
/// # Errors
/// When something cannot be written, when the folder holds something without being a generated one, or when a file of
/// somebody else has the name of one that would be written.
pub fn write(folder: &Path, files: &[File]) -> Result<Vec<PathBuf>, Problem> {
    writable(folder, files)?;
    let differences = differences(folder, files)?;
    let found = Found::of(folder)?;
    std::fs::create_dir_all(folder).map_err(io(folder))?;
    for name in &found.unfinished {
        remove(&folder.join(name))?;
    }
    let mut changed = Vec::new();
    let mut replaced: Vec<&File> = Vec::new();
    let mut orphaned = Vec::new();
    for difference in differences {
        match difference {
            Difference::Stale(path, _) | Difference::Missing(path) => {
                let Some(file) = files.iter().find(|file| folder.join(&file.name) == path) else {
                    continue;
                };
                replaced.push(file);
                changed.push(path);
            }
            Difference::Orphaned(path) => orphaned.push(path),
            Difference::Foreign(_) => {}
        }
    }
    let names = files.iter().map(|file| file.name.as_str());
    let meanwhile = marker(names.clone().chain(found.ours.iter().map(String::as_str)));
    if !replaced.is_empty() || !orphaned.is_empty() {
        stage(folder, &meanwhile)?;
        finish(folder, &meanwhile)?;
    }
    for file in &replaced {
        stage(folder, file)?;
    }
    for file in &replaced {
        finish(folder, file)?;
    }
    for path in orphaned {
        remove(&path)?;
        changed.push(path);
    }
    let last = marker(names);
    if std::fs::read_to_string(folder.join(MARKER)).ok().as_ref() != Some(&last.text) {
        stage(folder, &last)?;
        finish(folder, &last)?;
    }
    Ok(changed)
}

/// Whether the server's and the client's folder are two.
///
/// # Errors
/// When they are one: each would remove the other's files.
pub fn apart(server: Option<&Path>, client: Option<&Path>) -> Result<(), Problem> {
    let (Some(server), Some(client)) = (server, client) else {
        return Ok(());
    };
    let whole = |path: &Path| std::fs::canonicalize(path).or_else(|_| std::path::absolute(path));
    if server != client && whole(server).map_err(io(server))? != whole(client).map_err(io(client))? {
        return Ok(());
    }
    Err(Problem::Foreign {
        folder: client.into(),
        what: "is to hold both the server and the client".into(),
        remedy: "name two folders".into(),
    })
}

/// Whether [`write`] may write here; to be asked of every folder before the first is written.
///
/// # Errors
/// As for [`write`], but for what only shows in writing.
pub fn writable(folder: &Path, files: &[File]) -> Result<(), Problem> {
    let found = Found::of(folder)?;
    match files.iter().find(|file| found.foreign.contains(&file.name)) {
        None => Ok(()),
        Some(file) => Err(Problem::Foreign {
            folder: folder.into(),
            what: format!("holds `{}`, which would be replaced but was not generated", file.name),
            remedy: "move that file elsewhere".into(),
        }),
    }
}

/// What a folder holds.
#[derive(Default)]
struct Found {
    /// Files that were generated: listed in the marker, or saying so themselves.
    ours: BTreeSet<String>,
    /// What an interrupted run left.
    unfinished: BTreeSet<String>,
    /// Everything else but the marker.
    foreign: BTreeSet<String>,
}

impl Found {
    fn of(folder: &Path) -> Result<Self, Problem> {
        let mut found = Found::default();
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(found),
            Err(source) => return Err(io(folder)(source)),
        };
        let mut names = BTreeSet::new();
        for entry in entries {
            let entry = entry.map_err(io(folder))?;
            let is_file = entry.file_type().map_err(io(folder))?.is_file();
            names.insert((entry.file_name().to_string_lossy().into_owned(), is_file));
        }
        let Some(listed) = listed(folder)? else {
            let Some((name, _)) = names.first() else {
                return Ok(found);
            };
            let more = match names.len() {
                1 => String::new(),
                count => format!(" and {} more", count - 1),
            };
            return Err(Problem::Foreign {
                folder: folder.into(),
                what: format!("holds `{name}`{more} and has no `{MARKER}` file, so codegen did not write it"),
                remedy: "name a folder that is new or empty; if all in this one was generated, remove it and \
                         generate again"
                    .into(),
            });
        };
        for (name, is_file) in names {
            if name == MARKER {
            } else if is_file && name.ends_with(UNFINISHED) {
                found.unfinished.insert(name);
            } else if is_file && (listed.contains(&name) || says_so(&folder.join(&name))) {
                found.ours.insert(name);
            } else {
                found.foreign.insert(name);
            }
        }
        Ok(found)
    }
}

/// The files that the marker of `folder` lists; `None` without one.
fn listed(folder: &Path) -> Result<Option<BTreeSet<String>>, Problem> {
    let path = folder.join(MARKER);
    match std::fs::read_to_string(&path) {
        Ok(text) if text.starts_with(MARKER_HEAD) => Ok(Some(
            text.lines()
                .filter(|line| !line.starts_with('#'))
                .map(str::to_string)
                .collect(),
        )),
        Ok(_) => Err(Problem::Foreign {
            folder: folder.into(),
            what: format!("has a `{MARKER}` file that codegen did not write"),
            remedy: "name another folder".into(),
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(io(&path)(source)),
    }
}

/// Whether a file says at its beginning that it was generated.
fn says_so(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(512).read_to_end(&mut head));
    let head = String::from_utf8_lossy(&head);
    read.is_ok() && head.lines().take(5).any(|line| line == GENERATED)
}

fn marker<'n>(names: impl Iterator<Item = &'n str>) -> File {
    let names: BTreeSet<&str> = names.collect();
    let mut text = MARKER_HEAD.to_string();
    for name in names {
        text += &format!("{name}\n");
    }
    File {
        name: MARKER.into(),
        text,
    }
}

fn unfinished(folder: &Path, file: &File) -> PathBuf {
    folder.join(format!("{}{UNFINISHED}", file.name))
}

fn stage(folder: &Path, file: &File) -> Result<(), Problem> {
    let path = unfinished(folder, file);
    let whole = |path: &Path| {
        let mut out = std::fs::File::create(path)?;
        out.write_all(file.text.as_bytes())?;
        out.sync_all()
    };
    whole(&path).map_err(io(&path))
}

fn finish(folder: &Path, file: &File) -> Result<(), Problem> {
    let path = folder.join(&file.name);
    std::fs::rename(unfinished(folder, file), &path).map_err(io(&path))
}

fn remove(path: &Path) -> Result<(), Problem> {
    std::fs::remove_file(path).map_err(io(path))
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Problem + use<> {
    let path = path.to_path_buf();
    move |source| Problem::Io { path, source }
}

fn first_difference(one: &str, other: &str) -> usize {
    let same = one
        .lines()
        .zip(other.lines())
        .take_while(|(one, other)| one == other)
        .count();
    same + 1
}
