//! Compares the tables and statements in `docs/scaling.md` with the migrated schema.

use std::collections::BTreeMap;
use std::fs;

use partner_api_store::statement::STATEMENTS;
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

/// Describes what is wrong with the documented owner column of a table.
async fn wrong_owner(client: &Client, table: &str, owner: &str, column: &str) -> Option<String> {
    let wanted = match owner {
        "organization" => "organization_id",
        "partner" => "partner_id",
        other => return Some(format!("{other} is in no column")),
    };
    if column != wanted {
        return Some(format!("{column} is not {wanted}"));
    }
    let never_null = "SELECT attnotnull FROM pg_attribute WHERE attrelid = $1::text::regclass AND attname = $2";
    match client.query_opt(never_null, &[&table, &column]).await.unwrap() {
        None => Some(format!("{table} has no {column}")),
        Some(row) if !row.get::<_, bool>(0) => Some(format!("{table}.{column} may be null")),
        Some(_) => None,
    }
}

#[tokio::test]
async fn the_owner_of_each_table_in_scaling_md_is_a_column() {
    let database = Database::without_rows().await;
    let client = cluster::connect(&database.config()).await;
    let documented: BTreeMap<String, (String, String)> = rows(&page(), "| Table | Owner | Owner column |")
        .into_iter()
        .map(|row| (row[0].trim_matches('`').to_owned(), (row[1].clone(), row[2].clone())))
        .collect();
    let tables = "SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
                  AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1";
    let existing: Vec<String> = client
        .query(tables, &[])
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(documented.keys().cloned().collect::<Vec<_>>(), existing);
    let mut wrong = Vec::new();
    for (table, (owner, column)) in &documented {
        match (owner.as_str(), column.trim_matches('`')) {
            ("deployment" | "everyone", "") => {}
            (owner, column) => wrong.extend(
                wrong_owner(&client, table, owner, column)
                    .await
                    .map(|why| format!("{table}: {why}")),
            ),
        }
    }
    assert_eq!(wrong, [""; 0]);

    // Wrong owners are detected.
    for (table, owner, column, why) in [
        (
            "vehicles",
            "organization",
            "organization_id",
            "vehicles has no organization_id",
        ),
        (
            "request_log",
            "partner",
            "partner_id",
            "request_log.partner_id may be null",
        ),
        (
            "branches",
            "partner",
            "organization_id",
            "organization_id is not partner_id",
        ),
    ] {
        assert_eq!(wrong_owner(&client, table, owner, column).await.as_deref(), Some(why));
    }
}

/// Foreign keys include the organization, so no row can reference a row of another organization.
#[tokio::test]
async fn foreign_keys_between_tables_of_an_organization_include_its_id() {
    let database = Database::without_rows().await;
    let client = cluster::connect(&database.config()).await;
    let without = "SELECT conrelid::regclass::text || ' -> ' || confrelid::regclass::text FROM pg_constraint f
                   WHERE contype = 'f' AND conparentid = 0
                     AND confrelid NOT IN ('organizations'::regclass, 'measurements'::regclass)
                     AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = f.conrelid AND a.attname = 'organization_id')
                     AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = f.confrelid AND a.attname = 'organization_id')
                     AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = f.conrelid AND a.attnum = ANY (f.conkey)
                                     AND a.attname = 'organization_id')";
    let found: Vec<String> = client
        .query(without, &[])
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(found, [""; 0]);
}

#[tokio::test]
async fn every_table_has_a_primary_key_and_a_comment() {
    let database = Database::without_rows().await;
    let client = cluster::connect(&database.config()).await;
    let without = "SELECT c.relname::text FROM pg_class c
                   WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
                     AND c.relname <> 'refinery_schema_history'
                     AND (obj_description(c.oid, 'pg_class') IS NULL
                          OR NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'p'))";
    let found: Vec<String> = client
        .query(without, &[])
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(found, [""; 0]);
}

#[test]
fn the_statements_in_scaling_md_exist() {
    let documented = rows(&page(), "| Statement | Why |");
    assert!(documented.len() > 3, "{documented:?}");
    for row in documented {
        let name = row[0].trim_matches('`');
        let exists = STATEMENTS.iter().any(|statement| statement.name() == name);
        assert!(exists, "{name} is not a statement");
    }
}
