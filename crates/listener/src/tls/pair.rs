//! A certificate and the key that belongs to it, from their files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{Error as RustlsError, InconsistentKeys, ServerConfig};
use serde::Serialize;
use sha2::{Digest, Sha256};
use thiserror::Error;
use x509_cert::der::Decode;
use zeroize::Zeroizing;

/// What a file may hold. A chain of certificates is some kilobytes.
const LARGEST: u64 = 1024 * 1024;

/// What is offered, what is preferred first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Whether the file of a secret, of this mode, can be read or changed by others than this program.
pub type IsOpenToOthers = fn(&Path, u32) -> bool;

/// Where a certificate and its key are, in PEM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TlsFiles {
    /// The server's certificate, and behind it those of its issuers.
    pub certificate: PathBuf,
    /// Its private key, readable by its owner alone.
    pub key: PathBuf,
}

/// What is wrong with a certificate or its key. Never repeats what is in the files.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{option} {path}: {reason}; name a file in PEM that this user may read")]
    File {
        /// The option that names it.
        option: &'static str,
        /// The file.
        path: String,
        /// Why not.
        reason: io::Error,
    },
    /// The key is open to others.
    #[error("--tls-key {0}: the key can be read by other users; close it with: chmod 600")]
    KeyOpen(String),
    /// There is no certificate.
    #[error(
        "--tls-certificate {0}: no certificate in it; expected a block that begins with -----BEGIN CERTIFICATE-----, the \
         server's own first and those of its issuers behind it"
    )]
    NoCertificate(String),
    /// There is no key.
    #[error(
        "--tls-key {0}: no private key in it; expected a block that begins with -----BEGIN PRIVATE KEY-----, without a \
         password"
    )]
    NoKey(String),
    /// Something in a file is not what it says.
    #[error("{option} {path}: {reason}; see that the file is whole")]
    Malformed {
        /// The option that names the file.
        option: &'static str,
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// They do not belong together.
    #[error(
        "--tls-key {key}: the key does not belong to the first certificate in {certificate}; name the key that this \
         certificate was made for"
    )]
    Mismatch {
        /// The certificate's file.
        certificate: String,
        /// The key's.
        key: String,
    },
    /// The certificate's time is over.
    #[error("the TLS certificate ended at {0}; renew it")]
    Over(DateTime<Utc>),
    /// The certificate's time has not come.
    #[error("the TLS certificate begins at {0}; wait, or set this machine's clock")]
    Early(DateTime<Utc>),
    /// The signal by which operators ask for a look at the files cannot be listened for.
    #[error("SIGHUP cannot be listened for: {0}")]
    Signal(io::Error),
    /// A look at the files did not come to its end.
    #[error("the TLS certificate could not be looked at: {0}")]
    Look(tokio::task::JoinError),
}

const CERTIFICATE: &str = "--tls-certificate";
const KEY: &str = "--tls-key";

/// When a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// From when on.
    pub begins: DateTime<Utc>,
    /// Until when.
    pub ends: DateTime<Utc>,
}

impl Validity {
    /// Whether it is valid now.
    ///
    /// # Errors
    /// Its time is over, or has not come.
    pub fn check(&self) -> Result<(), TlsError> {
        let now = Utc::now();
        if now > self.ends {
            return Err(TlsError::Over(self.ends));
        }
        if now < self.begins {
            return Err(TlsError::Early(self.begins));
        }
        Ok(())
    }
}

/// Reads a certificate and its key as the service would, and says when it is valid.
///
/// # Errors
/// They cannot be used.
pub fn inspect(files: &TlsFiles, is_open_to_others: IsOpenToOthers) -> Result<Validity, TlsError> {
    Ok(Pair::read(files, is_open_to_others)?.validity)
}

/// What the two files hold.
pub(super) struct Contents {
    certificate: Zeroizing<Vec<u8>>,
    key: Zeroizing<Vec<u8>>,
}

