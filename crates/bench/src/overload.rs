//! Latency at fixed rates up to twice the peak, and the memory of many open connections.

use std::fs;
use std::io::{self, ErrorKind};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::net::TcpStream;

use crate::chart::{self, Panel, Points, Scale};
use crate::error::BenchError;
use crate::fixture::Fixture;
use crate::load::{self, Load, Sample, WARM_UP};
use crate::measure::records;
use crate::open_loop::{self, OPENING, OpenSample, REJECTED};
use crate::operations::Operation;
use crate::report::number;
use crate::servers::{Server, ServiceSetup};
use crate::targets::{Line, millis_at, min_median_max};

/// The operations under overload. The first one is also the load beside idle connections.
const OPERATIONS: [&str; 2] = ["detail", "pending"];
/// The rates of the steps, as multiples of the peak. The first one is called unloaded.
const RATES: [f64; 8] = [0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0];
/// The number of connections that carry the load beside idle ones.
const BUSY: usize = 64;
/// Megabytes that the service may occupy with all connections open.
const MAX_MEGABYTES: f64 = 96.0;

/// The columns of the table of steps, and their number.
const COLUMNS: &str = "offered | right | rejected | unsent | p50, ms | p99, ms | p99 of rejections, ms | server | PostgreSQL | \
                       generator | right ÷ CPU s | p99 of lag, ms";
const WIDTH: usize = 12;
const RIGHT: usize = 1;
const P50: usize = 4;
const P99: usize = 5;
const LAG: usize = 11;

/// The text between the targets and the tables.
pub const EXPLANATION: &str = "\n\
    ![Right responses and p99 by offered rate](overload.svg)\n\n\
    Medians of the rounds. Requests, right responses and rejections (503) per second; requests per second that still waited for one\n\
    of the generator's connections at the end; latencies from the scheduled time of a request; processors used by the server,\n\
    PostgreSQL and the load generator; right responses per second of processor time of server and PostgreSQL; the time until the\n\
    generator noticed that a request was due.\n";

/// The parameters of a measurement.
pub struct Plan<'a> {
    /// The data.
    pub fixture: &'a Fixture,
    /// The service.
    pub setup: &'a ServiceSetup<'a>,
    /// All operations.
    pub operations: &'a [Operation<'a>],
    /// The number of rounds.
    pub rounds: usize,
    /// The time of each step.
    pub time: Duration,
    /// Connections of the closed loop that finds the peak.
    pub closed: usize,
    /// Connections of the generator at fixed rates.
    pub connections: usize,
    /// Open connections, for the measurement of memory.
    pub open: usize,
}

/// The results.
pub struct Overload {
    /// The targets.
    pub targets: Vec<Line>,
    /// The tables of steps and of connections.
    pub tables: String,
    /// The chart, as SVG.
    pub chart: String,
    /// Wrong responses and other problems.
    pub problems: Vec<String>,
}

/// The values of a step in one round; NaN for those that it does not have.
type Row = [f64; WIDTH];

/// The measurements of an operation.
struct Measured<'a> {
    operation: &'a Operation<'a>,
    /// The peak, then the steps, each with one row for each round.
    rows: Vec<Vec<Row>>,
    /// The samples of all loads.
    samples: Vec<Sample>,
}

/// Runs all rounds, and then the measurement of open connections.
///
/// # Errors
/// If the service does not start, or a connection cannot be opened. Wrong responses are reported as problems instead.
pub async fn measure(plan: &Plan<'_>) -> Result<Overload, BenchError> {
    allow_open_files(plan.open + plan.connections)?;
    let mut measured = Vec::new();
    for name in OPERATIONS {
        let operation = plan.operations.iter().find(|operation| operation.name == name);
        measured.extend(operation.map(|operation| Measured {
            operation,
            rows: vec![Vec::new(); RATES.len() + 1],
            samples: Vec::new(),
        }));
    }
    let before = records(plan.fixture).await?;
    let server = Server::service(plan.setup).await?;
    for round in 1..=plan.rounds {
        for of in &mut measured {
            eprintln!("round {round}/{}  {}", plan.rounds, of.operation.name);
            of.run_round(plan, &server).await?;
        }
    }
    server.stop().await;
    let (line, connections) = open_connections(plan, &mut measured[0]).await?;
    let recorded = u64::try_from(records(plan.fixture).await? - before).unwrap_or_default();
    Ok(Overload {
        targets: measured.iter().flat_map(Measured::targets).chain([line]).collect(),
        tables: measured.iter().map(Measured::table).collect::<String>() + &connections,
        chart: chart(&measured),
        problems: measured.iter().filter_map(|of| of.problem(recorded)).collect(),
    })
}

