//! The lines of a checked file become rows, part by part: each part is a transaction with its row of the audit log.

use partner_api::db::DbError;
use serde_json::json;
use tokio_postgres::{Client, IsolationLevel};

use super::source::{Checked, Source};
use super::stage::Plan;
use crate::audit::{self, Actor};
use crate::failure::Failure;
use crate::progress::Progress;

partner_api::statement! {
    DONE = "SELECT at FROM imports WHERE sha256 = $1 AND kind = $2 ORDER BY id DESC LIMIT 1";
    /// Whether a file of this length can be one that is done: without one, it need not be read a second time.
    MAYBE_DONE = "SELECT EXISTS (SELECT FROM imports WHERE size_bytes = $1 AND kind = $2)";
    RECORD = "INSERT INTO imports (sha256, size_bytes, kind, file, lines, inserted, updated, unchanged) \
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
}

/// What was done with a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loaded {
    pub inserted: u64,
    pub updated: u64,
    /// Up to which line all is in.
    pub through: i64,
    /// The end of a part was asked for, and not answered yet: nobody knows whether it is in.
    pub is_open: bool,
}

/// How the file is known in the log: its name without its folder.
fn shown(source: &Source) -> &str {
    source.name.rsplit('/').next().unwrap_or(&source.name)
}

/// Brings the planned lines in; `so_far` says what stands, however it ends.
pub(crate) async fn load(
    client: &mut Client,
    actor: &Actor,
    source: &Source,
    checked: &Checked,
    plan: Plan,
    part: u32,
    so_far: &mut Loaded,
) -> Result<(), Failure> {
    let kind = source.kind;
    let (inserts, updates) = (kind.inserts(), kind.updates());
    let total = u64::try_from(plan.new + plan.changed).unwrap_or_default();
    let progress = Progress::of_lines(format!("importing {}", source.name), total);
    let digest = hex(&checked.digest);
    let mut from = 1;
    while total > 0 && from <= checked.last {
        let to = from.saturating_add(i64::from(part) - 1).min(checked.last);
        let transaction = client
            .build_transaction()
            .isolation_level(IsolationLevel::ReadCommitted)
            .start()
            .await?;
        let (mut inserted, mut updated) = (0, 0);
        if plan.new > 0 {
            for (index, statement) in inserts.iter().enumerate() {
                let count = transaction.execute(statement.as_str(), &[&from, &to]).await?;
                inserted = if index == 0 { count } else { inserted };
            }
        }
        if plan.changed > 0 {
            for statement in &updates {
                updated = transaction.execute(statement.as_str(), &[&from, &to]).await?;
            }
        }
        let is_last = to == checked.last;
        if inserted + updated > 0 {
            let what = format!(
                "Of {} ({}), lines {from} to {to} of {}: {inserted} new, {updated} changed.",
                shown(source),
                kind.name,
                checked.last
            );
            let after = json!({
                "file": shown(source), "sha256": digest, "kind": kind.name, "from_line": from, "to_line": to,
                "inserted": inserted, "updated": updated,
            });
            audit::record_part(&transaction, actor, "import", &digest, &what, &after).await?;
        }
        let all = Loaded {
            inserted: so_far.inserted + inserted,
            updated: so_far.updated + updated,
            through: to,
            is_open: false,
        };
        if is_last {
            record(&transaction, source, checked, plan, all).await?;
        }
        so_far.is_open = true;
        commit(transaction).await.inspect_err(|failure| {
            so_far.is_open = matches!(failure, Failure::Unknown);
        })?;
        *so_far = all;
        progress.at(all.inserted + all.updated);
        from = to + 1;
    }
    if total == 0 {
        let transaction = client.transaction().await?;
        record(&transaction, source, checked, plan, *so_far).await?;
        commit(transaction).await?;
    }
    Ok(())
}

async fn commit(transaction: tokio_postgres::Transaction<'_>) -> Result<(), Failure> {
    transaction.commit().await.map_err(|error| match DbError::from(error) {
        error if error.leaves_open() => Failure::Unknown,
        error => Failure::Db(error),
    })
}

/// Notes that the file is done.
async fn record(
    transaction: &tokio_postgres::Transaction<'_>,
    source: &Source,
    checked: &Checked,
    plan: Plan,
    loaded: Loaded,
) -> Result<(), tokio_postgres::Error> {
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 8] = [
        &checked.digest.as_slice(),
        &number(checked.bytes),
        &source.kind.name,
        &shown(source),
        &number(checked.lines),
        &number(loaded.inserted),
        &number(loaded.updated),
        &plan.same,
    ];
    transaction.execute(RECORD.sql(), &parameters).await?;
    Ok(())
}

/// When this very file was imported; none: it was not, or it is standard input.
pub(crate) async fn done(client: &Client, source: &Source) -> Result<Option<chrono::DateTime<chrono::Utc>>, Failure> {
    let Some(bytes) = source.bytes else { return Ok(None) };
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    let maybe: bool = client
        .query_one(MAYBE_DONE.sql(), &[&bytes, &source.kind.name])
        .await?
        .try_get(0)?;
    if !maybe {
        return Ok(None);
    }
    let Some(digest) = source.digest()? else {
        return Ok(None);
    };
    match client
        .query_opt(DONE.sql(), &[&digest.as_slice(), &source.kind.name])
        .await?
    {
        Some(row) => Ok(Some(row.try_get(0)?)),
        None => Ok(None),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
