//! How measurements are recorded and applied to reports.

mod applying;
mod implausible;
mod matching;
mod mismatches;
mod recording;
mod rounds;
mod superseding;
