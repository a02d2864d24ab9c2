//! Peers that ask and do not take the answer, or take it a byte at a time; and those that are merely slow.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::setup::{get, quick, soon, start};

/// REQ-13
#[tokio::test]
async fn an_http1_peer_that_never_reads_is_ended() {
    let served = start(quick());
    let mut stream = served.connect().await;
    stream.write_all(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    served.answers_others().await;
    served.until(|tally| tally.stalled == 1).await;
}

#[tokio::test]
async fn an_http2_peer_that_opens_no_window_is_ended_though_it_answers_pings() {
    let served = start(quick());
    let (mut client, connection) = served
        .http2_with(h2::client::Builder::new().initial_window_size(0))
        .await;
    let (response, _) = client.send_request(get("/hello"), true).unwrap();
    let response = soon(response).await.unwrap();
    served.answers_others().await;
    soon(connection).await.unwrap();
    assert_eq!(served.running.tally().stalled, 1);
    drop(response);
}

#[tokio::test]
async fn a_stream_that_takes_nothing_is_not_hidden_by_others_that_do() {
    let served = start(quick());
    let (mut client, connection) = served
        .http2_with(h2::client::Builder::new().initial_window_size(5))
        .await;
    // Five bytes fit into the window; 1 MiB does not.
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
            let mut body = response.into_body();
            while let Some(Ok(bytes)) = body.data().await {
                let _ = body.flow_control().release_capacity(bytes.len());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    soon(connection).await.unwrap();
    assert_eq!(served.running.tally().stalled, 1);
    drop(stuck);
}

#[tokio::test]
async fn a_peer_that_takes_one_byte_at_a_time_is_ended() {
    let served = start(quick());
    let (mut client, connection) = served
        .http2_with(h2::client::Builder::new().initial_window_size(1))
        .await;
    let (response, _) = client.send_request(get("/megabyte"), true).unwrap();
    let mut body = soon(response).await.unwrap().into_body();
    soon(async {
        while let Some(Ok(bytes)) = body.data().await {
            let _ = body.flow_control().release_capacity(bytes.len());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    soon(connection).await.unwrap();
    assert_eq!(served.running.tally().stalled, 1);
}

#[tokio::test]
async fn a_slow_peer_that_takes_enough_has_its_answer_to_the_end() {
    let served = start(quick());
    let (mut client, _connection) = served
        .http2_with(h2::client::Builder::new().initial_window_size(64 * 1024))
        .await;
    let (response, _) = client.send_request(get("/megabyte"), true).unwrap();
    let mut body = soon(response).await.unwrap().into_body();
    let (mut received, mut unreleased) = (0, 0);
    // 32 pauses of 60 ms: more than twice as long as any of the clocks.
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
