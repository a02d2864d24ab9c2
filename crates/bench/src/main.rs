//! `bench`: measures the service beside baselines from the same run. `script/bench` builds and starts it.

mod baselines;
mod chart;
mod connection;
mod crossed_nonces;
mod draft;
mod error;
mod fixture;
mod load;
mod measure;
mod open_loop;
mod operations;
mod overload;
mod peers;
mod pgbench;
mod proxy;
mod report;
mod servers;
mod statement_costs;
mod targets;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::error::BenchError;
use crate::fixture::Fixture;
use crate::measure::{LIST_WITHOUT_LOG, LIST_WITHOUT_REQUEST_LOG, Plan, Results, Servers, measure};
use crate::operations::Operation;
use crate::pgbench::Pgbench;
use crate::report::Conditions;
use crate::servers::{Server, ServiceSetup};
use crate::statement_costs::record_statements;

/// The load average above which a machine is too busy for a measurement.
const MAX_LOAD_AVERAGE: f64 = 0.7;

/// Measures the service with signed requests over HTTP, and compares it with baselines from the same run: a minimal Dropshot
/// server, and pgbench with the service's own statements.
///
/// The benchmark starts a private, durable PostgreSQL with the sandbox's data and 20,000 more reports. It also starts the
/// release build of the service with all features enabled. It removes everything at the end. Each round measures everything
/// once, and ratios compare values of the same round. The benchmark checks every status, one body in 64, and that as many
/// measurements were recorded as acknowledged. It counts statements and round trips on the socket between service and
/// database. It reads WAL flushes from pg_stat_wal and processor time from /proc. It exits with 1 if a response was wrong. A
/// missed target appears only in the table.
#[derive(Debug, Parser)]
#[command(
    name = "script/bench",
    after_help = "Examples:\n  \
        script/bench                              everything, in about ten minutes; written to docs/benchmarks.md\n  \
        script/bench --quick                      everything, in less than three minutes\n  \
        script/bench --only hello,health          only these; printed, not written\n  \
        script/bench --check                      checks that everything runs and every response is right\n  \
        script/bench --peers --quick              the service beside servers in other frameworks\n  \
        script/bench --overload                   latency and overload, in about eight minutes; with docs/overload.svg\n  \
        script/bench --crossed 60 --title 'Crossed nonces'\n  \
        script/bench --title Before --service ../before/partner-api --commit 0ed80e0\n                                            \
        another build of the service"
)]
struct Arguments {
    /// Three rounds of one second each
    #[arg(long)]
    quick: bool,
    /// Check with debug builds that everything can be measured, without printing numbers
    #[arg(long, conflicts_with_all = ["quick", "only", "crossed", "rounds", "seconds", "write"])]
    check: bool,
    /// Measure only these, by their names in the table
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure only two replicas, for this many seconds each with and without keys that send every nonce to both replicas
    #[arg(long, value_name = "SECONDS")]
    crossed: Option<u64>,
    /// Measure the service beside peers instead of baselines: Fastify, FastAPI, Go and axum servers that do the same job
    #[arg(long, conflicts_with = "crossed")]
    peers: bool,
    /// Measure latency and overload instead: the peak in a closed loop, then fixed rates up to twice the peak, then memory
    ///
    /// At a fixed rate, the latency of a request counts from its scheduled time. The load has 1,024 connections from 40
    /// addresses, so that the overload reaches the service, which runs at most 64 requests of an address at a time. A request waits in
    /// the generator while all connections are busy, and this wait counts. Requests that wait at the end are not sent. A 503 is a
    /// rejection, and any other unexpected response is a failure. A step is invalid if the generator was late by more than half of
    /// the p99. Finally, a new process of the service gets 10,000 connections, and serves reads at half the peak over 64 of them
    #[arg(long, conflicts_with_all = ["crossed", "peers", "only"])]
    overload: bool,
    /// Number of rounds [default: 5, with --quick 3]
    #[arg(long, value_name = "NUMBER")]
    rounds: Option<usize>,
    /// Seconds per measurement in a round [default: 4, with --quick 1]
    #[arg(long, value_name = "NUMBER")]
    seconds: Option<u64>,
    /// Connections to the servers [default: 64, with --check 8]
    #[arg(long, value_name = "NUMBER")]
    connections: Option<usize>,
    /// The service's program [default: partner-api in the folder of this program]
    #[arg(long, value_name = "FILE")]
    service: Option<PathBuf>,
    /// The file to which the results are written, as a section [default: docs/benchmarks.md, with --only none]
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// The section's title [default: Present, with --peers Peers, with --overload Overload]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// The measured commit, for the file
    #[arg(long, value_name = "ID", default_value = "unknown", overrides_with = "commit")]
    commit: String,
    /// Today's date, for the file
    #[arg(long, value_name = "DATE", default_value = "unknown", overrides_with = "date")]
    date: String,
}

impl Arguments {
    fn title(&self) -> &str {
        let default = match self {
            Self { overload: true, .. } => "Overload",
            Self { peers: true, .. } => "Peers",
            _ => "Present",
        };
        self.title.as_deref().unwrap_or(default)
    }

