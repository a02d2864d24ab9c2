//! `bench`: what the service costs, beside yardsticks measured in the same run. `script/bench` builds and starts it.

mod anatomy;
mod bars;
mod cpu;
mod crossed;
mod error;
mod load;
mod measure;
mod operations;
mod pgbench;
mod report;
mod servers;
mod wire;
mod world;
mod yardsticks;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::anatomy::overhear;
use crate::error::BenchError;
use crate::measure::{Plan, QUIET_LIST, Results, Servers, UNKEPT_LIST, measure};
use crate::operations::Operation;
use crate::pgbench::Pgbench;
use crate::report::Conditions;
use crate::servers::{Server, ServiceSetup};
use crate::world::World;

/// The load average from which on a machine is too busy to measure on.
const QUIET: f64 = 0.7;

/// Measures the service: signed load over HTTP, and beside it, in the same run, bare Dropshot and pgbench with the
/// service's own statements.
///
/// It starts a private, durable PostgreSQL with the sandbox's data and 20,000 reports more, the release build of the
/// service with everything on, and removes it all at the end. In each round everything is measured once, in turn, and each
/// ratio is one of the same round. Answers are verified meanwhile: every status, one body in 64, and that as many
/// measurements are recorded as were acknowledged. Statements and round trips are overheard on the socket between service
/// and database, flushes are PostgreSQL's own count (pg_stat_wal), processor time is /proc's. Exits with 1 when an answer
/// was wrong; a missed bar is told in the table alone.
#[derive(Debug, Parser)]
#[command(
    name = "script/bench",
    after_help = "Examples:\n  \
        script/bench                              the whole, some ten minutes; written to docs/benchmarks.md\n  \
        script/bench --quick                      the whole in under three minutes\n  \
        script/bench --only hello,health          these alone; printed, not written\n  \
        script/bench --check                      whether it all still runs, and every answer is right\n  \
        script/bench --crossed 60 --title 'Crossed nonces'\n  \
        script/bench --title Before --service ../before/partner-api --commit 0ed80e0\n                                            \
        another build of the service"
)]
struct Arguments {
    /// Three rounds of one second each
    #[arg(long)]
    quick: bool,
    /// Tries once that everything can still be measured, with debug builds, and tells no numbers
    #[arg(long, conflicts_with_all = ["quick", "only", "crossed", "rounds", "seconds", "write"])]
    check: bool,
    /// Measure these alone, by the names of the table
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Instead of all that, two replicas for so many seconds with, and as many without, keys that send each nonce to both
    #[arg(long, value_name = "SECONDS")]
    crossed: Option<u64>,
    /// How many rounds [default: 5, with --quick 3]
    #[arg(long, value_name = "NUMBER")]
    rounds: Option<usize>,
    /// How many seconds each thing is measured in a round [default: 4, with --quick 1]
    #[arg(long, value_name = "NUMBER")]
    seconds: Option<u64>,
    /// Connections to the servers
    #[arg(long, value_name = "NUMBER", default_value_t = 64)]
    connections: usize,
    /// The service's program [default: partner-api, beside this one]
    #[arg(long, value_name = "FILE")]
    service: Option<PathBuf>,
    /// The file whose section the results become [default: docs/benchmarks.md, with --only none]
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// The section's title
    #[arg(long, value_name = "TEXT", default_value = "Present")]
    title: String,
    /// The commit that is measured, for the file
    #[arg(long, value_name = "ID", default_value = "unknown", overrides_with = "commit")]
    commit: String,
    /// Today, for the file
    #[arg(long, value_name = "DATE", default_value = "unknown", overrides_with = "date")]
    date: String,
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
                .for_each(|problem| eprintln!("wrong: {problem}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Ctrl-C and SIGTERM drop what runs, and with it every process and folder that was made.
async fn interruptible(arguments: &Arguments) -> Result<Results, BenchError> {
    let listen = |kind| signal(kind).map_err(BenchError::io("listen for signals"));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    tokio::select! {
        results = run(arguments) => results,
        _ = interrupt.recv() => Err(BenchError::Unexpected("interrupted; everything is stopped and removed".to_owned())),
        _ = terminate.recv() => Err(BenchError::Unexpected("ended; everything is stopped and removed".to_owned())),
    }
}

async fn run(arguments: &Arguments) -> Result<Results, BenchError> {
    let began = Instant::now();
    let others = cpu::load_average();
    if others > QUIET && !arguments.check {
        eprintln!("the machine is busy (load average {others:.1}): ratios will be off, and spread");
    }
    let here = std::env::current_exe().map_err(BenchError::io("find this program"))?;
    let beside = |name: &str| here.with_file_name(name);
    let binary = arguments.service.clone().unwrap_or_else(|| beside("partner-api"));
    let pgbench = Pgbench::find()?;
    eprintln!("making the world: a database, reports, pictures, PDFs");
    let world = World::make().await?;
    let operations = Operation::all(&world);
    check_names(&arguments.only, &operations)?;
    let (files, log, quiet_log, unkept_log) = (
        world.files(),
        world.folder().join("service.log"),
        world.folder().join("quiet.log"),
        world.folder().join("unkept.log"),
    );
    let setup = ServiceSetup {
        binary: &binary,
        url: &world.url,
        master_key: world::MASTER_KEY,
        storage: &files,
        log: &log,
        log_level: "info",
        request_log: "on",
    };
    if let Some(seconds) = arguments.crossed {
        return crossed(arguments, &world, &setup, seconds).await;
    }
    eprintln!(
        "overhearing the service's statements after {:.0} s",
        began.elapsed().as_secs_f64()
    );
    let anatomy = overhear(&setup, &world, &operations).await?;
    check_statements(&anatomy)?;
    let quiet = ServiceSetup {
        log: &quiet_log,
        log_level: "off",
        ..setup
    };
    let unkept = ServiceSetup {
        log: &unkept_log,
        request_log: "off",
        ..setup
    };
    let servers = Servers {
        hello: Server::hello(&beside("examples").join("hello")).await?,
        service: Server::service(&setup).await?,
        quiet: Server::service(&quiet).await?,
        unkept: Server::service(&unkept).await?,
    };
    let (rounds, seconds) = match arguments {
        Arguments { check: true, .. } => (1, 1),
        Arguments { quick: true, .. } => (3, 1),
        _ => (5, 4),
    };
    let plan = Plan {
        world: &world,
        servers: &servers,
        pgbench: &pgbench,
        operations: &operations,
        only: &arguments.only,
        rounds: arguments.rounds.unwrap_or(rounds).max(1),
        time: Duration::from_secs(arguments.seconds.unwrap_or(seconds).max(1)),
        connections: arguments.connections.max(1),
    };
    let results = measure(&plan, anatomy).await?;
    let conditions = conditions(arguments, &plan, &world.postgres_version().await?, others, began);
    let text = report::markdown(&conditions, &results);
    if !arguments.check {
        println!("{text}");
    } else if results.problems.is_empty() {
        println!(
            "{} lines were measured for a second, every answer was right, and the yardsticks' statements are the service's",
            results.names.len()
        );
    }
    if let Some(path) = &arguments.write {
        report::write(path, &arguments.title, &text)?;
        eprintln!("written to {}", path.display());
    }
    for server in [servers.hello, servers.service, servers.quiet, servers.unkept] {
        server.stop().await;
    }
    drop(operations);
    world.stop().await;
    Ok(results)
}

/// Two replicas over the world, and what keys that cross their nonces do to others.
async fn crossed(
    arguments: &Arguments,
    world: &World,
    setup: &ServiceSetup<'_>,
    seconds: u64,
) -> Result<Results, BenchError> {
    let log = world.folder().join("replica.log");
    let replicas = [
        Server::service(setup).await?,
        Server::service(&ServiceSetup { log: &log, ..*setup }).await?,
    ];
    let addresses = [replicas[0].address, replicas[1].address];
    let (text, was_right) = crossed::measure(world, addresses, seconds).await?;
    println!("{text}");
    if let Some(path) = &arguments.write {
        let section = format!("- Commit: {}, {}\n\n{text}", arguments.commit, arguments.date);
        report::write(path, &arguments.title, &section)?;
        eprintln!("written to {}", path.display());
    }
    for server in replicas {
        server.stop().await;
    }
    let mut results = Results::default();
    if !was_right {
        results
            .problems
            .push("crossed: others were answered otherwise, or a nonce was used twice".to_owned());
    }
    Ok(results)
}

fn check_names(only: &[String], operations: &[Operation<'_>]) -> Result<(), BenchError> {
    let names: Vec<&str> = operations
        .iter()
        .map(|operation| operation.name)
        .chain(yardsticks::ALL.iter().map(|yardstick| yardstick.name))
        .chain([QUIET_LIST, UNKEPT_LIST])
        .collect();
    match only.iter().find(|name| !names.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(BenchError::Unexpected(format!(
            "--only: there is no {name}; there are {}",
            names.join(", ")
        ))),
    }
}

/// A yardstick that measures other statements than the service sends would say nothing.
fn check_statements(anatomy: &std::collections::BTreeMap<&str, anatomy::Anatomy>) -> Result<(), BenchError> {
    for yardstick in &yardsticks::ALL {
        let Some(heard) = yardstick.operation.and_then(|operation| anatomy.get(operation)) else {
            continue;
        };
        if heard.named != yardstick.statements {
            return Err(BenchError::Unexpected(format!(
                "{} measures {:?}, but the service sends {:?}: bring crates/bench/src/yardsticks.rs up to date",
                yardstick.name, yardstick.statements, heard.named
            )));
        }
    }
    Ok(())
}

fn conditions(arguments: &Arguments, plan: &Plan<'_>, postgres: &str, others: f64, began: Instant) -> Conditions {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    Conditions(vec![
        ("Commit", format!("{}, {}", arguments.commit, arguments.date)),
        (
            "Machine",
            format!("{cores} processors, shared by load, service and database; load average before {others:.1}"),
        ),
        (
            "PostgreSQL",
            format!("{postgres}, its defaults except for checkpoints, none of which falls into a run"),
        ),
        (
            "Run",
            format!(
                "{} rounds of {} s for each line, {} connections; pgbench with 16 sessions as the service's pool, sql-insert \
                 with 64; {:.0} s in all",
                plan.rounds,
                plan.time.as_secs(),
                plan.connections,
                began.elapsed().as_secs_f64()
            ),
        ),
    ])
}
