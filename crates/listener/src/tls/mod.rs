//! TLS at the listener: a certificate and its key from two files, looked at again while the service runs.

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

/// Bytes that TLS keeps for a peer that does not take them. It is no more than a peer must take in the time that it has
/// (`listener::Limits::answer_bytes`), for nobody measures how it takes these.
const BUFFERED: usize = 16 * 1024;

/// What is told to a client that speaks HTTP where TLS is spoken, and how much more of its request is read, so that closing
/// does not take the answer away from it.
const NO_TLS: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 31\r\n\r\n\
    This port is spoken to by HTTPS";
const READ_IN_THE_CLEAR: u64 = 64 * 1024;

/// The certificate in force. Clones share it.
#[derive(Clone, Debug)]
pub struct Tls {
    files: TlsFiles,
    is_open_to_others: IsOpenToOthers,
    pair: Arc<ArcSwap<Pair>>,
    complaint: Arc<ArcSwapOption<String>>,
}

impl Tls {
    /// Reads the files. The key's must not be open to others. A certificate whose time is over, or has not come, is used nevertheless, and the log says so: clients
    /// refuse it, which they would not do less if the service did not start, and its successor is taken up when it comes.
    ///
    /// # Errors
    /// They cannot be used; the message says why, and what to do.
    pub fn open(files: TlsFiles, is_open_to_others: IsOpenToOthers) -> Result<Self, TlsError> {
        let pair = Pair::read(&files, is_open_to_others)?;
        match pair.validity.check() {
            Ok(()) => tracing::info!(ends = %pair.validity.ends, "the TLS certificate is in force"),
            Err(error) => tracing::error!(%error, "clients will refuse the TLS certificate"),
        }
        Ok(Self {
            files,
            is_open_to_others,
            pair: Arc::new(ArcSwap::from_pointee(pair)),
            complaint: Arc::default(),
        })
    }

    /// The handshake of a connection, under the certificate that is in force when it begins.
    ///
    /// # Errors
    /// The peer does not speak TLS, or agrees to nothing that is offered. It has been told.
    pub async fn accept(&self, mut stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let mut first = [0];
        if stream.peek(&mut first).await? == 1 && first[0].is_ascii_uppercase() {
            refuse_plain_http(&mut stream).await?;
            return Err(io::Error::other("plain HTTP"));
        }
        let acceptor = TlsAcceptor::from(self.pair.load().server.clone());
        acceptor
            .accept_with(stream, |session| session.set_buffer_limit(Some(BUFFERED)))
            .await
    }

    /// From when until when the certificate in force is valid.
    #[must_use]
    pub fn validity(&self) -> Validity {
        self.pair.load().validity
    }

    /// Why what is in the files now is not in force; `None` where it is.
    #[must_use]
    pub fn complaint(&self) -> Option<Arc<String>> {
        self.complaint.load_full()
    }

    /// Looks at the files every few seconds and on SIGHUP, from now on and for ever.
    ///
    /// # Errors
    /// The signal cannot be listened for.
    pub fn keep_fresh(self) -> Result<impl Future<Output = ()>, TlsError> {
        reload::keep_fresh(self)
    }
}

/// Says to a client what it does wrong, as it understands it.
async fn refuse_plain_http(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(NO_TLS).await?;
    stream.shutdown().await?;
    let mut rest = stream.take(READ_IN_THE_CLEAR);
    let _ = tokio::time::timeout(
        Duration::from_secs(1),
        tokio::io::copy(&mut rest, &mut tokio::io::sink()),
    )
    .await;
    Ok(())
}