    /// Returns the number of rounds, the time of a measurement in a round, and the number of connections.
    fn extent(&self) -> (usize, Duration, usize) {
        // A debug build streams some 240 PDFs per second. With 64 connections, requests would wait for a database connection for
        // longer than the service allows, and it would respond with 503.
        let (rounds, seconds, connections) = match self {
            Self { check: true, .. } => (1, 1, 8),
            Self { quick: true, .. } => (3, 1, 64),
            _ => (5, 4, 64),
        };
        (
            self.rounds.unwrap_or(rounds).max(1),
            Duration::from_secs(self.seconds.unwrap_or(seconds).max(1)),
            self.connections.unwrap_or(connections).max(1),
        )
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match interruptible(&arguments).await {
        Ok(results) if results.problems.is_empty() => ExitCode::SUCCESS,
        Ok(results) => {
            results
                .problems
                .iter()
                .for_each(|problem| eprintln!("error: {problem}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the benchmark until it is done or interrupted. Dropping the run stops all processes and removes all folders.
async fn interruptible(arguments: &Arguments) -> Result<Results, BenchError> {
    let listen = |kind| signal(kind).map_err(BenchError::io("listen for signals"));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    tokio::select! {
        results = run(arguments) => results,
        _ = interrupt.recv() => Err(BenchError::Unexpected("interrupted; all processes were stopped and all files removed".to_owned())),
        _ = terminate.recv() => Err(BenchError::Unexpected("terminated; all processes were stopped and all files removed".to_owned())),
    }
}

async fn run(arguments: &Arguments) -> Result<Results, BenchError> {
    let began = Instant::now();
    let load_average = load::load_average();
    if load_average > MAX_LOAD_AVERAGE && !arguments.check {
        eprintln!("the machine is busy (load average {load_average:.1}): the ratios will be inaccurate");
    }
    let here = std::env::current_exe().map_err(BenchError::io("find this program"))?;
    let beside = |name: &str| here.with_file_name(name);
    let binary = arguments.service.clone().unwrap_or_else(|| beside("partner-api"));
    let pgbench = Pgbench::find()?;
    eprintln!("creating the data: a database, reports, photos, PDFs");
    let fixture = Fixture::create().await?;
    let operations = Operation::all(&fixture);
    check_names(&arguments.only, &operations)?;
    let (files, log, no_log_file, no_request_log_file) = (
        fixture.files(),
        fixture.folder().join("service.log"),
        fixture.folder().join("without_log.log"),
        fixture.folder().join("without_request_log.log"),
    );
    let setup = ServiceSetup {
        binary: &binary,
        url: &fixture.url,
        master_key: fixture::MASTER_KEY,
        storage: &files,
        log: &log,
        log_level: "info",
        request_log: "on",
    };
    if arguments.overload {
        return overload(arguments, &fixture, &setup, &operations, load_average, began).await;
    }
    if let Some(seconds) = arguments.crossed {
        return crossed_nonces(arguments, &fixture, &setup, seconds).await;
    }
    eprintln!(
        "recording the service's statements after {:.0} s",
        began.elapsed().as_secs_f64()
    );
    let statement_costs = record_statements(&setup, &fixture, &operations).await?;
    check_statements(&statement_costs)?;
    let without_log = ServiceSetup {
        log: &no_log_file,
        log_level: "off",
        ..setup
    };
    let without_request_log = ServiceSetup {
        log: &no_request_log_file,
        request_log: "off",
        ..setup
    };
    let service = Server::service(&setup).await?;
    let peers = match arguments.peers {
        true => peers::start(&fixture, &service, &statement_costs).await?,
        false => Vec::new(),
    };
    if arguments.peers {
        eprintln!(
            "comparing the peers' responses after {:.0} s",
            began.elapsed().as_secs_f64()
        );
        peers::check(&fixture, &service, &peers, &operations).await?;
    }
    let servers = Servers {
        hello: Server::hello(&beside("examples").join("hello")).await?,
        service,
        peers,
        without_log: Server::service(&without_log).await?,
        without_request_log: Server::service(&without_request_log).await?,
    };
    let (rounds, time, connections) = arguments.extent();
    let plan = Plan {
        fixture: &fixture,
        servers: &servers,
        pgbench: &pgbench,
        operations: &operations,
        only: &arguments.only,
        rounds,
        time,
        connections,
    };
    let mut results = measure(&plan, statement_costs).await?;
    let baselines = match arguments.peers {
        true => "each peer with 16 connections to the database, like the service's pool",
        false => "pgbench with 16 sessions like the service's pool, sql-insert with 64",
    };
    let conditions = conditions(
        arguments,
        &fixture.postgres_version().await?,
        load_average,
        format!("{connections} connections; {baselines}"),
        began,
    );
    let text = report::markdown(&conditions, &results);
    if !arguments.check {
        println!("{text}");
    } else if results.problems.is_empty() {
        println!(
            "measured {} operations and baselines for one second each; every response was right, and the baselines match the \
             service's statements",
            results.names.len()
        );
    }
    if let Some(path) = &arguments.write {
        report::write(path, arguments.title(), &text)?;
        eprintln!("written to {}", path.display());
    }
    let peers = servers.peers.into_iter().map(|peer| peer.server);
    for server in peers.chain([
        servers.hello,
        servers.service,
        servers.without_log,
        servers.without_request_log,
    ]) {
        server.stop().await;
    }
    if arguments.check && !arguments.peers {
        let overload = overload(arguments, &fixture, &setup, &operations, load_average, began).await?;
        results.problems.extend(overload.problems);
    }
    drop(operations);
    fixture.stop().await;
    Ok(results)
}

/// Runs the attack with crossed nonces on two replicas.
async fn crossed_nonces(
    arguments: &Arguments,
    fixture: &Fixture,
    setup: &ServiceSetup<'_>,
    seconds: u64,
) -> Result<Results, BenchError> {
    let log = fixture.folder().join("replica.log");
    let replicas = [
        Server::service(setup).await?,
        Server::service(&ServiceSetup { log: &log, ..*setup }).await?,
    ];
    let addresses = [replicas[0].address, replicas[1].address];
    let (text, was_right) = crossed_nonces::measure(fixture, addresses, seconds).await?;
    println!("{text}");
    if let Some(path) = &arguments.write {
        let section = format!("- Commit: {}, {}\n\n{text}", arguments.commit, arguments.date);
        report::write(path, arguments.title(), &section)?;
        eprintln!("written to {}", path.display());
    }
    for server in replicas {
        server.stop().await;
    }
    let mut results = Results::default();
    if !was_right {
        results
            .problems
            .push("crossed: a response to another key was wrong, or a nonce was admitted twice".to_owned());
    }
    Ok(results)
}

/// Measures latency and overload.
async fn overload(
    arguments: &Arguments,
    fixture: &Fixture,
    setup: &ServiceSetup<'_>,
    operations: &[Operation<'_>],
    load_average: f64,
    began: Instant,
) -> Result<Results, BenchError> {
    let (rounds, time, closed) = arguments.extent();
    let (connections, open) = if arguments.check { (64, 200) } else { (1_024, 10_000) };
    let plan = overload::Plan {
        fixture,
        setup,
        operations,
        rounds,
        time,
        closed,
        connections,
        open,
    };
    let overload = overload::measure(&plan).await?;
    let (postgres, run) = (
        fixture.postgres_version().await?,
        format!("{closed} connections for the peak, {connections} at fixed rates"),
    );
    let conditions = conditions(arguments, &postgres, load_average, run, began);
    let text = report::head(&conditions, &overload.targets) + overload::EXPLANATION + &overload.tables;
    if arguments.check {
        println!("measured latency and overload");
    } else {
        println!("{text}");
    }
    if let Some(path) = &arguments.write {
        report::write(path, arguments.title(), &text)?;
        let chart = path.with_file_name("overload.svg");
        std::fs::write(&chart, &overload.chart).map_err(BenchError::io(format!("write {}", chart.display())))?;
        eprintln!("written to {} and {}", path.display(), chart.display());
    }
    Ok(Results {
        problems: overload.problems,
        ..Results::default()
    })
}

fn check_names(only: &[String], operations: &[Operation<'_>]) -> Result<(), BenchError> {
    let of_peers: Vec<String> = peers::names().collect();
    let names: Vec<&str> = operations
        .iter()
        .map(|operation| operation.name)
        .chain(baselines::ALL.iter().map(|baseline| baseline.name))
        .chain([LIST_WITHOUT_LOG, LIST_WITHOUT_REQUEST_LOG])
        .chain(of_peers.iter().map(String::as_str))
        .collect();
    match only.iter().find(|name| !names.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(BenchError::Unexpected(format!(
            "--only: unknown name {name}; expected one of {}",
            names.join(", ")
        ))),
    }
}

/// Checks that each baseline measures the statements that the service sends.
fn check_statements(
    statement_costs: &std::collections::BTreeMap<&str, statement_costs::StatementCost>,
) -> Result<(), BenchError> {
    for baseline in &baselines::ALL {
        let Some(recorded) = baseline.operation.and_then(|operation| statement_costs.get(operation)) else {
            continue;
        };
        if recorded.named != baseline.statements {
            return Err(BenchError::Unexpected(format!(
                "{} measures {:?}, but the service sends {:?}; update crates/bench/src/baselines.rs",
                baseline.name, baseline.statements, recorded.named
            )));
        }
    }
    Ok(())
}

fn conditions(arguments: &Arguments, postgres: &str, load_average: f64, run: String, began: Instant) -> Conditions {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let (rounds, time, _) = arguments.extent();
    Conditions(vec![
        ("Commit", format!("{}, {}", arguments.commit, arguments.date)),
        (
            "Machine",
            format!("{cores} processors, shared by load, service and database; load average before {load_average:.1}"),
        ),
        (
            "PostgreSQL",
            format!("{postgres}, default settings except for checkpoints, none of which happens during a run"),
        ),
        (
            "Run",
            format!(
                "{rounds} rounds of {} s per line, {run}; {:.0} s in total",
                time.as_secs(),
                began.elapsed().as_secs_f64()
            ),
        ),
    ])
}
