//! Responses that are sent before the request's body was read.

use std::time::Duration;

use bounded_listener::Limits;
use bytes::Bytes;
use http::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::setup::{HELLO, ends, exchange, get, quick, read_response, soon, start};

/// Posts bodies of two sizes 60 times each, in 6 threads, and prints how often the client read the 413.
const PYTHON: &str = r#"
import http.client, sys
from concurrent.futures import ThreadPoolExecutor

def post(size):
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=30)
    try:
        connection.request("POST", "/early", body=b"x" * size)
        response = connection.getresponse()
        return (response.status, response.read()) == (413, b"too large")
    except OSError:
        return False
    finally:
        connection.close()

with ThreadPoolExecutor(6) as pool:
    for size in (1024 * 1024 + 1, 5 * 1024 * 1024):
        print(sum(pool.map(post, [size] * 60)))
"#;

#[tokio::test(flavor = "multi_thread")]
async fn pythons_http_client_always_reads_an_early_response() {
    let served = start(Limits::default());
    let output = Command::new("python3")
        .args(["-c", PYTHON, &served.running.address.port().to_string()])
        .output()
        .await
        .expect("python3 is installed by script/setup --tests");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "60\n60\n", "{output:?}");
}

/// REQ-6
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_the_whole_body_first_can_read_the_early_response() {
    const SIZE: usize = 5 * 1024 * 1024;
    let served = start(Limits::default());
    let body = vec![b'x'; SIZE];
    let chunked = [format!("{SIZE:x}\r\n").as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
    let framed = format!("Content-Length: {SIZE}\r\n\r\n");
    let kinds = [
        ("POST /early HTTP/1.1\r\nHost: a\r\n", framed.as_str(), &body),
        ("POST /early HTTP/1.0\r\n", framed.as_str(), &body),
        (
            "POST /early HTTP/1.0\r\nConnection: keep-alive\r\n",
            framed.as_str(),
            &body,
        ),
        (
            "POST /early HTTP/1.1\r\nHost: a\r\n",
            "Transfer-Encoding: chunked\r\n\r\n",
            &chunked,
        ),
    ];
    for (head, framing, body) in kinds.iter().cycle().take(20) {
        let mut stream = served.connect().await;
        let request = [head.as_bytes(), framing.as_bytes(), body].concat();
        soon(stream.write_all(&request)).await.unwrap();
        let response = read_response(&mut stream).await;
        assert_eq!(
            (response.status, response.body),
            (413, b"too large".to_vec()),
            "{head}{framing}"
        );
        if head.contains("HTTP/1.1") {
            assert!(response.head.contains("connection: close"), "{}", response.head);
        }
        ends(&mut stream).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_can_send_all_of_a_body_that_was_rejected_at_once() {
    // More than the socket buffers hold.
    const SIZE: usize = 40 * 1024 * 1024;
    let served = start(Limits::default());
    let mut stream = served.connect().await;
    let head = format!("POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: {SIZE}\r\n\r\n");
    let request = [head.as_bytes(), &vec![b'x'; SIZE]].concat();
    soon(stream.write_all(&request)).await.unwrap();
    assert_eq!(read_response(&mut stream).await.status, 413);
}

#[tokio::test]
async fn a_rejected_request_that_expects_100_continue_gets_no_100() {
    let served = start(Limits::default());
    let mut stream = served.connect().await;
    let head = b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\nExpect: 100-continue\r\n\r\n";
    let response = exchange(&mut stream, head).await;
    assert_eq!(response.status, 413);
    assert!(response.head.contains("connection: close"));
    // A request whose body is read gets the 100.
    let mut stream = served.connect().await;
    let head = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let mut interim = [0; 25];
    soon(stream.read_exact(&mut interim)).await.unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(exchange(&mut stream, b"body").await.body, b"body");
}

#[tokio::test]
async fn an_unread_small_body_does_not_close_the_connection() {
    let served = start(Limits::default());
    let mut stream = served.connect().await;
    for pause in [false, true, false, true] {
        let head = b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n";
        let body = [b'x'; 2000];
        let response = if pause {
            // Sends the body after reading the response.
            let response = exchange(&mut stream, head).await;
            stream.write_all(&body).await.unwrap();
            response
        } else {
            exchange(&mut stream, &[&head[..], &body].concat()).await
        };
        assert_eq!(response.status, 413);
        assert!(!response.head.contains("connection: close"), "{}", response.head);
        assert_eq!(exchange(&mut stream, HELLO).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn discarding_after_a_response_is_limited_in_bytes_and_time() {
    let head = b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n";
    // An endless body, against the limit on bytes.
    let bytes = start(Limits {
        linger_bytes: 1024 * 1024,
        ..Limits::default()
    });
    // A slow body, against the limit on the whole time; and a peer that stops sending.
    let time = start(quick());
    let send = |mut stream: tokio::net::TcpStream, size: usize, pause: Duration| async move {
        assert_eq!(exchange(&mut stream, head).await.status, 413);
        soon(async {
            while stream.write_all(&vec![b'x'; size]).await.is_ok() {
                tokio::time::sleep(pause).await;
            }
        })
        .await;
    };
    let silent = async {
        let mut stream = time.connect().await;
        assert_eq!(exchange(&mut stream, head).await.status, 413);
        // The server has closed its writing side. Writing to it succeeds until its timeout expires.
        ends(&mut stream).await;
        stream.write_all(b"x").await.unwrap();
        time.until_closed(stream).await;
    };
    tokio::join!(
        send(bytes.connect().await, 64 * 1024, Duration::ZERO),
        send(time.connect().await, 1, Duration::from_millis(50)),
        silent
    );
}

#[tokio::test]
async fn the_response_to_a_too_large_head_reaches_the_client() {
    let served = start(Limits::default());
    let mut stream = served.connect().await;
    let head = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "x".repeat(8 * 1024 * 1024)
    );
    soon(stream.write_all(head.as_bytes())).await.unwrap();
    assert_eq!(read_response(&mut stream).await.status, 431);
}

#[tokio::test]
async fn over_http2_an_early_response_ends_only_its_stream() {
    let served = start(Limits::default());
    let mut client = served.http2().await;
    let post = Request::post("http://a/early").body(()).unwrap();
    let (response, mut body) = client.send_request(post, false).unwrap();
    let mut response = soon(response).await.unwrap();
    assert_eq!(response.status(), 413);
    assert_eq!(soon(response.body_mut().data()).await.unwrap().unwrap(), "too large");
    let reset = soon(std::future::poll_fn(|cx| body.poll_reset(cx))).await;
    assert_eq!(reset.unwrap(), h2::Reason::NO_ERROR);
    assert!(body.send_data(Bytes::from_static(b"more"), false).is_err());
    let (response, _) = client.send_request(get("/hello"), true).unwrap();
    assert_eq!(soon(response).await.unwrap().status(), 200);
}
