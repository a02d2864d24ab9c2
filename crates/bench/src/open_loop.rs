//! The load generator at a fixed rate.
//!
//! Each request has a scheduled time, and its latency counts from that time, even if the generator sends it later because all its
//! connections are busy. A closed loop ([`crate::load`]) sends less while the service is slow, which hides the delay. A response
//! with 503 is a rejection; every other unexpected response is a failure.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use futures::future::join_all;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::connection::{Connection, Response};
use crate::draft::Draft;
use crate::error::BenchError;
use crate::load::{Cpu, Load, RETRY_PAUSE, Sample, Shared, check_response};

/// The status of a rejection.
pub const REJECTED: u16 = 503;
/// The number of connections that are opened at the same time.
pub const OPENING: usize = 16;
/// The number of attempts of the only request of an idle connection.
const ATTEMPTS: usize = 100;
/// The addresses of the clients. The service allows 512 connections and 64 requests in progress from one address.
const ADDRESSES: usize = 40;
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 1);

/// The results of a load at a fixed rate.
#[derive(Default)]
pub struct OpenSample {
    /// The right responses, the processor time and the problems, as of a closed loop. Rejections are among the other statuses.
    pub sample: Sample,
    /// The rejections that arrived during the measurement.
    pub rejected: u64,
    /// The requests that were not sent because all connections were busy until the end.
    pub unsent: usize,
    /// The latencies of the right responses to requests that were scheduled during the measurement, in order.
    pub latencies: Vec<Duration>,
    /// The same of rejections.
    pub rejections: Vec<Duration>,
    /// The time from a request's schedule until the generator noticed it.
    pub lags: Vec<Duration>,
}

/// The state that the connections share.
struct State {
    /// The measured time.
    window: Range<Instant>,
    /// The scheduled times of requests that wait for a connection.
    waiting: VecDeque<Instant>,
    counts: Shared,
    results: OpenSample,
}

/// Runs the load with this many requests per second. Its connections come from several addresses.
///
/// # Errors
/// If a connection cannot be opened at the beginning.
pub async fn run(load: &Load<'_>, rate: f64) -> Result<OpenSample, BenchError> {
    let connections: Vec<Connection> = stream::iter(0..load.connections)
        .map(|number| open(load, number))
        .buffered(OPENING)
        .try_collect()
        .await?;
    let start = Instant::now();
    let window = start + load.warm_up..start + load.warm_up + load.time;
    let requests = ((load.warm_up + load.time).as_secs_f64() * rate) as u64;
    let mut schedule = schedule(start, rate, requests);
    let state = RefCell::new(State {
        window: window.clone(),
        waiting: VecDeque::new(),
        counts: Shared::default(),
        results: OpenSample::default(),
    });
    // One permit for each waiting request.
    let permits = Semaphore::new(0);
    let feed = async {
        let mut due = Vec::new();
        while schedule.recv_many(&mut due, 64).await > 0 {
            permits.add_permits(due.len());
            state.borrow_mut().add_due(&mut due);
        }
        // The last requests may have an idle connection.
        tokio::time::sleep(RETRY_PAUSE).await;
        permits.close();
        let mut state = state.borrow_mut();
        state.results.unsent = std::mem::take(&mut state.waiting).len();
    };
    let clock = async {
        let cpu = || Cpu::now(Some(load.pid), load.fixture.postgres_pid);
        tokio::time::sleep_until(window.start.into()).await;
        let before = cpu();
        tokio::time::sleep_until(window.end.into()).await;
        cpu() - before
    };
    let drivers = connections.into_iter().enumerate();
    let drivers = drivers.map(|(number, connection)| drive(load, number, connection, &permits, &state));
    let ((), cpu, _) = tokio::join!(feed, clock, join_all(drivers));
    let State { counts, results, .. } = state.into_inner();
    let mut results = OpenSample {
        sample: Sample {
            responses: results.sample.responses,
            seconds: load.time.as_secs_f64(),
            cpu,
            ..counts.sample
        },
        ..results
    };
    results.latencies.sort_unstable();
    results.rejections.sort_unstable();
    results.lags.sort_unstable();
    Ok(results)
}

/// Opens a connection from one of the addresses.
async fn open(load: &Load<'_>, number: usize) -> Result<Connection, BenchError> {
    let source = Ipv4Addr::from_bits(FIRST_ADDRESS.to_bits() + (number % ADDRESSES) as u32);
    Connection::open_from(source, load.address)
        .await
        .map_err(|error| BenchError::Unexpected(format!("failed to open connection {number}: {error}")))
}

/// Returns a request that is signed with the connection's key.
fn draft<'a>(load: &Load<'a>, number: usize) -> Draft<'a> {
    Draft::new(&load.fixture.keys[number % load.fixture.keys.len()], load.address)
}

