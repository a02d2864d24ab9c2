//! `partner measure --watch`: submits each file that appears in a folder and retries until the service responds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use codegen_runtime::ValidationError;
use partner_api_client::{Call as _, Client, ClientInfo as _, Code, Problem, Response, RetryPolicy, submit_raw, types};
use partner_api_terminal::when;
use serde_json::{Value, json};

use super::spool::{Claimed, End, Spool};
use super::{map, skipped};
use crate::failure::{Failure, details};
use crate::platform::shutdown_signal;
use crate::profile::Connect;

/// The backoff after the first failure; it doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// The longest backoff, unless the service asks for a longer one.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// The options of a watch.
pub(super) struct Options {
    /// How long a file must be unchanged before it is sent.
    pub(super) settle: Duration,
    /// How often the folder is checked.
    pub(super) every: Duration,
    /// Whether to stop when every file has been processed.
    pub(super) once: bool,
    /// The mapping with which exports become packages.
    pub(super) mapping: Option<PathBuf>,
}

/// The result of a round over all files.
struct Round {
    /// Whether no file is left.
    is_done: bool,
    /// The pause until the next round, if a problem concerns all files.
    delay: Option<Duration>,
}

/// The result of an attempt to send a file.
enum Outcome {
    /// The file has a final response, and a message describes it.
    Finished(End, Value, String),
    /// No file can be sent at the moment.
    RetryAll(Problem),
    /// This file cannot be sent at the moment; others may.
    RetryFile(Problem),
}

pub(super) async fn run(connect: &Connect, folder: &Path, options: Options) -> Result<ExitCode, Failure> {
    // The loop below retries. The client itself only corrects its clock and repeats a call once.
    let client = connect.account()?.client_with(RetryPolicy {
        attempts: 2,
        total: Duration::from_secs(60),
        ..RetryPolicy::default()
    })?;
    let mapping = options.mapping.as_deref().map(map::load).transpose()?;
    let spool = Spool::open(folder, options.settle, mapping)?;
    check_key(&client).await?;
    eprintln!("watching {}", folder.display());
    tokio::select! {
        result = Watch {
            client,
            spool,
            options,
            as_json: connect.json,
            backoff: FIRST_BACKOFF,
            retries: BTreeMap::new(),
        }.run() => result,
        // The watch can be canceled at any await point, because the state is in the folder.
        () = shutdown_signal() => Ok(ExitCode::SUCCESS),
    }
}

/// Fails if the service rejects the key. Other failures are only logged, because the watch retries.
async fn check_key(client: &Client) -> Result<(), Failure> {
    match client.get_health().send().response().await {
        Ok(_) => Ok(()),
        Err(problem) if matches!(problem.status().map(|status| status.as_u16()), Some(401 | 403)) => {
            Err(problem.into())
        }
        Err(problem) => {
            eprintln!("{problem}; will retry");
            Ok(())
        }
    }
}

struct Watch {
    client: Client,
    spool: Spool,
    options: Options,
    as_json: bool,
    /// The pause after the next problem that concerns all files.
    backoff: Duration,
    /// Files for which the service had an internal error, with the time of the next attempt and the backoff.
    retries: BTreeMap<Claimed, (Instant, Duration)>,
}

impl Watch {
    async fn run(mut self) -> Result<ExitCode, Failure> {
        loop {
            let round = match self.round().await {
                // The disk is full or a network drive is gone. The files wait. One that was sent meanwhile is sent again with the same
                // ID.
                Err(failure @ (Failure::Failed(_) | Failure::NotFound(_))) if !self.options.once => Round {
                    is_done: false,
                    delay: Some(self.wait_for_all(&failure.to_string(), Duration::ZERO)),
                },
                round => round?,
            };
            if self.options.once && round.is_done {
                return Ok(ExitCode::SUCCESS);
            }
            tokio::time::sleep(round.delay.unwrap_or(self.options.every)).await;
        }
    }

    /// Sends the files that can be sent.
    async fn round(&mut self) -> Result<Round, Failure> {
        let ahead = TimeDelta::seconds(self.client.inner().seconds_ahead());
        let is_waiting = self.spool.claim(Instant::now(), ahead)?;
        for (export, reason) in self.spool.convert()? {
            let answer = not_sent(&reason, None);
            self.spool.finish(&export, End::Rejected, &answer)?;
            self.print(&export, End::Rejected, &answer, &reason);
        }
        let files = self.spool.to_send()?;
        let left = files.len();
        let mut done = 0;
        for file in files {
            match self.attempt(&file).await? {
                Some(Outcome::Finished(end, answer, message)) => {
                    self.spool.finish(&file, end, &answer)?;
                    self.retries.remove(&file);
                    self.print(&file, end, &answer, &message);
                    self.backoff = FIRST_BACKOFF;
                    done += 1;
                }
                Some(Outcome::RetryAll(problem)) => {
                    let retry_after = problem.rejection().and_then(|rejection| rejection.retry_after);
                    let message = format!("{}: {problem}", file.name());
                    return Ok(Round {
                        is_done: false,
                        delay: Some(self.wait_for_all(&message, retry_after.unwrap_or_default())),
                    });
                }
                Some(Outcome::RetryFile(problem)) => {
                    let wait = self
                        .retries
                        .get(&file)
                        .map_or(FIRST_BACKOFF, |(_, wait)| (*wait * 2).min(MAX_BACKOFF));
                    eprintln!("{}: {problem}; will retry in {} s", file.name(), wait.as_secs());
                    self.retries.insert(file, (Instant::now() + wait, wait));
                }
                None => {}
            }
        }
        Ok(Round {
            is_done: !is_waiting && done == left,
            delay: None,
        })
    }

