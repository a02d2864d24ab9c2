//! The folder that is watched. Where a file is says what became of it, and it goes from one place to the next by being renamed:
//! whatever kills this program, the next one finds all of it.
//!
//! | Where | What it means |
//! |---|---|
//! | `FOLDER/NAME.json` | it has come, perhaps not yet whole |
//! | `FOLDER/sending/UUID~NAME.json` | it is being sent; the UUID makes its `external_id`, if it brings none |
//! | `FOLDER/sent/NAME.UUID.json` | it is recorded; the answer is beside it, in `NAME.UUID.answer.json` |
//! | `FOLDER/refused/NAME.UUID.json` | the service, or this program, will not have it; beside it is why |

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use uuid::Uuid;

use super::package::{Package, Unfit};
use crate::failure::Failure;
use crate::file::{NewFile, sync_folder};

/// Characters of a name that are kept: file systems take 255 bytes, of which ids and endings need some.
const NAME_MAX: usize = 48;
/// How much longer than a file that is whole one that is not must have been left alone before it counts as broken,
const PATIENCE: u32 = 15;
/// and at least so long.
const LEAST_PATIENCE: Duration = Duration::from_secs(5);

/// See the module.
pub(super) struct Spool {
    root: PathBuf,
    sending: PathBuf,
    sent: PathBuf,
    refused: PathBuf,
    settle: Duration,
    /// What files that have come looked like when they were first seen so.
    seen: HashMap<OsString, (Look, Instant)>,
    /// The same of claimed ones that are not whole.
    broken: HashMap<PathBuf, (Look, Instant)>,
    _lock: File,
}

/// A file's length and time: when they stay, nobody writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    length: u64,
    modified: Option<SystemTime>,
}

/// A file that is being sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Claimed {
    uuid: Uuid,
    name: String,
    path: PathBuf,
}

/// Where a file goes when it has an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Sent,
    Refused,
}

