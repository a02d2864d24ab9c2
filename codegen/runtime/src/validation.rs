//! Validation errors of a request, with their places.

use std::fmt;

/// The maximum number of errors that are reported.
pub const MAX_ERRORS: usize = 20;

/// A validation error in one place of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationError {
    /// The place, for programs: a JSON pointer into the body (RFC 6901; empty for the body itself), or the name of a
    /// parameter or header.
    pub field: String,
    /// The place, for messages: `measurements.A`, `list[2]`, `body` or `limit`.
    pub name: String,
    /// The problem and the expected value, as a sentence fragment. It may quote the request.
    pub message: String,
}

impl ValidationError {
    /// An error at a place in the body.
    pub fn in_body(path: &Path, message: impl Into<String>) -> Self {
        ValidationError {
            field: path.pointer(),
            name: path.to_string(),
            message: message.into(),
        }
    }

    /// An error in a member of the body.
    pub fn of_member(name: &str, message: impl Into<String>) -> Self {
        Self::in_body(&Path::default().member(name), message)
    }

    /// An error in a parameter or header.
    pub fn of_parameter(name: &str, message: impl Into<String>) -> Self {
        ValidationError {
            field: name.to_string(),
            name: name.to_string(),
            message: message.into(),
        }
    }
}

impl fmt::Display for ValidationError {
    /// `measurements.A: must be a number`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.message)
    }
}

/// The validation errors of a request: at least one, and at most [`MAX_ERRORS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationErrors {
    first: ValidationError,
    others: Vec<ValidationError>,
    is_cut: bool,
}

impl ValidationErrors {
    /// Collects errors; `None` if there are none.
    pub fn of(errors: impl IntoIterator<Item = ValidationError>) -> Option<Self> {
        let mut errors = errors.into_iter();
        let mut all = ValidationErrors::from(errors.next()?);
        errors.for_each(|error| all.push(error));
        Some(all)
    }

    /// Adds an error. After [`MAX_ERRORS`] errors, it only records that there are more.
    pub fn push(&mut self, error: ValidationError) {
        match self.others.len() + 1 < MAX_ERRORS {
            true => self.others.push(error),
            false => self.is_cut = true,
        }
    }

    /// The first error.
    pub fn first(&self) -> &ValidationError {
        &self.first
    }

    /// The errors that are reported, starting with the first.
    pub fn iter(&self) -> impl Iterator<Item = &ValidationError> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Whether there are more errors than those that are reported.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Whether there is an error at this place.
    pub fn has(&self, field: &str) -> bool {
        self.iter().any(|error| error.field == field)
    }
}

impl From<ValidationError> for ValidationErrors {
    fn from(first: ValidationError) -> Self {
        ValidationErrors {
            first,
            others: Vec::new(),
            is_cut: false,
        }
    }
}

impl fmt::Display for ValidationErrors {
    /// All reported errors, separated by semicolons.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        self.others.iter().try_for_each(|error| write!(f, "; {error}"))
    }
}

impl std::error::Error for ValidationErrors {}

/// A place in a JSON document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    Item(usize),
}

impl Path {
    /// The place of a member of the object at this place.
    #[must_use]
    pub fn member(&self, name: &str) -> Self {
        self.and(Step::Member(name.to_string()))
    }

    /// The place of an item of the array at this place.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        self.and(Step::Item(index))
    }

    fn and(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Path(steps)
    }

    /// The JSON pointer. Overlong names are shortened.
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
    /// `list[2].name`, or `body` for the document itself.
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

/// A name, shortened if it is overlong.
fn cut(name: &str) -> String {
    const MAX_LENGTH: usize = 128;
    match name.char_indices().nth(MAX_LENGTH) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_string(),
    }
}
