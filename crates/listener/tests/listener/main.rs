//! Tests of the listener over real sockets.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod crowded;
mod early;
mod handlers;
mod in_progress;
mod setup;
mod silent;
mod slow_readers;
mod tls;
