//! The listener over TLS.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use bounded_listener::Limits;
use bounded_listener::tls::{Tls, TlsFiles};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::setup::{HELLO, Served, ends, exchange, quick, read_response, soon, start_tls};

struct Secure {
    served: Served,
    trusting: Arc<ClientConfig>,
    _folder: tempfile::TempDir,
}

fn start(limits: Limits) -> Secure {
    let folder = tempfile::tempdir().unwrap();
    let files = TlsFiles {
        certificate: folder.path().join("tls.crt"),
        key: folder.path().join("tls.key"),
    };
    let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&files.certificate, generated.cert.pem()).unwrap();
    let mut key = private(&files.key);
    key.write_all(generated.signing_key.serialize_pem().as_bytes()).unwrap();
    Secure {
        served: start_tls(limits, Tls::open(files, |_, _| false).unwrap()),
        trusting: trusting(generated.cert.der().clone()),
        _folder: folder,
    }
}

fn private(path: &std::path::Path) -> std::fs::File {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path).unwrap()
}

fn trusting(certificate: CertificateDer<'static>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

fn name() -> ServerName<'static> {
    "localhost".try_into().unwrap()
}

impl Secure {
    async fn connect(&self) -> TlsStream<TcpStream> {
        let tcp = self.served.connect().await;
        let connector = TlsConnector::from(self.trusting.clone());
        soon(connector.connect(name(), tcp)).await.unwrap()
    }

    /// Returns a ClientHello.
    fn hello(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut client = ClientConnection::new(self.trusting.clone(), name()).unwrap();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    async fn responds_to_others(&self) {
        assert_eq!(exchange(&mut self.connect().await, HELLO).await.status, 200);
    }
}

#[tokio::test]
async fn a_slow_handshake_is_closed_and_does_not_delay_others() {
    let secure = start(Limits {
        handshake: Duration::from_millis(700),
        ..Limits::default()
    });
    let hello = secure.hello();
    let mut waiting = Vec::new();
    // No ClientHello, half of one, and a whole one without a reply to the server's flight.
    for opening in [&[][..], &hello[..hello.len() / 2], &hello] {
        let mut stream = secure.served.connect().await;
        stream.write_all(opening).await.unwrap();
        waiting.push(stream);
    }
    secure.responds_to_others().await;
    for stream in &mut waiting {
        ends(stream).await;
    }
    assert_eq!(secure.served.running.metrics().no_request, waiting.len() as u64);
    secure.responds_to_others().await;
}

#[tokio::test]
async fn a_connection_that_is_slow_in_the_handshake_can_be_evicted() {
    let secure = start(Limits {
        connections: 4,
        connections_per_address: 2,
        ..Limits::default()
    });
    let mut waiting = Vec::new();
    for _ in 0..2 {
        waiting.push(secure.served.connect().await);
    }
    assert_eq!(exchange(&mut secure.connect().await, HELLO).await.status, 200);
    ends(&mut waiting[0]).await;
    assert_eq!(secure.served.running.metrics().evicted, 1);
}

#[tokio::test]
async fn plain_http_gets_a_response_that_asks_for_https() {
    let secure = start(Limits::default());
    let large = [
        b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 40000\r\n\r\n".to_vec(),
        vec![b'x'; 40_000],
    ]
    .concat();
    for request in [HELLO, &large] {
        let mut stream = secure.served.connect().await;
        let response = exchange(&mut stream, request).await;
        assert_eq!(response.status, 400);
        assert_eq!(response.body, b"This port requires HTTPS");
        // A close, not a reset.
        assert_eq!(soon(stream.read(&mut [0])).await.unwrap(), 0);
    }
    let mut nonsense = secure.served.connect().await;
    nonsense.write_all(&[0xff; 100]).await.unwrap();
    ends(&mut nonsense).await;
    secure.served.until(|metrics| metrics.handshake_failed == 3).await;
    secure.responds_to_others().await;
}

/// REQ-6
#[tokio::test(flavor = "multi_thread")]
async fn over_tls_a_client_that_sends_the_whole_body_first_can_read_the_early_response() {
    const SIZE: usize = 5 * 1024 * 1024;
    let secure = start(Limits::default());
    let head = format!("POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: {SIZE}\r\n\r\n");
    for _ in 0..10 {
        let mut stream = secure.connect().await;
        soon(async {
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&vec![b'x'; SIZE]).await.unwrap();
            stream.flush().await.unwrap();
        })
        .await;
        let response = read_response(&mut stream).await;
        assert_eq!((response.status, &response.body[..]), (413, &b"too large"[..]));
    }
}

/// REQ-13
#[tokio::test(flavor = "multi_thread")]
async fn over_tls_a_peer_that_does_not_read_is_disconnected_and_one_that_reads_gets_its_response() {
    let secure = start(Limits {
        idle: Duration::from_secs(60),
        ..quick()
    });
    let mut not_reading = secure.connect().await;
    not_reading
        .write_all(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    let mut reading = secure.connect().await;
    let response = exchange(&mut reading, b"GET /megabyte HTTP/1.1\r\nHost: a\r\n\r\n");
    let (response, ()) = tokio::join!(response, secure.served.until(|metrics| metrics.stalled == 1));
    assert_eq!(response.body.len(), 1024 * 1024);
    secure.responds_to_others().await;
}
