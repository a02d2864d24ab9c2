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

use super::setup::{HELLO, Served, ask, ends, quick, read_answer, soon, start_tls};

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
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&files.certificate, made.cert.pem()).unwrap();
    let mut key = private(&files.key);
    key.write_all(made.signing_key.serialize_pem().as_bytes()).unwrap();
    Secure {
        served: start_tls(limits, Tls::open(files, |_, _| false).unwrap()),
        trusting: trusting(made.cert.der().clone()),
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

    /// What a client says first.
    fn hello(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut client = ClientConnection::new(self.trusting.clone(), name()).unwrap();
        client.write_tls(&mut bytes).unwrap();
        bytes
    }

    async fn answers_others(&self) {
        assert_eq!(ask(&mut self.connect().await, HELLO).await.status, 200);
    }
}

#[tokio::test]
async fn whoever_dawdles_in_the_handshake_is_ended_and_holds_up_nobody() {
    let secure = start(Limits {
        handshake: Duration::from_millis(700),
        ..Limits::default()
    });
    let hello = secure.hello();
    let mut waiting = Vec::new();
    // Nothing, half of what a client says first, and all of it, but never its answer to the server's.
    for opening in [&[][..], &hello[..hello.len() / 2], &hello] {
        let mut stream = secure.served.connect().await;
        stream.write_all(opening).await.unwrap();
        waiting.push(stream);
    }
    secure.answers_others().await;
    for stream in &mut waiting {
        ends(stream).await;
    }
    assert_eq!(secure.served.running.tally().no_request, waiting.len() as u64);
    secure.answers_others().await;
}

#[tokio::test]
async fn whoever_has_a_seat_and_dawdles_in_the_handshake_gives_way() {
    let secure = start(Limits {
        connections: 4,
        connections_per_address: 2,
        ..Limits::default()
    });
    let mut waiting = Vec::new();
    for _ in 0..2 {
        waiting.push(secure.served.connect().await);
    }
    assert_eq!(ask(&mut secure.connect().await, HELLO).await.status, 200);
    ends(&mut waiting[0]).await;
    assert_eq!(secure.served.running.tally().gave_way, 1);
}

#[tokio::test]
async fn plain_http_is_told_that_it_should_have_been_https() {
    let secure = start(Limits::default());
    let large = [
        b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 40000\r\n\r\n".to_vec(),
        vec![b'x'; 40_000],
    ]
    .concat();
    for request in [HELLO, &large] {
        let mut stream = secure.served.connect().await;
        let answer = ask(&mut stream, request).await;
        assert_eq!(answer.status, 400);
        assert_eq!(answer.body, b"This port is spoken to by HTTPS");
        // The end, and no reset.
        assert_eq!(soon(stream.read(&mut [0])).await.unwrap(), 0);
    }
    let mut nonsense = secure.served.connect().await;
    nonsense.write_all(&[0xff; 100]).await.unwrap();
    ends(&mut nonsense).await;
    secure.served.until(|tally| tally.handshake_failed == 3).await;
    secure.answers_others().await;
}

/// REQ-6
#[tokio::test(flavor = "multi_thread")]
async fn whoever_sends_everything_first_reads_the_early_answer_afterwards_over_tls() {
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
        let answer = read_answer(&mut stream).await;
        assert_eq!((answer.status, &answer.body[..]), (413, &b"too large"[..]));
    }
}

/// REQ-13
#[tokio::test(flavor = "multi_thread")]
async fn whoever_takes_nothing_of_an_answer_is_cut_over_tls_and_whoever_takes_it_gets_it() {
    let secure = start(Limits {
        idle: Duration::from_secs(60),
        ..quick()
    });
    let mut taking_nothing = secure.connect().await;
    taking_nothing
        .write_all(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    let mut taking = secure.connect().await;
    let answer = ask(&mut taking, b"GET /megabyte HTTP/1.1\r\nHost: a\r\n\r\n");
    let (answer, ()) = tokio::join!(answer, secure.served.until(|tally| tally.stalled == 1));
    assert_eq!(answer.body.len(), 1024 * 1024);
    secure.answers_others().await;
}
