//! Operations tagged `type`.

pub mod put_photo;
