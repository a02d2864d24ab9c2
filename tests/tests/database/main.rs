//! SQL: the schema's migrations, statements and connections, what the store reads and records, and the sandbox's data.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]
#![expect(
    clippy::disallowed_methods,
    reason = "tests execute SQL that the service has not registered"
)]

mod connections;
mod locks;
mod measurements;
mod migrations;
mod reports;
mod roles;
mod rolling;
mod sandbox;
mod scaling;
mod setup;
mod statements;
mod vocabularies;

/// The migrations and an example of one of a later release, in order.
fn migrations_and_the_next() -> Vec<refinery::Migration> {
    let mut migrations = refinery::load_sql_migrations("../migrations").unwrap();
    let next = refinery::load_sql_migrations("fixture/migrations").unwrap();
    assert_eq!(next.len(), 1);
    migrations.extend(next);
    migrations.sort_by_key(|migration| migration.version());
    migrations
}
