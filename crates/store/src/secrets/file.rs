//! The file of the master key, which must not be accessible to others.

use std::{
    env, fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use data_encoding::HEXLOWER;
use zeroize::Zeroizing;

use super::{MasterKey, MasterKeyError};

/// The environment variable that names the folder with the credentials that systemd loads for a service.
const CREDENTIALS_VARIABLE: &str = "CREDENTIALS_DIRECTORY";

/// Returns whether other users can read or change a secret's file with this mode. For a systemd credential, these are all users
/// except this service's.
pub fn is_open_to_others(path: &Path, mode: u32) -> bool {
    is_open(path, mode, credentials().as_deref())
}

/// Returns the folder of this service's credentials, if systemd has created one.
fn credentials() -> Option<PathBuf> {
    env::var_os(CREDENTIALS_VARIABLE).map(PathBuf::from)
}

fn is_open(path: &Path, mode: u32, credentials: Option<&Path>) -> bool {
    // Only the service can access the folder. There the group bits are the mask of an access control list that contains the
    // service's user: systemd uses mode 0440 on file systems with access control lists.
    let is_credential = credentials.is_some_and(|folder| folder.is_absolute() && path.starts_with(folder));
    let others = if is_credential { 0o037 } else { 0o077 };
    mode & others != 0
}

impl MasterKey {
    /// Reads the key from a file of 64 hex digits that only its owner can read or, as a systemd credential, only this service.
    ///
    /// # Errors
    /// If the file cannot be read, is accessible to others, or has another content.
    pub fn from_file(path: &Path) -> Result<Self, MasterKeyError> {
        Self::from_file_with_credentials(path, credentials().as_deref())
    }

    /// Reads the key from a file, given the folder of systemd's credentials, if there is one.
    fn from_file_with_credentials(path: &Path, credentials: Option<&Path>) -> Result<Self, MasterKeyError> {
        let shown = path.display().to_string();
        let failed = |source| MasterKeyError::File {
            path: shown.clone(),
            source,
        };
        let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
        if is_open(path, mode, credentials) {
            return Err(MasterKeyError::FilePermissions(shown));
        }
        let text = Zeroizing::new(fs::read_to_string(path).map_err(failed)?);
        Self::from_hex(&text, &shown)
    }

    /// Reads the key from `path`, or creates a key and the file, readable only by its owner, if the file does not exist.
    /// Meant for the sandbox: operators create the key explicitly.
    ///
    /// # Errors
    /// As [`MasterKey::from_file`], or if the file cannot be written.
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
        // tempfile creates files with mode 0600. Persisting is atomic and does not overwrite a file that was created meanwhile.
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
    fn a_new_key_file_is_read_back_and_rejected_if_it_is_accessible_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("master.key");
        assert!(matches!(MasterKey::from_file(&path), Err(MasterKeyError::File { .. })));
        let created = MasterKey::from_file_or_new(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(
            created.fingerprints(),
            MasterKey::from_file_or_new(&path).unwrap().fingerprints()
        );
        for open in [0o644, 0o640, 0o620, 0o610] {
            fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
            assert!(
                matches!(MasterKey::from_file(&path), Err(MasterKeyError::FilePermissions(_))),
                "{open:o}"
            );
        }
    }

    /// KEY-2
    #[test]
    fn only_a_systemd_credential_may_be_readable_by_its_group() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("master.key");
        fs::write(&path, HEX).unwrap();
        let admitted = |mode: u32, credentials: Option<&Path>| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            MasterKey::from_file_with_credentials(&path, credentials).is_ok()
        };
        let credentials = Some(folder.path());
        assert!(admitted(0o440, credentials) && admitted(0o400, credentials));
        for (mode, credentials) in [
            (0o440, None),
            (0o440, Some(Path::new(""))),
            (0o440, Some(Path::new("/run/credentials/partner-api.service"))),
            (0o460, credentials),
            (0o444, credentials),
        ] {
            assert!(!admitted(mode, credentials), "{mode:o} {credentials:?}");
        }
    }
}
