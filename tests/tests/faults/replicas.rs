//! Two replicas over one database behave as one service.

use std::time::{Duration, Instant};

use futures::future::{join, join_all};
use partner_api_tests::{ALPHA, BETA, DELTA, Request, Service, TestResponse, cluster};

use partner_api_tests::measurements::{MEASUREMENTS, package};

const HEALTH: &str = "/api/v1/partner/health";
const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// The number of concurrent uses, and of rounds.
const USES: usize = 100;
const ROUNDS: usize = 5;

/// The number of attempts for a request that a slow machine rejects with 503.
const ATTEMPTS: usize = 6;

/// More than any request may wait for the database (1.8 s), because the machine runs other tests.
const BOUND: Duration = Duration::from_secs(8);

/// The plate of a locked report, and one without a report.
const LOCKED: &str = "35 OPN 205";
const FREE: &str = "34 ABC 123";

/// KEY-6, SVC-3
#[tokio::test]
async fn a_nonce_of_a_write_is_consumed_on_every_replica() {
    let service = Service::start().await;
    let replica = service.replica().await;
    for (number, (external_id, plate, status)) in [
        ("M-1", "35 OPN 205", 201),
        ("M-1", "35 OPN 205", 200),
        ("M-2", "no plate", 400),
    ]
    .into_iter()
    .enumerate()
    {
        let request = Request::post(MEASUREMENTS, package(external_id, plate))
            .signed_by(&ALPHA)
            .nonce(&format!("of-a-write-number-{number}"));
        service.send(request.clone()).await.assert_status(status);
        replica.send(request).await.assert_rejected(401, "replay_detected");
    }
}

/// KEY-9
#[tokio::test]
async fn a_nonce_of_health_is_recorded_after_the_response() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let nonce = "recorded-after-the-response";
    service
        .send(Request::get(HEALTH).signed_by(&ALPHA).nonce(nonce))
        .await
        .assert_status(200);
    service
        .eventually(async || service.count("used_nonces").await >= 1)
        .await;
    let read = Request::get(ORGANIZATIONS).signed_by(&ALPHA).nonce(nonce);
    replica.send(read).await.assert_rejected(401, "replay_detected");
}

/// LIM-1, SVC-3
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_exact_among_reads_and_writes_of_two_replicas() {
    let first = Service::start().await;
    let limit = format!("UPDATE api_keys SET rate_limit = 10 WHERE key_id = '{}'", DELTA.id);
    first.db.execute(&limit, &[]).await.unwrap();
    let (service, replica) = (first.replica().await, first.replica().await);
    let send = async |number: usize| {
        let service = if number.is_multiple_of(2) { &service } else { &replica };
        if number.is_multiple_of(3) {
            let body = package(&format!("M-{number}"), "34 ABC 123").replace("IZMIR-01", "IST-02");
            service.measure(&DELTA, body).await
        } else {
            service.get(&DELTA, ORGANIZATIONS).await
        }
    };
    let responses = join_all((0..30).map(send)).await;
    let passed = responses.iter().filter(|response| response.status.is_success()).count();
    let rejected = responses
        .iter()
        .filter(|response| response.code().as_deref() == Some("rate_limited"))
        .count();
    assert_eq!((passed, rejected), (10, 20));
    let recorded = responses.iter().filter(|response| response.status == 201).count();
    assert_eq!(service.count("measurements").await, i64::try_from(recorded).unwrap());
}

/// KEY-6, MEA-10, SVC-3
#[tokio::test(flavor = "multi_thread")]
async fn each_nonce_and_each_external_id_has_one_winner_among_two_replicas() {
    contest(2).await;
}

/// KEY-6, MEA-10, SVC-3
#[tokio::test(flavor = "multi_thread")]
async fn each_nonce_and_each_external_id_has_one_winner_among_four_replicas() {
    contest(4).await;
}

