use std::fs;

use partner_api_tests::fixture::{THREE_A_MINUTE, inspections};
use partner_api_tests::{ALPHA, BETA, Service};
use serde_json::Value;

use crate::desk::Desk;

/// The ids that partners of these keys may list, with their states.
async fn visible(desk: &Desk) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for status in ["published", "archived", "cancelled"] {
        let list = desk
            .json(&["inspections", "list", "--status", status, "--limit", "0"])
            .await;
        all.extend(list.as_array().unwrap().iter().map(state));
    }
    all.sort_unstable();
    all
}

fn state(report: &Value) -> (String, String) {
    let text = |name: &str| report[name].as_str().unwrap().to_owned();
    (text("id"), text("status"))
}

fn copied(desk: &Desk) -> Vec<(String, String)> {
    let text = fs::read_to_string(desk.path("reports.ndjson")).unwrap();
    let mut all: Vec<_> = text
        .lines()
        .map(|line| state(&serde_json::from_str(line).unwrap()))
        .collect();
    all.sort_unstable();
    all
}

#[tokio::test]
async fn a_copy_has_every_report_once_whatever_its_status() {
    let service = Service::start().await;
    let desk = Desk::new(&service, &ALPHA);
    let told = desk.json(&["sync", "reports.ndjson"]).await;
    let all = visible(&desk).await;
    assert_eq!(copied(&desk), all);
    assert_eq!((&told["reports"], &told["new"]), (&all.len().into(), &all.len().into()));
    // Again: nothing is new, nothing is there twice, and of what has not changed nothing is asked for.
    let again = desk.json(&["sync", "reports.ndjson", "--overlap", "0"]).await;
    assert_eq!((&again["new"], &again["changed"]), (&0.into(), &0.into()));
    assert!(again["fetched"].as_u64() < told["fetched"].as_u64(), "{again} {told}");
    assert_eq!(copied(&desk), all);
}

#[tokio::test]
async fn what_was_published_archived_or_cancelled_since_is_in_the_next_copy() {
    let service = Service::start().await;
    let desk = Desk::new(&service, &ALPHA);
    desk.json(&["sync", "reports.ndjson"]).await;
    // Published long ago, so that no window of time has them; and a new one.
    service
        .db
        .batch_execute(&format!(
            "UPDATE inspections SET status = 'CANCELLED' WHERE id = '{}'; \
             UPDATE inspections SET status = 'ARCHIVED' WHERE id = '{}'; \
             UPDATE inspections SET status = 'PUBLISHED', published_at = now() WHERE id = '{}'",
            inspections::PUBLISHED,
            inspections::OTHER_BRANCH,
            inspections::DRAFT
        ))
        .await
        .unwrap();
    let told = desk.json(&["sync", "reports.ndjson"]).await;
    assert_eq!((&told["new"], &told["changed"]), (&1.into(), &2.into()), "{told}");
    assert_eq!(copied(&desk), visible(&desk).await);
}

#[tokio::test]
async fn a_database_has_columns_and_a_spreadsheet_the_same() {
    let service = Service::start().await;
    let desk = Desk::new(&service, &ALPHA);
    desk.json(&["sync", "reports.sqlite"]).await;
    let database = rusqlite::Connection::open(desk.path("reports.sqlite")).unwrap();
    let sum: (i64, i64) = database
        .query_row(
            "SELECT count(*), count(DISTINCT id) FROM reports WHERE brand <> '' AND year > 1900",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    let all = visible(&desk).await.len() as i64;
    assert_eq!(sum, (all, all));
    desk.json(&["sync", "reports.csv"]).await;
    let mut reader = csv::Reader::from_path(desk.path("reports.csv")).unwrap();
    let price = reader
        .headers()
        .unwrap()
        .iter()
        .position(|name| name == "final_price_try")
        .unwrap();
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len() as i64, all);
    assert!(rows.iter().all(|row| row[price].contains('.')), "{rows:?}");
}

#[tokio::test]
async fn a_copy_takes_nobodys_place_and_mixes_nobodys_reports() {
    let service = Service::start().await;
    let desk = Desk::new(&service, &ALPHA);
    fs::write(desk.path("mine.ndjson"), "mine").unwrap();
    desk.run(&["sync", "mine.ndjson"])
        .await
        .failed(4, "no copy that sync made");
    fs::write(desk.path("mine.sqlite"), "mine, and no database").unwrap();
    desk.run(&["sync", "mine.sqlite"])
        .await
        .failed(4, "no copy that sync made");
    rusqlite::Connection::open(desk.path("other.db"))
        .unwrap()
        .execute_batch("CREATE TABLE mine (a)")
        .unwrap();
    desk.run(&["sync", "other.db"])
        .await
        .failed(4, "no copy that sync made");
    assert_eq!(fs::read(desk.path("mine.ndjson")).unwrap(), b"mine");
    desk.json(&["sync", "reports.sqlite"]).await;
    let mut other = desk.command(&["sync", "reports.sqlite"]);
    other.env("PARTNER_KEY_ID", BETA.id).env("PARTNER_SECRET", BETA.secret);
    crate::desk::Ran::from(other.output().await.unwrap()).failed(4, "use another file");
}

/// The state is committed with each page: a run that is killed loses none of it.
#[tokio::test]
async fn a_run_that_is_killed_goes_on_where_it_was() {
    let service = Service::start().await;
    // More than two pages, at a minute's quota that ends in their midst.
    let base = format!("SELECT * FROM inspections WHERE id = '{}'", inspections::ARCHIVED);
    let columns: Vec<String> = service
        .rows(
            "SELECT column_name FROM information_schema.columns WHERE table_name = 'inspections' AND is_generated = 'NEVER' \
             AND column_name NOT IN ('id', 'report_number', 'public_slug', 'pdf_object_key')",
        )
        .await
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["column_name"].as_str().unwrap().to_owned())
        .collect();
    let columns = columns.join(", ");
    service
        .db
        .batch_execute(&format!(
            "INSERT INTO inspections (id, report_number, {columns}) SELECT gen_random_uuid(), 'COPY-' || n, {columns} \
             FROM ({base}) AS b, generate_series(1, 450) AS n"
        ))
        .await
        .unwrap();
    // Health, organizations, one page; then it waits for its quota.
    let desk = Desk::new(&service, &THREE_A_MINUTE);
    let mut child = desk
        .command(&["sync", "reports.ndjson", "--reserve", "0"])
        .spawn()
        .unwrap();
    let database = desk.path("reports.ndjson.sync");
    let known = || {
        let database =
            rusqlite::Connection::open_with_flags(&database, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
        database
            .query_row("SELECT count(*) FROM reports", [], |row| row.get::<_, i64>(0))
            .ok()
    };
    service
        .within_five_seconds(async || known().is_some_and(|count| count >= 100))
        .await;
    child.kill().await.unwrap();
    assert!(!desk.path("reports.ndjson").exists());
    let before = known().unwrap();

    let alpha = Desk::new(&service, &ALPHA);
    let mut again = alpha.command(&["sync", "reports.ndjson", "--json"]);
    let told = crate::desk::Ran::from(again.current_dir(desk.folder.path()).output().await.unwrap()).json();
    let all = visible(&alpha).await;
    assert_eq!(told["new"].as_i64().unwrap(), all.len() as i64 - before, "{told}");
    assert_eq!(told["fetched"], told["new"], "{told}");
    assert_eq!(copied(&desk), all);
}
