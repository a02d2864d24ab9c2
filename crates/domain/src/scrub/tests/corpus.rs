//! The corpus: Turkish notes with and without numbers of persons, and the precision and recall that docs/privacy.md states.

use std::ops::Range;

use super::super::{REMOVED, REMOVED_IN_PDF, removed, scrub, scrub_with};

const PERSONAL: &str = include_str!("../corpus/personal.txt");
const HARMLESS: &str = include_str!("../corpus/harmless.txt");
const DOCUMENT: &str = include_str!("../../../../../docs/privacy.md");

/// A line of the corpus: a note, and the parts that must be removed from it.
struct Example {
    text: String,
    personal: Vec<Range<usize>>,
}

fn examples(file: &str) -> Vec<Example> {
    file.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(example)
        .collect()
}

fn example(line: &str) -> Example {
    let (mut text, mut personal, mut begun) = (String::new(), Vec::new(), 0);
    let mut rest = line.chars();
    while let Some(character) = rest.next() {
        match character {
            '«' => begun = text.len(),
            '»' => personal.push(begun..text.len()),
            '\\' => match rest.next() {
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some('t') => text.push('\t'),
                Some('\\') => text.push('\\'),
                Some('u') => {
                    let code: String = rest.by_ref().skip(1).take_while(|c| *c != '}').collect();
                    text.push(char::from_u32(u32::from_str_radix(&code, 16).unwrap()).unwrap());
                }
                other => panic!("{line}: unknown escape {other:?}"),
            },
            other => text.push(other),
        }
    }
    Example { text, personal }
}

/// Removed parts that are correct, removed parts that are not, and parts that were missed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Score {
    correct: usize,
    excess: usize,
    missed: usize,
}

fn score(examples: &[Example]) -> Score {
    let mut score = Score::default();
    for Example { text, personal } in examples {
        let found = removed(text);
        let correct = found.iter().filter(|span| personal.contains(span)).count();
        if correct < personal.len().max(found.len()) {
            println!("{text:?} became {:?}", scrub(text));
        }
        score.correct += correct;
        score.excess += found.len() - correct;
        score.missed += personal.len() - correct;
    }
    score
}

#[test]
fn the_corpus_has_at_least_300_notes_of_each_kind() {
    let (personal, harmless) = (examples(PERSONAL), examples(HARMLESS));
    assert!(
        personal.len() >= 300 && harmless.len() >= 300,
        "{} {}",
        personal.len(),
        harmless.len()
    );
    assert!(personal.iter().all(|example| !example.personal.is_empty()));
    assert!(harmless.iter().all(|example| example.personal.is_empty()));
}

/// PII-2
#[test]
fn precision_and_recall_on_the_corpus_are_those_in_the_document() {
    let (personal, harmless) = (examples(PERSONAL), examples(HARMLESS));
    let (found, unchanged) = (score(&personal), score(&harmless));
    let (correct, excess) = (found.correct, found.excess + unchanged.excess);
    let percent = |part: usize, of: usize| format!("{:.1} %", 100.0 * part as f64 / of as f64);
    let row = format!(
        "| {} notes with {} numbers, {} notes without | {} | {} |",
        personal.len(),
        correct + found.missed,
        harmless.len(),
        percent(correct, correct + excess),
        percent(correct, correct + found.missed),
    );
    assert!(
        DOCUMENT.contains(&row),
        "docs/privacy.md lacks the row\n{row}\n{found:?} {unchanged:?}"
    );
}

/// PII-3
#[test]
fn a_response_and_a_page_lack_the_same_numbers() {
    for Example { text, .. } in examples(PERSONAL).iter().chain(&examples(HARMLESS)) {
        assert_eq!(
            scrub_with(text, REMOVED_IN_PDF),
            scrub(text).replace(REMOVED, REMOVED_IN_PDF)
        );
    }
}
