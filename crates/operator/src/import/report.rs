//! Collects the errors of a file.

use std::fmt;

use super::value::CellError;

/// An error in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineError {
    /// The line number, starting at 1.
    pub line: u64,
    /// The field, or the part of the line.
    pub field: String,
    pub error: CellError,
}

impl LineError {
    pub(crate) fn of(line: u64, field: &str, error: CellError) -> Self {
        Self {
            line,
            field: field.to_owned(),
            error,
        }
    }
}

/// The format of compilers: editors can jump to the text before the first space.
impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: ", self.line, self.field)?;
        if let Some(found) = &self.error.found {
            write!(f, "found {found}; ")?;
        }
        write!(f, "expected {}", self.error.expected)
    }
}

/// The errors of a file, up to a limit; further ones are only counted.
#[derive(Debug)]
pub(crate) struct Report {
    errors: Vec<LineError>,
    max_errors: usize,
    omitted: u64,
    /// Whether reading stopped before the end of the file.
    pub(crate) is_cut: bool,
    /// Whether there are more errors than were counted.
    pub(crate) is_more: bool,
}

impl Report {
    pub(crate) fn with_limit(max_errors: usize) -> Self {
        Self {
            errors: Vec::new(),
            max_errors,
            omitted: 0,
            is_cut: false,
            is_more: false,
        }
    }

    pub(crate) fn add(&mut self, error: LineError) {
        if self.errors.len() < self.max_errors {
            self.errors.push(error);
        } else {
            self.omitted += 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// Returns how many more errors fit.
    pub(crate) fn remaining(&self) -> usize {
        self.max_errors - self.errors.len()
    }

    /// Returns whether this line already has an error.
    pub(crate) fn has(&self, line: u64) -> bool {
        self.errors.iter().any(|error| error.line == line)
    }

    /// Formats the errors for people.
    pub(crate) fn message(mut self, file: &str) -> String {
        self.errors.sort_by_key(|error| error.line);
        let mut lines: Vec<_> = self.errors.iter().map(|error| format!("{file}:{error}")).collect();
        let count = self.errors.len() as u64 + self.omitted;
        let mut end = match count {
            1 => "one error".to_owned(),
            count if self.is_more => format!("at least {count} errors"),
            count => format!("{count} errors"),
        };
        if self.omitted > 0 {
            end.push_str(&format!(
                ", of which the first {} are shown (--max-errors)",
                self.errors.len()
            ));
        }
        if self.is_cut {
            end.push_str("; the rest of the file was not checked");
        }
        lines.push(format!("{file}: {end}; nothing was imported from this file"));
        lines.join("\n")
    }
}

/// Returns the expected value for each word of a plan's problem.
pub(crate) fn expected(word: &str, one: &str) -> CellError {
    CellError::expected(match word {
        "missing" => "an existing one".to_owned(),
        "several" => "an ID, because several have this name".to_owned(),
        "elsewhere" => "a report of the line's organization; this one belongs to another".to_owned(),
        "taken" => format!("a value that no other {one} has"),
        "test_line" => "false, because the organization already has a test-line template".to_owned(),
        "answered" => "also the points that reports use; they cannot be removed".to_owned(),
        other => other.to_owned(),
    })
}

/// Returns the error of a line that repeats an earlier one.
pub(crate) fn repeated(line: u64, field: &str, first: u64, one: &str) -> LineError {
    let expected = format!("a value that no other {one} of the file has; line {first} has it too");
    LineError::of(line, field, CellError::expected(expected))
}

/// Returns the error of a line that differs from an existing row.
pub(crate) fn differing(line: u64, fields: &[String], one: &str) -> LineError {
    let expected = format!("{one} already exists with different values; use --update to overwrite");
    LineError::of(line, &fields.join(", "), CellError::expected(expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_errors_are_shown_in_order_and_the_others_are_counted() {
        let mut report = Report::with_limit(2);
        for line in [7, 3, 9, 11] {
            report.add(LineError::of(line, "year", CellError::expected("a whole number")));
        }
        assert_eq!(
            report.message("x.csv"),
            "x.csv:3: year: expected a whole number\nx.csv:7: year: expected a whole number\n\
             x.csv: 4 errors, of which the first 2 are shown (--max-errors); nothing was imported from this file"
        );
    }
}
