//! Operations on the inspector's session.

pub mod get_session;
pub mod sign_in;
pub mod sign_out;
