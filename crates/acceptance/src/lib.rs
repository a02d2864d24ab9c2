//! The six acceptance scenarios (SVC-7), run through the generated client as a device maker would, against any service: the
//! sandbox at each of its starts, and whatever a partner certifies for its way to live. [`Outcomes`] are a table, an HTML page
//! for people and a JUnit report for programs.

mod report;
mod scenarios;

pub use report::Certificate;
pub use scenarios::{Outcome, Outcomes, ScenarioError, Target, run};
