//! Every registered statement matches the migrated schema, and a failed query is logged with its cause.

// These crates are linked to register their statements.
use partner_api_operator as _;
use partner_api_sandbox as _;

use partner_api_store::DbError;
use partner_api_store::statement::{STATEMENTS, Statement};
use partner_api_tests::cluster::{self, Database};

#[tokio::test]
async fn every_statement_prepares_against_the_migrated_schema() {
    let database = Database::without_rows().await;
    let client = cluster::connect(&database.config()).await;
    let mut wrong = Vec::new();
    for statement in STATEMENTS {
        if let Err(error) = client.prepare(statement.sql()).await {
            let detail = error
                .as_db_error()
                .map(ToString::to_string)
                .unwrap_or_else(|| error.to_string());
            wrong.push(format!("{}: {detail}", statement.name()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The statements of admission, of the directory, of rendering and of the sandbox are among them.
    for module in [
        "partner_api_operator::key",
        "partner_api_sandbox::partners",
        "admission",
        "directory::load",
        "partner_api_store::renderings",
        "partner_api_store::inspections::statements::default",
    ] {
        let known = |statement: &&Statement| statement.name().contains(module);
        assert!(STATEMENTS.iter().any(known), "none of {module}");
    }
}

#[tokio::test]
async fn a_failed_query_logs_the_database_message_without_row_values() {
    let database = Database::without_rows().await;
    let client = cluster::connect(&database.config()).await;
    let twice = "CREATE TEMP TABLE plates (plate text CONSTRAINT one_plate UNIQUE); \
                 INSERT INTO plates VALUES ('34ABC123'), ('34ABC123')";
    let error = DbError::from(client.batch_execute(twice).await.unwrap_err());
    assert_eq!(
        error.to_string(),
        "failed to execute a statement: ERROR 23505: duplicate key value violates unique constraint \"one_plate\""
    );
}
