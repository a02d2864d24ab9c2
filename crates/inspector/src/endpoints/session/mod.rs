//! Who is at the page.

pub mod get_session;
pub mod sign_in;
pub mod sign_out;
