//! Groups errors by cause.

use crate::error::Problem;
use crate::read::{ANNOTATIONS, KEYWORDS};

/// Errors with the same cause.
#[derive(Debug)]
pub struct Group {
    /// The cause: the message without names that differ from place to place.
    pub cause: String,
    /// The errors, in document order.
    pub problems: Vec<Problem>,
}

/// Groups errors by cause, the most frequent first.
pub fn groups(problems: Vec<Problem>) -> Vec<Group> {
    let mut all: Vec<Group> = Vec::new();
    for problem in problems {
        let cause = match &problem {
            Problem::Rejected { reason, .. } => cause(reason),
            other => other.to_string(),
        };
        match all.iter_mut().find(|group| group.cause == cause) {
            Some(group) => group.problems.push(problem),
            None => all.push(Group {
                cause,
                problems: vec![problem],
            }),
        }
    }
    all.sort_by_key(|group| std::cmp::Reverse(group.problems.len()));
    all
}

/// Words of OpenAPI that are not schema keywords. They are part of the cause rather than names of the document.
const WORDS: &str = "allowEmptyValue allowReserved binary byte callbacks components content date date-time \
                     decimal explode head links mapping operationId options parameters patternProperties requestBody \
                     responses schema security servers style summary tags trace";

fn is_word(text: &str) -> bool {
    let mut words = WORDS.split(' ').chain(KEYWORDS).chain(ANNOTATIONS);
    words.any(|word| word == text) || text.starts_with("x-")
}

fn cause(reason: &str) -> String {
    let mut out = String::new();
    for (index, piece) in reason.split('`').enumerate() {
        if index % 2 == 0 {
            // Pointers are not quoted.
            let words = piece
                .split(' ')
                .map(|word| if word.starts_with("#/") { "…" } else { word });
            out += &words.collect::<Vec<_>>().join(" ");
            continue;
        }
        let first = piece.split([':', ' ']).next().unwrap_or_default();
        let is_media_type = !piece.starts_with('/') && piece.contains('/') && !piece.contains(['{', '#', ' ']);
        let is_keyword = is_word(first) || first.ends_with("XX");
        out += &match is_media_type || is_keyword {
            true => format!("`{piece}`"),
            false => "…".into(),
        };
    }
    out
}
