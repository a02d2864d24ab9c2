//! Collects the errors of a file.

use std::fmt;

use super::value::Wrong;

/// An error in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    /// The line number, starting at 1.
    pub line: u64,
    /// The field, or the part of the line.
    pub field: String,
    pub wrong: Wrong,
}

impl Bad {
    pub(crate) fn of(line: u64, field: &str, wrong: Wrong) -> Self {
        Self {
            line,
            field: field.to_owned(),
            wrong,
        }
    }
}

/// The format of compilers: editors can jump to the text before the first space.
impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: ", self.line, self.field)?;
        if let Some(found) = &self.wrong.found {
            write!(f, "found {found}; ")?;
        }
        write!(f, "expected {}", self.wrong.expected)
    }
}

/// The errors of a file, up to a limit; further ones are only counted.
#[derive(Debug)]
pub(crate) struct Report {
    kept: Vec<Bad>,
    most: usize,
    left: u64,
    /// Whether reading stopped before the end of the file.
    pub(crate) is_cut: bool,
    /// Whether there are more errors than were counted.
    pub(crate) is_more: bool,
}

impl Report {
    pub(crate) fn of_at_most(most: usize) -> Self {
        Self {
            kept: Vec::new(),
            most,
            left: 0,
            is_cut: false,
            is_more: false,
        }
    }

    pub(crate) fn add(&mut self, bad: Bad) {
        if self.kept.len() < self.most {
            self.kept.push(bad);
        } else {
            self.left += 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Returns how many more errors it can hold.
    pub(crate) fn room(&self) -> usize {
        self.most - self.kept.len()
    }

    /// Returns whether this field of this line already has an error.
    pub(crate) fn has(&self, line: u64) -> bool {
        self.kept.iter().any(|bad| bad.line == line)
    }

    /// Formats the errors for people.
    pub(crate) fn message(mut self, file: &str) -> String {
        self.kept.sort_by_key(|bad| bad.line);
        let mut lines: Vec<_> = self.kept.iter().map(|bad| format!("{file}:{bad}")).collect();
        let count = self.kept.len() as u64 + self.left;
        let mut end = match count {
            1 => "one error".to_owned(),
            count if self.is_more => format!("at least {count} errors"),
            count => format!("{count} errors"),
        };
        if self.left > 0 {
            end.push_str(&format!(
                ", of which the first {} are shown (--max-errors)",
                self.kept.len()
            ));
        }
        if self.is_cut {
            end.push_str("; the rest of the file was not checked");
        }
        lines.push(format!("{file}: {end}; nothing was imported from this file"));
        lines.join("\n")
    }
}

/// The expected value for each word of a plan's problem.
pub(crate) fn expected(word: &str, one: &str) -> Wrong {
    Wrong::expected(match word {
        "missing" => "an existing one".to_owned(),
        "several" => "an ID, because several have this name".to_owned(),
        "elsewhere" => "a report of the line's organization; this one belongs to another".to_owned(),
        "taken" => format!("a value that no other {one} has"),
        "test_line" => "false, because the organization already has a test-line template".to_owned(),
        "answered" => "also the points that reports use; they cannot be removed".to_owned(),
        other => other.to_owned(),
    })
}

/// The error of a line that repeats an earlier one.
pub(crate) fn repeated(line: u64, field: &str, first: u64, one: &str) -> Bad {
    let expected = format!("a value that no other {one} of the file has; line {first} has it too");
    Bad::of(line, field, Wrong::expected(expected))
}

/// The error of a line that differs from an existing row.
pub(crate) fn differing(line: u64, fields: &[String], one: &str) -> Bad {
    let expected = format!("{one} already exists with different values; use --update to overwrite");
    Bad::of(line, &fields.join(", "), Wrong::expected(expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_told_in_their_order_and_the_others_are_counted() {
        let mut report = Report::of_at_most(2);
        for line in [7, 3, 9, 11] {
            report.add(Bad::of(line, "year", Wrong::expected("a whole number")));
        }
        assert_eq!(
            report.message("x.csv"),
            "x.csv:3: year: expected a whole number\nx.csv:7: year: expected a whole number\n\
             x.csv: 4 errors, of which the first 2 are shown (--max-errors); nothing was imported from this file"
        );
    }
}
