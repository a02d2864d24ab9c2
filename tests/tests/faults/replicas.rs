//! Two replicas over one database behave as one service.

use std::time::{Duration, Instant};

use futures::future::{join, join_all};
use partner_api_tests::{ALPHA, Answer, BETA, DELTA, Request, Service, cluster};

use partner_api_tests::measurements::{MEASUREMENTS, package};

const HEALTH: &str = "/api/v1/partner/health";
const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// How often something is used at once, and how often that is tried.
const USES: usize = 100;
const ROUNDS: usize = 5;

/// How often what a slow machine turned away comes again.
const ATTEMPTS: usize = 6;

/// More than any request may wait for the database (1.8 s), on a machine that has other tests to run.
const BOUND: Duration = Duration::from_secs(8);

/// The plate of a report that somebody has locked, and one of none.
const LOCKED: &str = "35 OPN 205";
const FREE: &str = "34 ABC 123";

/// KEY-6, SVC-3
#[tokio::test]
async fn a_nonce_of_a_write_is_used_up_for_every_replica() {
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
        replica.send(request).await.assert_refused(401, "replay_detected");
    }
}

/// KEY-9
#[tokio::test]
async fn a_nonce_of_health_is_recorded_behind_its_answer() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let nonce = "recorded-behind-the-answer";
    service
        .send(Request::get(HEALTH).signed_by(&ALPHA).nonce(nonce))
        .await
        .assert_status(200);
    service
        .eventually(async || service.count("used_nonces").await >= 1)
        .await;
    let elsewhere = Request::get(ORGANIZATIONS).signed_by(&ALPHA).nonce(nonce);
    replica.send(elsewhere).await.assert_refused(401, "replay_detected");
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
    let answers = join_all((0..30).map(send)).await;
    let passed = answers.iter().filter(|answer| answer.status.is_success()).count();
    let refused = answers
        .iter()
        .filter(|answer| answer.code().as_deref() == Some("rate_limited"))
        .count();
    assert_eq!((passed, refused), (10, 20));
    let recorded = answers.iter().filter(|answer| answer.status == 201).count();
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

/// Each nonce and each `external_id` is used a hundred times at once, all over the replicas and among other traffic, while a
/// transaction that never ends holds what a replica in the midst of a write would hold.
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
        // Reads and writes alike, of which the winner's alone is recorded.
        undisturbed(async |attempt| {
            let name = format!("{round}-{attempt}");
            let nonce = format!("contested-in-round-{name}");
            let uses = join_all((0..USES).map(async |number| {
                let request = match number % 2 {
                    0 => Request::get(ORGANIZATIONS),
                    _ => Request::post(MEASUREMENTS, package(&format!("N-{name}-{number}"), FREE)),
                };
                timely(of(number), request.signed_by(&ALPHA).nonce(&nonce)).await
            }));
            let (answers, ()) = join(uses, mixed(&of, &format!("nonce-{name}"))).await;
            assert!(first.knows_nonce(&ALPHA, &nonce).await);
            let recorded = format!("measurements WHERE external_id LIKE 'N-{name}-%'");
            let created = i64::from(answers.iter().any(|answer| answer.status == 201));
            let recorded = first.count(&recorded).await;
            assert!(
                recorded == created || (turned_away(&answers) && recorded == 1),
                "{recorded}"
            );
            let won = answers.iter().filter(|answer| answer.status.is_success()).count();
            for answer in answers.iter().filter(|answer| answer.status.is_client_error()) {
                answer.assert_refused(401, "replay_detected");
            }
            (won, answers)
        })
        .await;
        undisturbed(async |attempt| {
            let name = format!("{round}-{attempt}");
            let external_id = format!("contested-{name}");
            let uses = join_all((0..USES).map(async |number| {
                let request = Request::post(MEASUREMENTS, package(&external_id, FREE));
                timely(of(number), request.signed_by(&ALPHA)).await
            }));
            let (answers, ()) = join(uses, mixed(&of, &format!("external-{name}"))).await;
            let recorded = format!("measurements WHERE external_id = '{external_id}'");
            assert_eq!(first.count(&recorded).await, 1);
            let won = answers.iter().filter(|answer| answer.status == 201).count();
            let replayed = answers.iter().filter(|answer| answer.status == 200).count();
            assert!(won + replayed == USES || turned_away(&answers), "{:?}", tally(&answers));
            (won, answers)
        })
        .await;
    }
    assert_eq!(first.count("measurement_mismatches").await, 0);

    // What is held makes who needs it wait, not for long, and nobody else.
    let needs = Request::post(MEASUREMENTS, package("M-1", LOCKED)).signed_by(&ALPHA);
    timely(of(1), needs).await.assert_refused(503, "service_unavailable");
    holder.batch_execute("ROLLBACK").await.unwrap();
    let needs = Request::post(MEASUREMENTS, package("M-1", LOCKED)).signed_by(&ALPHA);
    let answer = timely(of(1), needs).await;
    // On a slow machine, what was turned away has been recorded behind its answer.
    assert!(answer.status.is_success(), "{}", answer.status);
    assert_eq!(first.count("measurements WHERE external_id = 'M-1'").await, 1);
}

/// Holds a contest that has one winner: never more, and one as soon as the machine was fast enough for all of it.
async fn undisturbed(contest: impl AsyncFn(usize) -> (usize, Vec<Answer>)) {
    for attempt in 0..ATTEMPTS {
        let (won, answers) = contest(attempt).await;
        assert!(won <= 1, "{:?}", tally(&answers));
        if !turned_away(&answers) {
            assert_eq!(won, 1, "{:?}", tally(&answers));
            return;
        }
    }
    panic!("each time some were turned away");
}

/// Whether the machine was too slow for some of them.
fn turned_away(answers: &[Answer]) -> bool {
    answers.iter().any(|answer| answer.status == 503)
}

/// Traffic that has nothing to do with it: each request of it is answered as ever, or when it comes again.
async fn mixed<'s>(of: &impl Fn(usize) -> &'s Service, name: &str) {
    join_all((0..24).map(async |number| {
        let request = || match number % 4 {
            0 => Request::get(ORGANIZATIONS).signed_by(&BETA),
            1 => Request::get(HEALTH).signed_by(&ALPHA),
            _ => Request::post(MEASUREMENTS, package(&format!("{name}-{number}"), FREE)).signed_by(&ALPHA),
        };
        for _ in 0..ATTEMPTS {
            let answer = timely(of(number), request()).await;
            if answer.status.is_success() {
                return;
            }
            answer.assert_refused(503, "service_unavailable");
        }
        panic!("request {number} was turned away each time");
    }))
    .await;
    let recorded = format!("measurements WHERE external_id LIKE '{name}-%'");
    assert_eq!(of(0).count(&recorded).await, 12);
}

async fn timely(service: &Service, request: Request) -> Answer {
    let since = Instant::now();
    let answer = service.send(request).await;
    assert!(since.elapsed() < BOUND, "{:?}", since.elapsed());
    answer
}

fn tally(answers: &[Answer]) -> std::collections::BTreeMap<String, usize> {
    let mut tally = std::collections::BTreeMap::new();
    for answer in answers {
        let what = format!("{} {:?}", answer.status, answer.code());
        *tally.entry(what).or_default() += 1;
    }
    tally
}
