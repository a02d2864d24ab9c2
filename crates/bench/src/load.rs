//! The load generator. Existing tools cannot sign every request with a new nonce, nor check the responses.
//!
//! One thread drives all connections. Each sends a request, reads the response, checks its status and sometimes its body, and
//! sends the next request. The processor time of the server, the database and the generator itself comes from `/proc`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::ops::Sub;
use std::time::{Duration, Instant};

use futures::future::join_all;

use crate::connection::{Connection, Response};
use crate::draft::Draft;
use crate::fixture::Fixture;
use crate::operations::Operation;

/// The body of one response in this many is checked.
const CHECK_EVERY: u64 = 64;
/// The time before the measurement in which connections are opened and statements prepared.
pub const WARM_UP: Duration = Duration::from_millis(300);
/// The pause before a failed connection is retried.
pub const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// The maximum number of recorded descriptions of problems.
const MAX_MESSAGES: usize = 3;

/// A load on a server.
pub struct Load<'a> {
    /// The data and the keys that sign.
    pub fixture: &'a Fixture,
    /// The requests.
    pub operation: &'a Operation<'a>,
    /// The server's address.
    pub address: SocketAddr,
    /// The server's process ID.
    pub pid: u32,
    /// The number of connections.
    pub connections: usize,
    /// The time before the measurement.
    pub warm_up: Duration,
    /// The time of the measurement.
    pub time: Duration,
}

/// The results of a load.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Responses with the expected status during the measurement.
    pub responses: u64,
    /// The measured time in seconds.
    pub seconds: f64,
    /// Processor time during the measurement.
    pub cpu: Cpu,
    /// All responses with the expected status, including those of the warm-up and the end.
    pub acknowledged: u64,
    /// All responses with another status, by status.
    pub others: BTreeMap<u16, u64>,
    /// Lost connections and wrong bodies.
    pub failures: u64,
    /// Descriptions of some of the problems.
    pub messages: Vec<String>,
}

impl Sample {
    /// Returns the expected responses per second.
    pub fn rate(&self) -> f64 {
        self.responses as f64 / self.seconds
    }

    /// Combines the problems of several samples.
    pub fn merged(samples: &[Self]) -> Self {
        let mut all = Self::default();
        for sample in samples {
            all.acknowledged += sample.acknowledged;
            all.failures += sample.failures;
            for (status, count) in &sample.others {
                *all.others.entry(*status).or_default() += count;
            }
            all.messages.extend(sample.messages.iter().cloned());
        }
        all.messages.truncate(MAX_MESSAGES);
        all
    }

    /// Describes the problems, if any.
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
            "{} right responses, {} failures, others: [{}]; {}",
            self.acknowledged,
            self.failures,
            others.join(", "),
            self.messages.join("; ")
        ))
    }

    /// Returns the microseconds of processor time per response of the server, the cluster and the generator.
    pub fn micros(&self) -> [f64; 3] {
        [self.cpu.server, self.cpu.postgres, self.cpu.own].map(|seconds| seconds * 1e6 / self.responses.max(1) as f64)
    }
}

/// The state that the connections of a load share.
#[derive(Default)]
pub struct Shared {
    /// The results so far.
    pub sample: Sample,
    stop: bool,
}

impl Shared {
    fn add_message(&mut self, text: String) {
        if self.sample.messages.len() < MAX_MESSAGES {
            self.sample.messages.push(text);
        }
    }

    /// Counts a failure.
    pub fn failed(&mut self, text: String) {
        self.sample.failures += 1;
        self.add_message(text);
    }
}

