//! Stages the lines of a file in temporary tables and checks them against existing rows and against each other.

use std::pin::pin;
use std::sync::Arc;

use tokio_postgres::Client;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;

use super::references::References;
use super::report::{LineError, Report, differing, expected, repeated};
use super::source::{Checked, Source, check};
use crate::failure::Failure;
use crate::progress::Progress;

/// The number of lines per COPY. It keeps transactions short, so that they do not hold back vacuum.
const COPIED_AT_ONCE: u64 = 100_000;

/// The result of staging a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub new: i64,
    pub changed: i64,
    pub same: i64,
}

/// Reads and checks a file while its rows are copied.
pub(crate) async fn copy(
    client: &Client,
    source: &Source,
    references: References,
    max_errors: usize,
) -> Result<Checked, Failure> {
    client.batch_execute(&source.kind.create_lines()).await?;
    let progress = Progress::of_bytes(format!("checking {}", source.name), source.bytes);
    let statement = client.prepare(&source.kind.copy_lines()).await?;
    let mut types = vec![Type::INT8];
    types.extend(source.kind.columns().into_iter().map(|column| column.of));
    let (mut batches, ended) = check(source, Arc::new(references), max_errors);
    let mut next = batches.recv().await;
    while let Some(first) = next {
        let mut copy = pin!(BinaryCopyInWriter::new(client.copy_in(&statement).await?, &types));
        let (mut batch, mut lines) = (first, 0);
        loop {
            for (line, row) in &batch.rows {
                let values = std::iter::once(line as &(dyn tokio_postgres::types::ToSql + Sync)).chain(
                    row.iter()
                        .map(|value| value as &(dyn tokio_postgres::types::ToSql + Sync)),
                );
                let values: Vec<_> = values.collect();
                copy.as_mut().write(&values).await?;
            }
            lines += batch.rows.len() as u64;
            progress.at(batch.bytes);
            next = batches.recv().await;
            match next.take() {
                Some(more) if lines < COPIED_AT_ONCE => batch = more,
                other => {
                    next = other;
                    break;
                }
            }
        }
        copy.as_mut().finish().await?;
    }
    let unreadable = |error: &dyn std::fmt::Display| Failure::Usage(format!("{}: {error}", source.name));
    ended
        .await
        .map_err(|_| unreadable(&"the reader thread ended"))?
        .map_err(|error| unreadable(&error))
}

/// Resolves references and existing rows for each line, and reports errors.
pub(crate) async fn plan(client: &Client, source: &Source, report: &mut Report, update: bool) -> Result<Plan, Failure> {
    let kind = source.kind;
    let _progress = Progress::endless(format!("comparing {} with existing data", source.name));
    client.batch_execute("ANALYZE import_lines").await?;
    client.batch_execute(&kind.create_plan()).await?;
    client
        .batch_execute(
            "CREATE INDEX ON import_lines (line); CREATE UNIQUE INDEX ON import_plan (line); \
             ANALYZE import_lines; ANALYZE import_plan",
        )
        .await?;
    // Fetches one more than fits, to detect whether there are more.
    let remaining = report.remaining();
    let limit = i64::try_from(remaining).unwrap_or(i64::MAX - 1) + 1;
    let problems = "SELECT line, unnest(problems) FROM import_plan WHERE problems <> '{}' ORDER BY line LIMIT $1";
    let rows = client.query(problems, &[&limit]).await?;
    report.is_more |= rows.len() > remaining;
    for row in rows {
        let (line, problem): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
        let (field, word) = problem.split_once('|').unwrap_or((&problem, "taken"));
        report.add(LineError::of(line.unsigned_abs(), field, expected(word, kind.one)));
    }
    for (field, statement) in kind.repeated() {
        let rows = client.query(&statement, &[&limit]).await?;
        report.is_more |= rows.len() > remaining;
        for row in rows {
            let (line, first): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
            // Lines with the same key usually have the same ID too; report only one error.
            if !report.has(line.unsigned_abs()) {
                report.add(repeated(line.unsigned_abs(), field, first.unsigned_abs(), kind.one));
            }
        }
    }
    if !update {
        let differs =
            "SELECT line, differs FROM import_plan WHERE differs <> '{}' AND problems = '{}' ORDER BY line LIMIT $1";
        let rows = client.query(differs, &[&limit]).await?;
        report.is_more |= rows.len() > remaining;
        for row in rows {
            let (line, fields): (i64, Vec<String>) = (row.try_get(0)?, row.try_get(1)?);
            report.add(differing(line.unsigned_abs(), &fields, kind.one));
        }
    }
    let counts = "SELECT count(*) FILTER (WHERE NOT is_existing), count(*) FILTER (WHERE differs <> '{}'), count(*) FROM import_plan";
    let row = client.query_one(counts, &[]).await?;
    let (new, changed, all): (i64, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    Ok(Plan {
        new,
        changed,
        same: all - new - changed,
    })
}
