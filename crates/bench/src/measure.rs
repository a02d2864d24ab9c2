//! The rounds of the measurement. Each measures every baseline and operation once, and runs compared ones one after the other.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::baselines::{self, Baseline};
use crate::error::BenchError;
use crate::fixture::Fixture;
use crate::load::{self, Load, Sample};
use crate::operations::Operation;
use crate::peers::{self, Peer};
use crate::pgbench::Pgbench;
use crate::servers::Server;
use crate::statement_costs::StatementCost;

/// The interval after which a backend of PostgreSQL reports its statistics with its next statement.
const STATISTICS_INTERVAL: Duration = Duration::from_millis(1_050);
/// The duration of a load that gives every backend a next statement.
const REPORTING: Duration = Duration::from_millis(50);

/// The list operation on the service without its log.
pub const LIST_WITHOUT_LOG: &str = "list-without-log";

/// The list operation on the service without the request log.
pub const LIST_WITHOUT_REQUEST_LOG: &str = "list-without-request-log";

/// The servers under load.
pub struct Servers {
    /// The minimal Dropshot server.
    pub hello: Server,
    /// The service with all features enabled.
    pub service: Server,
    /// The service without its log.
    pub without_log: Server,
    /// The service without the request log.
    pub without_request_log: Server,
    /// The peers. If there are any, only their operations are measured.
    pub peers: Vec<Peer>,
}

/// The parameters of a measurement.
pub struct Plan<'a> {
    /// The data.
    pub fixture: &'a Fixture,
    /// The servers.
    pub servers: &'a Servers,
    /// pgbench, for the baselines of statements.
    pub pgbench: &'a Pgbench,
    /// The operations.
    pub operations: &'a [Operation<'a>],
    /// The names to measure; empty means all.
    pub only: &'a [String],
    /// The number of rounds.
    pub rounds: usize,
    /// The time of each measurement in a round.
    pub time: Duration,
    /// Connections to the servers.
    pub connections: usize,
}

/// The results of a measurement.
#[derive(Default)]
pub struct Results {
    /// The names of the measured operations and baselines, in order.
    pub names: Vec<&'static str>,
    /// Runs per second by name, one for each round.
    pub rates: BTreeMap<&'static str, Vec<f64>>,
    /// The samples of the loads by name, one for each round.
    pub samples: BTreeMap<&'static str, Vec<Sample>>,
    /// WAL flushes per request, by name.
    pub flushes: BTreeMap<&'static str, f64>,
    /// Statements and round trips, by name.
    pub statement_costs: BTreeMap<&'static str, StatementCost>,
    /// Wrong responses and other problems.
    pub problems: Vec<String>,
    /// The number of flushes at the end of the previous step, if nothing has flushed since.
    pub settled: Option<i64>,
}

enum Step<'a> {
    Load(&'static str, &'a Operation<'a>, &'a Server),
    Statements(&'a Baseline),
}

impl Step<'_> {
    fn name(&self) -> &'static str {
        match self {
            Step::Load(name, ..) => name,
            Step::Statements(baseline) => baseline.name,
        }
    }
}

/// Runs all rounds.
///
/// # Errors
/// If a baseline cannot be run, or the database does not respond. Wrong responses are reported as problems instead.
pub async fn measure(
    plan: &Plan<'_>,
    statement_costs: BTreeMap<&'static str, StatementCost>,
) -> Result<Results, BenchError> {
    let steps = steps(plan);
    let mut scripts = BTreeMap::new();
    for step in &steps {
        if let Step::Statements(baseline) = step {
            scripts.insert(baseline.name, baseline.script(plan.fixture).await?);
        }
    }
    let mut results = Results {
        names: steps.iter().map(Step::name).collect(),
        statement_costs,
        ..Results::default()
    };
    for round in 1..=plan.rounds {
        let is_last = round == plan.rounds;
        for step in &steps {
            let rate = match step {
                Step::Statements(baseline) => {
                    results.settled = None;
                    let script = &scripts[baseline.name];
                    let run = plan
                        .pgbench
                        .run(script, plan.fixture.folder(), &plan.fixture.url, plan.time);
                    run.await?
                }
                Step::Load(name, operation, server) => {
                    let load = Load {
                        fixture: plan.fixture,
                        operation,
                        address: server.address,
                        pid: server.pid,
                        connections: plan.connections,
                        warm_up: load::WARM_UP,
                        time: plan.time,
                    };
                    let counts_flushes = is_last && operation.is_of_service();
                    let sample = run_load(plan, &load, name, counts_flushes, &mut results).await?;
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

/// Returns the operations, each after the baseline of its statements, or before the same operation on each peer.
fn steps<'a>(plan: &'a Plan<'a>) -> Vec<Step<'a>> {
    let mut steps = if plan.servers.peers.is_empty() {
        steps_with_baselines(plan)
    } else {
        steps_with_peers(plan)
    };
    steps.retain(|step| plan.only.is_empty() || plan.only.iter().any(|name| name == step.name()));
    steps
}

fn steps_with_peers<'a>(plan: &'a Plan<'a>) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    for operation in plan
        .operations
        .iter()
        .filter(|operation| peers::OPERATIONS.contains(&operation.name))
    {
        steps.push(Step::Load(operation.name, operation, &plan.servers.service));
        for peer in &plan.servers.peers {
            // Names are static because most are constants; this one is created once in a run.
            let name: &'static str = peers::name_of(operation.name, peer.name).leak();
            steps.push(Step::Load(name, operation, &peer.server));
        }
    }
    steps
}

fn steps_with_baselines<'a>(plan: &'a Plan<'a>) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    for operation in plan.operations {
        let baselines = baselines::ALL.iter();
        steps.extend(
            baselines
                .filter(|baseline| match baseline.operation {
                    Some(name) => name == operation.name,
                    // Every operation is admitted. The minimal insert is the baseline of a pending measurement.
                    None if baseline.name == "sql-admission" => operation.name == "health",
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
            steps.push(Step::Load(LIST_WITHOUT_LOG, operation, &servers.without_log));
            steps.push(Step::Load(
                LIST_WITHOUT_REQUEST_LOG,
                operation,
                &servers.without_request_log,
            ));
        }
    }
    steps
}

/// Runs a load, and compares the database's counts of flushes and records before and after it.
async fn run_load(
    plan: &Plan<'_>,
    load: &Load<'_>,
    name: &'static str,
    counts_flushes: bool,
    results: &mut Results,
) -> Result<Sample, BenchError> {
    let operation = load.operation;
    let recorded = match operation.records() {
        true => Some(records(plan.fixture).await?),
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
        let recorded = records(plan.fixture).await? - before;
        if u64::try_from(recorded) != Ok(sample.acknowledged) {
            results.problems.push(format!(
                "{name}: {} measurements were acknowledged, {recorded} recorded",
                sample.acknowledged
            ));
        }
    }
    Ok(sample)
}

/// Returns the number of recorded measurements.
///
/// # Errors
/// If the database does not respond.
pub async fn records(fixture: &Fixture) -> Result<i64, BenchError> {
    Ok(fixture
        .client
        .query_one("SELECT count(*) FROM measurements", &[])
        .await?
        .get(0))
}

/// Returns the number of flushes until now, after every backend of the server under `load` has reported its statistics.
async fn flushes(plan: &Plan<'_>, load: &Load<'_>) -> Result<i64, BenchError> {
    tokio::time::sleep(STATISTICS_INTERVAL).await;
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
        .fixture
        .client
        .query_one("SELECT wal_sync FROM pg_stat_wal", &[])
        .await?
        .get(0))
}
