//! More requests than may be in progress.

use std::time::Duration;

use bounded_listener::Limits;
use futures::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::setup::{HELLO, exchange, get, read_response, soon, start};

const LATE: &[u8] = b"GET /late HTTP/1.1\r\nHost: a\r\n\r\n";

/// Returns limits with this number of requests in progress. The addresses of the tests are exempt from other limits.
fn limits(in_progress: usize) -> Limits {
    Limits {
        exempt: vec!["127.0.0.0/8".parse().unwrap()],
        in_progress,
        queue_wait: Duration::from_secs(600),
        ..Limits::default()
    }
}

/// REQ-13
#[tokio::test]
async fn a_request_waits_before_its_handler_starts_while_too_many_of_all_addresses_run() {
    let served = start(limits(2));
    let (mut first, mut second) = (served.busy().await, served.busy().await);
    let mut stream = served.connect_from(97).await;
    stream.write_all(HELLO).await.unwrap();
    let mut client = served.http2().await;
    let (response, _) = client.send_request(get("/hello"), true).unwrap();
    let abandoned = served.connect_from(98).await;
    abandoned.writable().await.unwrap();
    assert_eq!(abandoned.try_write(HELLO).unwrap(), HELLO.len());
    served.until(|metrics| metrics.waiting == 3).await;
    assert!(stream.read_u8().now_or_never().is_none());
    drop(abandoned);
    served.until(|metrics| metrics.waiting == 2).await;

    served.hanging.release.add_permits(1);
    assert_eq!(read_response(&mut stream).await.status, 200);
    assert_eq!(soon(response).await.unwrap().status(), 200);
    served.hanging.release.add_permits(1);
    for stream in [&mut first, &mut second] {
        assert_eq!(read_response(stream).await.body, b"released");
    }
    let metrics = served.running.metrics();
    assert_eq!((metrics.waiting, metrics.late), (0, 0));
}

#[tokio::test]
async fn a_request_that_has_waited_for_too_long_runs_and_its_handler_knows_it() {
    let served = start(Limits {
        queue_wait: Duration::from_millis(50),
        ..limits(1)
    });
    let mut stream = served.connect().await;
    assert_eq!(exchange(&mut stream, LATE).await.body, b"in time");
    let mut busy = served.busy().await;
    assert_eq!(exchange(&mut stream, LATE).await.body, b"late");
    assert_eq!(served.running.metrics().late, 1);
    served.hanging.release.add_permits(1);
    assert_eq!(read_response(&mut busy).await.status, 200);
    assert_eq!(exchange(&mut stream, LATE).await.body, b"in time");
}

#[tokio::test]
async fn a_request_whose_body_has_not_arrived_holds_no_permit() {
    let served = start(limits(1));
    let mut slow = Vec::new();
    for start in ["", "Expect: 100-continue\r\n"] {
        let mut stream = served.connect().await;
        let head = format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n{start}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        if !start.is_empty() {
            let mut interim = [0; 25];
            soon(stream.read_exact(&mut interim)).await.unwrap();
            assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        stream.write_all(b"one").await.unwrap();
        slow.push(stream);
        served.responds_to_others().await;
    }
    // The rest of the bodies arrives while another request runs.
    let mut busy = served.busy().await;
    for stream in &mut slow {
        stream.write_all(b"two").await.unwrap();
    }
    served.until(|metrics| metrics.waiting == 2).await;
    served.hanging.release.add_permits(1);
    assert_eq!(read_response(&mut busy).await.status, 200);
    for stream in &mut slow {
        assert_eq!(read_response(stream).await.body, b"onetwo");
    }
    assert_eq!(served.running.metrics().waiting, 0);
}

#[tokio::test]
async fn a_whole_body_waits_with_its_request() {
    let served = start(limits(1));
    let mut busy = served.busy().await;
    let mut stream = served.connect().await;
    stream
        .write_all(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody")
        .await
        .unwrap();
    served.until(|metrics| metrics.waiting == 1).await;
    served.hanging.release.add_permits(1);
    assert_eq!(read_response(&mut busy).await.status, 200);
    assert_eq!(read_response(&mut stream).await.body, b"body");
    assert_eq!(exchange(&mut stream, HELLO).await.status, 200);
}

#[tokio::test]
async fn a_response_that_nobody_reads_holds_no_permit() {
    let served = start(limits(1));
    let (mut client, _connection) = served.http2_with_window(0).await;
    let (response, _) = client.send_request(get("/megabyte"), true).unwrap();
    let unread = soon(response).await.unwrap();
    served.responds_to_others().await;
    drop(unread);
}

#[tokio::test]
async fn a_request_keeps_its_permit_when_its_client_disconnects() {
    let served = start(limits(1));
    drop(served.busy().await);
    served.until(|metrics| metrics.detached == 1).await;
    let mut stream = served.connect().await;
    stream.write_all(HELLO).await.unwrap();
    served.until(|metrics| metrics.waiting == 1).await;
    served.hanging.release.add_permits(1);
    assert_eq!(read_response(&mut stream).await.status, 200);
}

#[tokio::test]
async fn a_request_that_waits_keeps_the_permit_of_its_address() {
    let served = start(Limits {
        exempt: Vec::new(),
        in_progress_per_address: 1,
        ..limits(1)
    });
    let mut busy = served.busy().await;
    let mut stream = served.connect_from(97).await;
    stream.write_all(HELLO).await.unwrap();
    served.until(|metrics| metrics.waiting == 1).await;
    served.hanging.release.add_permits(1);
    assert_eq!(read_response(&mut busy).await.status, 200);
    assert_eq!(read_response(&mut stream).await.status, 200);
}
