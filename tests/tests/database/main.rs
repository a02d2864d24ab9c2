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
    let own = refinery::load_sql_migrations("../migrations").unwrap();
    let migrations = partner_api_tests::cluster::migrations_with("fixture/migrations".as_ref());
    assert_eq!(migrations.len(), own.len() + 1);
    migrations
}
