//! The watched folder. The path of a file is its state, and a rename moves it to the next state, so a crash loses nothing.
//!
//! | Path | State |
//! |---|---|
//! | `FOLDER/NAME.json`, with a mapping also `NAME.csv`, `NAME.txt` and `NAME.xml` | new, perhaps incomplete |
//! | `FOLDER/sending/UUID~NAME.json` | being sent; the UUID contains the file's time and gives the package its `external_id` and its `measured_at`, unless it has its own |
//! | `FOLDER/sending/UUID~NAME.csv` | an export, before its records become files of their own in the same folder |
//! | `FOLDER/sent/NAME.UUID.json` | recorded; the response is in `NAME.UUID.answer.json` beside it |
//! | `FOLDER/sent/NAME.UUID.csv` | an export whose records became files |
//! | `FOLDER/rejected/NAME.UUID.json` | rejected by the service or by this program; the reason is beside it |
//!
//! The file is long because all these moves share their order of writes and syncs.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::file_time::{time_of, uuid_at};
use super::map::{self, Mapping};
use super::package::{InvalidPackage, Package};
use crate::failure::Failure;
use crate::file::NewFile;
use crate::platform::sync_folder;

/// Characters of a file name that are kept. File systems allow 255 bytes, which must also hold the UUID and the extension.
const NAME_MAX: usize = 48;
/// An incomplete file counts as broken when it has been unchanged for this many times the settle time,
const BROKEN_AFTER_SETTLES: u32 = 15;
/// but at least for this long.
const BROKEN_AFTER_MIN: Duration = Duration::from_secs(5);

/// The maximum number of files that a message names.
const NAMED_MAX: usize = 5;

/// The watched folder and its subfolders.
pub(super) struct Spool {
    root: PathBuf,
    sending: PathBuf,
    sent: PathBuf,
    rejected: PathBuf,
    /// Converts exports, if they are sent too.
    mapping: Option<Mapping>,
    settle: Duration,
    /// The last known state of each new file, and when it was first seen in that state.
    seen: HashMap<OsString, (FileState, Instant)>,
    /// The same for claimed files that are incomplete.
    broken: HashMap<PathBuf, (FileState, Instant)>,
    /// The entries of the folder that are not sent and have been reported.
    reported: HashSet<OsString>,
    _lock: File,
}

/// A file's length and modification time. While both are unchanged, the file is assumed not to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    length: u64,
    modified: Option<SystemTime>,
}

/// A file that is being sent. Files are ordered by their time, then by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Claimed {
    /// The file's time, which counts as the time of the measurement.
    measured_at: Option<DateTime<Utc>>,
    name: String,
    /// `json`, or the extension of an export.
    extension: String,
    uuid: Uuid,
    path: PathBuf,
}

/// The folder to which a processed file is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Sent,
    Rejected,
}

