//! Measurements against a real database: what is recorded, what reaches a report, and who wins a race.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![expect(
    clippy::disallowed_methods,
    reason = "what a test arranges is no statement of the service"
)]

mod applying;
mod implausible;
mod matching;
mod recording;
mod replaying;
mod rounds;
mod superseding;
mod upgrading;
mod world;
