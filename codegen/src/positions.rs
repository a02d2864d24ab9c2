//! Line and column of every value in a document.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use saphyr_parser::{Event, Parser, ScanError, Span};

use crate::error::Place;
use crate::error::Problem;
use crate::hoist::Moved;
use crate::node::{below, escaped};

/// The place of every value, by JSON pointer. A member is located at its name.
#[derive(Clone, Debug, Default)]
pub struct Positions(BTreeMap<String, At>, Vec<Foreign>, Moved);

/// The line and column of a value, both from 1, and the length of its first token in characters.
type At = (usize, usize, usize);

/// A part of the document that was read from another file.
#[derive(Clone, Debug)]
pub struct Foreign {
    /// The JSON pointer of the part within the document.
    pub at: String,
    /// The file.
    pub path: PathBuf,
    /// The JSON pointer of the part within its file.
    pub inner: String,
    /// The positions of that file.
    pub positions: Positions,
}

/// An object or array whose members are being read.
struct Open {
    pointer: String,
    /// The index of the next item; `None` in an object.
    index: Option<usize>,
    /// In an object, the member whose value comes next.
    member: Option<String>,
}

impl Positions {
    /// Locates the values of a YAML document.
    ///
    /// # Errors
    /// If the text is not YAML, nests deeper than [`MAX_YAML_DEPTH`], or repeats a member, in which case the second would
    /// silently replace the first.
    pub fn of(path: &Path, text: &str) -> Result<Self, Problem> {
        let mut all = Positions::default();
        let mut open: Vec<Open> = Vec::new();
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|error| syntax(path, &error))?;
            if open.len() > MAX_YAML_DEPTH {
                let (line, column, _) = at(span);
                return Err(too_deep(path, line, column, MAX_YAML_DEPTH));
            }
            match event {
                Event::MappingStart(..) | Event::SequenceStart(..) => {
                    let pointer = all.value(&mut open, span);
                    open.push(Open {
                        pointer,
                        index: matches!(event, Event::SequenceStart(..)).then_some(0),
                        member: None,
                    });
                }
                Event::MappingEnd | Event::SequenceEnd => {
                    open.pop();
                }
                Event::Scalar(text, ..) => match open.last_mut() {
                    Some(object) if object.index.is_none() && object.member.is_none() => {
                        let pointer = format!("{}/{}", object.pointer, escaped(&text));
                        object.member = Some(pointer.clone());
                        all.member(path, pointer, &text, at(span))?;
                    }
                    _ => {
                        all.value(&mut open, span);
                    }
                },
                // The target of an alias is located where it was first written.
                Event::Alias(_) => {
                    all.value(&mut open, span);
                }
                _ => {}
            }
        }
        Ok(all)
    }

    /// Locates the values of a JSON document, which must be well-formed.
    ///
    /// # Errors
    /// If an object repeats a member.
    pub fn of_json(path: &Path, text: &str) -> Result<Self, Problem> {
        let mut all = Positions::default();
        let mut open: Vec<Open> = Vec::new();
        let (mut line, mut began) = (1, 0);
        let mut rest = text.char_indices().peekable();
        // Columns count characters, not bytes. Counting resumes from the last position, because a minified document is
        // one long line.
        let mut counted = (0, 0);
        while let Some((index, character)) = rest.next() {
            let mut column = || {
                let from = if counted.0 < began { (began, 0) } else { counted };
                counted = (index, from.1 + text[from.0..index].chars().count());
                counted.1 + 1
            };
            match character {
                '\n' => (line, began) = (line + 1, index + 1),
                '{' | '[' => {
                    let pointer = all.value_at(&mut open, (line, column(), 1));
                    open.push(Open {
                        pointer,
                        index: (character == '[').then_some(0),
                        member: None,
                    });
                }
                '}' | ']' => {
                    open.pop();
                }
                '"' => {
                    let (column, start) = (column(), index);
                    let mut end = index + 1;
                    while let Some((at, next)) = rest.next() {
                        end = at + 1;
                        match next {
                            '\\' => drop(rest.next()),
                            '"' => break,
                            _ => {}
                        }
                    }
                    let place = (line, column, text[start..end].chars().count());
                    match open.last_mut() {
                        Some(object) if object.index.is_none() && object.member.is_none() => {
                            let name: String = serde_json::from_str(&text[index..end]).unwrap_or_default();
                            let pointer = format!("{}/{}", object.pointer, escaped(&name));
                            object.member = Some(pointer.clone());
                            all.member(path, pointer, &name, place)?;
                        }
                        _ => drop(all.value_at(&mut open, place)),
                    }
                }
                ',' | ':' | ' ' | '\t' | '\r' => {}
                // A number, `true`, `false` or `null`.
                _ => {
                    let column = column();
                    let mut length = 1;
                    while rest.next_if(|(_, next)| !",]} \t\r\n".contains(*next)).is_some() {
                        length += 1;
                    }
                    all.value_at(&mut open, (line, column, length));
                }
            }
        }
        Ok(all)
    }

    fn member(&mut self, path: &Path, pointer: String, name: &str, place: At) -> Result<(), Problem> {
        match self.0.insert(pointer.clone(), place) {
            None => Ok(()),
            Some((line, ..)) => {
                let reason = format!("`{name}` occurs twice; the first is on line {line}");
                Err(self.locate(path, Problem::rejected(&pointer, reason)))
            }
        }
    }

    /// Records the position of a value and returns its pointer.
    fn value(&mut self, open: &mut [Open], span: Span) -> String {
        self.value_at(open, at(span))
    }

    fn value_at(&mut self, open: &mut [Open], place: At) -> String {
        let pointer = match open.last_mut() {
            None => "#".to_string(),
            Some(Open {
                pointer,
                index: Some(index),
                ..
            }) => {
                *index += 1;
                format!("{pointer}/{}", *index - 1)
            }
            Some(object) => object.member.take().unwrap_or_default(),
        };
        self.0.entry(pointer.clone()).or_insert(place);
        pointer
    }

    /// Adds a part that was read from another file.
    pub fn add(&mut self, part: Foreign) {
        self.1.push(part);
    }

    /// Records values that were moved within the document.
    pub fn moved(&mut self, moved: Moved) {
        self.2 = moved;
    }

    /// The original place of the value at a pointer that was moved.
    fn before(&self, pointer: &str) -> String {
        let moved = self
            .2
            .iter()
            .filter_map(|(at, inner)| Some((at.len(), format!("{inner}{}", below(pointer, at)?))));
        moved
            .max_by_key(|(length, _)| *length)
            .map_or_else(|| pointer.to_string(), |(_, before)| before)
    }

    /// The other files from which parts of the document were read.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.1.iter().map(|part| part.path.as_path())
    }

    /// Whether parts of the document were read from other files.
    pub fn are_of_several_files(&self) -> bool {
        !self.1.is_empty()
    }

    /// The part from another file that contains the pointer, and the pointer within that file.
    fn foreign(&self, pointer: &str) -> Option<(&Foreign, String)> {
        let around = self.1.iter().filter(|part| below(pointer, &part.at).is_some());
        let part = around.max_by_key(|part| part.at.len())?;
        Some((part, format!("{}{}", part.inner, &pointer[part.at.len()..])))
    }

    /// Adds the place in the file to an error: that of the value, or of its nearest enclosing value that has one.
    pub fn locate(&self, path: &Path, problem: Problem) -> Problem {
        match problem {
            Problem::Rejected {
                place: None,
                pointer,
                reason,
            } => {
                let before = self.before(&pointer);
                if let Some((part, there)) = self.foreign(&before) {
                    let located = part.positions.locate(&part.path, Problem::rejected(&there, ""));
                    let place = match located {
                        Problem::Rejected { place, .. } => place,
                        _ => None,
                    };
                    return Problem::Rejected { place, pointer, reason };
                }
                let mut around = before.as_str();
                let found = loop {
                    match (self.0.get(around), around.rsplit_once('/')) {
                        (Some(found), _) => break Some(*found),
                        (None, Some((before, _))) => around = before,
                        (None, None) => break None,
                    }
                };
                let (line, column, length) = found.unwrap_or((1, 1, 1));
                Problem::Rejected {
                    place: Some(Place {
                        path: path.into(),
                        line,
                        column,
                        length,
                    }),
                    pointer,
                    reason,
                }
            }
            other => other,
        }
    }
}