impl Contents {
    pub fn read(files: &TlsFiles, is_open_to_others: IsOpenToOthers) -> Result<Self, TlsError> {
        let certificate = read(CERTIFICATE, &files.certificate, |_| Ok(()))?;
        let key = read(KEY, &files.key, |mode| match is_open_to_others(&files.key, mode) {
            false => Ok(()),
            true => Err(TlsError::KeyOpen(files.key.display().to_string())),
        })?;
        Ok(Self { certificate, key })
    }

    /// Tells contents from others.
    pub fn digest(&self) -> [u8; 32] {
        let hash = |bytes: &[u8]| Sha256::digest(bytes);
        Sha256::digest([hash(&self.certificate), hash(&self.key)].concat()).into()
    }
}

/// A certificate with its key, ready for handshakes. A server of its own, so that nobody resumes under one certificate what
/// was agreed under another.
#[derive(Debug)]
pub(super) struct Pair {
    pub server: Arc<ServerConfig>,
    pub validity: Validity,
    pub digest: [u8; 32],
}

impl Pair {
    pub fn read(files: &TlsFiles, is_open_to_others: IsOpenToOthers) -> Result<Self, TlsError> {
        Self::of(files, &Contents::read(files, is_open_to_others)?)
    }

    pub fn of(files: &TlsFiles, contents: &Contents) -> Result<Self, TlsError> {
        let paths = (files.certificate.display().to_string(), files.key.display().to_string());
        let bad_certificate = |reason: String| TlsError::Malformed {
            option: CERTIFICATE,
            path: paths.0.clone(),
            reason,
        };
        let bad_key = |reason: String| TlsError::Malformed {
            option: KEY,
            path: paths.1.clone(),
            reason,
        };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&contents.certificate)
            .collect::<Result<_, _>>()
            .map_err(|error| bad_certificate(error.to_string()))?;
        let first = chain.first().ok_or_else(|| TlsError::NoCertificate(paths.0.clone()))?;
        let validity = validity(first).map_err(|error| bad_certificate(error.to_string()))?;
        let key = PrivateKeyDer::from_pem_slice(&contents.key).map_err(|error| match error {
            PemError::NoItemsFound => TlsError::NoKey(paths.1.clone()),
            error => bad_key(error.to_string()),
        })?;
        let provider = Arc::new(default_provider());
        let certified = CertifiedKey::from_der(chain, key, &provider).map_err(|error| match error {
            RustlsError::InconsistentKeys(InconsistentKeys::KeyMismatch) => TlsError::Mismatch {
                certificate: paths.0.clone(),
                key: paths.1.clone(),
            },
            RustlsError::InvalidCertificate(_) => bad_certificate(error.to_string()),
            error => bad_key(error.to_string()),
        })?;
        let server = server(provider, certified).map_err(|error| bad_key(error.to_string()))?;
        Ok(Self {
            server: Arc::new(server),
            validity,
            digest: contents.digest(),
        })
    }
}

/// TLS 1.2 and 1.3, no client certificates, and nothing of a request before the handshake's end (0-RTT).
fn server(provider: Arc<CryptoProvider>, certified: CertifiedKey) -> Result<ServerConfig, RustlsError> {
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    server.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(server)
}

fn validity(certificate: &CertificateDer<'_>) -> Result<Validity, x509_cert::der::Error> {
    let certificate = x509_cert::Certificate::from_der(certificate)?;
    let validity = certificate.tbs_certificate.validity;
    Ok(Validity {
        begins: validity.not_before.to_system_time().into(),
        ends: validity.not_after.to_system_time().into(),
    })
}

