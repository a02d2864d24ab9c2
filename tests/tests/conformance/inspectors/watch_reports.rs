//! `watch_reports`

use std::time::Duration;

use futures::StreamExt;
use partner_api_inspector_client::Client;
use partner_api_tests::fixture::inspections;
use partner_api_tests::{ALPHA, AYSE, Answer, DERYA, Service, contract};
use serde_json::json;
use tokio::sync::mpsc;

/// A stream's events, as they come: each with its name and its data.
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

    /// The next one; `None` where the stream ends.
    async fn next(&mut self) -> Option<(String, String)> {
        let next = tokio::time::timeout(Duration::from_secs(20), self.0.recv());
        next.await.expect("an event, or an end, within twenty seconds")
    }

    /// The report that the next change is of.
    async fn changed(&mut self) -> String {
        let (name, data) = self.next().await.expect("a change");
        assert_eq!(name, "changed");
        let data: serde_json::Value = serde_json::from_str(&data).unwrap();
        data["report_id"].as_str().unwrap().to_owned()
    }
}

/// INS-10
#[tokio::test]
async fn who_watches_is_told_what_waits_what_is_written_and_what_is_moved_at_any_replica() {
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
    let version = inspector.report(&replica, inspections::DRAFT).await["version"].clone();
    let status = format!("/inspector/v1/reports/{}/status", inspections::DRAFT);
    let body = json!({ "version": version, "to": "PUBLISHED" });
    inspector.write(&replica, "PUT", &status, body).await.assert_status(200);
    assert_eq!(events.changed().await, inspections::DRAFT);

    // Nobody is told of other branches: the first that this one hears is of its own.
    let theirs = r#"{"branch_code":"IST-02","plate":"34OPN305","measurements":{"BRAKE_FRONT_LEFT":3}}"#;
    service.measure(&ALPHA, theirs).await.assert_status(201);
    assert_eq!(of_others.changed().await, inspections::FULL_DRAFT);
}

/// INS-3, INS-10
#[tokio::test]
async fn a_stream_ends_with_its_session_and_says_so() {
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
async fn a_stream_is_a_stream_and_holds_up_no_stop() {
    let service = Service::start().await;
    let (client, _) = service.generated_inspector_client(&AYSE).await;
    let stream = client.watch_reports().send().await.unwrap();
    let (status, headers) = (stream.status(), stream.headers().clone());
    let first = stream.into_inner().next().await.unwrap().unwrap();
    let answer = Answer {
        method: http::Method::GET,
        target: "/inspector/v1/events".to_owned(),
        sent: bytes::Bytes::new(),
        base_url: service.base_url.clone(),
        operation: Some("watch_reports".to_owned()),
        status,
        headers,
        body: first,
    };
    contract::check(&answer);
    answer.snapshot("a_stream_begins_when_all_that_changes_will_be_told");
    service.stop().await;
}
