//! Files that come to be under their names only when they are whole, and take nobody's place.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::{Stream, TryStreamExt as _};
use partner_api_terminal::progress::Progress;
use tempfile::NamedTempFile;

use crate::failure::Failure;

/// A file that is being written beside its place.
pub(crate) struct NewFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl NewFile {
    /// Begins a file that is to be at `path`.
    ///
    /// # Errors
    /// Something is there, or the folder cannot be written.
    pub(crate) fn begin(path: &Path) -> Result<Self, Failure> {
        if path.symlink_metadata().is_ok() {
            return Err(is_there(path));
        }
        Self::replacing(path)
    }

    /// The same, in place of what is there.
    pub(crate) fn replacing(path: &Path) -> Result<Self, Failure> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".partner-").suffix(".part");
        // As any other file that the user makes, not a private one.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        Ok(Self {
            file: builder.tempfile_in(folder).map_err(Failure::of(folder))?,
            path: path.to_owned(),
        })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(Failure::of(&self.path))
    }

    /// Puts it into its place, if that is still free.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.file.as_file().sync_all().map_err(Failure::of(&self.path))?;
        match self.file.persist_noclobber(&self.path) {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Err(is_there(&self.path)),
            Err(error) => Err(Failure::of(&self.path)(error.error)),
        }
    }

    /// Puts it into its place, whatever is there.
    pub(crate) fn replace(self) -> Result<(), Failure> {
        self.file.as_file().sync_all().map_err(Failure::of(&self.path))?;
        let path = self.path;
        self.file
            .persist(&path)
            .map(drop)
            .map_err(|error| Failure::of(&path)(error.error))
    }
}

/// Writes what is downloaded, and shows how far it is.
pub(crate) async fn download<E: Into<Failure>>(
    path: &Path,
    what: &str,
    total: Option<u64>,
    stream: impl Stream<Item = Result<Bytes, E>>,
) -> Result<u64, Failure> {
    let mut file = NewFile::begin(path)?;
    let progress = Progress::of_bytes(what.to_owned(), total);
    let mut stream = std::pin::pin!(stream);
    let mut written = 0;
    while let Some(bytes) = stream.try_next().await.map_err(Into::into)? {
        file.write(&bytes)?;
        written += bytes.len() as u64;
        progress.at(written);
    }
    file.finish()?;
    Ok(written)
}

/// Makes what was done in a folder survive the machine.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), Failure> {
    // Only where folders can be opened.
    if cfg!(unix) {
        fs::File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(Failure::of(folder))?;
    }
    Ok(())
}

fn is_there(path: &Path) -> Failure {
    Failure::Refused(format!("{} is there already; nothing is overwritten", path.display()))
}
