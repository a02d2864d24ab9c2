//! Certificates, and clients that trust them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use partner_api::tls::TlsFiles;
use partner_api_tests::Service;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A certificate that nobody else has signed, and its key.
pub struct Made(rcgen::CertifiedKey<rcgen::KeyPair>);

impl Made {
    pub fn new() -> Self {
        Self(rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap())
    }

    pub fn der(&self) -> CertificateDer<'static> {
        self.0.cert.der().clone()
    }
}

/// The two files, as an operator's programs replace them: each is written beside and renamed.
pub struct Place {
    folder: tempfile::TempDir,
    pub files: TlsFiles,
}

impl Place {
    pub fn with(made: &Made) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = TlsFiles {
            certificate: folder.path().join("tls.crt"),
            key: folder.path().join("tls.key"),
        };
        let place = Self { folder, files };
        place.put_certificate(made);
        place.put_key(made);
        place
    }

    pub fn put_certificate(&self, made: &Made) {
        self.put(&self.files.certificate, &made.0.cert.pem());
    }

    pub fn put_key(&self, made: &Made) {
        self.put(&self.files.key, &made.0.signing_key.serialize_pem());
    }

    fn put(&self, path: &Path, text: &str) {
        let beside = self.folder.path().join("beside");
        fs::write(&beside, text).unwrap();
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(&beside, path).unwrap();
    }
}

/// An HTTP client that trusts these alone.
pub fn trusting(made: &[&Made]) -> reqwest::ClientBuilder {
    let certificates = made
        .iter()
        .map(|made| reqwest::Certificate::from_der(&made.der()).unwrap());
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .tls_certs_only(certificates)
}

/// A connection that trusts these alone.
pub async fn connect(service: &Service, made: &[&Made]) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    for made in made {
        roots.add(made.der()).unwrap();
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

/// The certificate that a new connection is shown.
pub async fn shown(service: &Service, made: &[&Made]) -> CertificateDer<'static> {
    let connection = connect(service, made).await;
    connection.get_ref().1.peer_certificates().unwrap()[0].clone()
}
