//! The rounds: in each, every yardstick and every operation once, what is compared one after the other.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::anatomy::Anatomy;
use crate::error::BenchError;
use crate::load::{self, Load, Sample};
use crate::operations::Operation;
use crate::pgbench::Pgbench;
use crate::servers::Server;
use crate::world::World;
use crate::yardsticks::{self, Yardstick};

/// PostgreSQL's backends report what they count at most once a second, and then with their next statement.
const SETTLED: Duration = Duration::from_millis(1_050);
/// How long a load gives every one of them a next statement.
const REPORTING: Duration = Duration::from_millis(50);

/// The list over the service whose log is off.
pub const QUIET_LIST: &str = "list-without-log";

/// The list over the service that keeps no rows of its requests.
pub const UNKEPT_LIST: &str = "list-without-request-log";

/// The servers under load.
pub struct Servers {
    /// Bare Dropshot.
    pub hello: Server,
    /// The service with everything on.
    pub service: Server,
    /// The service without its log.
    pub quiet: Server,
    /// The service without its request log in the database.
    pub unkept: Server,
}

/// How it is measured.
pub struct Plan<'a> {
    /// Upon what.
    pub world: &'a World,
    /// Against whom.
    pub servers: &'a Servers,
    /// With what for statements alone.
    pub pgbench: &'a Pgbench,
    /// The operations.
    pub operations: &'a [Operation<'a>],
    /// Only these names; empty: all.
    pub only: &'a [String],
    /// How many rounds.
    pub rounds: usize,
    /// How long each thing is measured in each of them.
    pub time: Duration,
    /// Connections to the servers.
    pub connections: usize,
}

/// What came of it.
#[derive(Default)]
pub struct Results {
    /// What was measured, in its order.
    pub names: Vec<&'static str>,
    /// Runs a second by name, one for each round.
    pub rates: BTreeMap<&'static str, Vec<f64>>,
    /// What the loads showed, by name, one for each round.
    pub samples: BTreeMap<&'static str, Vec<Sample>>,
    /// Flushes of the write-ahead log a request, by name.
    pub flushes: BTreeMap<&'static str, f64>,
    /// Statements and round trips, by name.
    pub anatomy: BTreeMap<&'static str, Anatomy>,
    /// What went wrong.
    pub problems: Vec<String>,
    /// The count of flushes at the end of the step before, while nothing has flushed since.
    pub settled: Option<i64>,
}

enum Step<'a> {
    Load(&'static str, &'a Operation<'a>, &'a Server),
    Statements(&'a Yardstick),
}

impl Step<'_> {
    fn name(&self) -> &'static str {
        match self {
            Step::Load(name, ..) => name,
            Step::Statements(yardstick) => yardstick.name,
        }
    }
}

/// Measures.
///
/// # Errors
/// A yardstick cannot be run, or the database does not answer. Wrong answers are no error but among the problems.
pub async fn measure(plan: &Plan<'_>, anatomy: BTreeMap<&'static str, Anatomy>) -> Result<Results, BenchError> {
    let steps = steps(plan);
    let mut scripts = BTreeMap::new();
    for step in &steps {
        if let Step::Statements(yardstick) = step {
            scripts.insert(yardstick.name, yardstick.script(plan.world).await?);
        }
    }
    let mut results = Results {
        names: steps.iter().map(Step::name).collect(),
        anatomy,
        ..Results::default()
    };
    for round in 1..=plan.rounds {
        let is_last = round == plan.rounds;
        for step in &steps {
            let rate = match step {
                Step::Statements(yardstick) => {
                    results.settled = None;
                    let script = &scripts[yardstick.name];
                    let run = plan
                        .pgbench
                        .run(script, plan.world.folder(), &plan.world.url, plan.time);
                    run.await?
                }
                Step::Load(name, operation, server) => {
                    let load = Load {
                        world: plan.world,
                        operation,
                        address: server.address,
                        pid: server.pid,
                        connections: plan.connections,
                        warm_up: load::WARM_UP,
                        time: plan.time,
                    };
                    let counts_flushes = is_last && operation.is_of_service();
                    let sample = observed(plan, &load, name, counts_flushes, &mut results).await?;
                    let rate = sample.rate();
                    results.samples.entry(name).or_default().push(sample);
                    rate
                }
            };
            results.rates.entry(step.name()).or_default().push(rate);
            eprintln!("round {round}/{}  {:18} {rate:>9.0}/s", plan.rounds, step.name());
        }
    }
    for step in &steps {
        if let Step::Load(name, operation, _) = step
            && let Some(problem) = Sample::merged(&results.samples[name]).problem(operation)
        {
            results.problems.push(format!("{name}: {problem}"));
        }
    }
    Ok(results)
}

