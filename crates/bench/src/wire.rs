//! What a service says to its database, overheard: a socket between the two that forwards every byte and notes which
//! statements are executed and how often the service waits for an answer.

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

/// A socket's file name: Postgres derives it from the port.
const SOCKET: &str = ".s.PGSQL.5432";

/// What was overheard since the last [`Wire::take`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// The statements that were executed, in their order.
    pub statements: Vec<String>,
    /// How often the service sent something while it waited for nothing: what it sends in one go, and whatever it sends
    /// before the answer to it has come, is one round trip.
    pub round_trips: u64,
}

/// The socket. Dropped, its connections end.
pub struct Wire {
    folder: PathBuf,
    heard: Rc<RefCell<Heard>>,
    listener: UnixListener,
    target: PathBuf,
}

impl Wire {
    /// Listens in `folder` for sessions with the server whose socket is in `target`.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn listen(folder: &Path, target: &Path) -> Result<Self, BenchError> {
        std::fs::create_dir_all(folder).map_err(BenchError::io("make the wire's folder"))?;
        let listener = UnixListener::bind(folder.join(SOCKET)).map_err(BenchError::io("listen on the wire"))?;
        Ok(Self {
            folder: folder.to_owned(),
            heard: Rc::default(),
            listener,
            target: target.join(SOCKET),
        })
    }

    /// The URL of a database behind the wire, from its URL before it.
    pub fn url(&self, url: &str, socket: &Path) -> String {
        let encode = |path: &Path| path.display().to_string().replace('/', "%2F");
        url.replace(&encode(socket), &encode(&self.folder))
    }

    /// Forwards for as long as it is polled.
    pub async fn forward(&self) {
        let mut sessions = JoinSet::new();
        while let Ok((near, _)) = self.listener.accept().await {
            let Ok(far) = UnixStream::connect(&self.target).await else {
                continue;
            };
            let session = Rc::new(RefCell::new(Session::new(self.heard.clone())));
            let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
            let (there, back) = (session.clone(), session);
            sessions.spawn_local(copy(from_near, to_far, move |bytes| there.borrow_mut().sent(bytes)));
            sessions.spawn_local(copy(from_far, to_near, move |bytes| back.borrow_mut().answered(bytes)));
        }
    }

    /// What was overheard since the last call.
    pub fn take(&self) -> Heard {
        std::mem::take(&mut self.heard.borrow_mut())
    }
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut hear: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        hear(&buffer[..length]);
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
    // The other end sees it at its next write, should this fail.
    let _ = to.shutdown().await;
}

/// One session's conversation (PostgreSQL's documentation, "Message Formats").
struct Session {
    heard: Rc<RefCell<Heard>>,
    /// The first message of a session has no type.
    is_started: bool,
    sent: Vec<u8>,
    answered: Vec<u8>,
    /// Prepared statements by name.
    statements: HashMap<String, String>,
    /// Texts of the statements that portals execute, by the portal's name.
    portals: HashMap<String, String>,
    /// Ends of something sent to which the answer has not come.
    waiting: u64,
}

impl Session {
    fn new(heard: Rc<RefCell<Heard>>) -> Self {
        Self {
            heard,
            is_started: false,
            sent: Vec::new(),
            answered: Vec::new(),
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
                    self.heard.borrow_mut().statements.push(statement);
                }
                b'Q' => {
                    let all = text();
                    let single = all.split(';').map(str::trim).filter(|single| !single.is_empty());
                    self.heard.borrow_mut().statements.extend(single.map(str::to_owned));
                    self.end_of_sent();
                }
                b'S' => self.end_of_sent(),
                _ => {}
            }
        }
    }

    fn end_of_sent(&mut self) {
        if self.waiting == 0 {
            self.heard.borrow_mut().round_trips += 1;
        }
        self.waiting += 1;
    }

    fn answered(&mut self, bytes: &[u8]) {
        self.answered.extend_from_slice(bytes);
        while let Some((kind, _)) = message(&mut self.answered) {
            if kind == b'Z' {
                self.waiting = self.waiting.saturating_sub(1);
            }
        }
    }
}

/// The length that the four bytes at the beginning say.
fn length(bytes: &[u8]) -> Option<usize> {
    let length = bytes.first_chunk::<4>()?;
    usize::try_from(u32::from_be_bytes(*length)).ok()
}

/// Takes the next whole message: its type and its content.
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

    fn session() -> (Rc<RefCell<Heard>>, Session) {
        let heard = Rc::default();
        let mut session = Session::new(Rc::clone(&heard));
        session.sent(&[0, 0, 0, 8, 0, 3, 0, 0]);
        (heard, session)
    }

    #[test]
    fn an_executed_statement_is_heard_by_its_text_however_the_bytes_arrive() {
        let (heard, mut session) = session();
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
        let expected = Heard {
            statements: vec!["SELECT 1".to_owned()],
            round_trips: 1,
        };
        assert_eq!(*heard.borrow(), expected);
    }

    #[test]
    fn what_is_sent_before_the_answer_comes_is_the_same_round_trip() {
        let (heard, mut session) = session();
        session.sent(&framed(b'Q', b"BEGIN\0"));
        session.sent(&framed(b'Q', b"ROLLBACK TO work; COMMIT\0"));
        assert_eq!(heard.borrow().round_trips, 1);
        session.answered(&framed(b'Z', b"I"));
        session.answered(&framed(b'Z', b"I"));
        session.sent(&framed(b'Q', b"SELECT 1\0"));
        assert_eq!(heard.borrow().round_trips, 2);
        assert_eq!(heard.borrow().statements.len(), 4);
    }
}
