//! What is wrong with a file, told all at once.

use std::fmt;

use super::value::Wrong;

/// A line that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    /// Its number, as an editor counts.
    pub line: u64,
    /// The field, or what else of the line.
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

/// As compilers write it: what stands before the first space leads an editor to the place.
impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: ", self.line, self.field)?;
        if let Some(found) = &self.wrong.found {
            write!(f, "found {found}; ")?;
        }
        write!(f, "expected {}", self.wrong.expected)
    }
}

/// The bad lines of a file, up to a number; how many more there are is counted.
#[derive(Debug)]
pub(crate) struct Report {
    kept: Vec<Bad>,
    most: usize,
    left: u64,
    /// Whether the file was not read to its end.
    pub(crate) is_cut: bool,
    /// Whether there are more than were counted.
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

    /// How many more it would keep.
    pub(crate) fn room(&self) -> usize {
        self.most - self.kept.len()
    }

    /// Whether something is wrong with this field of this line already.
    pub(crate) fn has(&self, line: u64) -> bool {
        self.kept.iter().any(|bad| bad.line == line)
    }

    /// All of it, for people.
    pub(crate) fn told(mut self, file: &str) -> String {
        self.kept.sort_by_key(|bad| bad.line);
        let mut told: Vec<_> = self.kept.iter().map(|bad| format!("{file}:{bad}")).collect();
        let count = self.kept.len() as u64 + self.left;
        let mut end = match count {
            1 => "one mistake".to_owned(),
            count if self.is_more => format!("at least {count} mistakes"),
            count => format!("{count} mistakes"),
        };
        if self.left > 0 {
            end.push_str(&format!(
                ", of which the first {} are shown (--max-errors)",
                self.kept.len()
            ));
        }
        if self.is_cut {
            end.push_str("; what is behind the last of them was not looked at");
        }
        told.push(format!("{file}: {end}; nothing of this file was kept"));
        told.join("\n")
    }
}

/// What a word of a plan's problem, or a line that repeats another, means.
pub(crate) fn told(word: &str, one: &str) -> Wrong {
    Wrong::expected(match word {
        "missing" => "one that there is".to_owned(),
        "several" => "an id: several have this name".to_owned(),
        "elsewhere" => "a report of the line's organisation; this one is another's".to_owned(),
        "taken" => format!("one that no other {one} has"),
        "test_line" => "false: another template of the organisation is the test line's".to_owned(),
        "answered" => "also the points that reports answer: they cannot go".to_owned(),
        other => other.to_owned(),
    })
}

/// A line that says the same thing as an earlier one.
pub(crate) fn repeated(line: u64, field: &str, first: u64, one: &str) -> Bad {
    let expected = format!("one that no other {one} of the file has; line {first} has it");
    Bad::of(line, field, Wrong::expected(expected))
}

/// A line whose thing stands otherwise.
pub(crate) fn differing(line: u64, fields: &[String], one: &str) -> Bad {
    let expected = format!("what stands: there is this {one} already, and it differs; --update changes it");
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
            report.told("x.csv"),
            "x.csv:3: year: expected a whole number\nx.csv:7: year: expected a whole number\n\
             x.csv: 4 mistakes, of which the first 2 are shown (--max-errors); nothing of this file was kept"
        );
    }
}
