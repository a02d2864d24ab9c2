//! Answers that come before the request's body was read.

use std::time::Duration;

use bounded_listener::Limits;
use bytes::Bytes;
use http::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::setup::{HELLO, ask, ends, get, quick, read_answer, soon, start};

/// Posts bodies of both sizes 60 times each, in 6 threads, and prints how often 413 was read.
const PYTHON: &str = r#"
import http.client, sys
from concurrent.futures import ThreadPoolExecutor

def post(size):
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=30)
    try:
        connection.request("POST", "/early", body=b"x" * size)
        answer = connection.getresponse()
        return (answer.status, answer.read()) == (413, b"too large")
    except OSError:
        return False
    finally:
        connection.close()

with ThreadPoolExecutor(6) as pool:
    for size in (1024 * 1024 + 1, 5 * 1024 * 1024):
        print(sum(pool.map(post, [size] * 60)))
"#;

#[tokio::test(flavor = "multi_thread")]
async fn pythons_http_client_reads_an_early_answer_every_time() {
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
async fn whoever_sends_everything_first_reads_the_early_answer_afterwards() {
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
        let answer = read_answer(&mut stream).await;
        assert_eq!(
            (answer.status, answer.body),
            (413, b"too large".to_vec()),
            "{head}{framing}"
        );
        if head.contains("HTTP/1.1") {
            assert!(answer.head.contains("connection: close"), "{}", answer.head);
        }
        ends(&mut stream).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_refused_at_once_may_be_sent_to_its_end() {
    // More than the sockets between them hold.
    const SIZE: usize = 40 * 1024 * 1024;
    let served = start(Limits::default());
    let mut stream = served.connect().await;
    let head = format!("POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: {SIZE}\r\n\r\n");
    let request = [head.as_bytes(), &vec![b'x'; SIZE]].concat();
    soon(stream.write_all(&request)).await.unwrap();
    assert_eq!(read_answer(&mut stream).await.status, 413);
}

#[tokio::test]
async fn whoever_asked_whether_to_continue_is_answered_without_being_told_to() {
    let served = start(Limits::default());
    let mut stream = served.connect().await;
    let head = b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\nExpect: 100-continue\r\n\r\n";
    let answer = ask(&mut stream, head).await;
    assert_eq!(answer.status, 413);
    assert!(answer.head.contains("connection: close"));
    // One whose body is wanted is told.
    let mut stream = served.connect().await;
    let head = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let mut told = [0; 25];
    soon(stream.read_exact(&mut told)).await.unwrap();
    assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(ask(&mut stream, b"body").await.body, b"body");
}

#[tokio::test]
async fn a_small_body_that_nobody_read_costs_no_connection() {
    let served = start(Limits::default());
    let mut stream = served.connect().await;
    for pause in [false, true, false, true] {
        let head = b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n";
        let body = [b'x'; 2000];
        let answer = if pause {
            // The body comes when the answer has been read.
            let answer = ask(&mut stream, head).await;
            stream.write_all(&body).await.unwrap();
            answer
        } else {
            ask(&mut stream, &[&head[..], &body].concat()).await
        };
        assert_eq!(answer.status, 413);
        assert!(!answer.head.contains("connection: close"), "{}", answer.head);
        assert_eq!(ask(&mut stream, HELLO).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_after_an_answer_is_bounded_in_bytes_and_in_time() {
    let head = b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n";
    // Endless bytes, against a bound on bytes alone.
    let bytes = start(Limits {
        linger_bytes: 1024 * 1024,
        ..Limits::default()
    });
    // A byte now and then, against the bound on the whole time; and a peer that falls silent.
    let time = start(quick());
    let send = |mut stream: tokio::net::TcpStream, size: usize, pause: Duration| async move {
        assert_eq!(ask(&mut stream, head).await.status, 413);
        soon(async {
            while stream.write_all(&vec![b'x'; size]).await.is_ok() {
                tokio::time::sleep(pause).await;
            }
        })
        .await;
    };
    let silent = async {
        let mut stream = time.connect().await;
        assert_eq!(ask(&mut stream, head).await.status, 413);
        // The server has said that nothing more comes at once, and goes by its clock: until then writing succeeds.
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
async fn a_refusal_by_the_protocol_reaches_the_client_too() {
    let served = start(Limits::default());
    let mut stream = served.connect().await;
    let head = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "x".repeat(8 * 1024 * 1024)
    );
    soon(stream.write_all(head.as_bytes())).await.unwrap();
    assert_eq!(read_answer(&mut stream).await.status, 431);
}

#[tokio::test]
async fn over_http2_an_early_answer_ends_its_stream_alone() {
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