/// Runs the load.
pub async fn run(load: &Load<'_>) -> Sample {
    let shared = RefCell::new(Shared::default());
    let measured = async {
        tokio::time::sleep(load.warm_up).await;
        let (began, cpu, before) = snapshot(load, &shared);
        tokio::time::sleep(load.time).await;
        let (ended, cpu_after, after) = snapshot(load, &shared);
        let mut shared = shared.borrow_mut();
        shared.stop = true;
        shared.sample.responses = after - before;
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
    let cpu = Cpu::now(Some(load.pid), load.fixture.postgres_pid);
    (Instant::now(), cpu, shared.borrow().sample.acknowledged)
}

/// Drives one connection until the load ends, and reopens it if it is lost.
async fn drive(load: &Load<'_>, number: usize, shared: &RefCell<Shared>) {
    let key = &load.fixture.keys[number % load.fixture.keys.len()];
    let mut draft = Draft::new(key, load.address);
    let mut connection = None;
    while !shared.borrow().stop {
        let mut open = match connection.take() {
            Some(open) => open,
            None => match Connection::open(load.address).await {
                Ok(open) => open,
                Err(error) => {
                    shared.borrow_mut().failed(error.to_string());
                    tokio::time::sleep(RETRY_PAUSE).await;
                    continue;
                }
            },
        };
        load.operation.write(&mut draft);
        match open.exchange(draft.finish()).await {
            Ok(response) => check_response(load.operation, &draft, &response, &mut shared.borrow_mut()),
            Err(error) => {
                shared.borrow_mut().failed(error.to_string());
                continue;
            }
        }
        connection = Some(open);
    }
}

/// Counts a response, after checking its status and sometimes its body.
pub fn check_response(operation: &Operation<'_>, draft: &Draft<'_>, response: &Response<'_>, shared: &mut Shared) {
    if response.status != operation.expected {
        let others = shared.sample.others.entry(response.status).or_default();
        *others += 1;
        if *others == 1 {
            shared.add_message(format!(
                "{}: {}",
                response.status,
                String::from_utf8_lossy(response.body)
            ));
        }
        return;
    }
    shared.sample.acknowledged += 1;
    if shared.sample.acknowledged % CHECK_EVERY == 1
        && let Err(problem) = operation.check(draft, response.body)
    {
        shared.failed(format!("{problem} in {}", String::from_utf8_lossy(response.body)));
    }
}

// Processor time, from `/proc`.

/// Ticks per second in `/proc/<pid>/stat`: the kernel's USER_HZ, which is 100 on all common platforms.
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds of processor time of the participating processes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// The server under load: its main process and the children of that.
    pub server: f64,
    /// The database cluster: its main process and the children of that.
    pub postgres: f64,
    /// The load generator: this process.
    pub own: f64,
}

impl Cpu {
    /// Returns the processor time until now.
    pub fn now(server: Option<u32>, postgres: u32) -> Self {
        Self {
            server: server.map_or(0.0, of_tree),
            postgres: of_tree(postgres),
            own: of_process(std::process::id()),
        }
    }
}

impl Sub for Cpu {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            server: self.server - earlier.server,
            postgres: self.postgres - earlier.postgres,
            own: self.own - earlier.own,
        }
    }
}

/// Returns the load average of the last minute; 0 if it is unknown.
pub fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|average| average.parse().ok()).unwrap_or_default()
}

/// Times from `/proc/<pid>/stat`, in seconds.
struct Stat {
    parent: u32,
    own: f64,
    /// Time of children that have ended and were waited for.
    ended: f64,
}

fn stat(process: &str) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is the name in parentheses, which may contain any characters.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |place: usize| {
        fields
            .get(place)?
            .parse::<f64>()
            .ok()
            .map(|ticks| ticks / TICKS_PER_SECOND)
    };
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        own: ticks(11)? + ticks(12)?,
        ended: ticks(13)? + ticks(14)?,
    })
}

fn of_process(process: u32) -> f64 {
    stat(&process.to_string()).map_or(0.0, |stat| stat.own)
}

fn of_tree(root: u32) -> f64 {
    let Some(main) = stat(&root.to_string()) else {
        return 0.0;
    };
    let children = fs::read_dir("/proc").into_iter().flatten().flatten();
    let children = children.filter_map(|entry| {
        let name = entry.file_name();
        stat(
            name.to_str()
                .filter(|name| name.starts_with(|first: char| first.is_ascii_digit()))?,
        )
    });
    main.own
        + main.ended
        + children
            .filter(|child| child.parent == root)
            .map(|child| child.own)
            .sum::<f64>()
}
