//! The listener by itself, over real sockets: what holds on is let go, and what asks is answered.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod crowded;
mod early;
mod handlers;
mod setup;
mod silent;
mod takers;
mod tls;