/// Operations, each after the yardstick of its statements.
fn steps<'a>(plan: &'a Plan<'a>) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    for operation in plan.operations {
        let yardsticks = yardsticks::ALL.iter();
        steps.extend(
            yardsticks
                .filter(|yardstick| match yardstick.operation {
                    Some(name) => name == operation.name,
                    // The minimal insert is what a recorded measurement is held against.
                    None => operation.name == "pending",
                })
                .map(Step::Statements),
        );
        let servers = plan.servers;
        let server = if operation.is_of_service() {
            &servers.service
        } else {
            &servers.hello
        };
        steps.push(Step::Load(operation.name, operation, server));
        if operation.name == "list" {
            steps.push(Step::Load(QUIET_LIST, operation, &servers.quiet));
            steps.push(Step::Load(UNKEPT_LIST, operation, &servers.unkept));
        }
    }
    steps.retain(|step| plan.only.is_empty() || plan.only.iter().any(|name| name == step.name()));
    steps
}

/// A load, with the database's own count of flushes and records beside it.
async fn observed(
    plan: &Plan<'_>,
    load: &Load<'_>,
    name: &'static str,
    counts_flushes: bool,
    results: &mut Results,
) -> Result<Sample, BenchError> {
    let operation = load.operation;
    let recorded = match operation.records() {
        true => Some(records(plan.world).await?),
        false => None,
    };
    let flushed = match results.settled.take() {
        _ if !counts_flushes => None,
        Some(flushed) => Some(flushed),
        None => Some(flushes(plan, load).await?),
    };
    let sample = load::run(load).await;
    if let Some(before) = flushed {
        let now = flushes(plan, load).await?;
        let requests = sample.acknowledged + sample.others.values().sum::<u64>();
        results
            .flushes
            .insert(name, (now - before) as f64 / requests.max(1) as f64);
        results.settled = Some(now);
    }
    if let Some(before) = recorded {
        let recorded = records(plan.world).await? - before;
        if u64::try_from(recorded) != Ok(sample.acknowledged) {
            results.problems.push(format!(
                "{name}: {} measurements were acknowledged, {recorded} recorded",
                sample.acknowledged
            ));
        }
    }
    Ok(sample)
}

async fn records(world: &World) -> Result<i64, BenchError> {
    Ok(world
        .client
        .query_one("SELECT count(*) FROM measurements", &[])
        .await?
        .get(0))
}

/// The flushes until now, after every backend of the server under `load` has reported its own.
async fn flushes(plan: &Plan<'_>, load: &Load<'_>) -> Result<i64, BenchError> {
    tokio::time::sleep(SETTLED).await;
    if let Some(operation) = plan
        .operations
        .iter()
        .find(|operation| operation.name == "organizations")
    {
        let reporting = Load {
            operation,
            warm_up: Duration::ZERO,
            time: REPORTING,
            ..*load
        };
        load::run(&reporting).await;
    }
    Ok(plan
        .world
        .client
        .query_one("SELECT wal_sync FROM pg_stat_wal", &[])
        .await?
        .get(0))
}
