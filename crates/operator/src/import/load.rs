//! Imports the lines of a checked file in parts: each part is a transaction with its row of the audit log.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde_json::json;
use tokio_postgres::{Client, IsolationLevel, Transaction};

use super::parallel;
use super::source::{Checked, Source};
use super::stage::Plan;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::session::{self, Actor, Changed, Session, commit};

partner_api_store::statement! {
    DONE = "SELECT imported_at FROM imports WHERE sha256 = $1 AND kind = $2 ORDER BY id DESC LIMIT 1";
    /// Whether a file of this length was imported; otherwise its hash is not needed.
    MAYBE_DONE = "SELECT EXISTS (SELECT FROM imports WHERE size_bytes = $1 AND kind = $2)";
    RECORD = "INSERT INTO imports (sha256, size_bytes, kind, file, lines, inserted, updated, unchanged) \
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
}

/// Returns the name of the file in the log, without its folder.
fn shown(source: &Source) -> &str {
    source.name.rsplit('/').next().unwrap_or(&source.name)
}

/// The progress of an import.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loaded {
    pub inserted: u64,
    pub updated: u64,
    /// The committed parts as ranges of lines; adjacent ones are merged.
    parts: BTreeMap<i64, i64>,
    /// The number of commits without a response so far.
    open: usize,
}

impl Loaded {
    /// Returns the expected result of a dry run.
    pub(crate) fn planned(plan: Plan) -> Self {
        Self {
            inserted: u64::try_from(plan.new).unwrap_or_default(),
            updated: u64::try_from(plan.changed).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Describes the committed lines, if any.
    pub(crate) fn lines(&self) -> Option<String> {
        let parts: Vec<_> = self.parts.iter().collect();
        match parts[..] {
            [] => None,
            [(1, to)] => Some(format!("its lines up to {to}")),
            _ => {
                let parts: Vec<_> = parts.iter().map(|(from, to)| format!("{from} to {to}")).collect();
                Some(format!("its lines {}", parts.join(" and ")))
            }
        }
    }

    /// Returns whether more lines may have been committed.
    pub(crate) fn is_open(&self) -> bool {
        self.open > 0
    }

    fn add(&mut self, part: Part, inserted: u64, updated: u64) {
        self.inserted += inserted;
        self.updated += updated;
        let mut merged = part;
        if let Some(to) = self.parts.remove(&(part.to + 1)) {
            merged.to = to;
        }
        if let Some((&from, _)) = self
            .parts
            .range(..part.from)
            .next_back()
            .filter(|(_, to)| **to + 1 == part.from)
        {
            merged.from = from;
        }
        self.parts.insert(merged.from, merged.to);
    }
}

/// A range of lines that are committed together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub from: i64,
    pub to: i64,
}

/// An iterator over the parts of a file, shared by the sessions.
pub(crate) struct Parts {
    next: Cell<i64>,
    last: i64,
    lines: i64,
}

impl Parts {
    pub(crate) fn take(&self) -> Option<Part> {
        let from = self.next.get();
        let to = from.saturating_add(self.lines - 1).min(self.last);
        (from <= self.last).then(|| {
            self.next.set(to + 1);
            Part { from, to }
        })
    }

    /// Stops the iteration.
    pub(crate) fn stop(&self) {
        self.next.set(self.last + 1);
    }
}

/// A file that is being imported.
pub(crate) struct Work<'w> {
    pub actor: &'w Actor,
    pub source: &'w Source,
    pub checked: &'w Checked,
    pub parts: Parts,
    /// The progress, which remains if the import fails.
    pub loaded: &'w RefCell<Loaded>,
    progress: Progress,
}

/// Imports the planned lines.
pub(crate) async fn load(
    session: &Session,
    client: &mut Client,
    source: &Source,
    checked: &Checked,
    plan: Plan,
    part: u32,
    loaded: &RefCell<Loaded>,
) -> Result<(), Failure> {
    let total = u64::try_from(plan.new + plan.changed).unwrap_or_default();
    let work = Work {
        actor: session.actor(),
        source,
        checked,
        parts: Parts {
            next: Cell::new(1),
            last: if total > 0 { checked.last } else { 0 },
            lines: i64::from(part),
        },
        loaded,
        progress: Progress::of_lines(format!("importing {}", source.name), total),
    };
    if plan.changed == 0 && source.kind.is_row_alone() && checked.last > i64::from(part) {
        parallel::load(session, client, &work).await?;
    } else {
        sequentially(client, &work, plan).await?;
    }
    let transaction = client.transaction().await?;
    let loaded = loaded.borrow().clone();
    record(&transaction, source, checked, plan, &loaded).await?;
    commit(transaction).await
}