impl Measured<'_> {
    /// Finds the peak and runs the steps.
    async fn run_round(&mut self, plan: &Plan<'_>, server: &Server) -> Result<(), BenchError> {
        let sample = load::run(&load(plan, self.operation, server, plan.closed)).await;
        let peak = sample.rate().max(1.0);
        let closed = OpenSample {
            sample,
            ..OpenSample::default()
        };
        self.add(0, f64::NAN, closed);
        let load = load(plan, self.operation, server, plan.connections);
        for (step, factor) in RATES.into_iter().enumerate() {
            let sample = open_loop::run(&load, peak * factor).await?;
            let row = self.add(step + 1, peak * factor, sample);
            let late = if is_late(&row) {
                ", but the generator was late"
            } else {
                ""
            };
            let (right, p99) = (row[RIGHT], row[P99]);
            eprintln!("{factor:5} × {peak:.0}/s: {right:.0}/s right, p99 {p99:.1} ms{late}");
        }
        Ok(())
    }

    /// Adds the results of a step, and returns its row.
    fn add(&mut self, step: usize, rate: f64, results: OpenSample) -> Row {
        let row = row(rate, &results);
        self.rows[step].push(row);
        self.samples.push(results.sample);
        row
    }

    fn targets(&self) -> Vec<Line> {
        let [peak, first, .., last] = self.rows.as_slice() else {
            return Vec::new();
        };
        let ratios = |under: &[Row], column: usize| {
            let pairs = last.iter().zip(under);
            let ratios: Vec<f64> = pairs.map(|(over, under)| over[column] / under[column]).collect();
            min_median_max(&ratios).unwrap_or([f64::NAN; 3])
        };
        let (goodput, latency) = (ratios(peak, RIGHT), ratios(first, P99));
        let is_valid = !first.iter().chain(last).any(is_late);
        let name = match is_valid {
            true => self.operation.name.to_owned(),
            false => format!("{}, invalid because the generator was late", self.operation.name),
        };
        let ([bottom, ..], [.., top]) = (RATES, RATES);
        vec![
            Line {
                name: format!("right at {top} ÷ peak, {name}"),
                values: goodput,
                target: "≥ 0.90".to_owned(),
                met: is_valid && goodput[1] >= 0.9,
            },
            Line {
                name: format!("p99 at {top} ÷ p99 at {bottom}, {name}"),
                values: latency,
                target: "≤ 3".to_owned(),
                met: is_valid && latency[1] <= 3.0,
            },
        ]
    }

    fn table(&self) -> String {
        let name = self.operation.name;
        let mut text = format!("\n| {name} | {COLUMNS} |\n|---|{}\n", "--:|".repeat(WIDTH));
        let steps = RATES.map(|rate| format!("{rate} × peak"));
        for (name, rows) in ["peak".to_owned()].iter().chain(&steps).zip(&self.rows) {
            let late = if rows.iter().any(is_late) { " (invalid)" } else { "" };
            let values: Vec<String> = (0..WIDTH).map(|column| number(median(rows, column))).collect();
            text += &format!("| {name}{late} | {} |\n", values.join(" | "));
        }
        text
    }

    /// Describes the wrong responses, if any, and whether the database has recorded what was acknowledged.
    fn problem(&self, recorded: u64) -> Option<String> {
        let mut all = Sample::merged(&self.samples);
        let rejected = all.others.remove(&REJECTED).unwrap_or_default();
        // After a rejection or a failure, the outcome is unknown.
        let expected = all.acknowledged..=all.acknowledged + rejected + all.failures;
        let problem = all.problem(self.operation).or_else(|| {
            let is_wrong = self.operation.records() && !expected.contains(&recorded);
            is_wrong.then(|| format!("{recorded} measurements were recorded, expected {expected:?}"))
        });
        problem.map(|problem| format!("overload, {}: {problem}", self.operation.name))
    }
}

fn load<'a>(plan: &Plan<'a>, operation: &'a Operation<'a>, server: &Server, connections: usize) -> Load<'a> {
    Load {
        fixture: plan.fixture,
        operation,
        address: server.address,
        pid: server.pid,
        connections,
        warm_up: WARM_UP,
        time: plan.time,
    }
}

/// Returns the row of a step, in the order of [`COLUMNS`].
fn row(rate: f64, results: &OpenSample) -> Row {
    let sample = &results.sample;
    let per_second = |amount: f64| amount / sample.seconds;
    let [server, postgres, own] = [sample.cpu.server, sample.cpu.postgres, sample.cpu.own].map(per_second);
    [
        rate,
        sample.rate(),
        per_second(results.rejected as f64),
        per_second(results.unsent as f64),
        millis_at(&results.latencies, 0.5),
        millis_at(&results.latencies, 0.99),
        millis_at(&results.rejections, 0.99),
        server,
        postgres,
        own,
        sample.rate() / (server + postgres),
        millis_at(&results.lags, 0.99),
    ]
}

/// Returns whether the generator's lag is most of the latency, so that the step measured the generator instead of the service.
fn is_late(row: &Row) -> bool {
    row[LAG] > row[P99] / 2.0
}

/// Returns the median over the rounds; NaN if no round has a value.
fn median(rows: &[Row], column: usize) -> f64 {
    let values = rows.iter().map(|row| row[column]).filter(|value| !value.is_nan());
    min_median_max(&values.collect::<Vec<_>>()).map_or(f64::NAN, |[_, median, _]| median)
}

