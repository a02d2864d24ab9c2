use std::fs;

use partner_api_tests::fixture::{THREE_A_MINUTE, inspections};
use partner_api_tests::{ALPHA, BETA, Service};
use serde_json::Value;

use crate::program::Program;

/// The IDs of the reports that the program's key can list, with their states.
async fn visible(program: &Program) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for status in ["published", "archived", "cancelled"] {
        let list = program
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

fn copied(program: &Program) -> Vec<(String, String)> {
    let text = fs::read_to_string(program.path("reports.ndjson")).unwrap();
    let mut all: Vec<_> = text
        .lines()
        .map(|line| state(&serde_json::from_str(line).unwrap()))
        .collect();
    all.sort_unstable();
    all
}

#[tokio::test]
async fn a_copy_contains_every_report_of_any_status_once() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let first = program.json(&["sync", "reports.ndjson"]).await;
    let all = visible(&program).await;
    assert_eq!(copied(&program), all);
    assert_eq!(
        (&first["reports"], &first["new"]),
        (&all.len().into(), &all.len().into())
    );
    // A second run finds nothing new, copies nothing twice, and does not fetch unchanged reports.
    let again = program.json(&["sync", "reports.ndjson", "--overlap", "0"]).await;
    assert_eq!((&again["new"], &again["changed"]), (&0.into(), &0.into()));
    assert!(again["fetched"].as_u64() < first["fetched"].as_u64(), "{again} {first}");
    assert_eq!(copied(&program), all);
}

#[tokio::test]
async fn newly_published_archived_and_cancelled_reports_are_in_the_next_copy() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    program.json(&["sync", "reports.ndjson"]).await;
    // Changes two reports that were published long ago, and publishes a new one.
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
    let second = program.json(&["sync", "reports.ndjson"]).await;
    assert_eq!((&second["new"], &second["changed"]), (&1.into(), &2.into()), "{second}");
    assert_eq!(copied(&program), visible(&program).await);
}

#[tokio::test]
async fn a_database_and_a_csv_file_have_the_same_columns() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    program.json(&["sync", "reports.sqlite"]).await;
    let database = rusqlite::Connection::open(program.path("reports.sqlite")).unwrap();
    let sum: (i64, i64) = database
        .query_row(
            "SELECT count(*), count(DISTINCT id) FROM reports WHERE brand <> '' AND year > 1900",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    let all = visible(&program).await.len() as i64;
    assert_eq!(sum, (all, all));
    program.json(&["sync", "reports.csv"]).await;
    let mut reader = csv::Reader::from_path(program.path("reports.csv")).unwrap();
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

/// Excel takes a file without a byte-order mark for the system's code page, and splits at semicolons in a Turkish locale.
#[tokio::test]
async fn a_csv_file_begins_with_a_byte_order_mark_and_can_have_semicolons() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    for (separator, character) in [("comma", ','), ("semicolon", ';'), ("tab", '\t')] {
        let file = format!("{separator}.csv");
        program.json(&["sync", &file, "--separator", separator]).await;
        let text = fs::read_to_string(program.path(&file)).unwrap();
        let header = text.lines().next().unwrap();
        let expected = format!("\u{feff}id{character}report_number{character}");
        assert!(header.starts_with(&expected), "{header}");
    }
}

#[tokio::test]
async fn a_copy_overwrites_no_other_file_and_belongs_to_one_partner() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    fs::write(program.path("mine.ndjson"), "mine").unwrap();
    program
        .run(&["sync", "mine.ndjson"])
        .await
        .failed(4, "not a copy made by partner sync");
    fs::write(program.path("mine.sqlite"), "mine, and no database").unwrap();
    program
        .run(&["sync", "mine.sqlite"])
        .await
        .failed(4, "not a copy made by partner sync");
    rusqlite::Connection::open(program.path("other.db"))
        .unwrap()
        .execute_batch("CREATE TABLE mine (a)")
        .unwrap();
    program
        .run(&["sync", "other.db"])
        .await
        .failed(4, "not a copy made by partner sync");
    assert_eq!(fs::read(program.path("mine.ndjson")).unwrap(), b"mine");
    program.json(&["sync", "reports.sqlite"]).await;
    let mut other = program.command(&["sync", "reports.sqlite"]);
    other.env("PARTNER_KEY_ID", BETA.id).env("PARTNER_SECRET", BETA.secret);
    crate::program::Ran::from(other.output().await.unwrap()).failed(4, "use another file");
}