/// Imports one part after the other in the session that has the lines.
async fn sequentially(client: &mut Client, work: &Work<'_>, plan: Plan) -> Result<(), Failure> {
    let kind = work.source.kind;
    let (inserts, updates) = (kind.inserts(), kind.updates());
    while let Some(part) = work.parts.take() {
        let transaction = begin(client).await?;
        let (mut inserted, mut updated) = (0, 0);
        if plan.new > 0 {
            for (index, statement) in inserts.iter().enumerate() {
                let count = transaction.execute(statement.as_str(), &[&part.from, &part.to]).await?;
                inserted = if index == 0 { count } else { inserted };
            }
        }
        if plan.changed > 0 {
            for statement in &updates {
                updated = transaction.execute(statement.as_str(), &[&part.from, &part.to]).await?;
            }
        }
        work.end(transaction, part, inserted, updated).await?;
    }
    Ok(())
}

/// Begins a part.
pub(crate) async fn begin(client: &mut Client) -> Result<Transaction<'_>, tokio_postgres::Error> {
    let part = client.build_transaction();
    part.isolation_level(IsolationLevel::ReadCommitted).start().await
}

impl Work<'_> {
    /// Ends a part, with its row of the audit log.
    pub(crate) async fn end(
        &self,
        transaction: Transaction<'_>,
        part: Part,
        inserted: u64,
        updated: u64,
    ) -> Result<(), Failure> {
        let Part { from, to } = part;
        let (kind, file) = (self.source.kind.name, shown(self.source));
        if inserted + updated > 0 {
            let digest = HEXLOWER.encode(&self.checked.digest);
            let what = format!(
                "Of {file} ({kind}), lines {from} to {to} of {}: {inserted} new, {updated} changed.",
                self.checked.last
            );
            let after = json!({
                "file": file, "sha256": digest, "kind": kind, "from_line": from, "to_line": to,
                "inserted": inserted, "updated": updated,
            });
            let part = Changed::of("import", digest, what, after)
                .undo("cannot be undone with a command: correct the file and import it again with --update");
            session::record_part(&transaction, self.actor, "import", &part).await?;
        }
        self.loaded.borrow_mut().open += 1;
        let ended = commit(transaction).await;
        let mut loaded = self.loaded.borrow_mut();
        if !matches!(ended, Err(Failure::Unknown)) {
            loaded.open -= 1;
        }
        ended?;
        loaded.add(part, inserted, updated);
        self.progress.at(loaded.inserted + loaded.updated);
        Ok(())
    }
}

/// Records that the file was imported.
async fn record(
    transaction: &Transaction<'_>,
    source: &Source,
    checked: &Checked,
    plan: Plan,
    loaded: &Loaded,
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

/// Returns the time when this file was imported; `None` if it was not, or is standard input.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// IMP-4
    #[test]
    fn adjacent_parts_are_described_as_one_range() {
        let mut loaded = Loaded::default();
        let mut described = Vec::new();
        for (from, to) in [(11, 20), (31, 40), (1, 10), (21, 30)] {
            loaded.add(Part { from, to }, 10, 0);
            described.push(loaded.lines().unwrap());
        }
        let expected = [
            "its lines 11 to 20",
            "its lines 11 to 20 and 31 to 40",
            "its lines 1 to 20 and 31 to 40",
            "its lines up to 40",
        ];
        assert_eq!((described, loaded.inserted), (expected.map(str::to_owned).to_vec(), 40));
    }

    #[test]
    fn each_part_is_taken_once_and_none_after_a_failure() {
        let parts = |last| Parts {
            next: Cell::new(1),
            last,
            lines: 10,
        };
        let all = parts(25);
        let taken: Vec<_> = std::iter::from_fn(|| all.take())
            .map(|part| (part.from, part.to))
            .collect();
        assert_eq!(taken, [(1, 10), (11, 20), (21, 25)]);
        let stopped = parts(25);
        assert!(stopped.take().is_some());
        stopped.stop();
        assert!(stopped.take().is_none() && parts(0).take().is_none());
    }
}