/// The maximum nesting of YAML, which is the limit of serde's reader.
pub const MAX_YAML_DEPTH: usize = 128;

/// The maximum nesting of JSON: far beyond any real document, and well within `dropshot_codegen::STACK`.
pub const MAX_JSON_DEPTH: usize = 1000;

/// The error for a document that nests deeper than `max_depth`.
pub fn too_deep(path: &Path, line: usize, column: usize, max_depth: usize) -> Problem {
    Problem::Syntax {
        path: path.into(),
        line,
        column,
        detail: format!("must not be nested deeper than {max_depth} levels"),
    }
}

/// The line and column where a JSON text first nests deeper than `max_depth`.
pub fn first_deeper_than(text: &str, max_depth: usize) -> Option<(usize, usize)> {
    let (mut line, mut column, mut depth) = (1, 0, 0_usize);
    let (mut in_text, mut is_escaped) = (false, false);
    for character in text.chars() {
        column += 1;
        match character {
            '\n' => (line, column) = (line + 1, 0),
            _ if is_escaped => is_escaped = false,
            '\\' if in_text => is_escaped = true,
            '"' => in_text = !in_text,
            '{' | '[' if !in_text => depth += 1,
            '}' | ']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > max_depth {
            return Some((line, column));
        }
    }
    None
}

fn at(span: Span) -> At {
    let is_of_one_line = span.start.line() == span.end.line();
    let length = span.end.col().saturating_sub(span.start.col()).max(1);
    (
        span.start.line(),
        span.start.col() + 1,
        if is_of_one_line { length } else { 1 },
    )
}

fn syntax(path: &Path, error: &ScanError) -> Problem {
    Problem::Syntax {
        path: path.into(),
        line: error.marker().line(),
        column: error.marker().col() + 1,
        detail: error.info().to_string(),
    }
}
