//! TLS with a certificate and a key from two files, which are reloaded when they change.

mod pair;
mod reload;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub use pair::{IsOpenToOthers, TlsError, TlsFiles, Validity, inspect};

use pair::Pair;

/// Bytes that TLS buffers for a peer that does not read. The limit for stalled responses does not cover these bytes, so there
/// are no more than `Limits::response_bytes`.
const SEND_BUFFER: usize = 16 * 1024;

/// The response to plain HTTP on a TLS port.
const PLAIN_HTTP_RESPONSE: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 24\r\n\r\n\
    This port requires HTTPS";
/// Bytes of such a request that are read after the response, so that closing the socket does not discard the response.
const MAX_PLAIN_HTTP: u64 = 64 * 1024;

/// The current certificate. Clones share it.
#[derive(Clone, Debug)]
pub struct Tls {
    files: TlsFiles,
    is_open_to_others: IsOpenToOthers,
    pair: Arc<ArcSwap<Pair>>,
    rejection: Arc<ArcSwapOption<String>>,
}

impl Tls {
    /// Reads the files. An expired or not yet valid certificate is used as well, with an error in the log: clients reject it,
    /// but the service runs and loads the next certificate when it arrives.
    ///
    /// # Errors
    /// If the files cannot be used, or the key's file can be read by other users.
    pub fn open(files: TlsFiles, is_open_to_others: IsOpenToOthers) -> Result<Self, TlsError> {
        let pair = Pair::read(&files, is_open_to_others)?;
        match pair.validity.check() {
            Ok(()) => tracing::info!(expires = %pair.validity.ends, "loaded the TLS certificate"),
            Err(error) => tracing::error!(%error, "clients will reject the TLS certificate"),
        }
        Ok(Self {
            files,
            is_open_to_others,
            pair: Arc::new(ArcSwap::from_pointee(pair)),
            rejection: Arc::default(),
        })
    }

    /// Performs the handshake of a connection with the current certificate.
    ///
    /// # Errors
    /// If the peer does not use TLS, or the two sides support no common parameters. The peer has been sent the reason.
    pub async fn accept(&self, mut stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let mut first = [0];
        if stream.peek(&mut first).await? == 1 && first[0].is_ascii_uppercase() {
            reject_plain_http(&mut stream).await?;
            return Err(io::Error::other("plain HTTP"));
        }
        let acceptor = TlsAcceptor::from(self.pair.load().server.clone());
        acceptor
            .accept_with(stream, |session| session.set_buffer_limit(Some(SEND_BUFFER)))
            .await
    }

    /// Returns the validity period of the current certificate.
    #[must_use]
    pub fn validity(&self) -> Validity {
        self.pair.load().validity
    }

    /// Returns why the current files are not used; `None` if they are.
    #[must_use]
    pub fn rejection(&self) -> Option<Arc<String>> {
        self.rejection.load_full()
    }

    /// Returns a future that reloads changed files, every few seconds and on SIGHUP. It never completes.
    ///
    /// # Errors
    /// If the signal handler cannot be installed.
    pub fn watch_files(self) -> Result<impl Future<Output = ()>, TlsError> {
        reload::watch_files(self)
    }
}

/// Responds to plain HTTP with an error that the client can read.
async fn reject_plain_http(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(PLAIN_HTTP_RESPONSE).await?;
    stream.shutdown().await?;
    let mut rest = stream.take(MAX_PLAIN_HTTP);
    let _ = tokio::time::timeout(
        Duration::from_secs(1),
        tokio::io::copy(&mut rest, &mut tokio::io::sink()),
    )
    .await;
    Ok(())
}
