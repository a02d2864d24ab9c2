//! What `docs/scaling.md` says of tables and statements, held against the migrated schema.

use std::collections::BTreeMap;
use std::fs;

use partner_api::db::statement::STATEMENTS;
use partner_api_tests::cluster::{self, Database};
use tokio_postgres::Client;

/// The cells of the rows below a heading of the page, without their backticks.
fn rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, below) = page.split_once(heading).unwrap_or_else(|| panic!("no {heading}"));
    let table = below.lines().skip(1).skip_while(|line| line.is_empty());
    table
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            line.trim_matches('|')
                .split('|')
                .map(|cell| cell.trim().to_owned())
                .collect()
        })
        .collect()
}

fn page() -> String {
    fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/scaling.md")).unwrap()
}

/// What is wrong with the way to a row's owner: `a` → `other.b` → `third.owner`.
async fn wrong_way(client: &Client, table: &str, owner: &str, way: &str) -> Option<String> {
    let steps: Vec<&str> = way.split(" → ").map(|step| step.trim_matches('`')).collect();
    let (mut here, mut last) = (table.to_owned(), String::new());
    for (number, step) in steps.iter().enumerate() {
        let (place, column) = step.split_once('.').unwrap_or((table, step));
        if number > 0 {
            let leads = "SELECT count(*) FROM pg_constraint f
                         JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = ANY(f.conkey)
                         WHERE f.contype = 'f' AND f.conrelid = $1::text::regclass AND a.attname = $2
                         AND f.confrelid = $3::text::regclass";
            let found: i64 = client.query_one(leads, &[&here, &last, &place]).await.unwrap().get(0);
            // Of high volume, and without a foreign key therefore: the names say it.
            let is_named = last.trim_end_matches("_id") == singular(place);
            if found == 0 && !is_named {
                return Some(format!("{here}.{last} does not lead to {place}"));
            }
        }
        let never_null = "SELECT attnotnull FROM pg_attribute WHERE attrelid = $1::text::regclass AND attname = $2";
        match client.query_opt(never_null, &[&place, &column]).await.unwrap() {
            None => return Some(format!("{place} has no {column}")),
            Some(row) if !row.get::<_, bool>(0) => return Some(format!("{place}.{column} may be null")),
            Some(_) => {}
        }
        (here, last) = (place.to_owned(), column.to_owned());
    }
    let wanted = match owner {
        "organisation" => "organization_id",
        "partner" => "partner_id",
        other => return Some(format!("{other} has no way")),
    };
    (last != wanted).then(|| format!("{way} ends at {last}"))
}

fn singular(table: &str) -> &str {
    match table {
        "api_keys" => "key",
        table => table.trim_end_matches('s'),
    }
}

#[tokio::test]
async fn each_tables_rows_have_the_owner_that_the_page_names_on_the_way_that_it_names() {
    let database = Database::without_rows().await;
    let client = cluster::connect(&database.config()).await;
    let told: BTreeMap<String, (String, String)> = rows(&page(), "| Table | Whose | How it is found |")
        .into_iter()
        .map(|row| (row[0].trim_matches('`').to_owned(), (row[1].clone(), row[2].clone())))
        .collect();
    let tables = "SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
                  AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1";
    let there: Vec<String> = client
        .query(tables, &[])
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(told.keys().cloned().collect::<Vec<_>>(), there);
    let mut wrong = Vec::new();
    for (table, (owner, way)) in &told {
        match (owner.as_str(), way.as_str()) {
            ("deployment" | "everywhere", "") => {}
            (owner, way) => wrong.extend(
                wrong_way(&client, table, owner, way)
                    .await
                    .map(|why| format!("{table}: {why}")),
            ),
        }
    }
    assert_eq!(wrong, [""; 0]);

    // That it would be noticed.
    for (table, owner, way, why) in [
        (
            "photos",
            "organisation",
            "`organization_id`",
            "photos has no organization_id",
        ),
        (
            "measurements",
            "organisation",
            "`inspection_id`",
            "measurements.inspection_id may be null",
        ),
        (
            "photos",
            "organisation",
            "`id` → `inspections.organization_id`",
            "photos.id does not lead to inspections",
        ),
        (
            "branches",
            "partner",
            "`organization_id`",
            "`organization_id` ends at organization_id",
        ),
    ] {
        assert_eq!(wrong_way(&client, table, owner, way).await.as_deref(), Some(why));
    }
}

#[test]
fn the_statements_that_the_page_names_are_there() {
    let told = rows(&page(), "| Statement | Why |");
    assert!(told.len() > 3, "{told:?}");
    for row in told {
        let name = row[0].trim_matches('`');
        let is_there = STATEMENTS.iter().any(|statement| statement.name() == name);
        assert!(is_there, "{name} is no statement");
    }
}
