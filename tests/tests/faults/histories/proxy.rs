//! A proxy between a replica and PostgreSQL that reads the frames of the protocol, and cuts, delays or drops them.
//!
//! A fault can be tied to a statement: it strikes before the server receives the statement, within its frame, or after the server
//! has executed it and before the replica receives the response. So a test can lose exactly the response to a `COMMIT`.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::unix;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The code of a startup message that cancels a statement; nothing follows it.
const CANCEL_REQUEST: u32 = 80_877_102;

/// The code of a startup message that asks whether the server supports TLS; it responds with one byte.
const SSL_REQUEST: u32 = 80_877_103;

/// Where a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The server does not receive the statement.
    Before,
    /// The server receives half of the frame.
    Within,
    /// The server executes the statement, and the replica does not receive the response.
    After,
}

/// A fault of a connection.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    /// It is closed.
    Cut,
    /// Nothing is forwarded for this time; then it continues. [`Place::Within`] closes it instead.
    Delay(Duration),
    /// Nothing is forwarded for this time; then it is closed.
    Swallow(Duration),
}

/// A fault that strikes once, at the next execution of a statement.
#[derive(Clone, Copy, Debug)]
pub struct Trap {
    /// The beginning of the statement's text.
    pub statement: &'static str,
    /// Where the fault strikes.
    pub place: Place,
    /// The fault that happens then.
    pub action: Action,
}

struct Shared {
    socket: PathBuf,
    trap: Mutex<Option<Trap>>,
    /// The number of faults that have struck.
    struck: watch::Sender<usize>,
    /// Connections of an earlier generation are closed.
    generation: watch::Sender<usize>,
    /// Whether no frame is forwarded.
    is_stalled: watch::Sender<bool>,
}

/// A proxy to the server on a Unix socket. Its connections end when it is dropped.
pub struct Proxy {
    /// The address of the proxy, which stays the same.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    listening: Mutex<Option<JoinHandle<()>>>,
}

impl Proxy {
    /// Starts a proxy to the server that listens on `socket`.
    pub async fn start(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            socket,
            trap: Mutex::default(),
            struck: watch::Sender::new(0),
            generation: watch::Sender::new(0),
            is_stalled: watch::Sender::new(false),
        });
        let listening = Mutex::new(Some(tokio::spawn(accept(listener, shared.clone()))));
        Self {
            address,
            shared,
            listening,
        }
    }

    /// Sets a trap, and waits until it strikes, for at most `patience`. Returns whether it struck.
    pub async fn trap(&self, trap: Trap, patience: Duration) -> bool {
        let mut struck = self.shared.struck.subscribe();
        struck.mark_unchanged();
        *self.shared.trap.lock().unwrap() = Some(trap);
        let has_struck = tokio::time::timeout(patience, struck.changed()).await.is_ok();
        *self.shared.trap.lock().unwrap() = None;
        has_struck
    }

    /// Closes all connections.
    pub fn cut(&self) {
        self.shared.generation.send_modify(|generation| *generation += 1);
    }

    /// Forwards nothing for a time, as a network does that loses every packet; then closes the connections.
    pub async fn black_hole(&self, time: Duration) {
        self.shared.is_stalled.send_replace(true);
        tokio::time::sleep(time).await;
        self.cut();
        self.shared.is_stalled.send_replace(false);
    }

    /// Closes all connections, and refuses new ones for a time.
    pub async fn refuse(&self, time: Duration) {
        let listening = self.listening.lock().unwrap().take().expect("it listens");
        listening.abort();
        // The listener is closed when its task has ended.
        let _ = listening.await;
        self.cut();
        tokio::time::sleep(time).await;
        let listener = TcpListener::bind(self.address).await.unwrap();
        *self.listening.lock().unwrap() = Some(tokio::spawn(accept(listener, self.shared.clone())));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
        if let Some(listening) = self.listening.lock().unwrap().take() {
            listening.abort();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let shared = shared.clone();
        tokio::spawn(async move {
            let mut generation = shared.generation.subscribe();
            generation.mark_unchanged();
            // The connection ends with an error, a fault or a cut; both sides are then closed.
            tokio::select! {
                _ = Connection::forward(client, &shared) => {}
                _ = generation.changed() => {}
            }
        });
    }
}

/// A response that the replica must not receive.
#[derive(Clone, Copy)]
struct Withheld {
    /// The number of the request's cycle; each `Sync` and each simple query ends one.
    cycle: usize,
    action: Action,
}

/// The shared state of a connection's two directions.
struct Connection<'s> {
    shared: &'s Shared,
    /// Whether the client's first message is [`SSL_REQUEST`]; `None` until it has arrived.
    asks_for_tls: watch::Sender<Option<bool>>,
    withheld: Mutex<Option<Withheld>>,
}

