//! The operations, with one file each. `generated::dispatch` calls them.

pub mod get_health;
pub mod pets;
pub mod r#type;
