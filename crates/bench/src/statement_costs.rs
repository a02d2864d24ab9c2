//! Counts the statements and round trips of one request of each operation, by recording the service's database traffic while a
//! single connection sends requests.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::baselines;
use crate::error::BenchError;
use crate::fixture::Fixture;
use crate::load::{self, Load};
use crate::operations::Operation;
use crate::proxy::RecordingProxy;
use crate::servers::{Server, ServiceSetup};

/// How long each operation is recorded.
const TIME: Duration = Duration::from_millis(100);

/// The database cost of a request, averaged over the requests of a single connection.
#[derive(Clone, Debug, Default)]
pub struct StatementCost {
    /// Statements.
    pub statements: f64,
    /// Round trips to the database.
    pub round_trips: f64,
    /// The statements of one request by module and name, without those of admission and without `BEGIN` and the like.
    pub named: Vec<(&'static str, &'static str)>,
}

/// Records every operation of the service.
///
/// # Errors
/// If the service does not start or a response is wrong.
pub async fn record_statements(
    setup: &ServiceSetup<'_>,
    fixture: &Fixture,
    operations: &[Operation<'_>],
) -> Result<BTreeMap<&'static str, StatementCost>, BenchError> {
    let proxy = RecordingProxy::listen(&fixture.folder().join("proxy"), &fixture.socket)?;
    let url = proxy.url(setup.url, &fixture.socket);
    let setup = ServiceSetup { url: &url, ..*setup };
    let recorded = async {
        let server = Server::service(&setup).await?;
        let mut all = BTreeMap::new();
        for operation in operations.iter().filter(|operation| operation.is_of_service()) {
            all.insert(operation.name, cost_of(&proxy, &server, fixture, operation).await?);
        }
        server.stop().await;
        Ok(all)
    };
    tokio::task::LocalSet::new()
        .run_until(async {
            tokio::select! {
                recorded = recorded => recorded,
                () = proxy.forward() => Err(BenchError::Unexpected("the recording proxy stopped".to_owned())),
            }
        })
        .await
}

async fn cost_of(
    proxy: &RecordingProxy,
    server: &Server,
    fixture: &Fixture,
    operation: &Operation<'_>,
) -> Result<StatementCost, BenchError> {
    let load = Load {
        fixture,
        operation,
        address: server.address,
        pid: server.pid,
        connections: 1,
        warm_up: TIME,
        time: TIME,
    };
    // The first run prepares the statements.
    load::run(&load).await;
    proxy.take();
    let sample = load::run(&load).await;
    let recorded = proxy.take();
    if let Some(problem) = sample.problem(operation) {
        return Err(BenchError::Unexpected(format!("{}: {problem}", operation.name)));
    }
    let requests = (sample.acknowledged + sample.others.values().sum::<u64>()).max(1) as f64;
    // Background work does not belong to a request: polls for keys and grants, rendering and partitions, and the request log. Each
    // is one statement and one round trip.
    const POLLS: [&str; 7] = [
        "directory",
        "observability",
        "partitions",
        "renderings",
        "replicas",
        "request_log",
        "standby",
    ];
    const ADMISSION: [&str; 1] = ["admission"];
    let names: Vec<_> = recorded
        .statements
        .iter()
        .filter_map(|sql| baselines::name_of(sql))
        .collect();
    let polls = names.iter().filter(|(module, _)| is_below(module, &POLLS)).count() as u64;
    let names: Vec<_> = names
        .into_iter()
        .filter(|(module, _)| !is_below(module, &POLLS) && !is_below(module, &ADMISSION))
        .collect();
    Ok(StatementCost {
        statements: (recorded.statements.len() as u64 - polls) as f64 / requests,
        round_trips: recorded.round_trips.saturating_sub(polls) as f64 / requests,
        named: cycle(&names),
    })
}

/// Returns whether a module is one of `roots`, or below one.
fn is_below(module: &str, roots: &[&str]) -> bool {
    let root = module.split_once("::").map_or(module, |(root, _)| root);
    roots.contains(&root)
}

/// Returns the shortest sequence of which `all` is a repetition.
fn cycle<T: Copy + PartialEq>(all: &[T]) -> Vec<T> {
    (0..=all.len())
        .map(|length| &all[..length])
        .find(|part| part.is_empty() == all.is_empty() && all.iter().eq(part.iter().cycle().take(all.len())))
        .map(<[T]>::to_vec)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{cycle, is_below};

    #[test]
    fn a_module_is_below_its_first_segment() {
        assert!(is_below("admission", &["admission"]));
        assert!(is_below("admission::batch", &["admission"]));
        assert!(!is_below("inspections::admission", &["admission"]));
    }

    #[test]
    fn a_request_is_the_shortest_sequence_that_repeats() {
        assert_eq!(cycle(&[1, 2, 1, 2, 1, 2]), [1, 2]);
        assert_eq!(cycle(&[1, 1, 1]), [1]);
        assert_eq!(cycle(&[1, 2, 3]), [1, 2, 3]);
        assert!(cycle::<u8>(&[]).is_empty());
    }
}
