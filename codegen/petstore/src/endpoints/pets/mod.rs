//! Operations tagged `pets`.

pub mod create_pet;
pub mod delete_pet;
pub mod list_pets;
pub mod read_pet;
pub mod replace_pet;
