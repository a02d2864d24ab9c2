use futures::future::join_all;
use partner_api_tests::fixture::THREE_A_MINUTE;
use partner_api_tests::{ALPHA, DELTA, Options, Request, Service};

const HEALTH: &str = "/api/v1/partner/health";
const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// LIM-1, REQ-11, ERR-7
#[tokio::test]
async fn exactly_as_many_requests_pass_as_the_key_has() {
    let service = Service::start().await;
    for left in ["r=2", "r=1", "r=0"] {
        let answer = service.get(&THREE_A_MINUTE, ORGANIZATIONS).await;
        assert_eq!(
            answer.assert_status(200).header("ratelimit").unwrap().split(';').nth(1),
            Some(left)
        );
    }
    let answer = service.get(&THREE_A_MINUTE, ORGANIZATIONS).await;
    answer
        .assert_refused(429, "rate_limited")
        .snapshot("exactly_as_many_requests_pass_as_the_key_has");
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait));
}

/// LIM-1, SVC-3
#[tokio::test(flavor = "multi_thread")]
async fn the_default_limit_is_exact_among_simultaneous_requests_of_two_replicas() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let send = |number: usize| {
        if number.is_multiple_of(2) {
            service.get(&DELTA, ORGANIZATIONS)
        } else {
            replica.get(&DELTA, ORGANIZATIONS)
        }
    };
    let answers = join_all((0..80).map(send)).await;
    let passed = answers.iter().filter(|answer| answer.status == 200).count();
    let refused = answers
        .iter()
        .filter(|answer| answer.code().as_deref() == Some("rate_limited"))
        .count();
    assert_eq!((passed, refused), (60, 20));
    assert_eq!(answers[0].header("ratelimit-policy"), Some("\"default\";q=60;w=60"));
}

#[tokio::test]
async fn health_counts_as_every_other_request() {
    let service = Service::start().await;
    for _ in 0..3 {
        service.get(&THREE_A_MINUTE, HEALTH).await.assert_status(200);
    }
    service
        .get(&THREE_A_MINUTE, HEALTH)
        .await
        .assert_refused(429, "rate_limited");
}

#[tokio::test]
async fn a_window_that_ran_out_makes_room_for_a_new_one() {
    let service = Service::start().await;
    for _ in 0..3 {
        service.get(&THREE_A_MINUTE, ORGANIZATIONS).await.assert_status(200);
    }
    let nonce = "refused-for-its-keys-limit";
    let one_more = Request::get(ORGANIZATIONS).signed_by(&THREE_A_MINUTE).nonce(nonce);
    service.send(one_more).await.assert_refused(429, "rate_limited");
    // It is counted behind its answer, in the window that runs out now.
    service
        .within_five_seconds(async || service.knows_nonce(&THREE_A_MINUTE, nonce).await)
        .await;
    service
        .db
        .execute(
            "UPDATE rate_windows SET started_at = started_at - interval '60 seconds'",
            &[],
        )
        .await
        .unwrap();
    // One that has not heard of the window: the other one knows when it ends, and would not ask the database.
    let replica = service.replica().await;
    let answer = replica.get(&THREE_A_MINUTE, ORGANIZATIONS).await;
    assert_eq!(
        answer.assert_status(200).header("ratelimit").unwrap().split(';').nth(1),
        Some("r=2")
    );
}

/// LIM-3
#[tokio::test]
async fn a_window_that_began_in_the_future_begins_anew() {
    let service = Service::start().await;
    // As a clock leaves it that was set back, or a standby that took over.
    let ahead = "INSERT INTO rate_windows VALUES ($1, now() + interval '1 hour', 3)";
    service.db.execute(ahead, &[&THREE_A_MINUTE.id]).await.unwrap();
    let answer = service.get(&THREE_A_MINUTE, ORGANIZATIONS).await;
    assert_eq!(
        answer.assert_status(200).header("ratelimit"),
        Some("\"default\";r=2;t=60")
    );
}

#[tokio::test]
async fn a_refused_parameter_counts_and_a_replay_does_not() {
    let service = Service::start().await;
    let bad = "/api/v1/partner/inspections?limit=0";
    let left = |answer: &partner_api_tests::Answer| {
        answer
            .header("ratelimit")
            .unwrap()
            .split(';')
            .nth(1)
            .unwrap()
            .to_owned()
    };
    let request = Request::get(bad)
        .signed_by(&THREE_A_MINUTE)
        .nonce("counted-and-replayed");
    assert_eq!(
        left(
            service
                .send(request.clone())
                .await
                .assert_refused(400, "invalid_request")
        ),
        "r=2"
    );
    service.send(request).await.assert_refused(401, "replay_detected");
    assert_eq!(
        left(service.get(&THREE_A_MINUTE, ORGANIZATIONS).await.assert_status(200)),
        "r=1"
    );
}

/// LIM-2, REQ-1
#[tokio::test]
async fn an_address_has_a_limit_before_anything_else_is_looked_at() {
    let service = Service::start_with(Options {
        ip_limit: 3,
        ..Options::default()
    })
    .await;
    // Every request counts: unsigned ones, and those for the document.
    service
        .send(Request::get(HEALTH))
        .await
        .assert_refused(401, "missing_signature_headers");
    service.send(Request::get("/openapi.json")).await.assert_status(200);
    service.get(&ALPHA, HEALTH).await.assert_status(200);
    let answer = service.get(&ALPHA, HEALTH).await;
    answer
        .assert_refused(429, "ip_rate_limited")
        .snapshot("an_address_has_a_limit_before_anything_else_is_looked_at");
    assert_eq!(answer.header("ratelimit"), None);
    // Another address is another matter.
    service
        .send(Request::get(HEALTH).signed_by(&ALPHA).from("127.0.0.2"))
        .await
        .assert_status(200);
}
