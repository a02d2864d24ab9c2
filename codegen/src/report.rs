//! The command's output: progress, errors and notes.

use std::path::Path;

use dropshot_codegen::load::Document;
use dropshot_codegen::model::{Api, Operation};
use dropshot_codegen::rejections::{Group, Left, groups};
use dropshot_codegen::{Problem, lint};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

/// The current step, shown on a terminal while it runs.
pub struct Progress(ProgressBar);

impl Progress {
    /// Shows nothing before the first step, or if standard error is not a terminal.
    pub fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        Progress(bar)
    }

    /// Shows the next step.
    pub fn step(&self, what: impl Into<String>) {
        self.0.set_message(what.into());
    }

    /// Clears the line after the last step.
    pub fn done(&self) {
        self.0.finish_and_clear();
    }
}

/// Prints errors: with `all`, every one grouped by cause, otherwise the first and a summary of the others.
pub fn rejected(mut problems: Vec<Problem>, spec: &Path, all: bool) {
    let count = problems.len();
    if all {
        let groups = groups(problems);
        eprintln!(
            "error: {} in {}, with {}",
            counted(count, "rejection"),
            spec.display(),
            counted(groups.len(), "cause")
        );
        for Group { cause, problems } in &groups {
            eprintln!("\n{} × {cause}", problems.len());
            for problem in problems {
                eprintln!("    {problem}");
            }
        }
        eprintln!("\n`--skip-unsupported` leaves these operations out and generates the others");
        return;
    }
    let others = problems.split_off(1.min(count));
    for problem in &problems {
        eprintln!("error: {problem}");
    }
    if others.is_empty() {
        return;
    }
    let groups = groups(others);
    eprintln!(
        "and {} more, with {}:",
        counted(count - 1, "rejection"),
        counted(groups.len(), "cause")
    );
    for Group { cause, problems } in &groups {
        eprintln!("{:6} × {cause}", problems.len());
    }
    eprintln!("`--all` lists every place; `--skip-unsupported` leaves these operations out and generates the others");
}

/// An error as JSON. Lines and columns count from 1, and the end is the place after the last character.
pub fn line(problem: &Problem) -> Value {
    match problem {
        Problem::Rejected { place, pointer, reason } => {
            let range = place.as_ref().map(|place| {
                json!({
                    "start": { "line": place.line, "column": place.column },
                    "end": { "line": place.line, "column": place.column + place.length },
                })
            });
            let file = place.as_ref().map(|place| place.path.display().to_string());
            json!({ "file": file, "range": range, "pointer": pointer, "reason": reason })
        }
        Problem::Syntax {
            path,
            line,
            column,
            detail,
        } => json!({
            "file": path.display().to_string(),
            "range": { "start": { "line": line, "column": column }, "end": { "line": line, "column": column + 1 } },
            "reason": detail,
        }),
        Problem::Io { path, source } => json!({ "file": path.display().to_string(), "reason": source.to_string() }),
        other => json!({ "reason": other.to_string() }),
    }
}

/// Prints that the server sends webhooks and callbacks itself.
pub fn own_requests(document: &Document) {
    if let [first, others @ ..] = document.own_requests.as_slice() {
        let more = match others.len() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        eprintln!("note: nothing is generated for webhooks and callbacks, which the server sends: {first}{more}");
    }
}

/// Prints that Dropshot's router does not support the paths, so its trait is not generated.
pub fn without_trait(api: &Api) {
    if let Some(Problem::Rejected { pointer, .. }) = lint::conflicts(&api.operations).into_iter().next() {
        eprintln!(
            "note: `api.rs` and `dispatch.rs` are not generated, because Dropshot's router does not support {pointer}"
        );
    }
}

/// Prints the names of operations that have no `operationId`.
pub fn unnamed(api: &Api) {
    for Operation { method, path, id, .. } in api.operations.iter().filter(|operation| operation.is_unnamed) {
        eprintln!("note: {method} {path} has no operationId; using `{id}`");
    }
}

/// Prints which operations were left out, and how many remain.
pub fn left_out(left: &[Left], remaining: usize) {
    for Left {
        method,
        path,
        id,
        reason,
    } in left
    {
        let id = id.as_deref().map(|id| format!(" ({id})")).unwrap_or_default();
        eprintln!("left out: {method} {path}{id}: {reason}");
    }
    eprintln!("{} of {} operations are left out", left.len(), left.len() + remaining);
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
