//! The operation `watch_reports`.

use std::time::Duration;

use futures::StreamExt;
use partner_api_inspector_client::Client;
use partner_api_tests::fixture::inspections;
use partner_api_tests::{ALPHA, AYSE, DERYA, Service, TestResponse, contract};
use tokio::sync::mpsc;

/// The events of a stream in order of arrival, each with its name and its data.
struct Events(mpsc::UnboundedReceiver<(String, String)>);

impl Events {
    async fn of(client: &Client) -> Self {
        let mut stream = client.watch_reports().send().await.unwrap().into_inner();
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut text = String::new();
            while let Some(Ok(bytes)) = stream.next().await {
                text += std::str::from_utf8(&bytes).unwrap();
                while let Some((event, rest)) = text.split_once("\n\n") {
                    if let Some((name, data)) = event.split_once('\n') {
                        let data = data.strip_prefix("data: ").unwrap().to_owned();
                        let _ = sender.send((name.strip_prefix("event: ").unwrap().to_owned(), data));
                    }
                    text = rest.to_owned();
                }
            }
        });
        Events(receiver)
    }

    /// The next event; `None` if the stream ends.
    async fn next(&mut self) -> Option<(String, String)> {
        let next = tokio::time::timeout(Duration::from_secs(20), self.0.recv());
        next.await.expect("an event, or an end, within twenty seconds")
    }

    /// The report of the next change.
    async fn changed(&mut self) -> String {
        let (name, data) = self.next().await.expect("a change");
        assert_eq!(name, "changed");
        let data: serde_json::Value = serde_json::from_str(&data).unwrap();
        data["report_id"].as_str().unwrap().to_owned()
    }
}

/// INS-10
#[tokio::test]
async fn a_stream_reports_pending_measurements_changes_and_transitions_of_every_replica() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let (client, _) = service.generated_inspector_client(&AYSE).await;
    let (other, _) = service.generated_inspector_client(&DERYA).await;
    let (mut events, mut of_others) = (Events::of(&client).await, Events::of(&other).await);
    assert_eq!(events.next().await.unwrap().0, "ready");
    assert_eq!(of_others.next().await.unwrap().0, "ready");

    let waits = r#"{"branch_code":"IZMIR-01","plate":"35OLD209","measurements":{"BRAKE_FRONT_LEFT":3}}"#;
    replica.measure(&ALPHA, waits).await.assert_status(201);
    assert_eq!(events.changed().await, inspections::OLD_DRAFT);
    let written = r#"{"branch_code":"IZMIR-01","plate":"35OPN205","measurements":{"BRAKE_FRONT_LEFT":3}}"#;
    replica.measure(&ALPHA, written).await.assert_status(201);
    assert_eq!(events.changed().await, inspections::DRAFT);
    let inspector = replica.inspector(&AYSE).await;
    inspector.answer_required_points(&replica, inspections::DRAFT).await;
    assert_eq!(events.changed().await, inspections::DRAFT);
    let moved = inspector.move_to(&replica, inspections::DRAFT, "PUBLISHED", None).await;
    moved.assert_status(200);
    assert_eq!(events.changed().await, inspections::DRAFT);

    // Changes in other branches are not sent: the first event of this stream belongs to its branch.
    let theirs = r#"{"branch_code":"IST-02","plate":"34OPN305","measurements":{"BRAKE_FRONT_LEFT":3}}"#;
    service.measure(&ALPHA, theirs).await.assert_status(201);
    assert_eq!(of_others.changed().await, inspections::FULL_DRAFT);
}

/// INS-3, INS-10
#[tokio::test]
async fn a_stream_ends_with_its_session_and_reports_why() {
    let service = Service::start().await;
    let (client, _) = service.generated_inspector_client(&AYSE).await;
    let mut events = Events::of(&client).await;
    assert_eq!(events.next().await.unwrap().0, "ready");
    service
        .db
        .batch_execute("UPDATE inspectors SET revoked_at = now()")
        .await
        .unwrap();
    assert_eq!(events.next().await.unwrap().0, "signed_out");
    assert_eq!(events.next().await, None);
}

/// INS-10
#[tokio::test]
async fn an_open_stream_does_not_delay_a_stop() {
    let service = Service::start().await;
    let (client, _) = service.generated_inspector_client(&AYSE).await;
    let stream = client.watch_reports().send().await.unwrap();
    let (status, headers) = (stream.status(), stream.headers().clone());
    let first = stream.into_inner().next().await.unwrap().unwrap();
    let response = TestResponse {
        method: http::Method::GET,
        target: "/inspector/v1/events".to_owned(),
        sent: bytes::Bytes::new(),
        base_url: service.base_url.clone(),
        operation: Some("watch_reports".to_owned()),
        status,
        headers,
        body: first,
    };
    contract::check(&response);
    response.snapshot("a_stream_begins_once_it_will_report_every_change");
    service.stop().await;
}

/// INS-10
#[tokio::test]
async fn a_session_has_at_most_eight_streams() {
    let service = Service::start().await;
    let (client, received) = service.generated_inspector_client(&AYSE).await;
    let (other, _) = service.generated_inspector_client(&AYSE).await;
    let mut streams = Vec::new();
    for _ in 0..8 {
        streams.push(client.watch_reports().send().await.unwrap());
    }
    assert!(client.watch_reports().send().await.is_err());
    received
        .last()
        .assert_rejected(429, "too_many_streams")
        .snapshot("a_ninth_stream_of_a_session_is_rejected");
    other.watch_reports().send().await.unwrap();
    streams.pop();
    service
        .eventually(async || client.watch_reports().send().await.is_ok())
        .await;
}