/// Measures the service's memory, and the latency at half the peak, without and with many idle connections. Each of them has sent a
/// request.
async fn open_connections(plan: &Plan<'_>, of: &mut Measured<'_>) -> Result<(Line, String), BenchError> {
    // A new process, because one that was overloaded may keep memory.
    let server = Server::service(plan.setup).await?;
    let load = load(plan, of.operation, &server, BUSY.min(plan.open));
    let half = (median(&of.rows[0], RIGHT) / 2.0).max(1.0);
    let fresh = megabytes(server.pid)?;
    let few = open_loop::run(&load, half).await?;
    let after_few = megabytes(server.pid)?;
    eprintln!("opening {} connections", plan.open);
    let idle: Vec<TcpStream> = stream::iter(load.connections..plan.open)
        .map(|number| open_loop::open_idle(&load, number))
        .buffer_unordered(OPENING)
        .try_collect()
        .await?;
    let opened = megabytes(server.pid)?;
    let many = open_loop::run(&load, half).await?;
    let all = opened.max(megabytes(server.pid)?);
    let open = load.connections + idle.into_iter().filter(is_open).count();
    server.stop().await;
    let mut text = format!(
        "\n| Connections | server, MB | {} at half the peak: p50, ms | p99, ms | p99 of lag, ms |\n|---|--:|--:|--:|--:|\n\
         | 0 | {} |  |  |  |\n",
        of.operation.name,
        number(fresh),
    );
    let shown = format!("{}, of which {open} stayed open", plan.open);
    for (name, size, results) in [(&load.connections.to_string(), after_few, few), (&shown, all, many)] {
        let values = row(half, &results);
        let [p50, p99, lag] = [P50, P99, LAG].map(|column| number(values[column]));
        text += &format!("| {name} | {} | {p50} | {p99} | {lag} |\n", number(size));
        of.samples.push(results.sample);
    }
    let line = Line {
        name: format!("MB with {} connections, of which {open} stayed open", plan.open),
        values: [all; 3],
        target: format!("all open, ≤ {MAX_MEGABYTES}"),
        met: open == plan.open && all <= MAX_MEGABYTES,
    };
    Ok((line, text))
}

/// Returns whether the server has not closed the connection.
fn is_open(stream: &TcpStream) -> bool {
    matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

/// Returns the resident memory of a process in megabytes.
fn megabytes(process: u32) -> Result<f64, BenchError> {
    let path = format!("/proc/{process}/status");
    let text = fs::read_to_string(&path).map_err(BenchError::io(format!("read {path}")))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kibibytes
        .map(|size| size * 1024.0 / 1e6)
        .ok_or_else(|| BenchError::Unexpected(format!("{path} contains no VmRSS")))
}

/// Raises this process's limit of open files, which the service inherits, for this many connections.
fn allow_open_files(connections: usize) -> Result<(), BenchError> {
    let needed = connections as u64 + 256;
    let failed = |error: nix::Error| BenchError::io("raise the limit of open files")(io::Error::from(error));
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(failed)?;
    if hard < needed {
        return Err(BenchError::Unexpected(format!(
            "the hard limit of open files must be at least {needed}, but is {hard}; raise it with `ulimit -Hn {needed}` as root"
        )));
    }
    setrlimit(Resource::RLIMIT_NOFILE, soft.max(needed), hard).map_err(failed)
}

fn chart(measured: &[Measured<'_>]) -> String {
    let lines = |value: &dyn Fn(&Measured<'_>, usize) -> f64| -> Vec<(&'static str, Points)> {
        let line = |of: &Measured<'_>| {
            let points = (1..).zip(RATES).map(|(step, rate)| (rate, value(of, step)));
            (
                of.operation.name,
                points.filter(|(_, value)| value.is_finite()).collect(),
            )
        };
        measured.iter().map(line).collect()
    };
    let latency = lines(&|of, step| median(&of.rows[step], P99));
    let powers = || {
        latency
            .iter()
            .flat_map(|(_, points)| points)
            .map(|(_, p99)| p99.log10())
    };
    let from = powers().fold(9.0, f64::min).floor() as i32;
    let to = powers().fold(0.0, f64::max).ceil() as i32;
    let panels = [
        Panel {
            title: "Right responses ÷ peak",
            scale: Scale::Linear(1.2),
            lines: lines(&|of, step| median(&of.rows[step], RIGHT) / median(&of.rows[0], RIGHT)),
            comparison: Some(("ideal", vec![(0.0, 0.0), (1.0, 1.0), (2.0, 1.0)])),
        },
        Panel {
            title: "p99 of right responses, ms",
            scale: Scale::Log(from, to.max(from + 1)),
            lines: latency,
            comparison: None,
        },
    ];
    let title = "Right responses and their p99 by offered rate";
    chart::svg(title, "offered rate ÷ peak", Scale::Linear(2.0), &panels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_whose_latency_is_mostly_the_generators_lag_is_invalid() {
        let row = |p99, lag| {
            let mut row = [f64::NAN; WIDTH];
            (row[P99], row[LAG]) = (p99, lag);
            row
        };
        assert!(!is_late(&row(4.0, 2.0)) && is_late(&row(4.0, 2.1)));
        assert!(!is_late(&[f64::NAN; WIDTH]), "the peak");
    }
}
