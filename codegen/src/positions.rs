//! Line and column of every value in a document.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use saphyr_parser::{Event, Parser, Span};

use crate::error::{Place, Problem};
use crate::hoist::Moved;
use crate::node::{below, escaped};

/// The maximum nesting of YAML, which is the limit of serde's reader.
const MAX_YAML_DEPTH: usize = 128;

/// The maximum nesting of JSON: far beyond any real document, and well within `dropshot_codegen::STACK`.
const MAX_JSON_DEPTH: usize = 1000;

/// The place of every value, by JSON pointer. A member is located at its name.
#[derive(Clone, Debug, Default)]
pub struct Positions {
    path: PathBuf,
    places: BTreeMap<String, At>,
    /// The parts of the document that were read from other files.
    pub(crate) foreign: Vec<Foreign>,
    /// The values that were moved within the document.
    pub(crate) moved: Moved,
}

/// The line and column of a value, both from 1, and the length of its first token in characters.
type At = (usize, usize, usize);

/// A part of the document that was read from another file.
#[derive(Clone, Debug)]
pub(crate) struct Foreign {
    /// The JSON pointer of the part within the document.
    pub at: String,
    /// The JSON pointer of the part within its file.
    pub inner: String,
    /// The positions of that file.
    pub positions: Positions,
}

impl Positions {
    /// Locates the values of a YAML document.
    ///
    /// # Errors
    /// If the text is not YAML, is nested too deep, or repeats a member, in which case the second would silently replace
    /// the first.
    pub fn of(path: &Path, text: &str) -> Result<Self, Problem> {
        let mut reader = Reader::new(path, MAX_YAML_DEPTH);
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|error| {
                let marker = error.marker();
                Problem::syntax(path, (marker.line(), marker.col() + 1), error.info())
            })?;
            match event {
                Event::MappingStart(..) => reader.start(at(span), false)?,
                Event::SequenceStart(..) => reader.start(at(span), true)?,
                Event::MappingEnd | Event::SequenceEnd => drop(reader.open.pop()),
                Event::Scalar(text, ..) => reader.text(&text, at(span))?,
                // The target of an alias is located where it was first written.
                Event::Alias(_) => drop(reader.value(at(span))),
                _ => {}
            }
        }
        Ok(reader.all)
    }

    /// Locates the values of a JSON document, which must be well-formed.
    ///
    /// # Errors
    /// [`Problem::Syntax`] if it is nested too deep, or [`Problem::Rejected`] if an object repeats a member.
    pub fn of_json(path: &Path, text: &str) -> Result<Self, Problem> {
        let mut reader = Reader::new(path, MAX_JSON_DEPTH);
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
                '{' | '[' => reader.start((line, column(), 1), character == '[')?,
                '}' | ']' => drop(reader.open.pop()),
                '"' => {
                    let mut end = index + 1;
                    while let Some((at, next)) = rest.next() {
                        end = at + 1;
                        match next {
                            '\\' => drop(rest.next()),
                            '"' => break,
                            _ => {}
                        }
                    }
                    let place = (line, column(), text[index..end].chars().count());
                    let text: String = serde_json::from_str(&text[index..end]).unwrap_or_default();
                    reader.text(&text, place)?;
                }
                ',' | ':' | ' ' | '\t' | '\r' => {}
                // A number, `true`, `false` or `null`.
                _ => {
                    let mut length = 1;
                    while rest.next_if(|(_, next)| !",]} \t\r\n".contains(*next)).is_some() {
                        length += 1;
                    }
                    reader.value((line, column(), length));
                }
            }
        }
        Ok(reader.all)
    }

    /// The other files from which parts of the document were read.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.foreign.iter().map(|part| part.positions.path.as_path())
    }

    /// Adds the place in the file to an error: that of the value, or of its nearest enclosing value that has one.
    pub fn locate(&self, problem: Problem) -> Problem {
        match problem {
            Problem::Rejected {
                place: None,
                pointer,
                reason,
            } => Problem::Rejected {
                place: Some(self.place(&self.before(&pointer))),
                pointer,
                reason,
            },
            other => other,
        }
    }

    /// The original place of the value at a pointer that was moved.
    fn before(&self, pointer: &str) -> String {
        let moved = self.moved.iter();
        let moved = moved.filter_map(|(at, inner)| Some((at.len(), format!("{inner}{}", below(pointer, at)?))));
        let longest = moved.max_by_key(|(length, _)| *length);
        longest.map_or_else(|| pointer.to_string(), |(_, before)| before)
    }

    fn place(&self, pointer: &str) -> Place {
        let around = self.foreign.iter().filter(|part| below(pointer, &part.at).is_some());
        if let Some(part) = around.max_by_key(|part| part.at.len()) {
            let inner = format!("{}{}", part.inner, &pointer[part.at.len()..]);
            return part.positions.place(&inner);
        }
        let mut around = pointer;
        let (line, column, length) = loop {
            match (self.places.get(around), around.rsplit_once('/')) {
                (Some(found), _) => break *found,
                (None, Some((before, _))) => around = before,
                (None, None) => break (1, 1, 1),
            }
        };
        Place {
            path: self.path.clone(),
            line,
            column,
            length,
        }
    }
}

/// The positions of a document that is being read.
struct Reader {
    all: Positions,
    /// The objects and arrays around the next value.
    open: Vec<Open>,
    max_depth: usize,
}

/// An object or array whose members are being read.
struct Open {
    pointer: String,
    /// The index of the next item; `None` in an object.
    index: Option<usize>,
    /// In an object, the member whose value comes next.
    member: Option<String>,
}

impl Reader {
    fn new(path: &Path, max_depth: usize) -> Self {
        Reader {
            all: Positions {
                path: path.into(),
                ..Positions::default()
            },
            open: Vec::new(),
            max_depth,
        }
    }

    /// Begins an object or an array.
    fn start(&mut self, place: At, is_array: bool) -> Result<(), Problem> {
        if self.open.len() == self.max_depth {
            let detail = format!("must not be nested deeper than {} levels", self.max_depth);
            return Err(Problem::syntax(&self.all.path, (place.0, place.1), detail));
        }
        let pointer = self.value(place);
        self.open.push(Open {
            pointer,
            index: is_array.then_some(0),
            member: None,
        });
        Ok(())
    }

    /// Records a text, which is a value or the name of a member.
    fn text(&mut self, text: &str, place: At) -> Result<(), Problem> {
        match self.open.last_mut() {
            Some(object) if object.index.is_none() && object.member.is_none() => {
                let pointer = format!("{}/{}", object.pointer, escaped(text));
                object.member = Some(pointer.clone());
                if let Some((line, ..)) = self.all.places.insert(pointer.clone(), place) {
                    let reason = format!("`{text}` occurs twice; the first is on line {line}");
                    return Err(self.all.locate(Problem::rejected(&pointer, reason)));
                }
            }
            _ => drop(self.value(place)),
        }
        Ok(())
    }

    /// Records the position of a value and returns its pointer.
    fn value(&mut self, place: At) -> String {
        let pointer = match self.open.last_mut() {
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
        self.all.places.entry(pointer.clone()).or_insert(place);
        pointer
    }
}

fn at(span: Span) -> At {
    let length = match span.start.line() == span.end.line() {
        true => span.end.col().saturating_sub(span.start.col()).max(1),
        false => 1,
    };
    (span.start.line(), span.start.col() + 1, length)
}
