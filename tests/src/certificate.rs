//! Self-signed certificates for TLS, their files, and clients that trust them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use bounded_listener::tls::TlsFiles;
use chrono::{Datelike as _, TimeDelta, Utc};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::Service;

/// A self-signed certificate and its key.
pub struct Certificate(rcgen::CertifiedKey<rcgen::KeyPair>);

impl Certificate {
    /// Returns a new certificate for 127.0.0.1.
    pub fn generate() -> Self {
        Self(rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap())
    }

    /// Returns a new certificate for 127.0.0.1 that expires at the next midnight (UTC) after this number of days.
    pub fn expiring_in(days: i64) -> Self {
        let ends = (Utc::now() + TimeDelta::days(days + 1)).date_naive();
        let (month, day) = (u8::try_from(ends.month()).unwrap(), u8::try_from(ends.day()).unwrap());
        let mut params = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(ends.year(), month, day);
        let signing_key = rcgen::KeyPair::generate().unwrap();
        let cert = params.self_signed(&signing_key).unwrap();
        Self(rcgen::CertifiedKey { cert, signing_key })
    }

    /// Returns the certificate without its key.
    pub fn der(&self) -> CertificateDer<'static> {
        self.0.cert.der().clone()
    }
}

/// The two files that the service reads. They are replaced as ACME clients do it: a new file is written and renamed.
pub struct CertificateFiles {
    folder: tempfile::TempDir,
    /// The paths that the service is configured with.
    pub paths: TlsFiles,
}

impl CertificateFiles {
    /// Returns the files of this certificate.
    pub fn with(certificate: &Certificate) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let paths = TlsFiles {
            certificate: folder.path().join("tls.crt"),
            key: folder.path().join("tls.key"),
        };
        let files = Self { folder, paths };
        files.put_certificate(certificate);
        files.put_key(certificate);
        files
    }

    /// Replaces the certificate.
    pub fn put_certificate(&self, certificate: &Certificate) {
        self.put(&self.paths.certificate, &certificate.0.cert.pem());
    }

    /// Replaces the key.
    pub fn put_key(&self, certificate: &Certificate) {
        self.put(&self.paths.key, &certificate.0.signing_key.serialize_pem());
    }

    fn put(&self, path: &Path, text: &str) {
        let new = self.folder.path().join("new");
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(&new, path).unwrap();
    }
}

/// Returns an HTTP client that trusts only these certificates.
pub fn client_trusting(trusted: &[&Certificate]) -> reqwest::ClientBuilder {
    let certificates = trusted
        .iter()
        .map(|certificate| reqwest::Certificate::from_der(&certificate.der()).unwrap());
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .tls_certs_only(certificates)
}

/// Opens a TLS connection that trusts only these certificates.
pub async fn connect(service: &Service, trusted: &[&Certificate]) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    for certificate in trusted {
        roots.add(certificate.der()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let address = service.base_url.strip_prefix("https://").unwrap();
    let tcp = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap()
}

/// Returns the certificate that the service presents to a new connection.
pub async fn presented(service: &Service, trusted: &[&Certificate]) -> CertificateDer<'static> {
    let connection = connect(service, trusted).await;
    connection.get_ref().1.peer_certificates().unwrap()[0].clone()
}
