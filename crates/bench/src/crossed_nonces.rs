//! Measures an attack on two replicas: a key sends each of its nonces to both at once, and the latency of other keys' reads is
//! recorded.
//!
//! A write goes to one replica and a read with the same nonce to the other, in both directions. If a service left a nonce
//! uncommitted while its request waits, the admissions of the two replicas would wait for each other. All requests would wait
//! with them. The attack stays within its keys' limits of 60 requests per minute. Slices with and without the attack
//! alternate, so that both run under the same conditions.

use std::cell::{Cell, RefCell};
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::future::join_all;
use partner_api_signing::nonce_from;

use crate::connection::Connection;
use crate::draft::Draft;
use crate::error::BenchError;
use crate::fixture::{Fixture, Key};
use crate::targets::millis_at;

/// The duration of a slice.
const SLICE_DURATION: Duration = Duration::from_secs(5);
/// Connections of other keys to each replica, and their pause after a response, so that the machine is busy but not saturated.
const READERS: usize = 8;
const PAUSE: Duration = Duration::from_millis(10);
/// The pause between attacks. Each sends four requests, so that a key stays below 60 per minute.
const ATTACK_PAUSE: Duration = Duration::from_secs(4);

const READ: &str = "/api/v1/partner/organizations";
const WRITE: &str = "/api/v1/partner/test-line/measurements";

/// The responses to other keys, without and with the attack.
#[derive(Default)]
struct Responses {
    latencies: [Vec<Duration>; 2],
    /// Responses to other keys with a status other than 200, and the body of the first one.
    wrong: u64,
    first_wrong: Option<String>,
    /// Nonces that were sent to both replicas, and how many of these pairs of requests were both admitted.
    crossed_nonces: u64,
    both_admitted: u64,
}

impl Responses {
    fn record(&mut self, under_attack: bool, took: Duration, status: u16, body: String) {
        self.latencies[usize::from(under_attack)].push(took);
        if status != 200 {
            self.wrong += 1;
            self.first_wrong.get_or_insert(body);
        }
    }
}

/// Measures for `seconds` with the attack and for the same time without it. Returns the section for the results file, and
/// whether all responses were right.
///
/// # Errors
/// If a replica does not respond at all.
pub async fn measure(fixture: &Fixture, replicas: [SocketAddr; 2], seconds: u64) -> Result<(String, bool), BenchError> {
    let responses = RefCell::new(Responses::default());
    let attacks = Cell::new(false);
    let ends = Cell::new(false);
    let slices = seconds.div_ceil(SLICE_DURATION.as_secs()).max(1);
    let clock = async {
        for slice in 0..slices * 2 {
            attacks.set(slice % 2 == 1);
            tokio::time::sleep(SLICE_DURATION).await;
            eprintln!("slice {}/{}", slice + 1, slices * 2);
        }
        ends.set(true);
    };
    let readers = (0..READERS * 2).map(|number| {
        let key = &fixture.keys[number % fixture.keys.len()];
        read(key, replicas[number % 2], &responses, &attacks, &ends)
    });
    let crossing_keys = fixture
        .crossing_keys
        .iter()
        .map(|key| cross(key, replicas, &responses, &attacks, &ends));
    tokio::join!(clock, join_all(readers), join_all(crossing_keys));
    let responses = responses.into_inner();
    if responses.latencies.iter().any(Vec::is_empty) {
        return Err(BenchError::Unexpected(format!(
            "no responses: {:?}",
            responses.first_wrong
        )));
    }
    let was_right = responses.wrong == 0 && responses.crossed_nonces > 0 && responses.both_admitted == 0;
    Ok((markdown(responses, fixture.crossing_keys.len()), was_right))
}

async fn read(key: &Key, replica: SocketAddr, responses: &RefCell<Responses>, attacks: &Cell<bool>, ends: &Cell<bool>) {
    let mut draft = Draft::new(key, replica);
    READ.clone_into(&mut draft.path);
    let mut connection = None;
    while !ends.get() {
        let under_attack = attacks.get();
        let began = Instant::now();
        let (status, body) = exchange(&mut connection, replica, &mut draft).await;
        responses
            .borrow_mut()
            .record(under_attack, began.elapsed(), status, body);
        tokio::time::sleep(PAUSE).await;
    }
}

/// Runs the attack during the slices with it.
async fn cross(
    key: &Key,
    replicas: [SocketAddr; 2],
    responses: &RefCell<Responses>,
    attacks: &Cell<bool>,
    ends: &Cell<bool>,
) {
    while !ends.get() {
        if attacks.get() {
            let nonces = [(); 2].map(|()| nonce_from(&rand::random()));
            let writes = [0, 1].map(|number| send(key, replicas[number], &nonces[number], true));
            let reads = [0, 1].map(|number| send(key, replicas[1 - number], &nonces[number], false));
            let (writes, reads) = tokio::join!(join_all(writes), join_all(reads));
            for (write, read) in writes.into_iter().zip(reads) {
                let mut responses = responses.borrow_mut();
                responses.crossed_nonces += 1;
                // An admitted write gets 403, because its key lacks the permission. An admitted read gets 200.
                responses.both_admitted += u64::from(write == 403 && read == 200);
            }
        }
        tokio::time::sleep(ATTACK_PAUSE).await;
    }
}

async fn send(key: &Key, replica: SocketAddr, nonce: &str, is_write: bool) -> u16 {
    let mut draft = Draft::new(key, replica);
    draft.nonce = Some(nonce.to_owned());
    if is_write {
        draft.method = "POST";
        draft.body.extend_from_slice(b"{}");
    }
    (if is_write { WRITE } else { READ }).clone_into(&mut draft.path);
    exchange(&mut None, replica, &mut draft).await.0
}

/// Returns the status, or 0 if there was no response, and the body or the error unless the status is 200.
async fn exchange(connection: &mut Option<Connection>, replica: SocketAddr, draft: &mut Draft<'_>) -> (u16, String) {
    let mut open = match connection.take() {
        Some(open) => open,
        None => match Connection::open(replica).await {
            Ok(open) => open,
            Err(error) => return (0, error.to_string()),
        },
    };
    let outcome = match open.exchange(draft.finish()).await {
        Ok(response) if response.status == 200 => (200, String::new()),
        Ok(response) => (response.status, String::from_utf8_lossy(response.body).into_owned()),
        Err(error) => return (0, error.to_string()),
    };
    *connection = Some(open);
    outcome
}

fn markdown(responses: Responses, keys: usize) -> String {
    let [without, with] = responses.latencies.map(|mut latencies| {
        latencies.sort();
        latencies
    });
    let mut text = format!(
        "{keys} keys without a permission, each within 60 requests per minute, sent {} nonces to both replicas at once; at most \
         one request per nonce was admitted: {}. {} reads of other keys, {} with a status other than 200{}.\n\n\
         | Reads of other keys | without | with | ratio | target |\n|---|--:|--:|--:|---|\n",
        responses.crossed_nonces,
        if responses.both_admitted == 0 { "yes" } else { "**no**" },
        without.len() + with.len(),
        responses.wrong,
        responses
            .first_wrong
            .map(|body| format!(": {body}"))
            .unwrap_or_default(),
    );
    for (name, part, target) in [
        ("median, ms", 0.5, ""),
        ("p99, ms", 0.99, "≤ 2"),
        ("longest, ms", 1.0, ""),
    ] {
        let (without, with) = (millis_at(&without, part), millis_at(&with, part));
        // Writing into a String cannot fail.
        let _ = writeln!(
            text,
            "| {name} | {without:.2} | {with:.2} | {:.2} | {target} |",
            with / without
        );
    }
    text
}
