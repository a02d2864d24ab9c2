//! The master key's file, which nobody else can read.

use std::{
    env, fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use data_encoding::HEXLOWER;
use zeroize::Zeroizing;

use super::{MasterKey, MasterKeyError};

/// The environment variable that names the folder of the credentials that systemd loads for a service.
const CREDENTIALS_VARIABLE: &str = "CREDENTIALS_DIRECTORY";

/// Whether the file of a secret, of this mode, can be read or changed by others than its owner, or, as a credential of systemd,
/// than this service.
pub fn is_open_to_others(path: &Path, mode: u32) -> bool {
    is_open(path, mode, credentials().as_deref())
}

/// The folder of this service's credentials, where systemd has made one.
fn credentials() -> Option<PathBuf> {
    env::var_os(CREDENTIALS_VARIABLE).map(PathBuf::from)
}

fn is_open(path: &Path, mode: u32, credentials: Option<&Path>) -> bool {
    // The folder is the service's alone. What stands for the group there is the mask of an access list, which names the
    // service's user: systemd writes 0440 where the file system has such lists.
    let is_credential = credentials.is_some_and(|folder| folder.is_absolute() && path.starts_with(folder));
    let others = if is_credential { 0o037 } else { 0o077 };
    mode & others != 0
}

impl MasterKey {
    /// From a file that holds 64 hex digits and that only its owner can read, or only this service, as a credential of systemd.
    ///
    /// # Errors
    /// The file cannot be read, is open to others, or holds something else.
    pub fn from_file(path: &Path) -> Result<Self, MasterKeyError> {
        Self::from_file_beside(path, credentials().as_deref())
    }

    /// From a file, where systemd has put credentials into a folder, or has not.
    fn from_file_beside(path: &Path, credentials: Option<&Path>) -> Result<Self, MasterKeyError> {
        let shown = path.display().to_string();
        let failed = |source| MasterKeyError::File {
            path: shown.clone(),
            source,
        };
        let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
        if is_open(path, mode, credentials) {
            return Err(MasterKeyError::FileOpen(shown));
        }
        let text = Zeroizing::new(fs::read_to_string(path).map_err(failed)?);
        Self::from_hex(&text, &shown)
    }

    /// From `path`; where there is no such file, makes a key and keeps it there, readable by its owner alone. For the
    /// sandbox: an operator makes the key on purpose.
    ///
    /// # Errors
    /// As [`MasterKey::from_file`], or the file cannot be written.
    pub fn from_file_or_new(path: &Path) -> Result<Self, MasterKeyError> {
        use std::io::Write;
        if path.exists() {
            return Self::from_file(path);
        }
        let failed = |source| MasterKeyError::File {
            path: path.display().to_string(),
            source,
        };
        let key = Self::generate()?;
        let hex = Zeroizing::new(HEXLOWER.encode(&*key.key));
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(failed)?;
        // tempfile makes files of mode 0600; whole or not at all, and never over one that appeared meanwhile.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        file.write_all(hex.as_bytes())
            .and_then(|()| file.as_file().sync_all())
            .map_err(failed)?;
        match file.persist_noclobber(path) {
            Ok(_) => Ok(key),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Self::from_file(path),
            Err(error) => Err(failed(error.error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::HEX;
    use super::*;

    /// KEY-2
    #[test]
    fn a_key_made_for_a_file_is_found_again_and_closed_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("master.key");
        assert!(matches!(MasterKey::from_file(&path), Err(MasterKeyError::File { .. })));
        let made = MasterKey::from_file_or_new(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(made.checks(), MasterKey::from_file_or_new(&path).unwrap().checks());
        for open in [0o644, 0o640, 0o620, 0o610] {
            fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
            assert!(
                matches!(MasterKey::from_file(&path), Err(MasterKeyError::FileOpen(_))),
                "{open:o}"
            );
        }
    }

    /// KEY-2
    #[test]
    fn a_credential_of_systemd_may_be_readable_by_the_group_of_its_access_list_and_nothing_else_may() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("master.key");
        fs::write(&path, HEX).unwrap();
        let admitted = |mode: u32, credentials: Option<&Path>| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            MasterKey::from_file_beside(&path, credentials).is_ok()
        };
        let here = Some(folder.path());
        assert!(admitted(0o440, here) && admitted(0o400, here));
        for (mode, credentials) in [
            (0o440, None),
            (0o440, Some(Path::new(""))),
            (0o440, Some(Path::new("/run/credentials/partner-api.service"))),
            (0o460, here),
            (0o444, here),
        ] {
            assert!(!admitted(mode, credentials), "{mode:o} {credentials:?}");
        }
    }
}
