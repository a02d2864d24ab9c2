//! Tests of the program `partner`. Each test starts its own service, which needs Unix.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod certify;
mod gateway;
mod listen;
mod manual;
mod map;
mod measure;
mod profiles;
mod program;
mod proxy;
mod read;
mod sign;
mod sync;
mod trial;
mod watch;
