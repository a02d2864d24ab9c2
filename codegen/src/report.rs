//! The command's output: progress, errors and notes.

use std::path::Path;

use codegen::Problem;
use codegen::model::{Api, Operation};
use codegen::refusals::{Group, Left, groups};
use indicatif::{ProgressBar, ProgressStyle};

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
pub fn refused(mut problems: Vec<Problem>, spec: &Path, all: bool) {
    let count = problems.len();
    if all {
        let groups = groups(problems);
        eprintln!(
            "error: {} in {}, with {}",
            refusals(count),
            spec.display(),
            causes(groups.len())
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
    eprintln!("and {} more, with {}:", refusals(count - 1), causes(groups.len()));
    for Group { cause, problems } in &groups {
        eprintln!("{:6} × {cause}", problems.len());
    }
    eprintln!("`--all` lists every place; `--skip-unsupported` leaves these operations out and generates the others");
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

fn refusals(count: usize) -> String {
    format!("{count} refusal{}", if count == 1 { "" } else { "s" })
}

fn causes(count: usize) -> String {
    format!("{count} cause{}", if count == 1 { "" } else { "s" })
}
