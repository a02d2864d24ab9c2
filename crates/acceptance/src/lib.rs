//! The six acceptance scenarios (SVC-7), which run against any service through the generated client.
//!
//! The sandbox runs them at each start, and partners run them before they go live. The [`Outcomes`] can be printed as a table, and a
//! [`Certificate`] writes them as an HTML page or a JUnit report.

mod report;
mod scenarios;

pub use report::{Certificate, page};
pub use scenarios::{Outcome, Outcomes, ScenarioError, Target, run};
