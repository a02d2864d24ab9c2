//! A copy of all reports, kept up to date.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::Stream;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::call::Call as _;
use crate::code::Code;
use crate::generated::{Client, types};
use crate::problem::Problem;

/// How many reports are asked for at once: as many as the service gives.
const PAGE: NonZeroU32 = match NonZeroU32::new(100) {
    Some(page) => page,
    None => NonZeroU32::MIN,
};

/// How far a copy has come. It is to be stored with the reports that came with it, in one transaction where there are
/// transactions: then an interrupt loses nothing, and at most the last batch is fetched again. It holds nothing secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Checkpoint {
    /// When the last run that came to its end began, by the service's clock.
    complete: Option<DateTime<Utc>>,
    /// What was open to the partner in that run.
    scope: Scope,
    /// The run that is under way.
    run: Option<Run>,
}

impl Checkpoint {
    /// When the copy was last complete, by the service's clock; `None` before the first run's end.
    pub fn complete(&self) -> Option<DateTime<Utc>> {
        self.complete
    }

    /// Whether a run was begun and has not come to its end.
    pub fn is_under_way(&self) -> bool {
        self.run.is_some()
    }

    /// The same copy, to be fetched again as a whole; what is known of it stays.
    #[must_use]
    pub fn anew(self) -> Self {
        Self::default()
    }
}

/// The organizations, and what of each decides which reports are listed and what is shown of them.
type Scope = BTreeMap<Uuid, (i32, String)>;

/// A run through what may have changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    began: DateTime<Utc>,
    scope: Scope,
    /// What changed before is known; the beginning of time in a full run.
    updated_from: DateTime<Utc>,
    cursor: Option<String>,
}

/// How [`sync`] goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncOptions {
    /// By how much a run reaches back before the beginning of the one before: what was being changed at that moment may not
    /// have been listed yet.
    pub overlap: Duration,
    /// Requests of each window of the quota that are left to whatever else uses the key.
    pub reserve: u32,
}

impl Default for SyncOptions {
    /// Ten minutes, and a tenth of the usual quota.
    fn default() -> Self {
        Self {
            overlap: Duration::from_secs(600),
            reserve: 6,
        }
    }
}

/// Some reports, and how far the copy is with them.
#[derive(Clone, Debug)]
pub struct Batch {
    /// To be stored under their ids, each in place of what was known of it. One may come several times in a run.
    pub reports: Vec<types::InspectionListItem>,
    /// To be stored with them.
    pub checkpoint: Checkpoint,
}

/// Brings a copy of all reports that are open to the partner up to date, batch by batch, to the end of one run. The first run,
/// from `Checkpoint::default()`, fetches everything, cancelled reports too; a later one what was published, archived, cancelled
/// or otherwise changed since the one before began. A run that was interrupted goes on where its last stored checkpoint says.
///
/// When the partner is granted another organization or more branches of one, or an organization's `pii_mode` changes, everything
/// is fetched again: old reports have become visible, or look different. After one branch was exchanged for another,
/// [`Checkpoint::anew`] is to be begun from, for that is not seen. A report that is *no longer* open stays in the copy.
///
/// ```no_run
/// # async fn example(client: partner_api_client::Client) -> Result<(), partner_api_client::Problem> {
/// use futures::TryStreamExt;
/// use partner_api_client::{Checkpoint, SyncOptions, sync};
/// # fn stored() -> Checkpoint { Checkpoint::default() }
/// # fn store(_: &partner_api_client::types::InspectionListItem) {}
/// # fn store_checkpoint(_: &Checkpoint) {}
///
/// let mut batches = std::pin::pin!(sync(&client, stored(), SyncOptions::default()));
/// while let Some(batch) = batches.try_next().await? {
///     batch.reports.iter().for_each(store);
///     store_checkpoint(&batch.checkpoint); // in the same transaction, where there is one
/// }
/// # Ok(())
/// # }
/// ```
pub fn sync(
    client: &Client,
    checkpoint: Checkpoint,
    options: SyncOptions,
) -> impl Stream<Item = Result<Batch, Problem>> + '_ {
    async_stream::try_stream! {
        let Checkpoint { mut complete, mut scope, run } = checkpoint;
        let mut run = match run {
            Some(run) => run,
            None => begin(client, complete, &scope, options).await?,
        };
        loop {
            let list = client.list_inspections().limit(PAGE).updated_from(run.updated_from);
            let asked = match &run.cursor {
                Some(cursor) => list.cursor(cursor.clone()),
                None => list,
            };
            let answer = match asked.send().answer().await {
                // The cursor is too old, or of another service: the list begins again, and what was seen is seen again.
                Err(problem) if run.cursor.is_some() && problem.code() == Some(&Code::InvalidRequest) => {
                    run.cursor = None;
                    continue;
                }
                answer => answer?,
            };
            let pause = answer.rate_limit().and_then(|limit| limit.pause_leaving(options.reserve));
            let page = answer.into_inner();
            run.cursor = page.page.next_cursor.filter(|_| page.page.has_more);
            let is_last = run.cursor.is_none();
            if is_last {
                complete = Some(run.began);
                scope = run.scope.clone();
            }
            let checkpoint = Checkpoint {
                complete,
                scope: scope.clone(),
                run: (!is_last).then(|| run.clone()),
            };
            yield Batch { reports: page.data, checkpoint };
            if is_last {
                break;
            }
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
            }
        }
    }
}

/// Begins a run: a full one for a new copy, or where more is open, or open in another way, than before.
async fn begin(
    client: &Client,
    complete: Option<DateTime<Utc>>,
    known: &Scope,
    options: SyncOptions,
) -> Result<Run, Problem> {
    let answer = client.list_organizations().send().answer().await?;
    // What is listed from now on changed before this, or comes in the next run.
    let began = answer.date().unwrap_or_else(Utc::now);
    let scope: Scope = answer
        .data
        .iter()
        .map(|organization| {
            let shown = (organization.branch_count, organization.pii_mode.to_string());
            (organization.id, shown)
        })
        .collect();
    let is_known = |(id, (branches, mode)): (&Uuid, &(i32, String))| {
        known
            .get(id)
            .is_some_and(|(before, mode_before)| before >= branches && mode_before == mode)
    };
    let overlap = chrono::TimeDelta::from_std(options.overlap).unwrap_or(chrono::TimeDelta::MAX);
    Ok(Run {
        began,
        updated_from: complete
            .filter(|_| scope.iter().all(is_known))
            .and_then(|complete| complete.checked_sub_signed(overlap))
            .unwrap_or(DateTime::UNIX_EPOCH),
        scope,
        cursor: None,
    })
}
