//! The building blocks of the sandbox's data: places, vehicles, form templates and sentences.

pub mod places;
pub mod templates;
pub mod test_line;
pub mod texts;
pub mod vehicles;
