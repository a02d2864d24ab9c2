//! `partner sync --with`: the details, forms, photos and PDFs of the copied reports.
//!
//! The table `parts` has a row for each part that was fetched, with the report's `updated_at` at that time. A part is fetched if it has no
//! row, or if its report has changed since. Each row is committed when its part is complete, so an interrupted run loses at most one.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use chrono::Utc;
use clap::ValueEnum;
use partner_api_client::{Call as _, Client, Code, Problem, Quota, RateLimit};
use partner_api_terminal::progress::Progress;
use partner_api_terminal::when;
use rusqlite::params;
use serde_json::{Value, json};

use super::store::Store;
use crate::failure::Failure;
use crate::file::{NewFile, receive};
use crate::inspections::files::{download_photos, remove_unlisted_photos};

/// The number of consecutive parts that may fail before the run ends, because the failure probably does not concern the parts.
const MAX_FAILURES: usize = 5;

/// The name of a report's PDF in its folder.
const PDF: &str = "report.pdf";

/// A part of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The whole report
    Detail,
    /// The points of its forms
    Forms,
    /// Its photos
    Photos,
    /// Its PDF, if it is published
    Pdf,
}

impl Part {
    /// Returns its name in the table.
    fn name(self) -> &'static str {
        match self {
            Self::Detail => "detail",
            Self::Forms => "forms",
            Self::Photos => "photos",
            Self::Pdf => "pdf",
        }
    }
}

/// `json` is the part as the service returned it, without links, which expire, and with the names of files; it is null if the service
/// has no such part.
const CREATE_PARTS: &str = "CREATE TABLE IF NOT EXISTS parts (report TEXT NOT NULL, part TEXT NOT NULL, \
     updated_at TEXT NOT NULL, fetched_at TEXT NOT NULL, json TEXT, PRIMARY KEY (report, part)) STRICT";
/// The reports whose part is missing or outdated. Only published reports have a PDF.
const PENDING: &str = "SELECT r.id, r.updated_at FROM reports AS r LEFT JOIN parts AS p ON p.report = r.id AND p.part = ?1 \
     WHERE p.updated_at IS NOT r.updated_at AND (?1 <> 'pdf' OR r.status = 'published')";
const SAVE: &str =
    "INSERT OR REPLACE INTO parts (report, part, updated_at, fetched_at, json) VALUES (?1, ?2, ?3, ?4, ?5)";

/// A part to fetch.
struct Pending {
    report: String,
    updated_at: String,
    part: Part,
}

/// Returns the parts to fetch, of the reports that changed last first.
fn pending(store: &Store, parts: &[Part]) -> Result<Vec<Pending>, Failure> {
    store.connection.execute(CREATE_PARTS, [])?;
    let mut pending = Vec::new();
    for part in Part::value_variants().iter().filter(|part| parts.contains(part)) {
        let mut statement = store.connection.prepare(PENDING)?;
        let rows = statement.query_map([part.name()], |row| {
            Ok(Pending {
                report: row.get(0)?,
                updated_at: row.get(1)?,
                part: *part,
            })
        })?;
        for row in rows {
            pending.push(row?);
        }
    }
    pending.sort_by(|left, right| (&right.updated_at, &right.report).cmp(&(&left.updated_at, &left.report)));
    Ok(pending)
}

/// The outcome of a run.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    complete: usize,
    missing: usize,
    failed: usize,
}

impl Fetched {
    pub(super) fn summary(&self) -> String {
        let Self {
            complete,
            missing,
            failed,
        } = self;
        let again = if *failed > 0 {
            "; run it again to fetch these"
        } else {
            ""
        };
        format!("parts: {complete} fetched, {missing} not available, {failed} failed{again}")
    }

    pub(super) fn json(&self) -> Value {
        json!({ "fetched": self.complete, "missing": self.missing, "failed": self.failed })
    }
}

/// Fetches the parts that are missing or outdated, and leaves `reserve` requests of each window to other programs.
///
/// # Errors
/// A request failed for a reason that concerns all parts, or a file or the copy could not be written.
pub(super) async fn fetch(
    client: &Client,
    store: &Store,
    parts: &[Part],
    folder: &Path,
    quota: Option<Quota>,
    reserve: u32,
) -> Result<Fetched, Failure> {
    let pending = pending(store, parts)?;
    let mut fetched = Fetched::default();
    if pending.is_empty() {
        return Ok(fetched);
    }
    let total = pending.len();
    eprintln!("{}", estimate(total, quota, reserve));
    let progress = Progress::of_lines("parts".to_owned(), total as u64);
    let mut failures = 0;
    for (done, wanted) in pending.iter().enumerate() {
        progress.at(done as u64);
        let (json, limit) = match one(client, wanted, folder).await {
            Ok((json, limit)) => {
                fetched.complete += 1;
                (Some(json), limit)
            }
            Err(Failure::Problem(problem)) if problem.code() == Some(&Code::NotFound) => {
                remove_files(wanted, folder)?;
                fetched.missing += 1;
                (None, None)
            }
            // A PDF that is not rendered yet, or a photo that cannot be downloaded.
            Err(failure) if is_own(&failure, wanted.part) && failures < MAX_FAILURES => {
                eprintln!("{} of {}: {failure}", wanted.part.name(), wanted.report);
                fetched.failed += 1;
                failures += 1;
                continue;
            }
            Err(failure) => return Err(failure),
        };
        failures = 0;
        let json = json.map(|json| json.to_string());
        let now = when::at(Utc::now());
        store.connection.execute(
            SAVE,
            params![wanted.report, wanted.part.name(), wanted.updated_at, now, json],
        )?;
        let pause = limit.and_then(|limit| limit.pause_with_reserve(reserve));
        if let Some(pause) = pause.filter(|_| done + 1 < total) {
            let (done, seconds) = (done + 1, pause.as_secs());
            eprintln!("{done} of {total} parts; the quota is used up; waiting {seconds} s");
            tokio::time::sleep(pause).await;
        }
    }
    Ok(fetched)
}

