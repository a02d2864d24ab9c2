//! Two replicas, and a key that sends each of its nonces to both at once: what that does to the reads of others.
//!
//! A write goes to one replica and a read with its nonce to the other, both ways round. Where a nonce is held uncommitted
//! while its request waits, each replica's admissions wait for the other's, and with them everybody's. The attack stays within
//! its keys' limits of 60 requests a minute; slices with it and without it alternate, so that both see the same machine.

use std::cell::{Cell, RefCell};
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::future::join_all;
use partner_api_signing::nonce_from;

use crate::error::BenchError;
use crate::load::{Connection, Draft};
use crate::world::{Key, World};

/// How long a slice is.
const SLICE: Duration = Duration::from_secs(5);
/// Others' connections to each replica, and how long each of them rests after an answer: the machine is at work, not full.
const READERS: usize = 8;
const REST: Duration = Duration::from_millis(10);
/// What each of the attack's keys may send in a minute is four requests a time.
const BETWEEN: Duration = Duration::from_secs(4);

const READ: &str = "/api/v1/partner/organizations";
const WRITE: &str = "/api/v1/partner/test-line/measurements";

/// What others saw, without the attack and with it.
#[derive(Default)]
struct Seen {
    latencies: [Vec<Duration>; 2],
    /// Answers to others that were no 200, and what the first one said.
    wrong: u64,
    said: Option<String>,
    /// Nonces that were crossed, and how many of those pairs of requests were both let in.
    crossed: u64,
    both_admitted: u64,
}

impl Seen {
    fn note(&mut self, under_attack: bool, took: Duration, status: u16, said: String) {
        self.latencies[usize::from(under_attack)].push(took);
        if status != 200 {
            self.wrong += 1;
            self.said.get_or_insert(said);
        }
    }
}

/// Measures for `seconds` with the attack and as long without it; the section for the file, and whether all was as it must be.
///
/// # Errors
/// A replica does not answer at all.
pub async fn measure(world: &World, replicas: [SocketAddr; 2], seconds: u64) -> Result<(String, bool), BenchError> {
    let seen = RefCell::new(Seen::default());
    let attacks = Cell::new(false);
    let ends = Cell::new(false);
    let slices = seconds.div_ceil(SLICE.as_secs()).max(1);
    let clock = async {
        for slice in 0..slices * 2 {
            attacks.set(slice % 2 == 1);
            tokio::time::sleep(SLICE).await;
            eprintln!("slice {}/{}", slice + 1, slices * 2);
        }
        ends.set(true);
    };
    let readers = (0..READERS * 2).map(|number| {
        let key = &world.keys[number % world.keys.len()];
        read(key, replicas[number % 2], &seen, &attacks, &ends)
    });
    let crossers = world
        .crossers
        .iter()
        .map(|key| cross(key, replicas, &seen, &attacks, &ends));
    tokio::join!(clock, join_all(readers), join_all(crossers));
    let seen = seen.into_inner();
    if seen.latencies.iter().any(Vec::is_empty) {
        return Err(BenchError::Unexpected(format!("no answers: {:?}", seen.said)));
    }
    let was_right = seen.wrong == 0 && seen.crossed > 0 && seen.both_admitted == 0;
    Ok((markdown(seen, world.crossers.len()), was_right))
}

async fn read(key: &Key, replica: SocketAddr, seen: &RefCell<Seen>, attacks: &Cell<bool>, ends: &Cell<bool>) {
    let mut draft = Draft::new(key, replica);
    READ.clone_into(&mut draft.path);
    let mut connection = None;
    while !ends.get() {
        let under_attack = attacks.get();
        let began = Instant::now();
        let (status, said) = exchange(&mut connection, replica, &mut draft).await;
        seen.borrow_mut().note(under_attack, began.elapsed(), status, said);
        tokio::time::sleep(REST).await;
    }
}

/// The attack, for as long as it is on.
async fn cross(key: &Key, replicas: [SocketAddr; 2], seen: &RefCell<Seen>, attacks: &Cell<bool>, ends: &Cell<bool>) {
    while !ends.get() {
        if attacks.get() {
            let nonces = [(); 2].map(|()| nonce_from(&rand::random()));
            let writes = [0, 1].map(|number| send(key, replicas[number], &nonces[number], true));
            let reads = [0, 1].map(|number| send(key, replicas[1 - number], &nonces[number], false));
            let (writes, reads) = tokio::join!(join_all(writes), join_all(reads));
            for (write, read) in writes.into_iter().zip(reads) {
                let mut seen = seen.borrow_mut();
                seen.crossed += 1;
                // Let in, the write lacks its permission (403); the read is answered 200.
                seen.both_admitted += u64::from(write == 403 && read == 200);
            }
        }
        tokio::time::sleep(BETWEEN).await;
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

/// The status, 0 where there is none, and for all but 200 what was said.
async fn exchange(connection: &mut Option<Connection>, replica: SocketAddr, draft: &mut Draft<'_>) -> (u16, String) {
    let mut open = match connection.take() {
        Some(open) => open,
        None => match Connection::open(replica).await {
            Ok(open) => open,
            Err(error) => return (0, error.to_string()),
        },
    };
    let outcome = match open.exchange(draft.finish()).await {
        Ok(answer) if answer.status == 200 => (200, String::new()),
        Ok(answer) => (answer.status, String::from_utf8_lossy(answer.body).into_owned()),
        Err(error) => return (0, error.to_string()),
    };
    *connection = Some(open);
    outcome
}

fn markdown(seen: Seen, keys: usize) -> String {
    let [without, with] = seen.latencies.map(|mut latencies| {
        latencies.sort();
        latencies
    });
    let at = |latencies: &[Duration], part: f64| {
        let place = ((latencies.len() - 1) as f64 * part).round() as usize;
        latencies[place].as_secs_f64() * 1e3
    };
    let mut text = format!(
        "{keys} keys without a permission, each within 60 requests a minute, sent {} nonces to both replicas at once; of none \
         both requests were let in: {}. {} reads of others, {} answered with anything but 200{}.\n\n\
         | Reads of others | without | with | ratio | bar |\n|---|--:|--:|--:|---|\n",
        seen.crossed,
        if seen.both_admitted == 0 { "yes" } else { "**no**" },
        without.len() + with.len(),
        seen.wrong,
        seen.said.map(|said| format!(": {said}")).unwrap_or_default(),
    );
    for (name, part, bar) in [
        ("median, ms", 0.5, ""),
        ("p99, ms", 0.99, "≤ 2"),
        ("longest, ms", 1.0, ""),
    ] {
        let (without, with) = (at(&without, part), at(&with, part));
        // Writing into a String cannot fail.
        let _ = writeln!(
            text,
            "| {name} | {without:.2} | {with:.2} | {:.2} | {bar} |",
            with / without
        );
    }
    text
}