    /// Prints a problem that concerns all files, and returns the pause before the next round.
    fn wait_for_all(&mut self, problem: &str, at_least: Duration) -> Duration {
        let wait = self.backoff.max(at_least);
        self.backoff = (self.backoff * 2).min(MAX_BACKOFF);
        eprintln!("{problem}; will retry in {} s", wait.as_secs());
        wait
    }

    /// Sends a file. Returns `None` if it is not yet due or may still be written.
    async fn attempt(&mut self, file: &Claimed) -> Result<Option<Outcome>, Failure> {
        let now = Instant::now();
        if self.retries.get(file).is_some_and(|(at, _)| *at > now) {
            return Ok(None);
        }
        let package = match self.spool.read(file, now)? {
            None => return Ok(None),
            Some(Err(invalid)) => {
                let message = invalid.to_string();
                let answer = not_sent(&message, invalid.error());
                return Ok(Some(Outcome::Finished(End::Rejected, answer, message)));
            }
            Some(Ok(package)) => package,
        };
        let external_id = package.added_id.clone();
        let mut sent = submit_raw(&self.client, package.body).await;
        // This machine's clock was ahead of the service's when the file was written. The time of arrival is closer to the truth.
        if package.has_added_time
            && is_time_rejected(&sent)
            && let Some(package) = self.spool.read_without_time(file)?
        {
            sent = submit_raw(&self.client, package.body).await;
        }
        Ok(Some(match sent {
            Ok(answer) => recorded(&answer, external_id.as_deref()),
            Err(problem) => classify(problem),
        }))
    }

    fn print(&self, file: &Claimed, end: End, answer: &Value, message: &str) {
        let is_sent = end == End::Sent;
        if self.as_json {
            println!("{}", json!({ "file": file.name(), "sent": is_sent, "answer": answer }));
        } else {
            let end = if is_sent { "sent" } else { "rejected" };
            println!("{}  {end}  {}  {message}", when::at(Utc::now()), file.name());
        }
    }
}

/// Returns the outcome of a successful response.
fn recorded(answer: &Response<types::MeasurementResponse>, external_id: Option<&str>) -> Outcome {
    let data = &answer.data;
    let kept = json!({
        "external_id": external_id,
        "status": answer.status().as_u16(),
        "request_id": answer.request_id(),
        "at": when::at(Utc::now()),
        "answer": &**answer,
    });
    if answer.is_payload_mismatch() {
        let message = format!(
            "its external_id was already used for another package (measurement {}); use a new one",
            data.measurement_id
        );
        return Outcome::Finished(End::Rejected, kept, message);
    }
    let mut message = format!("{}, {} points written", data.status, data.applied_points.len());
    if data.idempotent_replay {
        message = format!("{}, recorded before", data.status);
    }
    if !data.skipped_points.is_empty() {
        message = format!("{message}, skipped {}", skipped(data));
    }
    Outcome::Finished(End::Sent, kept, message)
}

/// Returns whether the service rejected `measured_at`, and nothing else.
fn is_time_rejected<T>(sent: &Result<T, Problem>) -> bool {
    let rejection = sent.as_ref().err().and_then(Problem::rejection);
    rejection.is_some_and(|rejection| {
        rejection.code == Code::InvalidRequest
            && rejection.details.len() == 1
            && rejection.field.as_deref() == Some("/measured_at")
    })
}

/// Decides whether a failed request is final, and whether a retry concerns this file or all files. A rejected package would be
/// rejected again. A problem with the key, the quota, the clock or the network affects all files until it is fixed.
fn classify(problem: Problem) -> Outcome {
    match problem.rejection() {
        Some(rejection)
            if matches!(
                rejection.code,
                Code::InvalidRequest | Code::NotFound | Code::PayloadTooLarge
            ) =>
        {
            let answer = json!({
                "status": rejection.status.as_u16(),
                "request_id": rejection.request_id,
                "at": when::at(Utc::now()),
                "error": {
                    "code": rejection.code.as_str(),
                    "message": rejection.message,
                    "field": rejection.field,
                    "details": rejection.details,
                },
            });
            Outcome::Finished(End::Rejected, answer, format!("{problem}{}", details(&problem)))
        }
        Some(rejection) if rejection.code == Code::InternalError => Outcome::RetryFile(problem),
        _ => Outcome::RetryAll(problem),
    }
}

/// Returns the content of the response file beside a file that this program rejected.
fn not_sent(message: &str, invalid: Option<&ValidationError>) -> Value {
    let detail = |error: &ValidationError| json!({ "field": error.field, "message": error.message });
    json!({
        "at": when::at(Utc::now()),
        "error": {
            "code": "not_sent",
            "message": message,
            "field": invalid.map(|error| &error.field),
            "details": invalid.map(detail).into_iter().collect::<Vec<_>>(),
        },
    })
}