/// The state is committed with each page, so a killed run loses none of it.
#[tokio::test]
async fn a_killed_run_resumes_where_it_stopped() {
    let service = Service::start().await;
    // More pages than the key's quota for one minute allows.
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
    // After three requests the program waits for its quota.
    let program = Program::new(&service, &THREE_A_MINUTE);
    let mut child = program
        .command(&["sync", "reports.ndjson", "--reserve", "0"])
        .spawn()
        .unwrap();
    let database = program.path("reports.ndjson.sync");
    let known = || {
        let database =
            rusqlite::Connection::open_with_flags(&database, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
        database
            .query_row("SELECT count(*) FROM reports", [], |row| row.get::<_, i64>(0))
            .ok()
    };
    service
        .eventually(async || known().is_some_and(|count| count >= 100))
        .await;
    child.kill().await.unwrap();
    assert!(!program.path("reports.ndjson").exists());
    let before = known().unwrap();

    let alpha = Program::new(&service, &ALPHA);
    let mut again = alpha.command(&["sync", "reports.ndjson", "--json"]);
    let second = crate::program::Ran::from(again.current_dir(program.folder.path()).output().await.unwrap()).json();
    let all = visible(&alpha).await;
    assert_eq!(second["new"].as_i64().unwrap(), all.len() as i64 - before, "{second}");
    assert_eq!(second["fetched"], second["new"], "{second}");
    assert_eq!(copied(&program), all);
}

#[tokio::test]
async fn a_copy_of_photos_follows_their_order_and_removes_hidden_and_deleted_ones() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    let [moved, hidden] = ["20102", "20101"].map(|number| format!("01974d22-0000-7f00-8000-0000000{number}"));
    let synced = async |change: &str| {
        service.db.batch_execute(change).await.unwrap();
        program.json(&["sync", "reports.sqlite", "--with", "photos"]).await;
        let folder = program.path("reports.files").join(inspections::PUBLISHED);
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort_unstable();
        let database = rusqlite::Connection::open(program.path("reports.sqlite")).unwrap();
        let json: String = database
            .query_row(
                "SELECT json FROM parts WHERE part = 'photos' AND report = ?1",
                [inspections::PUBLISHED],
                |row| row.get(0),
            )
            .unwrap();
        let listed: Vec<Value> = serde_json::from_str(&json).unwrap();
        let ids: Vec<_> = listed
            .iter()
            .map(|photo| photo["id"].as_str().unwrap().to_owned())
            .collect();
        (names, ids)
    };
    let (both, one) = (
        vec![format!("{hidden}.jpg"), format!("{moved}.jpg")],
        vec![format!("{moved}.jpg"), "notes.txt".to_owned()],
    );
    // The sizes in the fixture's rows differ from those of its objects.
    let sizes = "UPDATE photos SET size_bytes = 22 WHERE object_key = 'photos/20101.jpg'; \
                 UPDATE photos SET size_bytes = 18 WHERE object_key = 'photos/20102.jpg'";
    let first = synced(sizes).await;
    assert_eq!(first, (both.clone(), vec![moved.clone(), hidden.clone()]));
    let reordered = synced(&format!(
        "UPDATE photos SET position = 9, kind = 'DAMAGE' WHERE id = '{moved}'"
    ))
    .await;
    assert_eq!(reordered, (both, vec![hidden.clone(), moved.clone()]));
    // A file of the user remains.
    let folder = program.path("reports.files").join(inspections::PUBLISHED);
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    let without_hidden = synced(&format!(
        "UPDATE photos SET show_in_report = false WHERE id = '{hidden}'"
    ))
    .await;
    assert_eq!(without_hidden, (one, vec![moved.clone()]));
    let without_deleted = synced(&format!("DELETE FROM photos WHERE id = '{moved}'")).await;
    assert_eq!(without_deleted, (vec!["notes.txt".to_owned()], Vec::new()));
}