/// Uses each nonce and each `external_id` a hundred times concurrently on all replicas, together with other traffic.
/// Meanwhile, an open transaction holds the locks that a replica holds during a write.
async fn contest(replicas: usize) {
    let first = Service::start().await;
    let others = join_all((1..replicas).map(|_| first.replica())).await;
    let replicas: Vec<&Service> = std::iter::once(&first).chain(&others).collect();
    let of = |number: usize| replicas[number % replicas.len()];
    let holder = cluster::connect(&first.database()).await;
    holder
        .batch_execute(
            "BEGIN; SELECT FROM inspections WHERE plate = '35OPN205' FOR UPDATE; \
             INSERT INTO used_nonces (bucket, digest) \
             SELECT floor(extract(epoch FROM now()) / 900)::bigint, gen_random_uuid(); \
             INSERT INTO rate_windows (key_id, started_at, used) SELECT 'of-nobody', now(), 1",
        )
        .await
        .unwrap();

    for round in 0..ROUNDS {
        // Reads and writes; only the winner's write is recorded.
        repeat_until_undisturbed(async |attempt| {
            let name = format!("{round}-{attempt}");
            let nonce = format!("contested-in-round-{name}");
            let uses = join_all((0..USES).map(async |number| {
                let request = match number % 2 {
                    0 => Request::get(ORGANIZATIONS),
                    _ => Request::post(MEASUREMENTS, package(&format!("N-{name}-{number}"), FREE)),
                };
                send_in_time(of(number), request.signed_by(&ALPHA).nonce(&nonce)).await
            }));
            let (responses, ()) = join(uses, other_traffic(&of, &format!("nonce-{name}"))).await;
            assert!(first.knows_nonce(&ALPHA, &nonce).await);
            let recorded = format!("measurements WHERE external_id LIKE 'N-{name}-%'");
            let created = i64::from(responses.iter().any(|response| response.status == 201));
            let recorded = first.count(&recorded).await;
            assert!(
                recorded == created || (any_unavailable(&responses) && recorded == 1),
                "{recorded}"
            );
            let won = responses.iter().filter(|response| response.status.is_success()).count();
            for response in responses.iter().filter(|response| response.status.is_client_error()) {
                response.assert_rejected(401, "replay_detected");
            }
            (won, responses)
        })
        .await;
        repeat_until_undisturbed(async |attempt| {
            let name = format!("{round}-{attempt}");
            let external_id = format!("contested-{name}");
            let uses = join_all((0..USES).map(async |number| {
                let request = Request::post(MEASUREMENTS, package(&external_id, FREE));
                send_in_time(of(number), request.signed_by(&ALPHA)).await
            }));
            let (responses, ()) = join(uses, other_traffic(&of, &format!("external-{name}"))).await;
            let recorded = format!("measurements WHERE external_id = '{external_id}'");
            assert_eq!(first.count(&recorded).await, 1);
            let won = responses.iter().filter(|response| response.status == 201).count();
            let replayed = responses.iter().filter(|response| response.status == 200).count();
            assert!(
                won + replayed == USES || any_unavailable(&responses),
                "{:?}",
                tally(&responses)
            );
            (won, responses)
        })
        .await;
    }
    assert_eq!(first.count("measurement_mismatches").await, 0);

    // A request that needs a held lock is rejected in time; no other request waits.
    let needs = Request::post(MEASUREMENTS, package("M-1", LOCKED)).signed_by(&ALPHA);
    send_in_time(of(1), needs)
        .await
        .assert_rejected(503, "service_unavailable");
    holder.batch_execute("ROLLBACK").await.unwrap();
    let needs = Request::post(MEASUREMENTS, package("M-1", LOCKED)).signed_by(&ALPHA);
    let response = send_in_time(of(1), needs).await;
    // On a slow machine, the rejected package may have been recorded after its response.
    assert!(response.status.is_success(), "{}", response.status);
    assert_eq!(first.count("measurements WHERE external_id = 'M-1'").await, 1);
}

/// Repeats a contest until the machine was fast enough for all requests. It never has more than one winner.
async fn repeat_until_undisturbed(contest: impl AsyncFn(usize) -> (usize, Vec<TestResponse>)) {
    for attempt in 0..ATTEMPTS {
        let (won, responses) = contest(attempt).await;
        assert!(won <= 1, "{:?}", tally(&responses));
        if !any_unavailable(&responses) {
            assert_eq!(won, 1, "{:?}", tally(&responses));
            return;
        }
    }
    panic!("some requests were rejected in every attempt");
}

/// Whether the machine was too slow for some of the requests.
fn any_unavailable(responses: &[TestResponse]) -> bool {
    responses.iter().any(|response| response.status == 503)
}

/// Sends unrelated requests, each of which succeeds at the first attempt or after retries.
async fn other_traffic<'s>(of: &impl Fn(usize) -> &'s Service, name: &str) {
    join_all((0..24).map(async |number| {
        let request = || match number % 4 {
            0 => Request::get(ORGANIZATIONS).signed_by(&BETA),
            1 => Request::get(HEALTH).signed_by(&ALPHA),
            _ => Request::post(MEASUREMENTS, package(&format!("{name}-{number}"), FREE)).signed_by(&ALPHA),
        };
        for _ in 0..ATTEMPTS {
            let response = send_in_time(of(number), request()).await;
            if response.status.is_success() {
                return;
            }
            response.assert_rejected(503, "service_unavailable");
        }
        panic!("request {number} was rejected in every attempt");
    }))
    .await;
    let recorded = format!("measurements WHERE external_id LIKE '{name}-%'");
    assert_eq!(of(0).count(&recorded).await, 12);
}

async fn send_in_time(service: &Service, request: Request) -> TestResponse {
    let since = Instant::now();
    let response = service.send(request).await;
    assert!(since.elapsed() < BOUND, "{:?}", since.elapsed());
    response
}

fn tally(responses: &[TestResponse]) -> std::collections::BTreeMap<String, usize> {
    let mut tally = std::collections::BTreeMap::new();
    for response in responses {
        let what = format!("{} {:?}", response.status, response.code());
        *tally.entry(what).or_default() += 1;
    }
    tally
}
