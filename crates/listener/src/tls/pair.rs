//! A certificate and its private key, read from two files.

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

/// The maximum size of a file in bytes. A certificate chain takes a few kilobytes.
const MAX_FILE_SIZE: u64 = 1024 * 1024;

/// The ALPN protocols, in order of preference.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Returns whether a secret's file with this mode can be read or changed by other users.
pub type IsOpenToOthers = fn(&Path, u32) -> bool;

/// The files of a certificate and its key, in PEM format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TlsFiles {
    /// The server's certificate, followed by those of its issuers.
    pub certificate: PathBuf,
    /// Its private key, which only the owner may read.
    pub key: PathBuf,
}

/// An error about a certificate or its key. It never contains parts of the files.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{option} {path}: {reason}; name a PEM file that this user can read")]
    File {
        /// The option that names the file.
        option: &'static str,
        /// The file.
        path: String,
        /// The error.
        reason: io::Error,
    },
    /// Other users can read the key.
    #[error("--tls-key {0}: other users can read the key; restrict it with: chmod 600")]
    KeyOpen(String),
    /// The file contains no certificate.
    #[error(
        "--tls-certificate {0}: the file contains no certificate; it must contain blocks that begin with \
         -----BEGIN CERTIFICATE-----, the server's own first, followed by those of its issuers"
    )]
    NoCertificate(String),
    /// The file contains no key.
    #[error(
        "--tls-key {0}: the file contains no private key; it must contain a block that begins with \
         -----BEGIN PRIVATE KEY-----, without a password"
    )]
    NoKey(String),
    /// A file is malformed.
    #[error("{option} {path}: {reason}; check that the file is complete")]
    Malformed {
        /// The option that names the file.
        option: &'static str,
        /// The file.
        path: String,
        /// The error.
        reason: String,
    },
    /// The key does not belong to the certificate.
    #[error(
        "--tls-key {key}: the key does not belong to the first certificate in {certificate}; name the key that this \
         certificate was issued for"
    )]
    Mismatch {
        /// The certificate's file.
        certificate: String,
        /// The key's file.
        key: String,
    },
    /// The certificate has expired.
    #[error("the TLS certificate expired at {0}; renew it")]
    Expired(DateTime<Utc>),
    /// The certificate is not valid yet.
    #[error("the TLS certificate is not valid before {0}; wait, or check this machine's clock")]
    NotYetValid(DateTime<Utc>),
    /// The handler for SIGHUP cannot be installed.
    #[error("failed to install the SIGHUP handler: {0}")]
    Signal(io::Error),
    /// The task that reads the files failed.
    #[error("failed to read the TLS certificate: {0}")]
    Reload(tokio::task::JoinError),
}

const CERTIFICATE: &str = "--tls-certificate";
const KEY: &str = "--tls-key";

/// The validity period of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first moment of the period.
    pub begins: DateTime<Utc>,
    /// The last moment of the period.
    pub ends: DateTime<Utc>,
}

impl Validity {
    /// Checks that the certificate is valid now.
    ///
    /// # Errors
    /// If it has expired or is not valid yet.
    pub fn check(&self) -> Result<(), TlsError> {
        let now = Utc::now();
        if now > self.ends {
            return Err(TlsError::Expired(self.ends));
        }
        if now < self.begins {
            return Err(TlsError::NotYetValid(self.begins));
        }
        Ok(())
    }
}

/// Reads a certificate and its key as the service does, and returns the validity period.
///
/// # Errors
/// If they cannot be used.
pub fn inspect(files: &TlsFiles, is_open_to_others: IsOpenToOthers) -> Result<Validity, TlsError> {
    Ok(Pair::read(files, is_open_to_others)?.validity)
}

/// The contents of the two files.
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

    /// Returns a digest that identifies the contents.
    pub fn digest(&self) -> [u8; 32] {
        let hash = |bytes: &[u8]| Sha256::digest(bytes);
        Sha256::digest([hash(&self.certificate), hash(&self.key)].concat()).into()
    }
}

/// A certificate with its key, ready for handshakes. Each pair has a separate configuration, so that a session of one certificate
/// cannot be resumed under another.
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

/// Builds a configuration with TLS 1.2 and 1.3, without client certificates and without 0-RTT.
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

/// Reads a file whose mode passes `check_mode`.
fn read(
    option: &'static str,
    path: &Path,
    check_mode: impl Fn(u32) -> Result<(), TlsError>,
) -> Result<Zeroizing<Vec<u8>>, TlsError> {
    let failed = |reason| TlsError::File {
        option,
        path: path.display().to_string(),
        reason,
    };
    // Checked before opening, because opening a pipe waits for its writer.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("not a file")));
    }
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    check_mode(metadata.permissions().mode())?;
    if metadata.len() > MAX_FILE_SIZE {
        return Err(failed(io::Error::other("larger than 1 MiB")));
    }
    // Allocated in full: a growing buffer would leave copies of parts of the key in memory.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_FILE_SIZE as usize));
    file.take(MAX_FILE_SIZE).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct TestFiles {
        folder: tempfile::TempDir,
        files: TlsFiles,
    }

    fn test_files() -> TestFiles {
        let folder = tempfile::tempdir().unwrap();
        let files = TlsFiles {
            certificate: folder.path().join("tls.crt"),
            key: folder.path().join("tls.key"),
        };
        let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(&files.certificate, generated.cert.pem()).unwrap();
        fs::write(&files.key, generated.signing_key.serialize_pem()).unwrap();
        set_mode(&files.key, 0o600);
        TestFiles { folder, files }
    }

    fn is_open_to_others(_: &Path, mode: u32) -> bool {
        mode & 0o077 != 0
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[track_caller]
    fn assert_rejected(files: &TlsFiles, parts: &[&str]) {
        let message = inspect(files, is_open_to_others).unwrap_err().to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }

    #[test]
    fn a_key_that_its_owner_cannot_write_is_accepted() {
        let TestFiles { folder, files } = test_files();
        set_mode(&files.key, 0o400);
        inspect(&files, is_open_to_others).unwrap().check().unwrap();
        drop(folder);
    }

    #[test]
    fn errors_name_the_option_the_file_and_the_remedy() {
        let TestFiles { folder, files } = test_files();
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

        assert_rejected(
            &with("absent", "tls.key"),
            &["--tls-certificate", "absent", "name a PEM file"],
        );
        assert_rejected(&with("tls.crt", "absent"), &["--tls-key", "absent", "name a PEM file"]);
        assert_rejected(&with(".", "tls.key"), &["--tls-certificate", "not a file"]);
        assert_rejected(
            &with("empty", "tls.key"),
            &["--tls-certificate", "empty", "BEGIN CERTIFICATE"],
        );
        assert_rejected(&with("tls.key", "tls.key"), &["--tls-certificate", "BEGIN CERTIFICATE"]);
        assert_rejected(&with("half", "tls.key"), &["--tls-certificate", "half", "complete"]);
        assert_rejected(
            &with("nonsense", "tls.key"),
            &["--tls-certificate", "nonsense", "complete"],
        );
        assert_rejected(&with("tls.crt", "empty"), &["--tls-key", "empty", "BEGIN PRIVATE KEY"]);
        assert_rejected(
            &with("tls.crt", "other"),
            &["--tls-key", "other", "tls.crt", "does not belong"],
        );
        set_mode(&files.key, 0o640);
        assert_rejected(&files, &["--tls-key", "tls.key", "chmod 600"]);
    }

    #[test]
    fn expired_and_not_yet_valid_certificates_are_distinguished() {
        let TestFiles { folder, files } = test_files();
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
