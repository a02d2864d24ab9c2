//! A recording proxy between a service and its database. It forwards every byte, and records the executed statements and the number
//! of round trips.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::JoinSet;

use crate::error::BenchError;

/// The name of the socket's file, which PostgreSQL derives from the port.
const SOCKET: &str = ".s.PGSQL.5432";

/// The traffic since the last [`RecordingProxy::take`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The executed statements, in order.
    pub statements: Vec<String>,
    /// The number of round trips. Messages that the service sends while it waits for a reply belong to the same round trip.
    pub round_trips: u64,
}

/// The proxy. Dropping it closes its connections.
pub struct RecordingProxy {
    folder: PathBuf,
    recorded: Rc<RefCell<Recording>>,
    listener: UnixListener,
    target: PathBuf,
}

impl RecordingProxy {
    /// Listens in `folder` for sessions with the server whose socket is in the folder `target`.
    ///
    /// # Errors
    /// If the socket cannot be created.
    pub fn listen(folder: &Path, target: &Path) -> Result<Self, BenchError> {
        std::fs::create_dir_all(folder).map_err(BenchError::io("create the proxy's folder"))?;
        let listener =
            UnixListener::bind(folder.join(SOCKET)).map_err(BenchError::io("listen on the proxy's socket"))?;
        Ok(Self {
            folder: folder.to_owned(),
            recorded: Rc::default(),
            listener,
            target: target.join(SOCKET),
        })
    }

    /// Returns the URL of a database through the proxy, given its direct URL.
    pub fn url(&self, url: &str, socket: &Path) -> String {
        let encode = |path: &Path| path.display().to_string().replace('/', "%2F");
        url.replace(&encode(socket), &encode(&self.folder))
    }

    /// Forwards sessions until the future is dropped.
    pub async fn forward(&self) {
        let mut sessions = JoinSet::new();
        while let Ok((near, _)) = self.listener.accept().await {
            let Ok(far) = UnixStream::connect(&self.target).await else {
                continue;
            };
            let session = Rc::new(RefCell::new(Session::new(self.recorded.clone())));
            let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
            let (requests, replies) = (session.clone(), session);
            sessions.spawn_local(copy(from_near, to_far, move |bytes| requests.borrow_mut().sent(bytes)));
            sessions.spawn_local(copy(from_far, to_near, move |bytes| {
                replies.borrow_mut().received(bytes)
            }));
        }
    }

    /// Returns the traffic since the last call.
    pub fn take(&self) -> Recording {
        std::mem::take(&mut self.recorded.borrow_mut())
    }
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut record: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        record(&buffer[..length]);
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
    // If this fails, the other end notices with its next write.
    let _ = to.shutdown().await;
}

/// The messages of one session; see "Message Formats" in PostgreSQL's documentation.
struct Session {
    recorded: Rc<RefCell<Recording>>,
    /// The first message of a session has no type.
    is_started: bool,
    sent: Vec<u8>,
    received: Vec<u8>,
    /// Prepared statements by name.
    statements: HashMap<String, String>,
    /// Texts of the statements that portals execute, by the portal's name.
    portals: HashMap<String, String>,
    /// Messages that need a reply which has not arrived yet.
    waiting: u64,
}

impl Session {
    fn new(recorded: Rc<RefCell<Recording>>) -> Self {
        Self {
            recorded,
            is_started: false,
            sent: Vec::new(),
            received: Vec::new(),
            statements: HashMap::new(),
            portals: HashMap::new(),
            waiting: 0,
        }
    }

    fn sent(&mut self, bytes: &[u8]) {
        self.sent.extend_from_slice(bytes);
        if !self.is_started {
            let Some(length) = length(&self.sent) else { return };
            if self.sent.len() < length {
                return;
            }
            self.sent.drain(..length);
            self.is_started = true;
        }
        while let Some((kind, body)) = message(&mut self.sent) {
            let mut texts = body
                .split(|byte| *byte == 0)
                .map(|text| String::from_utf8_lossy(text).into_owned());
            let mut text = || texts.next().unwrap_or_default();
            match kind {
                b'P' => {
                    let name = text();
                    self.statements.insert(name, text());
                }
                b'B' => {
                    let (portal, statement) = (text(), text());
                    let statement = self.statements.get(&statement).cloned().unwrap_or_default();
                    self.portals.insert(portal, statement);
                }
                b'E' => {
                    let statement = self.portals.get(&text()).cloned().unwrap_or_default();
                    self.recorded.borrow_mut().statements.push(statement);
                }
                b'Q' => {
                    let all = text();
                    let single = all.split(';').map(str::trim).filter(|single| !single.is_empty());
                    self.recorded.borrow_mut().statements.extend(single.map(str::to_owned));
                    self.expect_reply();
                }
                b'S' => self.expect_reply(),
                _ => {}
            }
        }
    }

    fn expect_reply(&mut self) {
        if self.waiting == 0 {
            self.recorded.borrow_mut().round_trips += 1;
        }
        self.waiting += 1;
    }

    fn received(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
        while let Some((kind, _)) = message(&mut self.received) {
            if kind == b'Z' {
                self.waiting = self.waiting.saturating_sub(1);
            }
        }
    }
}

/// Returns the length in the first four bytes.
fn length(bytes: &[u8]) -> Option<usize> {
    let length = bytes.first_chunk::<4>()?;
    usize::try_from(u32::from_be_bytes(*length)).ok()
}

/// Removes the next complete message, and returns its type and content.
fn message(bytes: &mut Vec<u8>) -> Option<(u8, Vec<u8>)> {
    let kind = *bytes.first()?;
    let length = length(&bytes[1..])?;
    if bytes.len() < 1 + length {
        return None;
    }
    let message: Vec<u8> = bytes.drain(..1 + length).collect();
    Some((kind, message[5..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[kind], length.to_be_bytes().as_slice(), body].concat()
    }

    fn session() -> (Rc<RefCell<Recording>>, Session) {
        let recorded = Rc::default();
        let mut session = Session::new(Rc::clone(&recorded));
        session.sent(&[0, 0, 0, 8, 0, 3, 0, 0]);
        (recorded, session)
    }

    #[test]
    fn an_executed_statement_is_recorded_however_the_bytes_arrive() {
        let (recorded, mut session) = session();
        let sent = [
            framed(b'P', b"s0\0SELECT 1\0\0\0"),
            framed(b'B', b"\0s0\0\0\0\0\0\0\0"),
            framed(b'E', b"\0\0\0\0\0"),
            framed(b'S', b""),
        ]
        .concat();
        for byte in sent {
            session.sent(&[byte]);
        }
        let expected = Recording {
            statements: vec!["SELECT 1".to_owned()],
            round_trips: 1,
        };
        assert_eq!(*recorded.borrow(), expected);
    }

    #[test]
    fn messages_before_the_reply_belong_to_the_same_round_trip() {
        let (recorded, mut session) = session();
        session.sent(&framed(b'Q', b"BEGIN\0"));
        session.sent(&framed(b'Q', b"ROLLBACK TO work; COMMIT\0"));
        assert_eq!(recorded.borrow().round_trips, 1);
        session.received(&framed(b'Z', b"I"));
        session.received(&framed(b'Z', b"I"));
        session.sent(&framed(b'Q', b"SELECT 1\0"));
        assert_eq!(recorded.borrow().round_trips, 2);
        assert_eq!(recorded.borrow().statements.len(), 4);
    }
}
