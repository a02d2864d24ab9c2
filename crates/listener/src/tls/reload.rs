//! Taking up a new certificate while the service runs.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::Tls;
use super::pair::{Contents, Pair, TlsError};

/// How often the files are looked at. By their contents, for those of links and mounted secrets change where no time of
/// change does.
const LOOK: Duration = Duration::from_secs(3);

/// How long changed files must stay as they are before they are judged: they are replaced one after the other, and not
/// everybody writes a file at once.
const SETTLE: Duration = Duration::from_millis(500);

pub(super) fn keep_fresh(tls: Tls) -> Result<impl Future<Output = ()>, TlsError> {
    let mut hangup = signal(SignalKind::hangup()).map_err(TlsError::Signal)?;
    Ok(async move {
        loop {
            tokio::select! {
                () = sleep(LOOK) => {}
                _ = hangup.recv() => {}
            }
            look(&tls).await;
        }
    })
}

/// Puts into force what is in the files now, if it is new and fits.
async fn look(tls: &Tls) {
    let mut found = read(tls).await;
    while !is_in_force(tls, &found) {
        sleep(SETTLE).await;
        let again = read(tls).await;
        let settled = digest(&again) == digest(&found);
        found = again;
        if settled {
            break;
        }
    }
    if is_in_force(tls, &found) {
        tls.complaint.store(None);
        return;
    }
    let judged = found.and_then(|contents| {
        let pair = Pair::of(&tls.files, &contents)?;
        pair.validity.check()?;
        Ok(pair)
    });
    match judged {
        Ok(pair) => {
            tracing::info!(ends = %pair.validity.ends, "a new TLS certificate is in force");
            tls.pair.store(pair.into());
            tls.complaint.store(None);
        }
        Err(error) => complain(tls, &error),
    }
}

/// Says it once, however often it is found.
fn complain(tls: &Tls, error: &TlsError) {
    let complaint = error.to_string();
    if tls.complaint.load().as_deref() != Some(&complaint) {
        tracing::warn!(%error, "the new TLS certificate is not used, and the one before stays in force");
        tls.complaint.store(Some(complaint.into()));
    }
}

async fn read(tls: &Tls) -> Result<Contents, TlsError> {
    let (files, is_open_to_others) = (tls.files.clone(), tls.is_open_to_others);
    match spawn_blocking(move || Contents::read(&files, is_open_to_others)).await {
        Ok(contents) => contents,
        Err(stopped) => Err(TlsError::Look(stopped)),
    }
}

fn digest(contents: &Result<Contents, TlsError>) -> Option<[u8; 32]> {
    contents.as_ref().ok().map(Contents::digest)
}

fn is_in_force(tls: &Tls, contents: &Result<Contents, TlsError>) -> bool {
    digest(contents) == Some(tls.pair.load().digest)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::tls::TlsFiles;

    fn write(path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    #[tokio::test]
    async fn what_does_not_fit_is_complained_about_once_and_what_fits_is_taken_up() {
        let folder = tempfile::tempdir().unwrap();
        let files = TlsFiles {
            certificate: folder.path().join("tls.crt"),
            key: folder.path().join("tls.key"),
        };
        let made = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (old, new) = (made(), made());
        write(&files.certificate, &old.cert.pem());
        write(&files.key, &old.signing_key.serialize_pem());
        let tls = Tls::open(files.clone(), |_, _| false).unwrap();
        let (in_force, certificate) = (tls.pair.load_full(), old.cert.pem());
        look(&tls).await;
        assert_eq!(tls.complaint(), None);

        let over = || {
            let mut over = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
            over.not_after = rcgen::date_time_ymd(2001, 1, 1);
            over.self_signed(&old.signing_key).unwrap().pem()
        };
        for (bad, part) in [
            (new.cert.pem(), "does not belong"),
            (over(), "ended at 2001-01-01"),
            (certificate[..certificate.len() / 2].to_owned(), "whole"),
            (String::new(), "no certificate"),
        ] {
            write(&files.certificate, &bad);
            look(&tls).await;
            let complaint = tls.complaint().unwrap();
            assert!(complaint.contains(part), "{complaint}");
            look(&tls).await;
            assert!(Arc::ptr_eq(&complaint, &tls.complaint().unwrap()));
            assert!(Arc::ptr_eq(&in_force, &tls.pair.load_full()));
        }

        write(&files.certificate, &certificate);
        look(&tls).await;
        assert_eq!(tls.complaint(), None);
        assert!(Arc::ptr_eq(&in_force, &tls.pair.load_full()));

        write(&files.certificate, &new.cert.pem());
        write(&files.key, &new.signing_key.serialize_pem());
        look(&tls).await;
        assert_eq!(tls.complaint(), None);
        assert!(!Arc::ptr_eq(&in_force, &tls.pair.load_full()));
    }

    #[tokio::test]
    async fn files_that_are_replaced_one_after_the_other_are_judged_when_both_are() {
        let folder = tempfile::tempdir().unwrap();
        let files = TlsFiles {
            certificate: folder.path().join("tls.crt"),
            key: folder.path().join("tls.key"),
        };
        let made = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (old, new) = (made(), made());
        write(&files.certificate, &old.cert.pem());
        write(&files.key, &old.signing_key.serialize_pem());
        let tls = Tls::open(files.clone(), |_, _| false).unwrap();
        let in_force = tls.pair.load_full();

        write(&files.certificate, &new.cert.pem());
        let mut looking = std::pin::pin!(look(&tls));
        // As far as it comes without the key: it has seen the certificate, and rests.
        let early = tokio::time::timeout(SETTLE / 4, looking.as_mut()).await;
        assert!(early.is_err());
        write(&files.key, &new.signing_key.serialize_pem());
        looking.await;
        assert_eq!(tls.complaint(), None);
        assert!(!Arc::ptr_eq(&in_force, &tls.pair.load_full()));
    }
}
