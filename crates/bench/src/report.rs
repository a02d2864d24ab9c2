//! The results as Markdown, and the file that keeps them.

use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::bars::{self, spread};
use crate::error::BenchError;
use crate::measure::Results;

/// The head of a new file.
const HEAD: &str = "# What the service costs\n\n\
    Written by `script/bench`, which says with `--help` what it measures and how. All that is compared was measured in turn in\n\
    the same run, on one machine that ran the load, the service and the database at once: the ratios are what counts, the\n\
    numbers a second are that machine's. `sql-…` is pgbench with the service's own statements, the sum bound of an operation\n\
    `1 / (1/sql + 1/hello)`. Nothing is traded for speed: `fsync` and `synchronous_commit` are on, the log goes to a file, and\n\
    every answer's status, and of one in 64 the body, is checked.\n";

/// How something was measured, line by line.
pub struct Conditions(pub Vec<(&'static str, String)>);

/// The tables.
pub fn markdown(conditions: &Conditions, results: &Results) -> String {
    let mut text = String::new();
    for (name, value) in &conditions.0 {
        line(&mut text, &format!("- {name}: {value}"));
    }
    line(
        &mut text,
        "\n| Ratio | min | median | max | bar | |\n|---|--:|--:|--:|---|---|",
    );
    for bar in bars::lines(results) {
        let [least, middle, greatest] = bar.values.map(number);
        let met = if bar.met { "met" } else { "**missed**" };
        line(
            &mut text,
            &format!(
                "| {} | {least} | {middle} | {greatest} | {} | {met} |",
                bar.name, bar.bar
            ),
        );
    }
    line(
        &mut text,
        "\nRuns a second; microseconds of processor time a request of the server, of PostgreSQL and of the load generator;\n\
         statements and round trips of one request, flushes of the write-ahead log at all connections.\n\n\
         | | min | median | max | server | PostgreSQL | generator | statements | round trips | flushes |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    );
    for name in &results.names {
        let rates = results
            .rates
            .get(name)
            .and_then(|rates| spread(rates))
            .unwrap_or_default();
        let [least, middle, greatest] = rates.map(|rate| format!("{rate:.0}"));
        let [server, postgres, own] = match results.samples.get(name) {
            None => [String::new(), String::new(), String::new()],
            Some(samples) => [0, 1, 2].map(|part| {
                let micros: Vec<f64> = samples.iter().map(|sample| sample.micros()[part]).collect();
                spread(&micros).map_or_else(String::new, |[_, middle, _]| format!("{middle:.0}"))
            }),
        };
        let anatomy = results.anatomy.get(name);
        let shown = |value: Option<f64>| value.map_or_else(String::new, number);
        let statements = shown(anatomy.map(|anatomy| anatomy.statements));
        let round_trips = shown(anatomy.map(|anatomy| anatomy.round_trips));
        let flushes = shown(results.flushes.get(name).copied());
        line(
            &mut text,
            &format!(
                "| {name} | {least} | {middle} | {greatest} | {server} | {postgres} | {own} | {statements} | {round_trips} | \
                 {flushes} |"
            ),
        );
    }
    for problem in &results.problems {
        line(&mut text, &format!("\nWrong: {problem}"));
    }
    text
}

/// Writes a section with this title into the file, in place of one that is there.
///
/// # Errors
/// The file cannot be read or written.
pub fn write(path: &Path, title: &str, section: &str) -> Result<(), BenchError> {
    let shown = path.display();
    let present = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => HEAD.to_owned(),
        Err(error) => return Err(BenchError::io(format!("read {shown}"))(error)),
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(BenchError::io(format!("make {}", folder.display())))?;
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

fn number(value: f64) -> String {
    match value {
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
    fn a_section_takes_the_place_of_the_one_of_its_title_and_others_stay() {
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
