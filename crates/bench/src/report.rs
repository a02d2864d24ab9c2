//! The results as Markdown, and the file with the results of all runs.

use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::error::BenchError;
use crate::measure::Results;
use crate::targets::{self, Line, min_median_max};

/// The head of a new file.
const HEAD: &str = "# Benchmarks\n\n\
    `script/bench` writes the tables on this page; its `--help` explains what it measures and how. All values in a section were\n\
    measured alternately in the same run, on one machine that ran the load, the service and the database. Compare the ratios; the\n\
    absolute numbers are specific to that machine.\n\n\
    - `hello` is a minimal HTTP server without a database.\n\
    - `sql-…` is pgbench with the service's own statements.\n\
    - The sum bound of an operation is `1 / (1/admission + 1/sql + 1/hello)`.\n\
    - The peers are servers in `crates/bench/peers/` that do the same job on five of the operations.\n\
    - `script/bench --overload` measures latency at fixed rates up to twice the peak, and the memory of 10,000 connections.\n\n\
    No durability is traded for speed: `fsync` and `synchronous_commit` are on, and the log is written to a file. The benchmark\n\
    checks the status of every response, and the body of one in 64.\n";

/// The conditions of a measurement, as names and values.
pub struct Conditions(pub Vec<(&'static str, String)>);

/// Formats the conditions and the targets.
pub fn head(conditions: &Conditions, targets: &[Line]) -> String {
    let mut text = String::new();
    for (name, value) in &conditions.0 {
        line(&mut text, &format!("- {name}: {value}"));
    }
    line(
        &mut text,
        "\n| Ratio | min | median | max | target | |\n|---|--:|--:|--:|---|---|",
    );
    for target in targets {
        let [min, median, max] = target.values.map(number);
        let met = if target.met { "met" } else { "**missed**" };
        line(
            &mut text,
            &format!(
                "| {} | {min} | {median} | {max} | {} | {met} |",
                target.name, target.target
            ),
        );
    }
    text
}

/// Formats the tables.
pub fn markdown(conditions: &Conditions, results: &Results) -> String {
    let mut text = head(conditions, &targets::lines(results));
    line(
        &mut text,
        "\nRuns per second; microseconds of processor time per request of the server, PostgreSQL and the load generator;\n\
         statements and round trips per request with one connection; WAL flushes per request with all connections.\n\n\
         | | min | median | max | server | PostgreSQL | generator | statements | round trips | flushes |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    );
    for name in &results.names {
        let rates = results
            .rates
            .get(name)
            .and_then(|rates| min_median_max(rates))
            .unwrap_or_default();
        let [min, median, max] = rates.map(|rate| format!("{rate:.0}"));
        let [server, postgres, own] = match results.samples.get(name) {
            None => [String::new(), String::new(), String::new()],
            Some(samples) => [0, 1, 2].map(|part| {
                let micros: Vec<f64> = samples.iter().map(|sample| sample.micros()[part]).collect();
                min_median_max(&micros).map_or_else(String::new, |[_, median, _]| format!("{median:.0}"))
            }),
        };
        let cost = results.statement_costs.get(name);
        let shown = |value: Option<f64>| value.map_or_else(String::new, number);
        let statements = shown(cost.map(|cost| cost.statements));
        let round_trips = shown(cost.map(|cost| cost.round_trips));
        let flushes = shown(results.flushes.get(name).copied());
        line(
            &mut text,
            &format!(
                "| {name} | {min} | {median} | {max} | {server} | {postgres} | {own} | {statements} | {round_trips} | \
                 {flushes} |"
            ),
        );
    }
    for problem in &results.problems {
        line(&mut text, &format!("\nError: {problem}"));
    }
    text
}

/// Writes a section with this title to the file, and replaces an existing one.
///
/// # Errors
/// If the file cannot be read or written.
pub fn write(path: &Path, title: &str, section: &str) -> Result<(), BenchError> {
    let shown = path.display();
    let present = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => HEAD.to_owned(),
        Err(error) => return Err(BenchError::io(format!("read {shown}"))(error)),
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(BenchError::io(format!("create {}", folder.display())))?;
    }
    fs::write(path, replaced(&present, title, section)).map_err(BenchError::io(format!("write {shown}")))
}

fn replaced(present: &str, title: &str, section: &str) -> String {
    let heading = format!("## {title}\n");
    let new = format!("{heading}\n{}\n", section.trim_end());
    let Some(start) = present.find(&format!("\n{heading}")).map(|place| place + 1) else {
        return format!("{}\n\n{new}", present.trim_end());
    };
    let rest = &present[start + heading.len()..];
    match rest.find("\n## ") {
        Some(end) => format!("{}{new}{}", &present[..start], &rest[end..]),
        None => format!("{}{new}", &present[..start]),
    }
}

fn line(text: &mut String, line: &str) {
    // Writing into a String cannot fail.
    let _ = writeln!(text, "{line}");
}

/// Formats a number with as many digits as it needs; NaN is an empty cell.
pub fn number(value: f64) -> String {
    match value {
        value if value.is_nan() => String::new(),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value == value.round() => format!("{value:.0}"),
        value if value < 0.01 => format!("{value:.4}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn a_section_replaces_the_one_with_its_title_and_others_stay() {
        let one = replaced("# Head\n", "Before", "a\n");
        assert_eq!(one, "# Head\n\n## Before\n\na\n");
        let two = replaced(&one, "After", "b");
        assert_eq!(two, "# Head\n\n## Before\n\na\n\n## After\n\nb\n");
        let three = replaced(&two, "Before", "c");
        assert_eq!(three, "# Head\n\n## Before\n\nc\n\n## After\n\nb\n");
        assert_eq!(
            replaced(&three, "After", "d"),
            "# Head\n\n## Before\n\nc\n\n## After\n\nd\n"
        );
    }
}
