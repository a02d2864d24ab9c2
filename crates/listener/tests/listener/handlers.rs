//! Handlers whose clients disconnect, that panic, or that are running when the listener stops.

use std::net::Ipv4Addr;
use std::time::Duration;

use bounded_listener::{Limits, Listener};
use dropshot::Body;
use http::Response;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::setup::{
    GET_BLOCK, HELLO, WAIT_LIMIT, ends, exchange, frame, get, opening, quick, read_response, soon, start,
};

#[tokio::test]
async fn a_request_finishes_even_if_its_client_disconnects() {
    let served = start(Limits::default());
    drop(served.busy().await);
    served.until(|metrics| metrics.connections == 0).await;
    served.hanging.release.add_permits(1);
    soon(served.hanging.finished.acquire()).await.unwrap().forget();

    let mut client = served.http2().await;
    let (response, stream) = client.send_request(get("/hang"), true).unwrap();
    soon(served.hanging.begun.notified()).await;
    drop((response, stream));
    served.until(|metrics| metrics.detached == 1).await;
    served.hanging.release.add_permits(1);
    soon(served.hanging.finished.acquire()).await.unwrap().forget();
    served.until(|metrics| metrics.detached == 0).await;
    assert_eq!(served.running.metrics().abandoned, 0);
}

#[tokio::test]
async fn resetting_streams_cannot_start_any_number_of_requests() {
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
    served.until(|metrics| metrics.abandoned == 7).await;
    for _ in 0..3 {
        served.hanging.release.add_permits(1);
        soon(served.hanging.finished.acquire()).await.unwrap().forget();
    }
}

#[tokio::test]
async fn a_rapid_reset_attack_closes_the_connection() {
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
    served.responds_to_others().await;
}

#[tokio::test]
async fn a_handler_that_panics_becomes_a_500_and_the_connection_stays_open() {
    let served = start(Limits::default());
    let mut stream = served.connect().await;
    let response = exchange(&mut stream, b"GET /panic HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(response.status, 500);
    assert_eq!(exchange(&mut stream, HELLO).await.status, 200);

    let mut client = served.http2().await;
    let (response, _) = client.send_request(get("/panic"), true).unwrap();
    assert_eq!(soon(response).await.unwrap().status(), 500);
    let (response, _) = client.send_request(get("/hello"), true).unwrap();
    assert_eq!(soon(response).await.unwrap().status(), 200);
    assert_eq!(served.running.metrics().panicked, 2);
}

#[tokio::test]
async fn a_dropped_connection_ends_without_a_byte_and_other_streams_go_on() {
    let served = start(Limits::default());
    let mut stream = served.connect().await;
    stream
        .write_all(b"GET /drop HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    let mut received = Vec::new();
    let _ = soon(stream.read_to_end(&mut received)).await;
    assert_eq!(received, b"");

    let mut client = served.http2().await;
    let (response, _) = client.send_request(get("/drop"), true).unwrap();
    assert!(soon(response).await.is_err());
    let (response, _) = client.send_request(get("/hello"), true).unwrap();
    assert_eq!(soon(response).await.unwrap().status(), 200);
    served.responds_to_others().await;
}

#[tokio::test]
async fn a_body_that_panics_closes_its_connection_and_is_counted() {
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
    served.until(|metrics| metrics.panicked == 2).await;
    served.responds_to_others().await;
}

#[tokio::test]
async fn a_stop_closes_idle_connections_and_waits_for_requests() {
    let served = start(Limits::default());
    let (mut idle, mut silent) = (served.idle().await, served.connect().await);
    let mut http2 = served.http2().await;
    let (pending, _) = http2.send_request(get("/hang"), true).unwrap();
    soon(served.hanging.begun.notified()).await;
    let mut busy = served.busy().await;
    drop(served.busy().await);
    served.until(|metrics| metrics.detached == 1).await;
    let address = served.running.address;
    let stopped = tokio::spawn(served.running.stop(WAIT_LIMIT));
    ends(&mut idle).await;
    ends(&mut silent).await;
    assert!(TcpStream::connect(address).await.is_err());
    for _ in 0..3 {
        served.hanging.release.add_permits(1);
        soon(served.hanging.finished.acquire()).await.unwrap().forget();
    }
    let response = read_response(&mut busy).await;
    assert_eq!(response.body, b"released");
    assert!(response.head.contains("connection: close"));
    assert_eq!(soon(pending).await.unwrap().status(), 200);
    assert!(soon(stopped).await.unwrap());
}

/// The test's thread runs the listener as well, so the listener reads nothing before it is stopped.
#[tokio::test]
async fn a_stop_responds_to_requests_that_have_arrived_and_were_not_read_yet() {
    for _ in 0..20 {
        let served = start(Limits::default());
        let mut kept = served.idle().await;
        let mut opened = served.connect().await;
        tokio::task::yield_now().await;
        let mut waiting = std::net::TcpStream::connect(served.running.address).unwrap();
        std::io::Write::write_all(&mut waiting, HELLO).unwrap();
        waiting.set_nonblocking(true).unwrap();
        let mut waiting = TcpStream::from_std(waiting).unwrap();
        for stream in [&kept, &opened] {
            assert_eq!(stream.try_write(HELLO).unwrap(), HELLO.len());
        }
        let stopped = tokio::spawn(served.running.stop(WAIT_LIMIT));
        for stream in [&mut kept, &mut opened, &mut waiting] {
            let response = read_response(stream).await;
            assert_eq!(response.status, 200);
            assert!(response.head.contains("connection: close"), "{}", response.head);
            ends(stream).await;
        }
        assert!(soon(stopped).await.unwrap());
    }
}

#[tokio::test]
async fn requests_that_run_at_the_deadline_are_aborted_and_reported() {
    let served = start(Limits::default());
    let mut busy = served.busy().await;
    drop(served.busy().await);
    served.until(|metrics| metrics.detached == 1).await;
    assert!(!soon(served.running.stop(Duration::from_millis(50))).await);
    ends(&mut busy).await;
    served.hanging.release.add_permits(2);
    assert_eq!(served.hanging.finished.available_permits(), 0);
}

#[tokio::test]
async fn a_handshake_that_hangs_is_closed_and_does_not_delay_others() {
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), quick()).unwrap();
    let handshake = |mut stream: TcpStream| async move {
        stream.read_u8().await?;
        Ok(stream)
    };
    let running = listener.serve_with(handshake, |_, _| async { Response::new(Body::from("hello")) });
    let mut hanging = TcpStream::connect(running.address).await.unwrap();
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    assert_eq!(exchange(&mut stream, &[b"!", HELLO].concat()).await.status, 200);
    ends(&mut hanging).await;
    assert_eq!(running.metrics().no_request, 1);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn accepted_connections_inherit_the_socket_options() {
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), quick()).unwrap();
    let (sender, mut options) = tokio::sync::mpsc::unbounded_channel();
    let handshake = move |stream: TcpStream| {
        let timeout = nix::sys::socket::getsockopt(&stream, nix::sys::socket::sockopt::TcpUserTimeout).unwrap();
        sender.send((stream.nodelay().unwrap(), timeout)).unwrap();
        std::future::ready(Ok(stream))
    };
    let running = listener.serve_with(handshake, |_, _| async { Response::new(Body::empty()) });
    let _stream = TcpStream::connect(running.address).await.unwrap();
    let expected = u32::try_from(quick().stalled_response.as_millis()).unwrap();
    assert_eq!(soon(options.recv()).await.unwrap(), (true, expected));
}