/// Returns whether a failure may concern only this part.
fn is_own(failure: &Failure, part: Part) -> bool {
    match (part, failure) {
        (Part::Photos, Failure::Failed(_) | Failure::Rejected(_)) => true,
        // A link to a photo does not work.
        (Part::Photos, Failure::Problem(problem)) => {
            problem.rejection().is_none() && problem.status().is_some_and(|status| status.is_client_error())
        }
        (Part::Pdf, Failure::Problem(problem)) => problem.code() == Some(&Code::ServiceUnavailable),
        _ => false,
    }
}

/// Removes the files of a part that the service no longer has.
fn remove_files(missing: &Pending, folder: &Path) -> Result<(), Failure> {
    let folder = folder.join(&missing.report);
    let path = folder.join(PDF);
    match missing.part {
        Part::Detail | Part::Forms => Ok(()),
        Part::Photos => remove_unlisted_photos(&folder, &[]),
        Part::Pdf => match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::of(&path)(error)),
            _ => Ok(()),
        },
    }
}

/// Fetches a part and returns it as JSON, with the remaining quota.
async fn one(client: &Client, wanted: &Pending, folder: &Path) -> Result<(Value, Option<RateLimit>), Failure> {
    let report = wanted.report.as_str();
    match wanted.part {
        Part::Detail => {
            let response = client.get_inspection().id(report).send().response().await?;
            Ok((to_json(&*response)?, response.rate_limit()))
        }
        Part::Forms => {
            let response = client.get_inspection_forms().id(report).send().response().await?;
            Ok((to_json(&*response)?, response.rate_limit()))
        }
        Part::Photos => {
            let response = client.get_inspection_photos().id(report).send().response().await?;
            let limit = response.rate_limit();
            let listed = response.into_inner().photos;
            let into = folder.join(report);
            remove_unlisted_photos(&into, &listed)?;
            let photos = match listed.is_empty() {
                true => Vec::new(),
                false => download_photos(client, report, listed, &into).await?,
            };
            let mut json = to_json(&photos)?;
            for photo in json
                .as_array_mut()
                .into_iter()
                .flatten()
                .filter_map(Value::as_object_mut)
            {
                photo.remove("url");
                photo.remove("expires_at");
            }
            Ok((json, limit))
        }
        Part::Pdf => {
            let response = client.get_inspection_pdf().id(report).send().response().await?;
            let (limit, request_id) = (response.rate_limit(), response.request_id().map(str::to_owned));
            let into = folder.join(report);
            fs::create_dir_all(&into).map_err(Failure::of(&into))?;
            let path = into.join(PDF);
            let mut file = NewFile::replacing(&path)?;
            let stream =
                futures::TryStreamExt::map_err(response.into_inner().into_inner(), |source| Problem::Transport {
                    source,
                    request_id: request_id.clone(),
                });
            let bytes = receive(&mut file, stream, |_| {}).await?;
            file.replace()?;
            Ok((json!({ "file": path, "bytes": bytes }), limit))
        }
    }
}

fn to_json<T: serde::Serialize>(value: &T) -> Result<Value, Failure> {
    serde_json::to_value(value).map_err(|error| Failure::Failed(format!("failed to serialize a part: {error}")))
}

/// Returns the number of requests and the least time that they take. A new window may begin right after the first requests.
fn estimate(requests: usize, quota: Option<Quota>, reserve: u32) -> String {
    let parts = format!("fetching {requests} parts, each with a request");
    let Some(quota) = quota else { return parts };
    let per_window = quota.requests.saturating_sub(reserve).max(1) as usize;
    let window = quota.window.as_secs();
    // Both the current window and the next one may be whole.
    let windows = requests.div_ceil(per_window).saturating_sub(2) as u64;
    let takes = match windows * window {
        0..60 => "this may take less than a minute".to_owned(),
        seconds @ 60..7200 => format!("this takes at least {} min", seconds.div_ceil(60)),
        seconds => format!("this takes at least {}.{} h", seconds / 3600, seconds % 3600 / 360),
    };
    format!(
        "{parts}; with {per_window} requests in {window} s, {takes}; an interrupted run resumes with the missing parts"
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_estimate_is_the_least_time_that_the_quota_allows() {
        let quota = Some(Quota {
            requests: 60,
            window: Duration::from_secs(60),
        });
        for (requests, reserve, words) in [
            (1, 6, "less than a minute"),
            (108, 6, "with 54 requests in 60 s, this may take less than a minute"),
            (109, 6, "at least 1 min"),
            (4000, 0, "at least 65 min"),
            (30_000, 0, "at least 8.3 h"),
            (300, 99, "with 1 requests in 60 s, this takes at least 4.9 h"),
        ] {
            let text = estimate(requests, quota, reserve);
            assert!(text.contains(words), "{text}");
        }
        assert_eq!(estimate(7, None, 0), "fetching 7 parts, each with a request");
    }
}