/// Opens a connection, sends a request until it is not rejected, and leaves the connection idle.
///
/// # Errors
/// If there is no right response.
pub async fn open_idle(load: &Load<'_>, number: usize) -> Result<TcpStream, BenchError> {
    let (mut connection, mut draft) = (open(load, number).await?, draft(load, number));
    for _ in 0..ATTEMPTS {
        load.operation.write(&mut draft);
        match connection
            .exchange(draft.finish())
            .await
            .map(|response| response.status)
        {
            Ok(status) if status == load.operation.expected => return Ok(connection.into_stream()),
            Ok(REJECTED) => tokio::time::sleep(RETRY_PAUSE).await,
            outcome => return Err(BenchError::Unexpected(format!("connection {number}: {outcome:?}"))),
        }
    }
    Err(BenchError::Unexpected(format!(
        "connection {number}: rejected {ATTEMPTS} times"
    )))
}

/// Sends the waiting requests that the connection gets, and reopens it if it is lost.
async fn drive(load: &Load<'_>, number: usize, connection: Connection, permits: &Semaphore, state: &RefCell<State>) {
    let (mut draft, mut connection) = (draft(load, number), Some(connection));
    while let Ok(permit) = permits.acquire().await {
        permit.forget();
        let Some(due) = state.borrow_mut().waiting.pop_front() else {
            continue;
        };
        let mut open = match connection.take() {
            Some(open) => open,
            None => match open(load, number).await {
                Ok(open) => open,
                Err(error) => {
                    state.borrow_mut().counts.failed(error.to_string());
                    continue;
                }
            },
        };
        load.operation.write(&mut draft);
        match open.exchange(draft.finish()).await {
            Ok(response) => {
                let mut state = state.borrow_mut();
                state.record(response.status == load.operation.expected, &response, due);
                check_response(load.operation, &draft, &response, &mut state.counts);
            }
            Err(error) => {
                state.borrow_mut().counts.failed(error.to_string());
                continue;
            }
        }
        connection = Some(open);
    }
}

impl State {
    /// Adds requests that are due, and records how late the generator noticed them.
    fn add_due(&mut self, due: &mut Vec<Instant>) {
        let now = Instant::now();
        let in_window = due.iter().filter(|due| self.window.contains(*due));
        self.results.lags.extend(in_window.map(|due| now - *due));
        self.waiting.extend(due.drain(..));
    }

    /// Records a response to the request that was due at this time.
    fn record(&mut self, is_right: bool, response: &Response<'_>, due: Instant) {
        let (count, latencies) = match response.status {
            _ if is_right => (&mut self.results.sample.responses, &mut self.results.latencies),
            REJECTED => (&mut self.results.rejected, &mut self.results.rejections),
            _ => return,
        };
        let now = Instant::now();
        *count += u64::from(self.window.contains(&now));
        if self.window.contains(&due) {
            latencies.push(now - due);
        }
    }
}

/// Sends the scheduled time of each request at that time. It runs in a thread of its own, because the timers of the async runtime
/// are rounded to milliseconds.
fn schedule(start: Instant, rate: f64, requests: u64) -> UnboundedReceiver<Instant> {
    let (sender, receiver) = mpsc::unbounded_channel();
    thread::spawn(move || {
        for number in 0..requests {
            let due = start + Duration::from_secs_f64(number as f64 / rate);
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if sender.send(due).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_has_a_fixed_rate() {
        let start = Instant::now();
        let mut schedule = schedule(start, 10_000.0, 3);
        let due = std::iter::from_fn(|| schedule.blocking_recv());
        let times: Vec<Duration> = due.map(|due| due - start).collect();
        assert_eq!(times, [0, 100, 200].map(Duration::from_micros));
    }

    #[test]
    fn a_latency_counts_from_the_schedule_and_a_response_after_the_window_is_no_goodput() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let mut state = State {
            window: now - second * 3..now - second,
            waiting: VecDeque::new(),
            counts: Shared::default(),
            results: OpenSample::default(),
        };
        let response = |status| Response { status, body: b"" };
        state.record(true, &response(200), now - second * 2);
        state.record(false, &response(REJECTED), now - second * 2);
        state.record(false, &response(500), now - second * 2);
        assert_eq!((state.results.sample.responses, state.results.rejected), (0, 0));
        state.window.end = now + second * 60;
        state.record(true, &response(200), now - second * 4);
        state.record(false, &response(REJECTED), now - second * 4);
        assert_eq!((state.results.sample.responses, state.results.rejected), (1, 1));
        for latencies in [state.results.latencies, state.results.rejections] {
            assert!(latencies.len() == 1 && latencies[0] >= second * 2);
        }
    }
}
