//! Where in the file the values of the document stand.

use std::collections::BTreeMap;
use std::path::Path;

use saphyr_parser::{Event, Parser, ScanError, Span};

use crate::Problem;
use crate::error::Place;
use crate::node::escaped;

/// The line and column (both from 1) of every value, by its JSON pointer. A member stands where its name does.
#[derive(Clone, Debug, Default)]
pub struct Positions(BTreeMap<String, (usize, usize)>);

/// An object or array that is being walked.
struct Open {
    pointer: String,
    /// The index of the next item; `None` for an object.
    index: Option<usize>,
    /// In an object: the member whose value comes next.
    member: Option<String>,
}

impl Positions {
    /// Walks a YAML (or JSON) text.
    ///
    /// # Errors
    /// When it is no YAML, or names a member twice: the second would silently replace the first.
    pub fn of(path: &Path, text: &str) -> Result<Self, Problem> {
        let mut all = Positions::default();
        let mut open: Vec<Open> = Vec::new();
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|error| syntax(path, &error))?;
            match event {
                Event::MappingStart(..) => {
                    let pointer = all.value(&mut open, span);
                    open.push(Open {
                        pointer,
                        index: None,
                        member: None,
                    });
                }
                Event::SequenceStart(..) => {
                    let pointer = all.value(&mut open, span);
                    open.push(Open {
                        pointer,
                        index: Some(0),
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
                        if let Some((line, _)) = all.0.insert(pointer.clone(), at(span)) {
                            let reason = format!("`{text}` stands here twice; the first is on line {line}");
                            return Err(all.locate(path, Problem::refused(&pointer, reason)));
                        }
                    }
                    _ => {
                        all.value(&mut open, span);
                    }
                },
                // What an alias stands for is found where it was written.
                Event::Alias(_) => {
                    all.value(&mut open, span);
                }
                _ => {}
            }
        }
        Ok(all)
    }

    /// Notes that a value begins, and returns its pointer.
    fn value(&mut self, open: &mut [Open], span: Span) -> String {
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
        self.0.entry(pointer.clone()).or_insert(at(span));
        pointer
    }

    /// Adds to a refusal where its place is in the file `path`: the place itself, or the nearest around it.
    pub fn locate(&self, path: &Path, problem: Problem) -> Problem {
        match problem {
            Problem::Refused {
                place: None,
                pointer,
                reason,
            } => {
                let mut around = pointer.as_str();
                let found = loop {
                    match (self.0.get(around), around.rsplit_once('/')) {
                        (Some(found), _) => break Some(*found),
                        (None, Some((before, _))) => around = before,
                        (None, None) => break None,
                    }
                };
                let (line, column) = found.unwrap_or((1, 1));
                Problem::Refused {
                    place: Some(Place {
                        path: path.into(),
                        line,
                        column,
                    }),
                    pointer,
                    reason,
                }
            }
            other => other,
        }
    }
}

fn at(span: Span) -> (usize, usize) {
    (span.start.line(), span.start.col() + 1)
}

fn syntax(path: &Path, error: &ScanError) -> Problem {
    Problem::Syntax {
        path: path.into(),
        line: error.marker().line(),
        column: error.marker().col() + 1,
        detail: error.info().to_string(),
    }
}
