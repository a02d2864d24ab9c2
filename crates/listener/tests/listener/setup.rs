//! A listener with a trivial service, and clients that are worse than any library.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bounded_listener::tls::Tls;
use bounded_listener::{Limits, Listener, RequestBody, Running, Tally};
use bytes::Bytes;
use dropshot::Body;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Frame;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;

/// How long a test waits for what must happen; what takes longer has not happened.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub const HELLO: &[u8] = b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";

/// Clocks of fractions of seconds.
pub fn quick() -> Limits {
    Limits {
        first_request: Duration::from_millis(700),
        head: Duration::from_millis(500),
        idle: Duration::from_millis(600),
        stalled_answer: Duration::from_millis(800),
        linger: Duration::from_secs(2),
        linger_pause: Duration::from_secs(1),
        ..Limits::default()
    }
}

/// What tests see and steer of the service.
pub struct Hanging {
    /// A request at `/hang` has begun.
    pub begun: Notify,
    /// Lets as many of them answer.
    pub release: Semaphore,
    /// How many have run to their end.
    pub finished: Semaphore,
}

pub struct Served {
    pub running: Running,
    pub hanging: Arc<Hanging>,
}

pub fn start(limits: Limits) -> Served {
    start_with(limits, None)
}

pub fn start_tls(limits: Limits, tls: Tls) -> Served {
    start_with(limits, Some(tls))
}

fn start_with(limits: Limits, tls: Option<Tls>) -> Served {
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), limits).unwrap();
    let hanging = Arc::new(Hanging {
        begun: Notify::new(),
        release: Semaphore::new(0),
        finished: Semaphore::new(0),
    });
    let shared = hanging.clone();
    let handler = move |_, request| answer(shared.clone(), request);
    let running = match tls {
        None => listener.serve(handler),
        Some(tls) => listener.serve_tls(tls, handler),
    };
    Served { running, hanging }
}

async fn answer(hanging: Arc<Hanging>, request: Request<RequestBody>) -> Response<Body> {
    match request.uri().path() {
        "/hello" => Response::new(Body::from("hello")),
        "/echo" => match Body::wrap(request.into_body()).collect().await {
            Ok(body) => Response::new(Body::from(body.to_bytes())),
            Err(_) => status(StatusCode::BAD_REQUEST),
        },
        "/early" => {
            let mut early = Response::new(Body::from("too large"));
            *early.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
            early
        }
        "/hang" => {
            hanging.begun.notify_one();
            hanging.release.acquire().await.unwrap().forget();
            hanging.finished.add_permits(1);
            Response::new(Body::from("released"))
        }
        "/big" => Response::new(Body::from(vec![b'x'; 64 * 1024 * 1024])),
        "/megabyte" => Response::new(Body::from(vec![b'x'; 1024 * 1024])),
        "/panic" => panic!("as asked"),
        "/panicking-body" => Response::new(Body::wrap(Panicking)),
        _ => status(StatusCode::NOT_FOUND),
    }
}

fn status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

struct Panicking;

impl hyper::body::Body for Panicking {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        panic!("as asked")
    }
}

impl Served {
    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.running.address).await.unwrap()
    }

    /// A connection from another address of this machine.
    pub async fn connect_from(&self, last: u8) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
        socket.connect(self.running.address).await.unwrap()
    }

    /// A connection with one answered request behind it.
    pub async fn idle(&self) -> TcpStream {
        let mut stream = self.connect().await;
        ask(&mut stream, HELLO).await;
        stream
    }

    /// A connection with a request that hangs.
    pub async fn busy(&self) -> TcpStream {
        let mut stream = self.connect().await;
        stream
            .write_all(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        soon(self.hanging.begun.notified()).await;
        stream
    }

    /// Another client is answered.
    pub async fn answers_others(&self) {
        let mut stream = self.connect_from(99).await;
        assert_eq!(ask(&mut stream, HELLO).await.status, 200);
    }

    /// Waits until the tally says so.
    pub async fn until(&self, holds: impl Fn(Tally) -> bool) {
        soon(async {
            while !holds(self.running.tally()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Waits until the server has let go of a connection of which it has already said that nothing more comes: only
    /// writing shows that.
    pub async fn until_closed(&self, mut stream: TcpStream) {
        soon(async {
            while stream.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(1500)).await;
            }
        })
        .await;
    }

    pub async fn http2(&self) -> h2::client::SendRequest<Bytes> {
        self.http2_with(&mut h2::client::Builder::new()).await.0
    }

    /// An HTTP/2 connection, and the end of it.
    pub async fn http2_with(
        &self,
        builder: &mut h2::client::Builder,
    ) -> (h2::client::SendRequest<Bytes>, tokio::task::JoinHandle<()>) {
        let (client, connection) = builder.handshake(self.connect().await).await.unwrap();
        let connection = tokio::spawn(async move {
            let _ = connection.await;
        });
        (client.ready().await.unwrap(), connection)
    }
}

pub fn get(path: &str) -> Request<()> {
    Request::get(format!("http://a{path}")).body(()).unwrap()
}

pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("this did not happen")
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

/// Sends bytes and reads one answer.
pub async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), bytes: &[u8]) -> Answer {
    stream.write_all(bytes).await.unwrap();
    stream.flush().await.unwrap();
    read_answer(stream).await
}

/// Reads one answer with a `Content-Length`.
pub async fn read_answer(stream: &mut (impl AsyncRead + Unpin)) -> Answer {
    soon(async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("the connection ended before the answer"));
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap();
        let mut body = vec![0; length.split("\r\n").next().unwrap().parse().unwrap()];
        stream.read_exact(&mut body).await.unwrap();
        Answer {
            status: head[9..12].parse().unwrap(),
            head,
            body,
        }
    })
    .await
}

/// Waits for the server to end the connection.
pub async fn ends(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    // A reset is an end, too.
    let _ = soon(stream.read_to_end(&mut rest)).await;
}

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// An HTTP/2 frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Reads an HTTP/2 frame and says of which kind it is.
pub async fn read_frame_kind(stream: &mut TcpStream) -> u8 {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    let [a, b, c, kind, ..] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    stream.read_exact(&mut payload).await.unwrap();
    kind
}

/// The preface with empty SETTINGS.
pub fn opening() -> Vec<u8> {
    [PREFACE, &frame(4, 0, 0, b"")].concat()
}

/// The header block of `GET /` (RFC 7541: indexed fields of the static table, and `:authority` as a literal).
pub const GET_BLOCK: &[u8] = &[0x82, 0x86, 0x84, 0x41, 0x01, b'a'];
