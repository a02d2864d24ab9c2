//! Peers that do not read their response, read it byte by byte, or are merely slow.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use bounded_listener::Limits;
use futures::FutureExt;

use super::setup::{HELLO, Served, exchange, get, quick, read_response, soon, start};

/// Reads a body with a pause after each piece.
async fn read_slowly(mut body: h2::RecvStream) {
    while let Some(Ok(bytes)) = body.data().await {
        let _ = body.flow_control().release_capacity(bytes.len());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// REQ-13
#[tokio::test]
async fn an_http1_peer_that_never_reads_is_disconnected() {
    let served = start(quick());
    let mut stream = served.connect().await;
    stream.write_all(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    served.responds_to_others().await;
    served.until(|metrics| metrics.stalled == 1).await;
}

#[tokio::test]
async fn an_http2_peer_that_opens_no_window_is_disconnected_even_if_it_answers_pings() {
    let served = start(quick());
    let (mut client, connection) = served.http2_with_window(0).await;
    let (response, _) = client.send_request(get("/hello"), true).unwrap();
    let response = soon(response).await.unwrap();
    served.responds_to_others().await;
    soon(connection).await.unwrap();
    assert_eq!(served.running.metrics().stalled, 1);
    drop(response);
}

#[tokio::test]
async fn a_stalled_stream_is_detected_even_if_other_streams_progress() {
    let served = start(quick());
    let (mut client, connection) = served.http2_with_window(5).await;
    // The window holds five bytes.
    let (stuck, _) = client.send_request(get("/megabyte"), true).unwrap();
    let stuck = soon(stuck).await.unwrap();
    soon(async {
        loop {
            let Ok(mut ready) = client.clone().ready().await else {
                return;
            };
            let Ok((response, _)) = ready.send_request(get("/hello"), true) else {
                return;
            };
            let Ok(response) = response.await else { return };
            read_slowly(response.into_body()).await;
        }
    })
    .await;
    soon(connection).await.unwrap();
    assert_eq!(served.running.metrics().stalled, 1);
    drop(stuck);
}

#[tokio::test]
async fn a_peer_that_reads_one_byte_at_a_time_is_disconnected() {
    let served = start(quick());
    let (mut client, connection) = served.http2_with_window(1).await;
    let (response, _) = client.send_request(get("/megabyte"), true).unwrap();
    let body = soon(response).await.unwrap().into_body();
    soon(read_slowly(body)).await;
    soon(connection).await.unwrap();
    assert_eq!(served.running.metrics().stalled, 1);
}

#[tokio::test]
async fn a_slow_peer_that_reads_enough_gets_the_whole_response() {
    let served = start(quick());
    let (mut client, _connection) = served.http2_with_window(64 * 1024).await;
    let (response, _) = client.send_request(get("/megabyte"), true).unwrap();
    let mut body = soon(response).await.unwrap().into_body();
    let (mut received, mut unreleased) = (0, 0);
    // 32 pauses of 60 ms are more than twice as long as any timeout.
    while let Some(bytes) = soon(body.data()).await {
        let bytes = bytes.unwrap();
        received += bytes.len();
        unreleased += bytes.len();
        if unreleased >= 32 * 1024 {
            tokio::time::sleep(Duration::from_millis(60)).await;
            body.flow_control().release_capacity(unreleased).unwrap();
            unreleased = 0;
        }
    }
    assert_eq!(received, 1024 * 1024);
}

/// Opens an HTTP/2 connection whose peer asks `count` times and reads nothing but the heads of the responses.
async fn unread(served: &Served, from: u8, count: usize) -> tokio::task::JoinHandle<()> {
    unread_of(served, from, count, "/hello").await
}

async fn unread_of(served: &Served, from: u8, count: usize, path: &'static str) -> tokio::task::JoinHandle<()> {
    let (client, connection) = h2::client::Builder::new()
        .initial_window_size(0)
        .handshake::<_, bytes::Bytes>(served.connect_from(from).await)
        .await
        .unwrap();
    let mut client = client.ready().await.unwrap();
    tokio::spawn(async move {
        let reading = async {
            let mut responses = Vec::new();
            for _ in 0..count {
                let (response, _) = client.send_request(get(path), true).unwrap();
                responses.push(response.await.unwrap());
            }
            std::future::pending::<()>().await;
            drop(responses);
        };
        tokio::select! {
            _ = connection => {}
            () = reading => {}
        }
    })
}

/// REQ-13
#[tokio::test]
async fn an_address_with_too_many_unread_responses_loses_the_connection_that_waits_longest() {
    let served = start(Limits {
        unread_per_address: 20,
        http2_streams: 16,
        ..Limits::default()
    });
    let other = unread(&served, 98, 10).await;
    let oldest = unread(&served, 97, 10).await;
    served.until(|metrics| metrics.connections == 2).await;
    let younger = [unread(&served, 97, 10).await, unread(&served, 97, 10).await];
    soon(oldest).await.unwrap();
    served.responds_to_others().await;
    assert_eq!(served.running.metrics().unread, 1);
    assert!(!other.is_finished() && younger.iter().all(|connection| !connection.is_finished()));
}

/// REQ-13
#[tokio::test]
async fn all_addresses_together_have_a_limit_of_unread_responses() {
    let served = start(Limits {
        unread: 20,
        http2_streams: 16,
        exempt: vec!["127.0.0.0/8".parse().unwrap()],
        ..Limits::default()
    });
    let oldest = unread(&served, 97, 10).await;
    served.until(|metrics| metrics.connections == 1).await;
    let younger = [unread(&served, 98, 10).await, unread(&served, 96, 10).await];
    soon(oldest).await.unwrap();
    served.responds_to_others().await;
    assert_eq!(served.running.metrics().unread, 1);
    assert!(younger.iter().all(|connection| !connection.is_finished()));
}

/// REQ-13
#[tokio::test]
async fn the_memory_of_responses_that_wait_is_limited_and_shared_bytes_do_not_count() {
    let served = start(Limits {
        unread_bytes: 4 * 1024 * 1024,
        exempt: vec!["127.0.0.0/8".parse().unwrap()],
        ..Limits::default()
    });
    let shared = unread_of(&served, 96, 8, "/shared").await;
    served.until(|metrics| metrics.connections == 1).await;
    let mut own = Vec::new();
    for connections in 2..=7 {
        own.push(unread_of(&served, 97, 1, "/megabyte").await);
        served.until(|metrics| metrics.accepted == connections).await;
    }
    for oldest in own.drain(..2) {
        soon(oldest).await.unwrap();
    }
    served.responds_to_others().await;
    assert_eq!(served.running.metrics().unread, 2);
    assert!(!shared.is_finished() && own.iter().all(|connection| !connection.is_finished()));
}

/// REQ-13
#[tokio::test]
async fn an_address_has_a_limit_of_memory_for_responses_that_wait() {
    let served = start(Limits {
        unread_bytes_per_address: 3 * 1024 * 1024,
        ..Limits::default()
    });
    let other = unread_of(&served, 98, 3, "/megabyte").await;
    let oldest = unread_of(&served, 97, 2, "/megabyte").await;
    served.until(|metrics| metrics.connections == 2).await;
    let younger = unread_of(&served, 97, 2, "/megabyte").await;
    soon(oldest).await.unwrap();
    served.responds_to_others().await;
    assert_eq!(served.running.metrics().unread, 1);
    assert!(!other.is_finished() && !younger.is_finished());
}

/// REQ-13
#[tokio::test]
async fn a_request_waits_before_its_handler_starts_while_too_many_of_its_address_are_in_progress() {
    let served = start(Limits {
        in_progress_per_address: 2,
        ..Limits::default()
    });
    let hang = b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n";
    // One of them runs, and the response of the other one is not read.
    let mut running = served.busy().await;
    let (mut client, _connection) = served.http2_with_window(0).await;
    let (response, _) = client.send_request(get("/hello"), true).unwrap();
    let unread = soon(response).await.unwrap();
    let mut waiting = served.connect().await;
    waiting.write_all(HELLO).await.unwrap();
    served.responds_to_others().await;
    assert!(waiting.read_u8().now_or_never().is_none());
    served.hanging.release.add_permits(1);
    assert_eq!(read_response(&mut running).await.status, 200);
    assert_eq!(read_response(&mut waiting).await.status, 200);

    waiting.write_all(hang).await.unwrap();
    soon(served.hanging.begun.notified()).await;
    running.write_all(HELLO).await.unwrap();
    served.responds_to_others().await;
    assert!(running.read_u8().now_or_never().is_none());
    drop(unread);
    assert_eq!(read_response(&mut running).await.status, 200);
    served.hanging.release.add_permits(1);
    assert_eq!(read_response(&mut waiting).await.status, 200);
}

#[tokio::test]
async fn any_number_of_streams_of_events_is_in_progress() {
    let served = start(Limits {
        in_progress_per_address: 2,
        ..Limits::default()
    });
    let mut client = served.http2().await;
    let mut streams = Vec::new();
    for _ in 0..5 {
        let (response, _) = client.send_request(get("/events"), true).unwrap();
        streams.push(soon(response).await.unwrap());
    }
    let mut stream = served.connect().await;
    assert_eq!(exchange(&mut stream, HELLO).await.status, 200);
    drop(streams);
}
