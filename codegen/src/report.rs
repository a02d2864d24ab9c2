//! The command's output: errors and notes.

use std::path::Path;

use dropshot_codegen::Problem;
use dropshot_codegen::error::Place;
use dropshot_codegen::load::Document;
use dropshot_codegen::model::{Api, Operation};
use dropshot_codegen::rejections::{Group, Left, groups};
use serde_json::{Value, json};

/// Prints errors: with `all`, every one grouped by cause, otherwise the first and a summary of the others.
pub fn rejected(mut problems: Vec<Problem>, spec: &Path, all: bool) {
    let count = problems.len();
    let advice = "`--skip-unsupported` leaves these operations out and generates the others";
    if all {
        let (groups, spec) = (groups(problems), spec.display());
        let (rejections, causes) = (counted(count, "rejection"), counted(groups.len(), "cause"));
        eprintln!("error: {rejections} in {spec}, with {causes}");
        for Group { cause, problems } in &groups {
            eprintln!("\n{} × {cause}", problems.len());
            problems.iter().for_each(|problem| eprintln!("    {problem}"));
        }
        eprintln!("\n{advice}");
        return;
    }
    let others = problems.split_off(1.min(count));
    problems.iter().for_each(|problem| eprintln!("error: {problem}"));
    if others.is_empty() {
        return;
    }
    let groups = groups(others);
    let (rejections, causes) = (counted(count - 1, "rejection"), counted(groups.len(), "cause"));
    eprintln!("and {rejections} more, with {causes}:");
    for Group { cause, problems } in &groups {
        eprintln!("{:6} × {cause}", problems.len());
    }
    eprintln!("`--all` lists every place; {advice}");
}

/// An error as JSON. Lines and columns count from 1, and the end is the place after the last character.
pub fn line(problem: &Problem) -> Value {
    let file = |place: &Place| place.path.display().to_string();
    let range = |place: &Place| {
        json!({
            "start": { "line": place.line, "column": place.column },
            "end": { "line": place.line, "column": place.column + place.length },
        })
    };
    match problem {
        Problem::Rejected { place, pointer, reason } => {
            let (file, range) = (place.as_ref().map(file), place.as_ref().map(range));
            json!({ "file": file, "range": range, "pointer": pointer, "reason": reason })
        }
        Problem::Syntax { place, detail } => json!({ "file": file(place), "range": range(place), "reason": detail }),
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
    if let Some(pointer) = dropshot_codegen::conflict(api) {
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
    for one in left {
        let id = one.id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default();
        eprintln!("left out: {} {}{id}: {}", one.method, one.path, one.reason);
    }
    eprintln!("{} of {} operations are left out", left.len(), left.len() + remaining);
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
