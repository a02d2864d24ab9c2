//! A copy that is kept up to date: which lists are asked for, and from where an interrupted run goes on.

use crate::common::{FIRST, SECOND, client, page, policy, refused};
use crate::server::{Server, Step};
use futures::TryStreamExt;
use partner_api_client::{Batch, Checkpoint, Problem, SyncOptions, sync};
use serde_json::json;

const DATE: &str = "date: Mon, 15 Jun 2026 09:30:00 GMT";

/// The organizations, of which the last has so many branches.
fn organizations(branches: u32) -> Step {
    let body = json!({ "data": [{
        "id": FIRST, "slug": "a", "name": "A", "branch_count": branches, "pii_mode": "MASKED"
    }]});
    Step::Answer(200, vec![DATE.to_owned()], body.to_string())
}

fn last(ids: &[&str]) -> Step {
    page(ids, None, false)
}

async fn run(server: &Server, from: Checkpoint) -> Result<Vec<Batch>, Problem> {
    sync(&client(server, policy()), from, SyncOptions::default())
        .try_collect()
        .await
}

/// The queries of the lists that were asked for.
fn lists(server: &Server) -> Vec<String> {
    let asked = |line: String| {
        let target = line.split(' ').nth(1)?.to_owned();
        Some(target.strip_prefix("/api/v1/partner/inspections?")?.to_owned())
    };
    server
        .received()
        .into_iter()
        .filter_map(|request| asked(request.line))
        .collect()
}

/// A copy that was complete at [`DATE`].
async fn complete() -> Checkpoint {
    let server = Server::start(vec![organizations(2), last(&[FIRST])]).await;
    run(&server, Checkpoint::default())
        .await
        .unwrap()
        .pop()
        .unwrap()
        .checkpoint
}

/// Everything: what changed since the beginning of time.
const ALL: &str = "limit=100&updated_from=1970-01-01T00%3A00%3A00Z";

#[tokio::test]
async fn the_first_run_fetches_everything() {
    let server = Server::start(vec![
        organizations(2),
        page(&[FIRST], Some("c1"), true),
        last(&[SECOND]),
    ])
    .await;
    let batches = run(&server, Checkpoint::default()).await.unwrap();
    assert_eq!(lists(&server), [ALL.to_owned(), format!("cursor=c1&{ALL}")]);
    let under_way: Vec<_> = batches.iter().map(|batch| batch.checkpoint.is_under_way()).collect();
    assert_eq!(under_way, [true, false]);
    let complete = batches[1].checkpoint.complete().unwrap();
    assert_eq!(complete.to_rfc3339(), "2026-06-15T09:30:00+00:00");
}

#[tokio::test]
async fn a_later_run_asks_for_what_changed_since_the_one_before_began_less_an_overlap() {
    let known = complete().await;
    let server = Server::start(vec![organizations(2), last(&[FIRST])]).await;
    run(&server, known).await.unwrap();
    assert_eq!(lists(&server), ["limit=100&updated_from=2026-06-15T09%3A20%3A00Z"]);
}

#[tokio::test]
async fn a_run_goes_on_at_the_checkpoint_that_was_stored_last() {
    let steps = vec![
        organizations(2),
        page(&[FIRST], Some("c1"), true),
        refused(500, "internal_error", &[]),
    ];
    let server = Server::start(steps).await;
    let client = client(&server, policy());
    let mut batches = std::pin::pin!(sync(&client, Checkpoint::default(), SyncOptions::default()));
    let first = batches.try_next().await.unwrap().unwrap();
    assert!(batches.try_next().await.is_err());

    // It is stored as JSON, and read by the next process.
    let stored = serde_json::to_string(&first.checkpoint).unwrap();
    let again = Server::start(vec![last(&[SECOND])]).await;
    let batches = run(&again, serde_json::from_str(&stored).unwrap()).await.unwrap();
    assert_eq!(lists(&again), [format!("cursor=c1&{ALL}")]);
    assert!(!batches.last().unwrap().checkpoint.is_under_way());
}

#[tokio::test]
async fn a_cursor_that_is_no_longer_taken_begins_its_list_again() {
    let steps = vec![
        organizations(2),
        page(&[FIRST], Some("c1"), true),
        refused(400, "invalid_request", &[]),
        last(&[]),
    ];
    let server = Server::start(steps).await;
    run(&server, Checkpoint::default()).await.unwrap();
    assert_eq!(
        lists(&server),
        [ALL.to_owned(), format!("cursor=c1&{ALL}"), ALL.to_owned()]
    );
}

#[tokio::test]
async fn a_branch_that_is_newly_open_makes_the_next_run_a_full_one() {
    let known = complete().await;
    let server = Server::start(vec![organizations(3), last(&[FIRST])]).await;
    run(&server, known).await.unwrap();
    assert_eq!(lists(&server), [ALL]);
}
