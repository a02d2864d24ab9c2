//! Sends each file that appears in a folder, for as long as it takes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use chrono::Utc;
use partner_api_client::{Answer, Call as _, Client, Code, Problem, RetryPolicy, submit_raw, types};
use partner_api_terminal::when;
use serde_json::{Value, json};

use super::package::Unfit;
use super::skipped;
use super::spool::{Claimed, End, Spool};
use crate::failure::Failure;
use crate::profile::Connect;

/// The pause after the first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause that is chosen here.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How often to look, how long a file must rest, and whether to stop when all is done.
pub(super) struct Pace {
    pub(super) settle: Duration,
    pub(super) every: Duration,
    pub(super) once: bool,
}

/// What became of an attempt.
enum Verdict {
    /// It has an answer that stands.
    Ended(End, Value, String),
    /// Nothing can be sent for the moment.
    Later(Problem),
    /// This one cannot; others may.
    Stuck(Problem),
}

pub(super) async fn run(connect: &Connect, folder: &Path, pace: Pace) -> Result<ExitCode, Failure> {
    // Attempts are made here, for as long as it takes; within one call only the clock is corrected, and one try repeated.
    let client = connect.account()?.client_with(RetryPolicy {
        attempts: 2,
        total: Duration::from_secs(60),
        ..RetryPolicy::default()
    })?;
    let spool = Spool::open(folder, pace.settle)?;
    ready(&client).await?;
    eprintln!("watching {}", folder.display());
    tokio::select! {
        ended = Watch { client, spool, pace, as_json: connect.json, stuck: BTreeMap::new() }.run() => ended,
        // Wherever it is interrupted, nothing is lost.
        () = stopped() => Ok(ExitCode::SUCCESS),
    }
}

/// A key that is refused is told at the start; a service that cannot be reached is waited for.
async fn ready(client: &Client) -> Result<(), Failure> {
    match client.get_health().send().answer().await {
        Ok(_) => Ok(()),
        Err(problem) if matches!(problem.status().map(|status| status.as_u16()), Some(401 | 403)) => {
            Err(problem.into())
        }
        Err(problem) => {
            eprintln!("{problem}; it is tried again");
            Ok(())
        }
    }
}

struct Watch {
    client: Client,
    spool: Spool,
    pace: Pace,
    as_json: bool,
    /// Files that the service failed at, and when each is tried again.
    stuck: BTreeMap<Claimed, (Instant, Duration)>,
}

impl Watch {
    async fn run(mut self) -> Result<ExitCode, Failure> {
        let mut pause = FIRST_PAUSE;
        loop {
            let waiting = self.spool.claim(Instant::now())?;
            let mut is_held_up = None;
            let files = self.spool.to_send()?;
            let left = files.len();
            let mut done = 0;
            for file in files {
                match self.attempt(&file).await? {
                    Some(Verdict::Ended(end, answer, words)) => {
                        self.spool.finish(&file, end, &answer)?;
                        self.stuck.remove(&file);
                        self.tell(&file, end, &answer, &words);
                        pause = FIRST_PAUSE;
                        done += 1;
                    }
                    Some(Verdict::Later(problem)) => {
                        let told = problem.refusal().and_then(|refusal| refusal.retry_after);
                        let wait = pause.max(told.unwrap_or_default());
                        eprintln!("{}: {problem}; it is tried again in {} s", file.name(), wait.as_secs());
                        is_held_up = Some(wait);
                        pause = (pause * 2).min(LONGEST_PAUSE);
                        break;
                    }
                    Some(Verdict::Stuck(problem)) => {
                        let wait = self
                            .stuck
                            .get(&file)
                            .map_or(FIRST_PAUSE, |(_, wait)| (*wait * 2).min(LONGEST_PAUSE));
                        eprintln!("{}: {problem}; it is tried again in {} s", file.name(), wait.as_secs());
                        self.stuck.insert(file, (Instant::now() + wait, wait));
                    }
                    None => {}
                }
            }
            if self.pace.once && !waiting && done == left {
                return Ok(ExitCode::SUCCESS);
            }
            tokio::time::sleep(is_held_up.unwrap_or(self.pace.every)).await;
        }
    }

    /// Sends a file; `None` when it is not its time.
    async fn attempt(&mut self, file: &Claimed) -> Result<Option<Verdict>, Failure> {
        let now = Instant::now();
        if self.stuck.get(file).is_some_and(|(at, _)| *at > now) {
            return Ok(None);
        }
        let package = match self.spool.read(file, now)? {
            None => return Ok(None),
            Some(Err(unfit)) => return Ok(Some(unusable(&unfit))),
            Some(Ok(package)) => package,
        };
        let external_id = package.added_id.clone();
        let sent = submit_raw(&self.client, package.body).await;
        Ok(Some(match sent {
            Ok(answer) => recorded(&answer, external_id.as_deref()),
            Err(problem) => judged(problem),
        }))
    }

    fn tell(&self, file: &Claimed, end: End, answer: &Value, words: &str) {
        let is_sent = end == End::Sent;
        if self.as_json {
            println!("{}", json!({ "file": file.name(), "sent": is_sent, "answer": answer }));
        } else {
            let end = if is_sent { "sent" } else { "refused" };
            println!("{}  {end}  {}  {words}", when::at(Utc::now()), file.name());
        }
    }
}

/// The service took it, now or before.
fn recorded(answer: &Answer<types::MeasurementResponse>, external_id: Option<&str>) -> Verdict {
    let data = &answer.data;
    let kept = json!({
        "external_id": external_id,
        "status": answer.status().as_u16(),
        "request_id": answer.request_id(),
        "at": when::at(Utc::now()),
        "answer": &**answer,
    });
    if answer.is_payload_mismatch() {
        let words = format!(
            "its external_id was used for another package before (measurement {}): give it one of its own",
            data.measurement_id
        );
        return Verdict::Ended(End::Refused, kept, words);
    }
    let mut words = format!("{}, {} points written", data.status, data.applied_points.len());
    if data.idempotent_replay {
        words = format!("{}, recorded before", data.status);
    }
    if !data.skipped_points.is_empty() {
        words = format!("{words}, skipped {}", skipped(data));
    }
    Verdict::Ended(End::Sent, kept, words)
}

/// Whether an answer is about this package, about all of them, or none at all. What the service says of a package it will say
/// again; what concerns key, quota, clock or network passes, or is mended, and then the package is sent.
fn judged(problem: Problem) -> Verdict {
    match problem.code() {
        Some(Code::InvalidRequest | Code::NotFound | Code::PayloadTooLarge) => {
            let refusal = problem.refusal();
            let answer = json!({
                "status": problem.status().map(|status| status.as_u16()),
                "request_id": problem.request_id(),
                "at": when::at(Utc::now()),
                "error": {
                    "code": problem.code().map(Code::as_str),
                    "message": refusal.map(|refusal| refusal.message.as_str()),
                },
            });
            Verdict::Ended(End::Refused, answer, problem.to_string())
        }
        Some(Code::InternalError) => Verdict::Stuck(problem),
        _ => Verdict::Later(problem),
    }
}

/// It cannot be sent at all.
fn unusable(unfit: &Unfit) -> Verdict {
    let answer = json!({ "at": when::at(Utc::now()), "error": { "code": "not_sent", "message": unfit.to_string() } });
    Verdict::Ended(End::Refused, answer, unfit.to_string())
}

/// Waits for a signal to stop.
async fn stopped() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut term) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = term.recv() => {}
            }
            return;
        }
    }
    // Where it cannot be listened for, the process ends by itself.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
