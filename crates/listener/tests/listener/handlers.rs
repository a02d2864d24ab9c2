//! Handlers whose clients go, that panic, and that are under way when the listener stops.

use std::net::Ipv4Addr;
use std::time::Duration;

use bounded_listener::{Limits, Listener};
use dropshot::Body;
use http::Response;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::setup::{GET_BLOCK, HELLO, PATIENCE, ask, ends, frame, get, opening, quick, read_answer, soon, start};

#[tokio::test]
async fn a_request_whose_client_has_gone_is_finished_all_the_same() {
    let served = start(Limits::default());
    drop(served.busy().await);
    served.until(|tally| tally.connections == 0).await;
    served.hanging.release.add_permits(1);
    soon(served.hanging.finished.acquire()).await.unwrap().forget();

    let mut client = served.http2().await;
    let (response, stream) = client.send_request(get("/hang"), true).unwrap();
    soon(served.hanging.begun.notified()).await;
    drop((response, stream));
    served.until(|tally| tally.detached == 1).await;
    served.hanging.release.add_permits(1);
    soon(served.hanging.finished.acquire()).await.unwrap().forget();
    served.until(|tally| tally.detached == 0).await;
    assert_eq!(served.running.tally().abandoned, 0);
}

#[tokio::test]
async fn resetting_streams_does_not_make_any_number_of_requests_run() {
    let served = start(Limits {
        detached: 3,
        ..Limits::default()
    });
    let mut client = served.http2().await;
    for _ in 0..10 {
        let (response, stream) = client.send_request(get("/hang"), true).unwrap();
        soon(served.hanging.begun.notified()).await;
        drop((response, stream));
        client = client.ready().await.unwrap();
    }
    served.until(|tally| tally.abandoned == 7).await;
    for _ in 0..3 {
        served.hanging.release.add_permits(1);
        soon(served.hanging.finished.acquire()).await.unwrap().forget();
    }
}

#[tokio::test]
async fn a_rapid_reset_ends_the_connection() {
    let served = start(Limits::default());
    let mut stream = served.connect().await;
    let mut attack = opening();
    for number in 0..5000 {
        attack.extend(frame(1, 5, 2 * number + 1, GET_BLOCK));
        attack.extend(frame(3, 0, 2 * number + 1, &8u32.to_be_bytes()));
    }
    let (mut reading, mut writing) = stream.split();
    let mut received = Vec::new();
    let _ = soon(async { tokio::join!(writing.write_all(&attack), reading.read_to_end(&mut received)) }).await;
    served.answers_others().await;
}

#[tokio::test]
async fn a_handler_that_panics_is_a_500_and_takes_nobody_along() {
    let served = start(Limits::default());
    let mut stream = served.connect().await;
    let answer = ask(&mut stream, b"GET /panic HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(answer.status, 500);
    assert_eq!(ask(&mut stream, HELLO).await.status, 200);

    let mut client = served.http2().await;
    let (response, _) = client.send_request(get("/panic"), true).unwrap();
    assert_eq!(soon(response).await.unwrap().status(), 500);
    let (response, _) = client.send_request(get("/hello"), true).unwrap();
    assert_eq!(soon(response).await.unwrap().status(), 200);
    assert_eq!(served.running.tally().panicked, 2);
}

#[tokio::test]
async fn a_body_that_panics_ends_its_connection_and_is_counted() {
    let served = start(Limits::default());
    let mut stream = served.connect().await;
    stream
        .write_all(b"GET /panicking-body HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    ends(&mut stream).await;

    let mut client = served.http2().await;
    let (response, _) = client.send_request(get("/panicking-body"), true).unwrap();
    let ended = match soon(response).await {
        Ok(mut response) => soon(response.body_mut().data()).await.is_none_or(|data| data.is_err()),
        Err(_) => true,
    };
    assert!(ended);
    served.until(|tally| tally.panicked == 2).await;
    served.answers_others().await;
}

#[tokio::test]
async fn a_stop_closes_what_is_idle_and_lets_the_rest_finish() {
    let served = start(Limits::default());
    let (mut idle, mut silent) = (served.idle().await, served.connect().await);
    let mut http2 = served.http2().await;
    let (response, _) = http2.send_request(get("/hang"), true).unwrap();
    soon(served.hanging.begun.notified()).await;
    let mut busy = served.busy().await;
    drop(served.busy().await);
    served.until(|tally| tally.detached == 1).await;
    let address = served.running.address;
    let stopped = tokio::spawn(served.running.stop(PATIENCE));
    ends(&mut idle).await;
    ends(&mut silent).await;
    assert!(TcpStream::connect(address).await.is_err());
    for _ in 0..3 {
        served.hanging.release.add_permits(1);
        soon(served.hanging.finished.acquire()).await.unwrap().forget();
    }
    let answer = read_answer(&mut busy).await;
    assert_eq!(answer.body, b"released");
    assert!(answer.head.contains("connection: close"));
    assert_eq!(soon(response).await.unwrap().status(), 200);
    assert!(soon(stopped).await.unwrap());
}

#[tokio::test]
async fn what_is_under_way_at_the_deadline_is_aborted_and_told() {
    let served = start(Limits::default());
    let mut busy = served.busy().await;
    drop(served.busy().await);
    served.until(|tally| tally.detached == 1).await;
    assert!(!soon(served.running.stop(Duration::from_millis(50))).await);
    ends(&mut busy).await;
    served.hanging.release.add_permits(2);
    assert_eq!(served.hanging.finished.available_permits(), 0);
}

#[tokio::test]
async fn a_handshake_that_hangs_is_ended_and_holds_up_nobody() {
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), quick()).unwrap();
    let handshake = |mut stream: TcpStream| async move {
        // Any first byte will do.
        stream.read_u8().await?;
        Ok(stream)
    };
    let running = listener.serve_with(handshake, |_, _| async { Response::new(Body::from("hello")) });
    let mut hanging = TcpStream::connect(running.address).await.unwrap();
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    assert_eq!(ask(&mut stream, &[b"!", HELLO].concat()).await.status, 200);
    ends(&mut hanging).await;
    assert_eq!(running.tally().no_request, 1);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_accepted_connection_has_what_the_listening_socket_was_given() {
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), quick()).unwrap();
    let (told, mut options) = tokio::sync::mpsc::unbounded_channel();
    let handshake = move |stream: TcpStream| {
        let patience = nix::sys::socket::getsockopt(&stream, nix::sys::socket::sockopt::TcpUserTimeout).unwrap();
        told.send((stream.nodelay().unwrap(), patience)).unwrap();
        std::future::ready(Ok(stream))
    };
    let running = listener.serve_with(handshake, |_, _| async { Response::new(Body::empty()) });
    let _stream = TcpStream::connect(running.address).await.unwrap();
    let given = u32::try_from(quick().stalled_answer.as_millis()).unwrap();
    assert_eq!(soon(options.recv()).await.unwrap(), (true, given));
}
