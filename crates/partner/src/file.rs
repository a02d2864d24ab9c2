//! Files that appear under their names only when they are complete, and do not overwrite existing ones.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::{Stream, TryStreamExt as _};
use partner_api_terminal::progress::Progress;
use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::platform;

/// A temporary file beside its final path.
pub(crate) struct NewFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl NewFile {
    /// Creates a temporary file for `path`.
    ///
    /// # Errors
    /// `path` exists, or the folder is not writable.
    pub(crate) fn begin(path: &Path) -> Result<Self, Failure> {
        if path.symlink_metadata().is_ok() {
            return Err(already_exists(path));
        }
        Self::replacing(path)
    }

    /// Creates a temporary file that may replace an existing file at `path`.
    pub(crate) fn replacing(path: &Path) -> Result<Self, Failure> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".partner-").suffix(".part");
        platform::share(&mut builder);
        Ok(Self {
            file: builder.tempfile_in(folder).map_err(Failure::of(folder))?,
            path: path.to_owned(),
        })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(Failure::of(&self.path))
    }

    /// Moves the file to its path, unless a file exists there.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.file.as_file().sync_all().map_err(Failure::of(&self.path))?;
        match self.file.persist_noclobber(&self.path) {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Err(already_exists(&self.path)),
            Err(error) => Err(Failure::of(&self.path)(error.error)),
        }
    }

    /// Moves the file to its path and replaces an existing file.
    pub(crate) fn replace(self) -> Result<(), Failure> {
        self.file.as_file().sync_all().map_err(Failure::of(&self.path))?;
        let path = self.path;
        self.file
            .persist(&path)
            .map(drop)
            .map_err(|error| Failure::of(&path)(error.error))
    }
}

/// Writes a download to a new file, shows the progress, and returns the number of bytes.
pub(crate) async fn download<E: Into<Failure>>(
    path: &Path,
    what: &str,
    total: Option<u64>,
    stream: impl Stream<Item = Result<Bytes, E>>,
) -> Result<u64, Failure> {
    let mut file = NewFile::begin(path)?;
    let progress = Progress::of_bytes(what.to_owned(), total);
    let written = receive(&mut file, stream, |written| progress.at(written)).await?;
    file.finish()?;
    Ok(written)
}

/// Writes a stream to a file, calls `on_progress` with the number of bytes so far, and returns their number.
pub(crate) async fn receive<E: Into<Failure>>(
    file: &mut NewFile,
    stream: impl Stream<Item = Result<Bytes, E>>,
    on_progress: impl Fn(u64),
) -> Result<u64, Failure> {
    let mut stream = std::pin::pin!(stream);
    let mut written = 0;
    while let Some(bytes) = stream.try_next().await.map_err(Into::into)? {
        file.write(&bytes)?;
        written += bytes.len() as u64;
        on_progress(written);
    }
    Ok(written)
}

pub(crate) fn already_exists(path: &Path) -> Failure {
    Failure::Rejected(format!("{} already exists and is not overwritten", path.display()))
}
