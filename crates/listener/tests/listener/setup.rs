//! A listener with a trivial service, and clients that write raw bytes.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bounded_listener::tls::Tls;
use bounded_listener::{DropConnection, Limits, Listener, Metrics, Queued, RequestBody, Running};
use bytes::Bytes;
use dropshot::Body;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;

/// The timeout for events that a test waits for.
pub const WAIT_LIMIT: Duration = Duration::from_secs(20);

pub const HELLO: &[u8] = b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";

/// Returns limits with timeouts of fractions of a second.
pub fn quick() -> Limits {
    Limits {
        first_request: Duration::from_millis(700),
        head: Duration::from_millis(500),
        idle: Duration::from_millis(600),
        stalled_response: Duration::from_millis(800),
        linger: Duration::from_secs(2),
        linger_pause: Duration::from_secs(1),
        // The tests of timeouts have responses of 64 MiB.
        unread_bytes: u64::MAX,
        ..Limits::default()
    }
}

/// Controls the requests to `/hang`.
pub struct Hanging {
    /// Notified when a request has started.
    pub begun: Notify,
    /// Each permit lets one request respond.
    pub release: Semaphore,
    /// Has a permit for each finished request.
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
    let handler = move |_, request| handle(shared.clone(), request);
    let running = match tls {
        None => listener.serve(handler),
        Some(tls) => listener.serve_tls(tls, handler),
    };
    Served { running, hanging }
}

static MEGABYTE: [u8; 1024 * 1024] = [b'x'; 1024 * 1024];

async fn handle(hanging: Arc<Hanging>, request: Request<RequestBody>) -> Response<Body> {
    match request.uri().path() {
        "/hello" => Response::new(Body::from("hello")),
        "/late" => {
            let is_late = request.extensions().get::<Queued>().unwrap().is_late();
            Response::new(Body::from(if is_late { "late" } else { "in time" }))
        }
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
        "/shared" => Response::new(Body::from(Bytes::from_static(&MEGABYTE))),
        "/panic" => panic!("requested by the test"),
        "/drop" => {
            let mut dropped = Response::new(Body::from("never sent"));
            dropped.extensions_mut().insert(DropConnection);
            dropped
        }
        "/events" => {
            let events = futures::stream::pending::<Result<Frame<Bytes>, std::io::Error>>();
            Response::new(Body::wrap(StreamBody::new(events)))
        }
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
        panic!("requested by the test")
    }
}

impl Served {
    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.running.address).await.unwrap()
    }

    /// Connects from another loopback address.
    pub async fn connect_from(&self, last: u8) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).unwrap();
        socket.connect(self.running.address).await.unwrap()
    }

    /// Opens a connection and completes one request.
    pub async fn idle(&self) -> TcpStream {
        let mut stream = self.connect().await;
        exchange(&mut stream, HELLO).await;
        stream
    }

    /// Opens a connection with a request that hangs.
    pub async fn busy(&self) -> TcpStream {
        let mut stream = self.connect().await;
        stream
            .write_all(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        soon(self.hanging.begun.notified()).await;
        stream
    }

    /// Asserts that a client with another address gets a response.
    pub async fn responds_to_others(&self) {
        let mut stream = self.connect_from(99).await;
        assert_eq!(exchange(&mut stream, HELLO).await.status, 200);
    }

    /// Waits until the metrics fulfill a condition.
    pub async fn until(&self, holds: impl Fn(Metrics) -> bool) {
        soon(async {
            while !holds(self.running.metrics()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Waits until the server has closed a connection whose writing side it has already closed. Only writing shows that.
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

    /// Opens an HTTP/2 connection whose streams have this initial window.
    pub async fn http2_with_window(&self, size: u32) -> (h2::client::SendRequest<Bytes>, tokio::task::JoinHandle<()>) {
        self.http2_with(h2::client::Builder::new().initial_window_size(size))
            .await
    }

    /// Opens an HTTP/2 connection. The task ends with the connection.
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
    timeout(WAIT_LIMIT, future)
        .await
        .expect("the event did not happen in time")
}

#[derive(Debug)]
pub struct RawResponse {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

/// Sends bytes and reads one response.
pub async fn exchange(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), bytes: &[u8]) -> RawResponse {
    stream.write_all(bytes).await.unwrap();
    stream.flush().await.unwrap();
    read_response(stream).await
}

/// Reads one response with a `Content-Length`.
pub async fn read_response(stream: &mut (impl AsyncRead + Unpin)) -> RawResponse {
    soon(async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(
                stream
                    .read_u8()
                    .await
                    .expect("the connection closed before the response"),
            );
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap();
        let mut body = vec![0; length.split("\r\n").next().unwrap().parse().unwrap()];
        stream.read_exact(&mut body).await.unwrap();
        RawResponse {
            status: head[9..12].parse().unwrap(),
            head,
            body,
        }
    })
    .await
}

/// Waits for the server to close the connection.
pub async fn ends(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    // A reset closes it as well.
    let _ = soon(stream.read_to_end(&mut rest)).await;
}

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Builds an HTTP/2 frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Reads an HTTP/2 frame and returns its type.
pub async fn read_frame_kind(stream: &mut TcpStream) -> u8 {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    let [a, b, c, kind, ..] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    stream.read_exact(&mut payload).await.unwrap();
    kind
}

/// Returns the preface with empty SETTINGS.
pub fn opening() -> Vec<u8> {
    [PREFACE, &frame(4, 0, 0, b"")].concat()
}

/// The header block of `GET /` (RFC 7541: indexed fields of the static table, and `:authority` as a literal).
pub const GET_BLOCK: &[u8] = &[0x82, 0x86, 0x84, 0x41, 0x01, b'a'];