impl Spool {
    /// Locks a folder for this process, and finishes the moves that an earlier process began.
    pub(super) fn open(root: &Path, settle: Duration, mapping: Option<Mapping>) -> Result<Self, Failure> {
        if !root.is_dir() {
            return Err(Failure::NotFound(format!("{} is not a folder", root.display())));
        }
        let lock_path = root.join(".partner.lock");
        let lock = File::create(&lock_path).map_err(Failure::of(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::Rejected(format!(
                    "another partner measure --watch is running in {}",
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
            rejected: folder("rejected")?,
            mapping,
            settle,
            seen: HashMap::new(),
            broken: HashMap::new(),
            reported: HashSet::new(),
            _lock: lock,
        };
        sync_folder(root)?;
        spool.finish_recorded_files()?;
        if spool.mapping.is_none() && !spool.exports()?.is_empty() {
            eprintln!(
                "exports from an earlier watch are in {}; pass --map to send them",
                spool.sending.display()
            );
        }
        Ok(spool)
    }

    /// Moves files to the folder `sending`: those that are complete, and those that cannot become complete. `ahead` is the difference
    /// between the service's clock and this machine's. Returns whether new files remain.
    pub(super) fn claim(&mut self, now: Instant, ahead: TimeDelta) -> Result<bool, Failure> {
        let mut remaining = HashMap::new();
        let mut ready = Vec::new();
        let mut unread = Vec::new();
        let entries = entries(&self.root)?;
        self.reported
            .retain(|name| entries.iter().any(|entry| entry.name == *name));
        for Entry { name, state, extension } in entries {
            if self.reported.contains(&name) {
                continue;
            }
            let since = match self.seen.get(&name) {
                Some((before, since)) if *before == state => *since,
                _ => now,
            };
            let unchanged = now.duration_since(since);
            let broken_after = (self.settle * BROKEN_AFTER_SETTLES).max(BROKEN_AFTER_MIN);
            let is_json = extension.as_deref() == Some("json");
            if unchanged < self.settle || is_json && !self.is_decided(&name) && unchanged < broken_after {
                remaining.insert(name, (state, since));
            } else if is_json || self.mapping.is_some() && is_export(extension.as_deref()) {
                ready.push((state.modified, name, (state, since)));
            } else {
                unread.push(name);
            }
        }
        ready.sort_unstable_by(|left, right| (left.0, &left.1).cmp(&(right.0, &right.1)));
        let mut claimed = false;
        for (modified, name, seen) in ready {
            if self.take(&name, modified, ahead)? {
                claimed = true;
            } else {
                remaining.insert(name, seen);
            }
        }
        if claimed {
            // The ID must be on disk before the file is sent, so that it survives a power failure.
            sync_folder(&self.sending)?;
            sync_folder(&self.root)?;
        }
        self.report(unread);
        self.seen = remaining;
        Ok(!self.seen.is_empty())
    }

    /// Names the entries that are not sent, each once.
    fn report(&mut self, mut unread: Vec<OsString>) {
        if unread.is_empty() {
            return;
        }
        unread.sort_unstable();
        let mut names: Vec<_> = unread
            .iter()
            .take(NAMED_MAX)
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        if let Some(more @ 1..) = unread.len().checked_sub(NAMED_MAX) {
            names.push(format!("{more} more"));
        }
        let root = self.root.display();
        let kinds = match self.mapping {
            Some(_) => ".json, .csv, .txt and .xml",
            None => ".json",
        };
        eprintln!(
            "not sent: {} (only {kinds} files directly in {root} are)",
            names.join(", ")
        );
        self.reported.extend(unread);
    }

    /// Converts the claimed exports to packages, which are files to send. Returns the exports that are invalid, with the reasons.
    pub(super) fn convert(&self) -> Result<Vec<(Claimed, String)>, Failure> {
        let Some(mapping) = &self.mapping else {
            return Ok(Vec::new());
        };
        let mut invalid = Vec::new();
        for export in self.exports()? {
            let bytes = fs::read(&export.path).map_err(Failure::of(&export.path))?;
            let records = match map::convert(mapping, &bytes, &export.path) {
                Ok(records) => records,
                Err(reason) => {
                    invalid.push((export, reason));
                    continue;
                }
            };
            // A crash before the export is moved repeats this, with the same names.
            for (index, record) in records.iter().enumerate() {
                let uuid = record.uuid(export.measured_at);
                // Of records of the same time, the first in the file is sent first.
                let name = format!("{uuid}~{} {:06}.json", export.name, index + 1);
                let mut file = NewFile::replacing(&self.sending.join(name))?;
                file.write(&record.package)?;
                file.replace()?;
            }
            sync_folder(&self.sending)?;
            self.move_to(&export, End::Sent)?;
        }
        Ok(invalid)
    }

    /// Returns the files to send, in their order.
    pub(super) fn to_send(&self) -> Result<Vec<Claimed>, Failure> {
        let claimed = self.claimed()?;
        Ok(claimed.into_iter().filter(|file| file.extension == "json").collect())
    }

    /// Returns the claimed exports.
    fn exports(&self) -> Result<Vec<Claimed>, Failure> {
        let claimed = self.claimed()?;
        Ok(claimed.into_iter().filter(|file| file.extension != "json").collect())
    }

    fn claimed(&self) -> Result<Vec<Claimed>, Failure> {
        let mut claimed: Vec<_> = entries(&self.sending)?
            .into_iter()
            .filter_map(|entry| Claimed::of(&self.sending, &entry.name, entry.extension?))
            .collect();
        claimed.sort_unstable();
        Ok(claimed)
    }

    /// Returns the package of a claimed file, or `None` while a program that opened the file earlier may still write it.
    pub(super) fn read(
        &mut self,
        file: &Claimed,
        now: Instant,
    ) -> Result<Option<Result<Package, InvalidPackage>>, Failure> {
        let bytes = fs::read(&file.path).map_err(Failure::of(&file.path))?;
        let package = Package::of(&bytes, file.uuid, file.measured_at);
        if !package.as_ref().is_err_and(InvalidPackage::is_incomplete) {
            return Ok(Some(package));
        }
        let state = fs::metadata(&file.path)
            .map(|metadata| FileState::of(&metadata))
            .map_err(Failure::of(&file.path))?;
        let is_settled = match self.broken.get(&file.path) {
            Some((before, since)) if *before == state => now.duration_since(*since) >= self.settle,
            _ => {
                self.broken.insert(file.path.clone(), (state, now));
                false
            }
        };
        Ok(is_settled.then_some(package))
    }

    /// Returns the package of a claimed file without the file's time.
    pub(super) fn read_without_time(&self, file: &Claimed) -> Result<Option<Package>, Failure> {
        let bytes = fs::read(&file.path).map_err(Failure::of(&file.path))?;
        Ok(Package::of(&bytes, file.uuid, None).ok())
    }

    /// Writes the response and then moves the file beside it. A file whose response exists is not sent again.
    pub(super) fn finish(&self, file: &Claimed, end: End, response: &Value) -> Result<(), Failure> {
        let folder = self.folder(end);
        let mut response_file = NewFile::replacing(&folder.join(file.response_name()))?;
        response_file.write(format!("{response:#}\n").as_bytes())?;
        response_file.replace()?;
        sync_folder(folder)?;
        self.move_to(file, end)
    }

    /// Moves the files whose response was written before an earlier process ended.
    fn finish_recorded_files(&self) -> Result<(), Failure> {
        for file in self.claimed()? {
            for end in [End::Sent, End::Rejected] {
                if self.folder(end).join(file.response_name()).exists() {
                    self.move_to(&file, end)?;
                    break;
                }
            }
        }
        Ok(())
    }

    fn move_to(&self, file: &Claimed, end: End) -> Result<(), Failure> {
        let folder = self.folder(end);
        fs::rename(&file.path, folder.join(file.final_name())).map_err(Failure::of(&file.path))?;
        sync_folder(folder)?;
        sync_folder(&self.sending)
    }

    fn folder(&self, end: End) -> &Path {
        match end {
            End::Sent => &self.sent,
            End::Rejected => &self.rejected,
        }
    }

    /// Returns whether a file is complete or cannot become complete.
    fn is_decided(&self, name: &OsStr) -> bool {
        let bytes = fs::read(self.root.join(name)).unwrap_or_default();
        !Package::of(&bytes, Uuid::nil(), None).is_err_and(|invalid| invalid.is_incomplete())
    }

    /// Claims a file. Returns false if it cannot be moved yet; Windows, for example, does not move open files.
    fn take(&self, name: &OsStr, modified: Option<SystemTime>, ahead: TimeDelta) -> Result<bool, Failure> {
        let stem: String = Path::new(name)
            .file_stem()
            .unwrap_or(name)
            .to_string_lossy()
            .chars()
            .take(NAME_MAX)
            .collect();
        let uuid = uuid_at(modified, Utc::now(), ahead);
        let extension = lower_extension(name).unwrap_or_default();
        let claimed = self.sending.join(format!("{uuid}~{stem}.{extension}"));
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
                eprintln!("failed to move {}, will retry: {error}", path.display());
                Ok(false)
            }
            Err(error) => Err(Failure::of(&path)(error)),
        }
    }
}

impl Claimed {
    fn of(folder: &Path, name: &OsStr, extension: String) -> Option<Self> {
        let text = name.to_str()?;
        let (uuid, rest) = text.split_once('~')?;
        let uuid: Uuid = uuid.parse().ok()?;
        Some(Self {
            measured_at: time_of(uuid),
            name: rest.strip_suffix(&extension)?.strip_suffix('.')?.to_owned(),
            extension,
            uuid,
            path: folder.join(name),
        })
    }