#[tokio::test]
async fn a_full_copy_has_details_forms_photos_and_pdfs_and_resumes_with_the_missing_parts() {
    let service = Service::start().await;
    let program = Program::new(&service, &ALPHA);
    // The sizes in the fixture's rows differ from those of its objects.
    service
        .db
        .batch_execute(
            "UPDATE photos SET size_bytes = 22 WHERE object_key = 'photos/20101.jpg'; \
             UPDATE photos SET size_bytes = 18 WHERE object_key = 'photos/20102.jpg'",
        )
        .await
        .unwrap();
    let sync = async |parts: &str| {
        program
            .run(&["sync", "reports.sqlite", "--overlap", "0", "--json", "--with", parts])
            .await
    };
    let rows = |sql: &str| -> i64 {
        let database = rusqlite::Connection::open(program.path("reports.sqlite")).unwrap();
        database.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let of_report = format!("{}/", inspections::PUBLISHED);
    let file = |name: &str| fs::read(program.path("reports.files").join(&of_report).join(name)).unwrap();

    // The PDF cannot be written, so the run fails after the details and forms.
    fs::write(program.path("reports.files"), "mine").unwrap();
    let failed = sync("detail,forms,pdf").await;
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    assert!(
        failed.stderr.contains("parts, each with a request"),
        "{}",
        failed.stderr
    );
    let before = rows("SELECT count(*) FROM parts");
    assert!(before > 0);
    fs::remove_file(program.path("reports.files")).unwrap();

    let all = sync("detail,forms,photos,pdf").await.json();
    let parts = &all["parts"];
    let fetched = parts["fetched"].as_i64().unwrap() + parts["missing"].as_i64().unwrap();
    assert_eq!(fetched, rows("SELECT count(*) FROM parts") - before, "{all}");
    let reports = rows("SELECT count(*) FROM reports");
    assert_eq!(
        rows("SELECT count(*) FROM parts WHERE part = 'detail' AND json IS NOT NULL"),
        reports
    );
    assert_eq!(
        rows("SELECT count(*) FROM parts WHERE part = 'forms' AND json IS NOT NULL"),
        reports
    );
    assert!(file("report.pdf").starts_with(b"%PDF-1.7 report"));
    let pictures = fs::read_dir(program.path("reports.files").join(&of_report))
        .unwrap()
        .count();
    assert_eq!(pictures, 3);
    assert_eq!(rows("SELECT count(*) FROM parts WHERE json LIKE '%expires_at%'"), 0);

    // Nothing is fetched twice, and only the parts of a changed report are fetched again.
    let again = sync("detail,forms").await.json();
    assert_eq!(again["parts"]["fetched"], 0, "{again}");
    service
        .db
        .batch_execute(&format!(
            "UPDATE inspections SET summary = 'corrected' WHERE id = '{}'",
            inspections::PUBLISHED
        ))
        .await
        .unwrap();
    let changed = sync("detail,forms").await.json();
    assert_eq!(changed["parts"]["fetched"], 2, "{changed}");
    let corrected = format!(
        "SELECT json ->> 'summary' = 'corrected' FROM parts WHERE part = 'detail' AND report = '{}'",
        inspections::PUBLISHED
    );
    assert_eq!(rows(&corrected), 1);
    let csv = program.run(&["sync", "reports.csv", "--with", "pdf"]).await;
    csv.failed(2, "pass a SQLite file");
}
