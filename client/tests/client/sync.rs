//! Synchronization: the requested lists, and how an interrupted run resumes.

use crate::common::{FIRST, SECOND, client, page, policy, rejected};
use crate::server::{Server, Step};
use futures::TryStreamExt;
use partner_api_client::{Batch, Checkpoint, Problem, SyncOptions, sync};
use serde_json::json;

const DATE: &str = "date: Mon, 15 Jun 2026 09:30:00 GMT";

/// A response with one organization that has this number of branches.
fn organizations(branches: u32) -> Step {
    let body = json!({ "data": [{
        "id": FIRST, "slug": "a", "name": "A", "branch_count": branches, "pii_mode": "MASKED"
    }]});
    Step::Respond(200, vec![DATE.to_owned()], body.to_string())
}

fn last(ids: &[&str]) -> Step {
    page(ids, None, false)
}

async fn run(server: &Server, from: Checkpoint) -> Result<Vec<Batch>, Problem> {
    sync(&client(server, policy()), from, SyncOptions::default())
        .try_collect()
        .await
}

/// The queries of the requested lists.
fn lists(server: &Server) -> Vec<String> {
    let query = |line: String| {
        let target = line.split(' ').nth(1)?.to_owned();
        Some(target.strip_prefix("/api/v1/partner/inspections?")?.to_owned())
    };
    server
        .received()
        .into_iter()
        .filter_map(|request| query(request.line))
        .collect()
}

/// The checkpoint of a copy that was complete at [`DATE`].
async fn complete() -> Checkpoint {
    let server = Server::start(vec![organizations(2), last(&[FIRST])]).await;
    run(&server, Checkpoint::default())
        .await
        .unwrap()
        .pop()
        .unwrap()
        .checkpoint
}

/// The query for all reports.
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
    let in_progress: Vec<_> = batches.iter().map(|batch| batch.checkpoint.is_in_progress()).collect();
    assert_eq!(in_progress, [true, false]);
    let complete = batches[1].checkpoint.complete().unwrap();
    assert_eq!(complete.to_rfc3339(), "2026-06-15T09:30:00+00:00");
}

#[tokio::test]
async fn a_later_run_requests_changes_since_the_start_of_the_previous_run_minus_the_overlap() {
    let known = complete().await;
    let server = Server::start(vec![organizations(2), last(&[FIRST])]).await;
    run(&server, known).await.unwrap();
    assert_eq!(lists(&server), ["limit=100&updated_from=2026-06-15T09%3A20%3A00Z"]);
}

#[tokio::test]
async fn an_interrupted_run_resumes_from_its_last_checkpoint() {
    let steps = vec![
        organizations(2),
        page(&[FIRST], Some("c1"), true),
        rejected(500, "internal_error", &[]),
    ];
    let server = Server::start(steps).await;
    let client = client(&server, policy());
    let mut batches = std::pin::pin!(sync(&client, Checkpoint::default(), SyncOptions::default()));
    let first = batches.try_next().await.unwrap().unwrap();
    assert!(batches.try_next().await.is_err());

    // The checkpoint is stored as JSON and read by the next process.
    let stored = serde_json::to_string(&first.checkpoint).unwrap();
    let again = Server::start(vec![last(&[SECOND])]).await;
    let batches = run(&again, serde_json::from_str(&stored).unwrap()).await.unwrap();
    assert_eq!(lists(&again), [format!("cursor=c1&{ALL}")]);
    assert!(!batches.last().unwrap().checkpoint.is_in_progress());
}

#[tokio::test]
async fn an_invalid_cursor_restarts_the_list() {
    let steps = vec![
        organizations(2),
        page(&[FIRST], Some("c1"), true),
        rejected(400, "invalid_request", &[]),
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
async fn access_to_another_branch_makes_the_next_run_a_full_one() {
    let known = complete().await;
    let server = Server::start(vec![organizations(3), last(&[FIRST])]).await;
    run(&server, known).await.unwrap();
    assert_eq!(lists(&server), [ALL]);
}