    /// Returns the original file name, perhaps shortened.
    pub(super) fn name(&self) -> String {
        format!("{}.{}", self.name, self.extension)
    }

    fn final_name(&self) -> String {
        format!("{}.{}.{}", self.name, self.uuid, self.extension)
    }

    fn response_name(&self) -> String {
        format!("{}.{}.answer.json", self.name, self.uuid)
    }
}

impl FileState {
    fn of(metadata: &Metadata) -> Self {
        Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }
}

/// An entry of a folder.
struct Entry {
    name: OsString,
    state: FileState,
    /// The extension in lower case, if it is a file, not a link or a folder.
    extension: Option<String>,
}

/// Returns whether files with this extension may be exports.
fn is_export(extension: Option<&str>) -> bool {
    matches!(extension, Some("csv" | "txt" | "xml"))
}

fn lower_extension(name: &OsStr) -> Option<String> {
    let extension = Path::new(name).extension()?;
    Some(extension.to_string_lossy().to_ascii_lowercase())
}

/// Returns the entries of a folder, without hidden ones and the folders of this program.
fn entries(folder: &Path) -> Result<Vec<Entry>, Failure> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(Failure::of(folder))? {
        let entry = entry.map_err(Failure::of(folder))?;
        let name = entry.file_name();
        let is_ours = ["sending", "sent", "rejected"].iter().any(|ours| name == *ours);
        if is_ours || name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        // Skip a file that was removed since the folder was read.
        let Ok(metadata) = entry.metadata() else { continue };
        found.push(Entry {
            extension: lower_extension(&name).filter(|_| metadata.is_file()),
            state: FileState::of(&metadata),
            name,
        });
    }
    Ok(found)
}
