//! Keeps a copy of all reports up to date.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::Stream;
use progenitor_client::ClientInfo as _;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::call::Call as _;
use crate::code::Code;
use crate::generated::{Client, types};
use crate::problem::Problem;
use crate::retry::PauseReason;

/// The page size: the maximum that the service allows.
const PAGE_SIZE: NonZeroU32 = match NonZeroU32::new(100) {
    Some(page) => page,
    None => NonZeroU32::MIN,
};

/// The progress of a copy. Store it with the reports of its batch, if possible in the same transaction. An interruption then loses
/// nothing, and at most the last batch is fetched again. It contains no secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Checkpoint {
    /// The start of the last completed run, by the service's clock.
    complete: Option<DateTime<Utc>>,
    /// The organizations that the partner could access in that run.
    scope: Scope,
    /// The unfinished run, if there is one.
    run: Option<Run>,
}

impl Checkpoint {
    /// Returns the time as of which the copy is complete, by the service's clock, or `None` before the end of the first run.
    pub fn complete(&self) -> Option<DateTime<Utc>> {
        self.complete
    }

    /// Returns whether a run is unfinished.
    pub fn is_in_progress(&self) -> bool {
        self.run.is_some()
    }

    /// Returns a checkpoint from which everything is fetched again.
    #[must_use]
    pub fn restart(self) -> Self {
        Self::default()
    }
}

/// The organizations, each with its number of branches and its privacy mode, which determine what is listed and how it looks.
type Scope = BTreeMap<Uuid, (i32, String)>;

/// A run over all reports that may have changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    began: DateTime<Utc>,
    scope: Scope,
    /// Reports that changed before are known. It is the UNIX epoch in a full run.
    updated_from: DateTime<Utc>,
    cursor: Option<String>,
}

/// Options of [`sync`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncOptions {
    /// How far a run reaches back before the start of the previous one. Changes that were not committed at that moment were not
    /// listed yet.
    pub overlap: Duration,
    /// The number of requests in each window of the quota that are left to other users of the key.
    pub reserve: u32,
}

impl Default for SyncOptions {
    /// An overlap of ten minutes, and a reserve of a tenth of the default quota.
    fn default() -> Self {
        Self {
            overlap: Duration::from_secs(600),
            reserve: 6,
        }
    }
}

/// Some reports, and the progress of the copy with them.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The reports. Store each under its ID and replace its previous state. A report can occur several times in a run.
    pub reports: Vec<types::InspectionListItem>,
    /// The checkpoint to store with them.
    pub checkpoint: Checkpoint,
}

/// Updates a copy of all reports that the partner can access. The stream ends with the run. The first run, from
/// `Checkpoint::default()`, fetches all reports, including cancelled ones. A later run fetches the reports that changed since the
/// start of the previous one. An interrupted run resumes from its last stored checkpoint.
///
/// If the partner gets access to another organization or to more branches, or if an organization's `pii_mode` changes, everything
/// is fetched again. The reason is that old reports became visible or look different. An exchange of one branch for another is not
/// detected: start from [`Checkpoint::restart`]. A report that is no longer accessible stays in the copy.
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
///     store_checkpoint(&batch.checkpoint); // if possible in the same transaction
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
            let list = client.list_inspections().limit(PAGE_SIZE).updated_from(run.updated_from);
            let request = match &run.cursor {
                Some(cursor) => list.cursor(cursor.clone()),
                None => list,
            };
            let response = match request.send().response().await {
                // The cursor is no longer valid, so the list starts again.
                Err(problem) if run.cursor.is_some() && problem.code() == Some(&Code::InvalidRequest) => {
                    run.cursor = None;
                    continue;
                }
                response => response?,
            };
            let pause = response.rate_limit().and_then(|limit| limit.pause_with_reserve(options.reserve));
            let page = response.into_inner();
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
                client.inner().pause(pause, PauseReason::Quota).await;
            }
        }
    }
}

/// Starts a run. It is a full run for a new copy, or if the partner can access more than before or a privacy mode has changed.
async fn begin(
    client: &Client,
    complete: Option<DateTime<Utc>>,
    known: &Scope,
    options: SyncOptions,
) -> Result<Run, Problem> {
    let response = client.list_organizations().send().response().await?;
    // Changes after this time are in the next run.
    let began = response.date().unwrap_or_else(Utc::now);
    let scope: Scope = response
        .data
        .iter()
        .map(|organization| {
            let access = (organization.branch_count, organization.pii_mode.to_string());
            (organization.id, access)
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
