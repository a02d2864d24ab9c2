//! What one request of each operation costs in statements and round trips: the service is overheard on its way to the
//! database while a single connection asks it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::BenchError;
use crate::load::{self, Load};
use crate::operations::Operation;
use crate::servers::{Server, ServiceSetup};
use crate::wire::Wire;
use crate::world::World;
use crate::yardsticks;

/// How long each operation is overheard.
const TIME: Duration = Duration::from_millis(100);

/// What a request costs, on average over a single connection's requests.
#[derive(Clone, Debug, Default)]
pub struct Anatomy {
    /// Statements.
    pub statements: f64,
    /// Times it waits for the database.
    pub round_trips: f64,
    /// The statements of one request by module and name, without those of admission; `BEGIN` and the like are not named.
    pub named: Vec<(&'static str, &'static str)>,
}

/// Overhears every operation of the service.
///
/// # Errors
/// The service does not start, or answers something else than is expected.
pub async fn overhear(
    setup: &ServiceSetup<'_>,
    world: &World,
    operations: &[Operation<'_>],
) -> Result<BTreeMap<&'static str, Anatomy>, BenchError> {
    let wire = Wire::listen(&world.folder().join("wire"), &world.socket)?;
    let url = wire.url(setup.url, &world.socket);
    let setup = ServiceSetup { url: &url, ..*setup };
    let heard = async {
        let server = Server::service(&setup).await?;
        let mut all = BTreeMap::new();
        for operation in operations.iter().filter(|operation| operation.is_of_service()) {
            all.insert(operation.name, of(&wire, &server, world, operation).await?);
        }
        server.stop().await;
        Ok(all)
    };
    tokio::task::LocalSet::new()
        .run_until(async {
            tokio::select! {
                heard = heard => heard,
                () = wire.forward() => Err(BenchError::Unexpected("the wire was cut".to_owned())),
            }
        })
        .await
}

async fn of(wire: &Wire, server: &Server, world: &World, operation: &Operation<'_>) -> Result<Anatomy, BenchError> {
    let load = Load {
        world,
        operation,
        address: server.address,
        pid: server.pid,
        connections: 1,
        warm_up: TIME,
        time: TIME,
    };
    // Once for the statements to be prepared.
    load::run(&load).await;
    wire.take();
    let sample = load::run(&load).await;
    let heard = wire.take();
    if let Some(problem) = sample.problem(operation) {
        return Err(BenchError::Unexpected(format!("{}: {problem}", operation.name)));
    }
    let requests = (sample.acknowledged + sample.others.values().sum::<u64>()).max(1) as f64;
    // The polls of keys and grants, of reports to render and of partitions are nobody's request, nor is what is written behind
    // many of them; each is one statement and one round trip.
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
    let names: Vec<_> = heard
        .statements
        .iter()
        .filter_map(|sql| yardsticks::name_of(sql))
        .collect();
    let polls = names.iter().filter(|(module, _)| is_below(module, &POLLS)).count() as u64;
    let names: Vec<_> = names
        .into_iter()
        .filter(|(module, _)| !is_below(module, &POLLS) && !is_below(module, &ADMISSION))
        .collect();
    Ok(Anatomy {
        statements: (heard.statements.len() as u64 - polls) as f64 / requests,
        round_trips: heard.round_trips.saturating_sub(polls) as f64 / requests,
        named: cycle(&names),
    })
}

/// Whether a module is one of these rooms, or in one.
fn is_below(module: &str, rooms: &[&str]) -> bool {
    let room = module.split_once("::").map_or(module, |(room, _)| room);
    rooms.contains(&room)
}

/// The shortest sequence of which `all` is a repetition.
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
    fn a_module_is_of_the_room_that_it_is_in() {
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
