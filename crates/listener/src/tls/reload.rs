//! Hot reload of the TLS certificate.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::Tls;
use super::pair::{Contents, Pair, TlsError};

/// How often the files are read. Their contents are compared, because the modification times of symbolic links and mounted
/// secrets do not change reliably.
const POLL_INTERVAL: Duration = Duration::from_secs(3);

/// How long changed files must stay unchanged before they are used, because the two files are not replaced at the same time.
const UNCHANGED_PERIOD: Duration = Duration::from_millis(500);

pub(super) fn watch_files(tls: Tls) -> Result<impl Future<Output = ()>, TlsError> {
    let mut hangup = signal(SignalKind::hangup()).map_err(TlsError::Signal)?;
    Ok(async move {
        loop {
            tokio::select! {
                () = sleep(POLL_INTERVAL) => {}
                _ = hangup.recv() => {}
            }
            reload(&tls).await;
        }
    })
}

/// Loads the files if they have changed and are valid.
async fn reload(tls: &Tls) {
    let mut found = read(tls).await;
    while !is_current(tls, &found) {
        sleep(UNCHANGED_PERIOD).await;
        let again = read(tls).await;
        let settled = digest(&again) == digest(&found);
        found = again;
        if settled {
            break;
        }
    }
    if is_current(tls, &found) {
        tls.rejection.store(None);
        return;
    }
    let valid_pair = found.and_then(|contents| {
        let pair = Pair::of(&tls.files, &contents)?;
        pair.validity.check()?;
        Ok(pair)
    });
    match valid_pair {
        Ok(pair) => {
            tracing::info!(expires = %pair.validity.ends, "loaded a new TLS certificate");
            tls.pair.store(pair.into());
            tls.rejection.store(None);
        }
        Err(error) => reject(tls, &error),
    }
}

/// Records why the files were rejected, and logs each reason once.
fn reject(tls: &Tls, error: &TlsError) {
    let rejection = error.to_string();
    if tls.rejection.load().as_deref() != Some(&rejection) {
        tracing::warn!(%error, "rejected the new TLS certificate; the previous one stays active");
        tls.rejection.store(Some(rejection.into()));
    }
}

async fn read(tls: &Tls) -> Result<Contents, TlsError> {
    let (files, is_open_to_others) = (tls.files.clone(), tls.is_open_to_others);
    match spawn_blocking(move || Contents::read(&files, is_open_to_others)).await {
        Ok(contents) => contents,
        Err(stopped) => Err(TlsError::Reload(stopped)),
    }
}

fn digest(contents: &Result<Contents, TlsError>) -> Option<[u8; 32]> {
    contents.as_ref().ok().map(Contents::digest)
}

fn is_current(tls: &Tls, contents: &Result<Contents, TlsError>) -> bool {
    digest(contents) == Some(tls.pair.load().digest)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::sync::Arc;

    use rcgen::{CertifiedKey, KeyPair};

    use super::*;
    use crate::tls::TlsFiles;

    fn write(path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn generate() -> CertifiedKey<KeyPair> {
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap()
    }

    /// Writes a certificate and its key into a folder, and opens them.
    fn open(folder: &tempfile::TempDir, pair: &CertifiedKey<KeyPair>) -> (Tls, TlsFiles) {
        let files = TlsFiles {
            certificate: folder.path().join("tls.crt"),
            key: folder.path().join("tls.key"),
        };
        write(&files.certificate, &pair.cert.pem());
        write(&files.key, &pair.signing_key.serialize_pem());
        (Tls::open(files.clone(), |_, _| false).unwrap(), files)
    }

    #[tokio::test]
    async fn invalid_files_are_rejected_once_and_valid_files_are_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (generate(), generate());
        let (tls, files) = open(&folder, &old);
        let (previous, certificate) = (tls.pair.load_full(), old.cert.pem());
        reload(&tls).await;
        assert_eq!(tls.rejection(), None);

        let expired = || {
            let mut expired = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
            expired.not_after = rcgen::date_time_ymd(2001, 1, 1);
            expired.self_signed(&old.signing_key).unwrap().pem()
        };
        for (bad, part) in [
            (new.cert.pem(), "does not belong"),
            (expired(), "expired at 2001-01-01"),
            (certificate[..certificate.len() / 2].to_owned(), "complete"),
            (String::new(), "no certificate"),
        ] {
            write(&files.certificate, &bad);
            reload(&tls).await;
            let rejection = tls.rejection().unwrap();
            assert!(rejection.contains(part), "{rejection}");
            reload(&tls).await;
            assert!(Arc::ptr_eq(&rejection, &tls.rejection().unwrap()));
            assert!(Arc::ptr_eq(&previous, &tls.pair.load_full()));
        }

        write(&files.certificate, &certificate);
        reload(&tls).await;
        assert_eq!(tls.rejection(), None);
        assert!(Arc::ptr_eq(&previous, &tls.pair.load_full()));

        write(&files.certificate, &new.cert.pem());
        write(&files.key, &new.signing_key.serialize_pem());
        reload(&tls).await;
        assert_eq!(tls.rejection(), None);
        assert!(!Arc::ptr_eq(&previous, &tls.pair.load_full()));
    }

    #[tokio::test]
    async fn files_that_are_replaced_one_after_the_other_are_loaded_together() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (generate(), generate());
        let (tls, files) = open(&folder, &old);
        let previous = tls.pair.load_full();

        write(&files.certificate, &new.cert.pem());
        let mut reloading = std::pin::pin!(reload(&tls));
        // It has read the new certificate and waits for the files to settle.
        let early = tokio::time::timeout(UNCHANGED_PERIOD / 4, reloading.as_mut()).await;
        assert!(early.is_err());
        write(&files.key, &new.signing_key.serialize_pem());
        reloading.await;
        assert_eq!(tls.rejection(), None);
        assert!(!Arc::ptr_eq(&previous, &tls.pair.load_full()));
    }
}