/// A file's bytes, if `may` has nothing against its mode.
fn read(
    option: &'static str,
    path: &Path,
    may: impl Fn(u32) -> Result<(), TlsError>,
) -> Result<Zeroizing<Vec<u8>>, TlsError> {
    let failed = |reason| TlsError::File {
        option,
        path: path.display().to_string(),
        reason,
    };
    // Before it is opened: opening a pipe waits for its writer.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("is no file")));
    }
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    may(metadata.permissions().mode())?;
    if metadata.len() > LARGEST {
        return Err(failed(io::Error::other("is larger than 1 MiB")));
    }
    // Whole at once: a growing buffer would leave pieces of the key behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(LARGEST as usize));
    file.take(LARGEST).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Given {
        folder: tempfile::TempDir,
        files: TlsFiles,
    }

    fn given() -> Given {
        let folder = tempfile::tempdir().unwrap();
        let files = TlsFiles {
            certificate: folder.path().join("tls.crt"),
            key: folder.path().join("tls.key"),
        };
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(&files.certificate, made.cert.pem()).unwrap();
        fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
        set_mode(&files.key, 0o600);
        Given { folder, files }
    }

    fn is_open_to_others(_: &Path, mode: u32) -> bool {
        mode & 0o077 != 0
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[track_caller]
    fn refused(files: &TlsFiles, parts: &[&str]) {
        let message = inspect(files, is_open_to_others).unwrap_err().to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }

    #[test]
    fn a_certificate_and_its_key_are_accepted_also_with_a_key_that_its_owner_cannot_write() {
        let Given { folder, files } = given();
        set_mode(&files.key, 0o400);
        inspect(&files, is_open_to_others).unwrap().check().unwrap();
        drop(folder);
    }

    #[test]
    fn what_is_wrong_is_told_with_the_option_the_file_and_what_to_do() {
        let Given { folder, files } = given();
        let at = |name: &str| folder.path().join(name);
        let with = |certificate: &str, key: &str| TlsFiles {
            certificate: at(certificate),
            key: at(key),
        };
        fs::write(at("empty"), "").unwrap();
        set_mode(&at("empty"), 0o600);
        let whole = fs::read_to_string(&files.certificate).unwrap();
        fs::write(at("half"), &whole[..whole.len() / 2]).unwrap();
        fs::write(
            at("nonsense"),
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        )
        .unwrap();
        let other = rcgen::KeyPair::generate().unwrap();
        fs::write(at("other"), other.serialize_pem()).unwrap();
        set_mode(&at("other"), 0o600);

        refused(
            &with("absent", "tls.key"),
            &["--tls-certificate", "absent", "name a file"],
        );
        refused(&with("tls.crt", "absent"), &["--tls-key", "absent", "name a file"]);
        refused(&with(".", "tls.key"), &["--tls-certificate", "is no file"]);
        refused(
            &with("empty", "tls.key"),
            &["--tls-certificate", "empty", "BEGIN CERTIFICATE"],
        );
        refused(&with("tls.key", "tls.key"), &["--tls-certificate", "BEGIN CERTIFICATE"]);
        refused(&with("half", "tls.key"), &["--tls-certificate", "half", "whole"]);
        refused(
            &with("nonsense", "tls.key"),
            &["--tls-certificate", "nonsense", "whole"],
        );
        refused(&with("tls.crt", "empty"), &["--tls-key", "empty", "BEGIN PRIVATE KEY"]);
        refused(
            &with("tls.crt", "other"),
            &["--tls-key", "other", "tls.crt", "does not belong"],
        );
        set_mode(&files.key, 0o640);
        refused(&files, &["--tls-key", "tls.key", "chmod 600"]);
    }

    #[test]
    fn a_certificate_whose_time_is_over_or_has_not_come_is_told_apart() {
        let Given { folder, files } = given();
        let key = rcgen::KeyPair::generate().unwrap();
        fs::write(&files.key, key.serialize_pem()).unwrap();
        for (from, to, part) in [(2000, 2001, "renew it"), (2200, 2201, "clock")] {
            let mut certificate = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
            certificate.not_before = rcgen::date_time_ymd(from, 1, 1);
            certificate.not_after = rcgen::date_time_ymd(to, 1, 1);
            fs::write(&files.certificate, certificate.self_signed(&key).unwrap().pem()).unwrap();
            let validity = inspect(&files, is_open_to_others).unwrap();
            assert_eq!(validity.ends.to_rfc3339(), format!("{to}-01-01T00:00:00+00:00"));
            let message = validity.check().unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        drop(folder);
    }
}
