//! State shared by all operations, such as connections and settings.

/// The state that every handler receives.
#[derive(Debug, Default)]
pub struct Context {}
