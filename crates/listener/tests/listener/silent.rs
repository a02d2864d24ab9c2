//! Connections that send nothing, or never complete a request.

use std::future::ready;
use std::io;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use bounded_listener::{Limits, Listener};
use dropshot::Body;
use http::Response;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

use super::setup::{
    GET_BLOCK, HELLO, PREFACE, ends, exchange, frame, get, opening, quick, read_frame_kind, soon, start,
};

/// Returns openings of connections that never complete a request.
fn silences() -> Vec<(&'static str, Vec<u8>)> {
    let unended_headers = [opening(), frame(1, 0, 1, &[0x82])].concat();
    vec![
        ("nothing", Vec::new()),
        ("half a head", b"GET /hello HTTP/1.1\r\nHos".to_vec()),
        ("half a preface", PREFACE[..18].to_vec()),
        ("an HTTP/2 connection without a request", opening()),
        ("HEADERS without END_HEADERS", unended_headers),
    ]
}

/// REQ-13
#[tokio::test]
async fn a_connection_without_a_request_is_closed_after_a_timeout() {
    let served = start(quick());
    let mut waiting = Vec::new();
    for (name, opening) in silences() {
        let mut stream = served.connect().await;
        stream.write_all(&opening).await.unwrap();
        waiting.push((name, stream));
    }
    served.responds_to_others().await;
    for (name, stream) in &mut waiting {
        println!("{name}");
        ends(stream).await;
    }
    assert_eq!(served.running.metrics().no_request, waiting.len() as u64);
}

/// A stream that records the size of the last buffer into which it was to read.
struct Recording {
    stream: TcpStream,
    size: Arc<AtomicUsize>,
}

impl AsyncRead for Recording {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.size.store(buf.remaining(), Relaxed);
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Recording {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[tokio::test]
async fn a_connection_that_waits_for_a_request_has_no_buffers() {
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), Limits::default()).unwrap();
    let size = Arc::new(AtomicUsize::new(0));
    let recorded = size.clone();
    let handshake = move |stream| {
        let size = recorded.clone();
        ready(Ok(Recording { stream, size }))
    };
    let running = listener.serve_with(handshake, |_, _| async { Response::new(Body::from("hello")) });
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    for _ in 0..3 {
        assert_eq!(exchange(&mut stream, HELLO).await.status, 200);
        soon(async {
            while size.load(Relaxed) > PREFACE.len() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
    assert_eq!(running.metrics().accepted, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn eleven_hundred_silent_connections_do_not_block_other_clients() {
    let served = start(quick());
    let mut waiting: Vec<TcpStream> = Vec::new();
    for (_, opening) in silences().iter().cycle().take(1100) {
        let mut stream = served.connect().await;
        stream.write_all(opening).await.unwrap();
        waiting.push(stream);
    }
    served.responds_to_others().await;
    // A new connection from their own address works as well, because it evicts the oldest of them.
    let mut one_more = served.connect().await;
    assert_eq!(exchange(&mut one_more, HELLO).await.status, 200);
    for stream in &mut waiting {
        ends(stream).await;
    }
}

#[tokio::test]
async fn a_slow_head_closes_the_connection_whether_first_or_later() {
    let served = start(quick());
    let drips = |mut stream: TcpStream| async move {
        soon(async {
            // Bytes keep arriving, so only a timeout can close the connection.
            while stream.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    };
    tokio::join!(
        drips(served.connect().await),
        drips(served.idle().await),
        served.responds_to_others()
    );
    let metrics = served.running.metrics();
    assert_eq!((metrics.no_request, metrics.slow_head), (1, 1));
}

#[tokio::test]
async fn an_endless_header_block_closes_the_connection() {
    let served = start(quick());
    let mut stream = served.connect().await;
    stream
        .write_all(&[opening(), frame(1, 0, 1, &[0x82])].concat())
        .await
        .unwrap();
    soon(async {
        while stream.write_all(&frame(9, 0, 1, b"")).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    served.responds_to_others().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_pings_do_not_prevent_it() {
    let served = start(quick());
    let mut http1 = served.idle().await;
    ends(&mut http1).await;

    // One client answers the server's pings, and one sends its own pings all the time.
    let (mut client, answering) = served.http2_with(&mut h2::client::Builder::new()).await;
    let (response, _) = client.send_request(get("/hello"), true).unwrap();
    assert_eq!(soon(response).await.unwrap().status(), 200);
    soon(answering).await.unwrap();

    let stream = served.connect().await;
    let (mut reading, mut writing) = stream.into_split();
    let request = frame(1, 5, 1, GET_BLOCK);
    writing.write_all(&[opening(), request].concat()).await.unwrap();
    let pings = tokio::spawn(async move {
        while writing.write_all(&frame(6, 0, 0, b"12345678")).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut received = Vec::new();
    let _ = soon(reading.read_to_end(&mut received)).await;
    soon(pings).await.unwrap();
    assert_eq!(served.running.metrics().idle, 3);
}

#[tokio::test]
async fn an_idle_http2_connection_gets_a_goaway_before_it_is_closed() {
    let served = start(quick());
    let mut stream = served.connect().await;
    let request = frame(1, 5, 1, GET_BLOCK);
    stream.write_all(&[opening(), request].concat()).await.unwrap();
    // Reading fails if the stream ends without a GOAWAY.
    soon(async { while read_frame_kind(&mut stream).await != 7 {} }).await;
    ends(&mut stream).await;
}
