//! The program `partner`, as a partner runs it, against a service of each test's own.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod certify;
mod gateway;
mod manual;
mod measure;
mod profiles;
mod program;
mod proxy;
mod read;
mod sign;
mod sync;
mod trial;
mod watch;
