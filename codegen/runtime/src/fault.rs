//! What is wrong with a request, place by place.

use std::fmt;

/// How many faults are told at once; of more, the number.
pub const MOST: usize = 20;

/// What is wrong in one place of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The place, for programs: a JSON pointer into the body (RFC 6901; empty for the body itself), or the name of a
    /// parameter or header.
    pub field: String,
    /// The place as a sentence begins with it: `measurements.A`, `list[2]`, `body`, `limit`.
    pub name: String,
    /// What is wrong there and what would be right: a fragment, which may quote a part of the request.
    pub message: String,
}

impl Fault {
    /// At a place of the body.
    pub fn in_body(path: &Path, message: impl Into<String>) -> Self {
        Fault {
            field: path.pointer(),
            name: path.to_string(),
            message: message.into(),
        }
    }

    /// At a member of the object that the body is.
    pub fn of_member(name: &str, message: impl Into<String>) -> Self {
        Self::in_body(&Path::default().member(name), message)
    }

    /// Of a parameter or a header.
    pub fn of_parameter(name: &str, message: impl Into<String>) -> Self {
        Fault {
            field: name.to_string(),
            name: name.to_string(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Fault {
    /// `measurements.A: must be a number`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.message)
    }
}

/// The faults of a request, of which at least one is kept, and at most [`MOST`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    first: Fault,
    others: Vec<Fault>,
    untold: usize,
}

impl Faults {
    /// These faults; `None` without any.
    pub fn of(faults: impl IntoIterator<Item = Fault>) -> Option<Self> {
        let mut faults = faults.into_iter();
        let mut all = Faults::from(faults.next()?);
        faults.for_each(|fault| all.push(fault));
        Some(all)
    }

    /// Adds one; beyond [`MOST`] it is only counted.
    pub fn push(&mut self, fault: Fault) {
        match self.others.len() + 1 < MOST {
            true => self.others.push(fault),
            false => self.untold += 1,
        }
    }

    /// The first.
    pub fn first(&self) -> &Fault {
        &self.first
    }

    /// Those that are told, the first among them.
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// How many there are, told or not.
    pub fn count(&self) -> usize {
        1 + self.others.len() + self.untold
    }

    /// Whether something is wrong in this place.
    pub fn has(&self, field: &str) -> bool {
        self.iter().any(|fault| fault.field == field)
    }
}

impl From<Fault> for Faults {
    fn from(first: Fault) -> Self {
        Faults {
            first,
            others: Vec::new(),
            untold: 0,
        }
    }
}

impl fmt::Display for Faults {
    /// All that are told, one after the other.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        self.others.iter().try_for_each(|fault| write!(f, "; {fault}"))
    }
}

impl std::error::Error for Faults {}

/// A place in a JSON document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    Item(usize),
}

impl Path {
    /// The member of this name of the object here.
    #[must_use]
    pub fn member(&self, name: &str) -> Self {
        self.and(Step::Member(name.to_string()))
    }

    /// The item with this index of the array here.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        self.and(Step::Item(index))
    }

    fn and(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Path(steps)
    }

    /// The JSON pointer; a name that somebody sent at such length that no document has it is cut.
    pub fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.0 {
            pointer.push('/');
            match step {
                Step::Member(name) => pointer.push_str(&cut(name).replace('~', "~0").replace('/', "~1")),
                Step::Item(index) => pointer.push_str(&index.to_string()),
            }
        }
        pointer
    }
}

impl fmt::Display for Path {
    /// `list[2].name`; `body` for the document itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("body");
        }
        for (depth, step) in self.0.iter().enumerate() {
            match step {
                Step::Item(index) if depth == 0 => write!(f, "body[{index}]")?,
                Step::Item(index) => write!(f, "[{index}]")?,
                Step::Member(name) => {
                    let dot = if depth == 0 { "" } else { "." };
                    let is_plain = |c: char| c.is_alphanumeric() || "_-$@".contains(c);
                    match !name.is_empty() && name.chars().all(is_plain) {
                        true => write!(f, "{dot}{}", cut(name))?,
                        false => write!(f, "{dot}{:?}", cut(name))?,
                    }
                }
            }
        }
        Ok(())
    }
}

/// A name as a place may quote it.
fn cut(name: &str) -> String {
    const LONGEST: usize = 128;
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_string(),
    }
}
