//! `partner certify --listen`: forwards the requests of a program to a sandbox byte for byte, makes the sandbox send the responses
//! of a [`Script`], and grades how the program reacts.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chrono::Utc;
use clap::Args;
use http::header::{HeaderValue, RETRY_AFTER};
use http::{HeaderName, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use partner_api_client::{Client, submit_raw};
use partner_api_signing::Environment;
use partner_api_terminal::names::quoted;
use partner_api_terminal::output::Output;
use partner_api_terminal::when;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::process::Command;
use tokio::sync::Notify;
use uuid::Uuid;

use super::grade::{Attempt, Evidence, Received, grade};
use super::report::{Report, StepReport};
use super::script::{Script, Step, Task};
use super::{CertifyArgs, create_report};
use crate::failure::Failure;
use crate::profile::{Account, Connect};
use crate::proxy::forward::{self, Body, Forward};
use crate::proxy::{bind, serve};

const PREFER: HeaderName = HeaderName::from_static("prefer");
/// The list that a command is told to read: a time with an offset, and a number with Turkish letters.
const LIST: &str = "/api/v1/partner/inspections?created_from=2026-01-01T00:00:00%2B03:00&report_number=ÇĞİ-2026-000482";

/// The options of `certify --listen`.
#[derive(Args, Debug)]
pub struct ListenArgs {
    /// Grade your program: forward its requests to a sandbox, force failures, and write a signed report
    #[arg(long, conflicts_with_all = ["junit", "live"])]
    pub listen: bool,
    /// With --listen: the port on 127.0.0.1; 0 selects a free one
    #[arg(long, default_value_t = 0, requires = "listen")]
    pub port: u16,
    /// With --listen: also write the report as JSON
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub report: Option<PathBuf>,
    /// With --listen: a TOML file with the steps and the responses to force
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub script: Option<PathBuf>,
    /// With --listen: how long to wait for the requests of a step
    #[arg(long, value_name = "SPAN", default_value = "5min", value_parser = when::span, requires = "listen")]
    pub wait: Duration,
    /// With --listen: how long no request may follow a rejected key
    #[arg(long, value_name = "SPAN", default_value = "10s", value_parser = when::span, requires = "listen")]
    pub quiet: Duration,
    /// With --listen: your program; it is run once for each step, with the arguments METHOD TARGET [BODY-FILE]
    #[arg(last = true, value_name = "COMMAND", requires = "listen")]
    pub command: Vec<String>,
}

/// The error with which a connection is closed, because the sandbox has closed its own.
#[derive(Debug, Error)]
#[error("the sandbox closed the connection")]
struct Dropped;

/// Forwards and records the requests of the program.
struct Recorder {
    forward: Forward,
    /// Submits the measurements that get an `external_id` before the program's.
    client: Client,
    started: Instant,
    state: Mutex<State>,
    /// Notified about each response.
    responded: Notify,
}

/// The current step and its requests so far.
#[derive(Default)]
struct State {
    step: Option<Step>,
    attempts: Vec<Attempt>,
}

impl State {
    /// Adds a request to the step, if it belongs to it. Returns its position.
    fn begin(&mut self, mut attempt: Attempt) -> Option<usize> {
        let step = self.step.as_ref()?;
        // After its key was rejected, a program must not send anything.
        let is_rejected = self.attempts.iter().any(|earlier| earlier.status() == Some(401));
        if !attempt.performs(step.task) && !is_rejected {
            return None;
        }
        let index = self.attempts.len();
        attempt.preference = step.responses.get(index).cloned();
        self.attempts.push(attempt);
        Some(index)
    }
}

pub(super) async fn run(connect: &Connect, args: &CertifyArgs, account: Account) -> Result<ExitCode, Failure> {
    let listen = &args.listen;
    if account.key_id.environment() != Environment::Test {
        return Err(Failure::Rejected(
            "--listen must have a key of a sandbox, because it forces failures; use a test key".to_owned(),
        ));
    }
    let script = Script::read(listen.script.as_deref())?;
    let files = [
        create_report(args.html.as_deref())?,
        create_report(listen.report.as_deref())?,
    ];
    let package = match listen.command.is_empty() {
        true => None,
        false => Some(super::open_report(args, &account)?),
    };
    let listener = bind(listen.port).await?;
    let base_url = format!("http://{}", listener.local_addr()?);
    let recorder = Arc::new(Recorder {
        forward: Forward::new(&account)?,
        client: account.client()?,
        started: Instant::now(),
        state: Mutex::default(),
        responded: Notify::new(),
    });
    let handle = {
        let recorder = recorder.clone();
        move |request| {
            let recorder = recorder.clone();
            async move { recorder.handle(request).await }
        }
    };
    eprintln!(
        "Send the requests of your program to {base_url} with key {}.",
        account.key_id
    );
    let session = async {
        let mut steps = Vec::new();
        let mut nonces = HashSet::new();
        for (number, step) in script.steps.iter().enumerate() {
            recorder.begin(step);
            eprintln!(
                "Step {} of {}, {}: {}.",
                number + 1,
                script.steps.len(),
                step.name,
                step.instruction()
            );
            let mut evidence = match &package {
                Some((branch, plate)) => {
                    let program = Program {
                        command: &listen.command,
                        base_url: &base_url,
                        account: &account,
                    };
                    program.run(step, branch, plate, listen.wait).await?
                }
                None => recorder.wait(listen).await,
            };
            let attempts = recorder.end();
            if package.is_none() {
                evidence.text = ask(&attempts).await?;
            }
            let checks = grade(step, &attempts, &evidence, &mut nonces);
            steps.push(StepReport::new(step.name.clone(), checks, &attempts));
        }
        Ok::<_, Failure>(steps)
    };
    let steps = tokio::select! {
        steps = session => steps?,
        () = serve(listener, handle) => Vec::new(),
    };
    let report = Report {
        service: account.base_url.clone(),
        key_id: account.key_id.to_string(),
        command: (!listen.command.is_empty()).then(|| {
            let words: Vec<_> = listen.command.iter().map(|word| quoted(word)).collect();
            words.join(" ")
        }),
        at: Report::at(Utc::now()),
        has_default_script: listen.script.is_none(),
        passed: !steps.is_empty() && steps.iter().all(StepReport::passed),
        steps,
    };
    let json = report.json(&account.secret);
    for (file, text) in files
        .into_iter()
        .zip([report.html(&account.secret), format!("{json:#}\n")])
    {
        if let Some(mut file) = file {
            file.write(text.as_bytes())?;
            file.finish()?;
        }
    }
    Output::message(&report.to_string(), &json).print(connect.json)?;
    Ok(if report.passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

impl Recorder {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, step: &Step) {
        *self.state() = State {
            step: Some(step.clone()),
            attempts: Vec::new(),
        };
    }

    /// Ends the step and returns its requests.
    fn end(&self) -> Vec<Attempt> {
        std::mem::take(&mut *self.state()).attempts
    }

    /// Waits for a final response, and after a rejected request for the time in which none may follow.
    async fn wait(&self, args: &ListenArgs) -> Evidence {
        let is_final = async {
            loop {
                let responded = self.responded.notified();
                let last = self.state().attempts.last().cloned();
                match last.filter(|attempt| !attempt.is_transient()) {
                    Some(last) => return last.status() == Some(401),
                    None => responded.await,
                }
            }
        };
        if tokio::time::timeout(args.wait, is_final).await == Ok(true) {
            tokio::time::sleep(args.quiet).await;
        }
        Evidence::default()
    }

    async fn handle(&self, request: Request<Incoming>) -> Result<Response<Body>, Dropped> {
        let arrived = self.started.elapsed();
        let mut request = match forward::read(request).await {
            Ok(request) => request,
            Err(response) => return Ok(response),
        };
        let attempt = Attempt::of(&request, arrived);
        let (method, target) = (request.method().clone(), request.uri().to_string());
        let (index, preference, is_taken) = {
            let mut state = self.state();
            let index = state.begin(attempt.clone());
            let preference = index.and_then(|index| state.attempts[index].preference.clone());
            let is_taken = index == Some(0) && state.step.as_ref().is_some_and(|step| step.id_is_taken);
            (index, preference, is_taken)
        };
        if is_taken {
            self.take_id(&attempt).await;
        }
        // The header is not signed.
        if let Some(preference) = preference.as_deref().and_then(|text| HeaderValue::from_str(text).ok()) {
            request.headers_mut().insert(PREFER, preference);
        }
        let (response, received) = match self.forward.relay(request).await {
            Ok(response) => self.received(response).await,
            Err(_) if preference.is_some_and(|preference| preference.contains("drop")) => (None, Received::default()),
            Err(error) => {
                let message = format!("failed to reach the sandbox: {error}");
                let response = forward::error_response(StatusCode::BAD_GATEWAY, &message);
                self.received(response).await
            }
        };
        let received = Received {
            at: self.started.elapsed(),
            ..received
        };
        let outcome = received
            .status
            .map_or_else(|| "connection closed".to_owned(), |status| status.to_string());
        eprintln!("{method} {target} {outcome}");
        self.record(index, received);
        response.ok_or(Dropped)
    }

    fn record(&self, index: Option<usize>, received: Received) {
        let mut state = self.state();
        if let Some(attempt) = index.and_then(|index| state.attempts.get_mut(index)) {
            attempt.response = Some(received);
        }
        drop(state);
        self.responded.notify_waiters();
    }

    /// Reads a response, so that it can be recorded and sent.
    async fn received(&self, response: Response<Body>) -> (Option<Response<Body>>, Received) {
        let (head, body) = response.into_parts();
        let Ok(body) = body.collect().await.map(http_body_util::Collected::to_bytes) else {
            return (None, Received::default());
        };
        let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        let received = Received {
            at: Duration::ZERO,
            status: Some(head.status.as_u16()),
            retry_after: header(RETRY_AFTER.as_str()).and_then(|text| text.parse().ok()),
            request_id: header("x-request-id").map(str::to_owned),
            body: serde_json::from_slice(&body).unwrap_or_default(),
        };
        let body = Full::new(body).map_err(|never| match never {}).boxed();
        (Some(Response::from_parts(head, body)), received)
    }

    /// Submits another measurement with the `external_id` of a package.
    async fn take_id(&self, attempt: &Attempt) {
        let Ok(Value::Object(mut package)) = serde_json::from_slice(&attempt.body) else {
            return;
        };
        package.insert("device_serial".to_owned(), "another-device".into());
        // If the package is invalid, the response to the program's own request says so.
        let _ = submit_raw(&self.client, Value::Object(package).to_string()).await;
    }
}

/// The program, run by its command.
struct Program<'a> {
    command: &'a [String],
    base_url: &'a str,
    account: &'a Account,
}

impl Program<'_> {
    /// Runs the program once and returns its exit code and its output.
    async fn run(&self, step: &Step, branch: &str, plate: &str, wait: Duration) -> Result<Evidence, Failure> {
        let folder = tempfile::tempdir().map_err(Failure::of(Path::new("the folder for temporary files")))?;
        let path = folder.path().join("package.json");
        let package = json!({
            "branch_code": branch,
            "plate": plate,
            "external_id": format!("certify-{}", Uuid::now_v7()),
            "device_serial": "Ölçüm hattı İ",
            "measurements": { "BRAKE_FRONT_LEFT": 2.85, "BRAKE_FRONT_RIGHT": 2.79 },
        });
        std::fs::write(&path, format!("{package:#}\n")).map_err(Failure::of(&path))?;
        let [program, arguments @ ..] = self.command else {
            return Ok(Evidence::default());
        };
        let mut command = Command::new(program);
        command.args(arguments);
        match step.task {
            Task::Measure => command
                .args(["POST", "/api/v1/partner/test-line/measurements"])
                .arg(&path),
            Task::List => command.args(["GET", LIST]),
        };
        command
            .env("PARTNER_BASE_URL", self.base_url)
            .env("PARTNER_KEY_ID", self.account.key_id.as_str())
            .env("PARTNER_SECRET", self.account.secret.expose())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = match tokio::time::timeout(wait, command.output()).await {
            Ok(output) => output.map_err(Failure::of(Path::new(program)))?,
            Err(_) => {
                eprintln!("The program was stopped because it did not end in time.");
                return Ok(Evidence::default());
            }
        };
        let text = [output.stdout, output.stderr].join(&b'\n');
        Ok(Evidence {
            exit: output.status.code(),
            text: String::from_utf8_lossy(&text).into_owned(),
        })
    }
}

/// Asks the user what the program has reported, if that cannot be seen in its requests.
async fn ask(attempts: &[Attempt]) -> Result<String, Failure> {
    let question = match attempts.last() {
        Some(last) if last.is_mismatch() => "Which external_id does your program report as not recorded?",
        Some(last) if !last.skipped().is_empty() => "Which points does your program report as skipped?",
        _ => return Ok(String::new()),
    };
    eprintln!("{question}");
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    let line = line.await.map_err(|error| Failure::Failed(error.to_string()))??;
    Ok(line.trim().to_owned())
}
