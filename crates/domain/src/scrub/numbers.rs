//! Candidates: sequences of digit groups that have the form of a national ID or a telephone number.

use std::cmp::Reverse;
use std::ops::Range;

/// The longest gap between two groups of one number.
const GAP: usize = 8;

/// The most digits of a number: `0090`, `0`, and ten digits.
const DIGITS: usize = 15;

/// How certain it is that a candidate is an ID or a telephone number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Certainty {
    /// Nothing else has this form: a prefix and the usual groups, or 11 digits without separators.
    Sure,
    /// The usual groups of a mobile number.
    Mobile,
    /// The usual groups of a landline number or an ID, which other numbers may also have.
    Usual,
    /// Only the number of digits matches.
    Doubtful,
}

/// The kind of number that a candidate may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Telephone,
    Id,
}

/// A part of the folded text that may be a number.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub certainty: Certainty,
    pub kind: Kind,
    pub span: Range<usize>,
    /// The digits without separators.
    pub digits: String,
    /// The numbers of digits before each separator.
    pub cuts: Vec<usize>,
}

/// Returns all candidates of a folded text, the most certain first.
pub(super) fn candidates(text: &str) -> Vec<Candidate> {
    let groups = groups(text);
    let mut found = Vec::new();
    for (index, first) in groups.iter().enumerate() {
        let mut digits = String::new();
        let mut cuts = Vec::new();
        let mut end = first.start;
        for group in &groups[index..] {
            if !digits.is_empty() {
                if !is_gap(&text[end..group.start]) {
                    break;
                }
                cuts.push(digits.len());
            }
            digits.push_str(&text[group.clone()]);
            end = group.end;
            if digits.len() > DIGITS {
                break;
            }
            if let Some((certainty, kind)) = classify(&digits, &cuts) {
                found.push(Candidate {
                    certainty,
                    kind,
                    span: first.start..end,
                    digits: digits.clone(),
                    cuts: cuts.clone(),
                });
            }
        }
    }
    // Of candidates that begin together, the longest comes first.
    found.sort_by_key(|candidate| (candidate.certainty, candidate.span.start, Reverse(candidate.span.end)));
    found
}

fn groups(text: &str) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    for (index, _) in text.bytes().enumerate().filter(|(_, byte)| byte.is_ascii_digit()) {
        match groups.last_mut() {
            Some(group) if group.end == index => group.end += 1,
            _ => groups.push(index..index + 1),
        }
    }
    groups
}

/// Returns whether the text between two groups of digits may be inside of a number: no letter, and no sign of an amount.
fn is_gap(text: &str) -> bool {
    text.chars().count() <= GAP
        && !text.contains(|c: char| c.is_alphanumeric() || matches!(c, '%' | '°' | '₺' | '$' | '€' | '£'))
}

fn classify(digits: &str, cuts: &[usize]) -> Option<(Certainty, Kind)> {
    if let Some(prefix) = telephone_prefix(digits) {
        let cuts: Vec<_> = cuts
            .iter()
            .filter(|cut| **cut > prefix)
            .map(|cut| cut - prefix)
            .collect();
        let is_usual = cuts.iter().all(|cut| matches!(cut, 3 | 6 | 8));
        let certainty = match (is_usual, prefix, digits.starts_with('5')) {
            (true, 1.., _) => Certainty::Sure,
            (true, 0, true) => Certainty::Mobile,
            (true, 0, false) if cuts.is_empty() || cuts.contains(&3) => Certainty::Usual,
            _ => Certainty::Doubtful,
        };
        return Some((certainty, Kind::Telephone));
    }
    (digits.len() == 11 && !digits.starts_with('0')).then(|| {
        let certainty = match cuts {
            [] => Certainty::Sure,
            [3, 6, 9] | [5] | [3, 7] => Certainty::Usual,
            _ => Certainty::Doubtful,
        };
        (certainty, Kind::Id)
    })
}

/// Returns the length of the prefix of a telephone number, whose other digits are an area code and seven digits.
fn telephone_prefix(digits: &str) -> Option<usize> {
    ["", "0", "90", "900", "0090", "00900"]
        .into_iter()
        .find(|prefix| {
            digits
                .strip_prefix(prefix)
                .is_some_and(|rest| rest.len() == 10 && rest.starts_with(['2', '3', '4', '5']))
        })
        .map(str::len)
}

impl Candidate {
    /// Returns whether the check digits of an ID are correct.
    pub fn has_valid_check_digits(&self) -> bool {
        let digits: Vec<u32> = self.digits.chars().filter_map(|c| c.to_digit(10)).collect();
        let [first @ .., tenth, eleventh] = digits.as_slice() else {
            return false;
        };
        let odd: u32 = first.iter().step_by(2).sum();
        let even: u32 = first.iter().skip(1).step_by(2).sum();
        // Adding a multiple of ten avoids a negative number.
        self.kind == Kind::Id && (odd * 7 + 100 - even) % 10 == *tenth && (odd + even + tenth) % 10 == *eleventh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_all_endings_has_the_check_digits_of_an_id() {
        for (first, last) in [
            ("100000001", "46"),
            ("123456789", "50"),
            ("190909090", "18"),
            ("202020202", "00"),
            ("555555555", "50"),
        ] {
            let is_valid = |ending: &String| {
                candidates(&format!("{first}{ending}"))
                    .iter()
                    .any(Candidate::has_valid_check_digits)
            };
            let endings = (0..100).map(|number| format!("{number:02}"));
            assert_eq!(endings.filter(is_valid).collect::<Vec<_>>(), [last], "{first}");
        }
    }
}
