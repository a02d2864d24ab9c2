//! Load of our own: kept tools cannot sign every request with a new nonce, nor read whether the answer is the right one.
//!
//! One thread drives all connections. Each sends a request, reads the answer, looks at its status and, now and then, at its
//! body, and sends the next one. What the generator itself costs is measured and shown beside the rest.

mod connection;
mod draft;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::future::join_all;

use self::connection::Answer;
pub use self::connection::Connection;
pub use self::draft::{Draft, Signing};
use crate::cpu::Cpu;
use crate::operations::Operation;
use crate::world::World;

/// Of how many answers one has its body looked at.
const LOOKED_AT: u64 = 64;
/// How long a load lasts before it is measured: connections are made, statements prepared.
pub const WARM_UP: Duration = Duration::from_millis(300);
/// How long a connection that cannot be made waits before it is tried again.
const PAUSE: Duration = Duration::from_millis(20);
/// How many descriptions of what went wrong are kept.
const KEPT: usize = 3;

/// A load to put on a server.
pub struct Load<'a> {
    /// Whose keys sign.
    pub world: &'a World,
    /// What is asked.
    pub operation: &'a Operation<'a>,
    /// The server.
    pub address: SocketAddr,
    /// Its process.
    pub pid: u32,
    /// How many connections.
    pub connections: usize,
    /// How long it lasts before it is measured.
    pub warm_up: Duration,
    /// How long it is measured.
    pub time: Duration,
}

/// What a load showed.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Answers as expected while it was measured.
    pub answers: u64,
    /// How long that took.
    pub seconds: f64,
    /// Processor time meanwhile.
    pub cpu: Cpu,
    /// Answers as expected in all, those of the warm-up and of the end among them.
    pub acknowledged: u64,
    /// Answers with another status in all, by status.
    pub others: BTreeMap<u16, u64>,
    /// Lost connections, and bodies that are not the right ones.
    pub failures: u64,
    /// Some of what went wrong.
    pub said: Vec<String>,
}

impl Sample {
    /// Expected answers a second.
    pub fn rate(&self) -> f64 {
        self.answers as f64 / self.seconds
    }

    /// All that went wrong in several of them together.
    pub fn merged(samples: &[Self]) -> Self {
        let mut all = Self::default();
        for sample in samples {
            all.acknowledged += sample.acknowledged;
            all.failures += sample.failures;
            for (status, count) in &sample.others {
                *all.others.entry(*status).or_default() += count;
            }
            all.said.extend(sample.said.iter().cloned());
        }
        all.said.truncate(KEPT);
        all
    }

    /// What went wrong, if anything did.
    pub fn problem(&self, operation: &Operation<'_>) -> Option<String> {
        let others = self
            .others
            .iter()
            .filter(|(status, _)| operation.tolerated != Some(**status));
        let others: Vec<String> = others.map(|(status, count)| format!("{count} × {status}")).collect();
        if others.is_empty() && self.failures == 0 && self.acknowledged > 0 {
            return None;
        }
        Some(format!(
            "{} right answers, {} failures, others: [{}]; {}",
            self.acknowledged,
            self.failures,
            others.join(", "),
            self.said.join("; ")
        ))
    }

    /// Microseconds of processor time an answer: the server's, the cluster's, the generator's.
    pub fn micros(&self) -> [f64; 3] {
        [self.cpu.server, self.cpu.postgres, self.cpu.own].map(|seconds| seconds * 1e6 / self.answers.max(1) as f64)
    }
}

#[derive(Default)]
struct Shared {
    sample: Sample,
    stop: bool,
}

impl Shared {
    fn note(&mut self, text: String) {
        if self.sample.said.len() < KEPT {
            self.sample.said.push(text);
        }
    }

    fn failed(&mut self, text: String) {
        self.sample.failures += 1;
        self.note(text);
    }
}

/// Puts the load on the server.
pub async fn run(load: &Load<'_>) -> Sample {
    let shared = RefCell::new(Shared::default());
    let measured = async {
        tokio::time::sleep(load.warm_up).await;
        let (began, cpu, before) = snapshot(load, &shared);
        tokio::time::sleep(load.time).await;
        let (ended, cpu_after, after) = snapshot(load, &shared);
        let mut shared = shared.borrow_mut();
        shared.stop = true;
        shared.sample.answers = after - before;
        shared.sample.seconds = ended.duration_since(began).as_secs_f64();
        shared.sample.cpu = cpu_after - cpu;
    };
    tokio::join!(
        measured,
        join_all((0..load.connections).map(|number| drive(load, number, &shared)))
    );
    shared.into_inner().sample
}

fn snapshot(load: &Load<'_>, shared: &RefCell<Shared>) -> (Instant, Cpu, u64) {
    let cpu = Cpu::now(Some(load.pid), load.world.postgres_pid);
    (Instant::now(), cpu, shared.borrow().sample.acknowledged)
}

/// One connection until the load ends; made anew when it is lost.
async fn drive(load: &Load<'_>, number: usize, shared: &RefCell<Shared>) {
    let key = &load.world.keys[number % load.world.keys.len()];
    let mut draft = Draft::new(key, load.address);
    let mut connection = None;
    while !shared.borrow().stop {
        let mut open = match connection.take() {
            Some(open) => open,
            None => match Connection::open(load.address).await {
                Ok(open) => open,
                Err(error) => {
                    shared.borrow_mut().failed(error.to_string());
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            },
        };
        load.operation.write(&mut draft);
        match open.exchange(draft.finish()).await {
            Ok(answer) => look_at(load.operation, &draft, &answer, &mut shared.borrow_mut()),
            Err(error) => {
                shared.borrow_mut().failed(error.to_string());
                continue;
            }
        }
        connection = Some(open);
    }
}

fn look_at(operation: &Operation<'_>, draft: &Draft<'_>, answer: &Answer<'_>, shared: &mut Shared) {
    if answer.status != operation.expected {
        let others = shared.sample.others.entry(answer.status).or_default();
        *others += 1;
        if *others == 1 {
            shared.note(format!("{}: {}", answer.status, String::from_utf8_lossy(answer.body)));
        }
        return;
    }
    shared.sample.acknowledged += 1;
    if shared.sample.acknowledged % LOOKED_AT == 1
        && let Err(problem) = operation.check(draft, answer.body)
    {
        shared.failed(format!("{problem} in {}", String::from_utf8_lossy(answer.body)));
    }
}
