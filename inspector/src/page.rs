//! The page for inspectors.

use dropshot::Body;
use http::Response;
use http::request::Parts;

use crate::context::Context;

/// What is at a path that is no operation's; `None`: nothing.
pub(crate) fn answer(_context: &Context, _head: &Parts) -> Option<Response<Body>> {
    None
}