impl Connection<'_> {
    async fn forward(client: TcpStream, shared: &Shared) -> io::Result<()> {
        let server = UnixStream::connect(&shared.socket).await?;
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        let connection = Connection {
            shared,
            asks_for_tls: watch::Sender::new(None),
            withheld: Mutex::default(),
        };
        tokio::select! {
            result = connection.requests(from_client, to_server) => result,
            result = connection.responses(from_server, to_client) => result,
        }
    }

    /// Waits while nothing is forwarded.
    async fn pass(&self) {
        let mut is_stalled = self.shared.is_stalled.subscribe();
        let _ = is_stalled.wait_for(|stalled| !stalled).await;
    }

    /// Returns the trap if it is for this statement, and removes it.
    fn sprung(&self, statement: &str) -> Option<Trap> {
        let mut trap = self.shared.trap.lock().unwrap();
        trap.take_if(|trap| statement.trim_start().starts_with(trap.statement))
    }

    fn strike(&self) {
        self.shared.struck.send_modify(|struck| *struck += 1);
    }

    async fn requests(&self, mut from: OwnedReadHalf, mut to: unix::OwnedWriteHalf) -> io::Result<()> {
        let mut length = [0; 4];
        from.read_exact(&mut length).await?;
        let mut startup = length.to_vec();
        read_rest(&mut from, &mut startup, length).await?;
        self.pass().await;
        let code = &startup[4..8];
        self.asks_for_tls.send_replace(Some(code == SSL_REQUEST.to_be_bytes()));
        to.write_all(&startup).await?;
        if code == CANCEL_REQUEST.to_be_bytes() {
            return Ok(());
        }
        let mut texts: HashMap<Vec<u8>, String> = HashMap::new();
        let mut cycle = 0;
        let mut after: Option<Action> = None;
        loop {
            let frame = read_frame(&mut from).await?;
            self.pass().await;
            let (kind, body) = (frame[0], &frame[5..]);
            let statement = match kind {
                b'P' => {
                    let (name, rest) = until_zero(body);
                    let text = String::from_utf8_lossy(until_zero(rest).0).into_owned();
                    texts.insert(name.to_vec(), text);
                    None
                }
                b'B' => texts.get(until_zero(until_zero(body).1).0).cloned(),
                b'Q' => Some(String::from_utf8_lossy(until_zero(body).0).into_owned()),
                _ => None,
            };
            if let Some(trap) = statement.and_then(|statement| self.sprung(&statement)) {
                match (trap.place, trap.action) {
                    (Place::After, action) => after = Some(action),
                    (Place::Before, Action::Delay(time)) => {
                        self.strike();
                        tokio::time::sleep(time).await;
                    }
                    (place, action) => {
                        if place == Place::Within {
                            to.write_all(&frame[..frame.len() / 2]).await?;
                        }
                        self.strike();
                        if let Action::Swallow(time) | Action::Delay(time) = action {
                            tokio::time::sleep(time).await;
                        }
                        return Ok(());
                    }
                }
            }
            if matches!(kind, b'S' | b'Q') {
                cycle += 1;
                if let Some(action) = after.take() {
                    *self.withheld.lock().unwrap() = Some(Withheld { cycle, action });
                }
            }
            to.write_all(&frame).await?;
        }
    }

    async fn responses(&self, mut from: unix::OwnedReadHalf, mut to: OwnedWriteHalf) -> io::Result<()> {
        // It is set before the server receives the startup message. The replicas ask to learn whether the server responds.
        let asks_for_tls = *self.asks_for_tls.subscribe().wait_for(Option::is_some).await.unwrap();
        if asks_for_tls == Some(true) {
            let response = from.read_u8().await?;
            self.pass().await;
            to.write_u8(response).await?;
        }
        // The server is ready once before the first cycle.
        let mut cycle = 0;
        let mut response = Vec::new();
        loop {
            let frame = read_frame(&mut from).await?;
            self.pass().await;
            let is_ready = frame[0] == b'Z';
            let withheld = *self.withheld.lock().unwrap();
            let withheld = withheld.filter(|withheld| withheld.cycle == cycle);
            match withheld {
                None => to.write_all(&frame).await?,
                Some(_) => response.extend(frame),
            }
            if !is_ready {
                continue;
            }
            cycle += 1;
            let Some(Withheld { action, .. }) = withheld else {
                continue;
            };
            // The server has executed the statement.
            self.strike();
            match action {
                Action::Cut => return Ok(()),
                Action::Swallow(time) => {
                    tokio::time::sleep(time).await;
                    return Ok(());
                }
                Action::Delay(time) => {
                    tokio::time::sleep(time).await;
                    to.write_all(&response).await?;
                    response.clear();
                }
            }
        }
    }
}

/// Reads a frame: its kind, its length, and its body.
async fn read_frame(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut head = [0; 5];
    from.read_exact(&mut head).await?;
    let mut frame = head.to_vec();
    read_rest(from, &mut frame, [head[1], head[2], head[3], head[4]]).await?;
    Ok(frame)
}

/// Reads the rest of a frame whose length, which includes its own four bytes, has been read.
async fn read_rest(from: &mut (impl AsyncRead + Unpin), frame: &mut Vec<u8>, length: [u8; 4]) -> io::Result<()> {
    let begin = frame.len();
    let rest = usize::try_from(u32::from_be_bytes(length)).unwrap().saturating_sub(4);
    frame.resize(begin + rest, 0);
    from.read_exact(&mut frame[begin..]).await?;
    Ok(())
}

/// Splits at the first zero byte, which is dropped.
fn until_zero(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    (&bytes[..end], bytes.get(end + 1..).unwrap_or_default())
}