impl Spool {
    /// Opens a folder, for this process alone. What an end of the one before left half done is done.
    pub(super) fn open(root: &Path, settle: Duration) -> Result<Self, Failure> {
        if !root.is_dir() {
            return Err(Failure::NotFound(format!("{} is no folder", root.display())));
        }
        let lock_path = root.join(".partner.lock");
        let lock = File::create(&lock_path).map_err(Failure::of(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::Refused(format!(
                    "another partner measure --watch has {}",
                    root.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(Failure::of(&lock_path)(error)),
        }
        let folder = |name: &str| {
            let path = root.join(name);
            fs::create_dir_all(&path).map_err(Failure::of(&path)).map(|()| path)
        };
        let spool = Self {
            root: root.to_owned(),
            sending: folder("sending")?,
            sent: folder("sent")?,
            refused: folder("refused")?,
            settle,
            seen: HashMap::new(),
            broken: HashMap::new(),
            _lock: lock,
        };
        sync_folder(root)?;
        spool.finish_what_was_answered()?;
        Ok(spool)
    }

    /// Moves the files that are whole to where they are sent from. True when files are there that may become so.
    pub(super) fn claim(&mut self, now: Instant) -> Result<bool, Failure> {
        let mut here = HashMap::new();
        let mut claimed = false;
        for (name, look) in files(&self.root)? {
            let since = match self.seen.get(&name) {
                Some((before, since)) if *before == look => *since,
                _ => now,
            };
            let alone = now.duration_since(since);
            let patience = (self.settle * PATIENCE).max(LEAST_PATIENCE);
            let is_ready = alone >= self.settle && (self.is_whole(&name) || alone >= patience);
            if is_ready && self.take(&name)? {
                claimed = true;
            } else {
                here.insert(name, (look, since));
            }
        }
        if claimed {
            // Before it is sent its id must be fixed, also for a machine that loses its power.
            sync_folder(&self.sending)?;
            sync_folder(&self.root)?;
        }
        self.seen = here;
        Ok(!self.seen.is_empty())
    }

    /// What is to be sent, in the order in which it was claimed.
    pub(super) fn to_send(&self) -> Result<Vec<Claimed>, Failure> {
        let mut claimed: Vec<_> = files(&self.sending)?
            .into_iter()
            .filter_map(|(name, _)| Claimed::of(&self.sending, &name))
            .collect();
        claimed.sort_unstable();
        Ok(claimed)
    }

    /// The package of a claimed file; `None` while somebody who opened it before still writes it.
    pub(super) fn read(&mut self, file: &Claimed, now: Instant) -> Result<Option<Result<Package, Unfit>>, Failure> {
        let bytes = fs::read(&file.path).map_err(Failure::of(&file.path))?;
        let package = Package::of(&bytes, file.uuid);
        if !matches!(package, Err(Unfit::NotJson(_))) {
            return Ok(Some(package));
        }
        let look = fs::metadata(&file.path)
            .map(|metadata| Look::of(&metadata))
            .map_err(Failure::of(&file.path))?;
        let left_alone = match self.broken.get(&file.path) {
            Some((before, since)) if *before == look => now.duration_since(*since) >= self.settle,
            _ => {
                self.broken.insert(file.path.clone(), (look, now));
                false
            }
        };
        Ok(left_alone.then_some(package))
    }

    /// Puts a file where its answer belongs, the answer first: it is the mark that the file is done with.
    pub(super) fn finish(&self, file: &Claimed, end: End, answer: &Value) -> Result<(), Failure> {
        let folder = self.folder(end);
        let mut answered = NewFile::replacing(&folder.join(file.answer_name()))?;
        answered.write(format!("{answer:#}\n").as_bytes())?;
        answered.replace()?;
        sync_folder(folder)?;
        self.put(file, end)
    }

    /// Files whose answer is there, and which themselves are not.
    fn finish_what_was_answered(&self) -> Result<(), Failure> {
        for file in self.to_send()? {
            for end in [End::Sent, End::Refused] {
                if self.folder(end).join(file.answer_name()).exists() {
                    self.put(&file, end)?;
                    break;
                }
            }
        }
        Ok(())
    }

    fn put(&self, file: &Claimed, end: End) -> Result<(), Failure> {
        let folder = self.folder(end);
        fs::rename(&file.path, folder.join(file.final_name())).map_err(Failure::of(&file.path))?;
        sync_folder(folder)?;
        sync_folder(&self.sending)
    }

    fn folder(&self, end: End) -> &Path {
        match end {
            End::Sent => &self.sent,
            End::Refused => &self.refused,
        }
    }

    fn is_whole(&self, name: &OsStr) -> bool {
        let bytes = fs::read(self.root.join(name)).unwrap_or_default();
        !matches!(Package::of(&bytes, Uuid::nil()), Err(Unfit::NotJson(_)))
    }

    /// Claims a file; false when it could not be had just now, as where Windows lets nobody move what is open.
    fn take(&self, name: &OsStr) -> Result<bool, Failure> {
        let stem: String = Path::new(name)
            .file_stem()
            .unwrap_or(name)
            .to_string_lossy()
            .chars()
            .take(NAME_MAX)
            .collect();
        let claimed = self.sending.join(format!("{}~{stem}.json", Uuid::now_v7()));
        let path = self.root.join(name);
        match fs::rename(&path, &claimed) {
            Ok(()) => Ok(true),
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound
                        | std::io::ErrorKind::PermissionDenied
                        | std::io::ErrorKind::ResourceBusy
                ) =>
            {
                eprintln!("{} could not be taken yet: {error}", path.display());
                Ok(false)
            }
            Err(error) => Err(Failure::of(&path)(error)),
        }
    }
}

impl Claimed {
    fn of(folder: &Path, name: &OsStr) -> Option<Self> {
        let text = name.to_str()?;
        let (uuid, rest) = text.split_once('~')?;
        Some(Self {
            uuid: uuid.parse().ok()?,
            name: rest.strip_suffix(".json")?.to_owned(),
            path: folder.join(name),
        })
    }

    /// What it was called when it came, as far as that was kept.
    pub(super) fn name(&self) -> String {
        format!("{}.json", self.name)
    }

    fn final_name(&self) -> String {
        format!("{}.{}.json", self.name, self.uuid)
    }

    fn answer_name(&self) -> String {
        format!("{}.{}.answer.json", self.name, self.uuid)
    }
}

impl Look {
    fn of(metadata: &Metadata) -> Self {
        Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }
}

/// The files of JSON of a folder; no links, no folders, nothing hidden.
fn files(folder: &Path) -> Result<Vec<(OsString, Look)>, Failure> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(Failure::of(folder))? {
        let entry = entry.map_err(Failure::of(folder))?;
        let name = entry.file_name();
        let is_json = Path::new(&name)
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        // One that went away meanwhile is none.
        let Ok(metadata) = entry.metadata() else { continue };
        if is_json && !is_hidden && metadata.is_file() {
            found.push((name, Look::of(&metadata)));
        }
    }
    Ok(found)
}
