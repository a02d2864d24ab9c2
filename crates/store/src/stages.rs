//! The stages of a request, for traces. The task of the request records them while it runs.

use std::cell::RefCell;
use std::time::Instant;

use futures::FutureExt;

use crate::statement::Statement;

/// The maximum number of stages that are recorded for a request. A typical request has fewer than ten.
const MAX_STAGES: usize = 64;

tokio::task_local! {
    /// The stages of the request that this task processes.
    static STAGES: RefCell<Vec<TimedStage>>;
}

/// A part of a request that takes time.
#[derive(Clone, Copy, Debug)]
pub enum Stage {
    /// Receiving the rest of the body.
    Body,
    /// Admission, including the wait for the previous batch.
    Admission,
    /// Waiting for a database connection.
    Connection,
    /// Executing a statement, including the round trip.
    Statement(&'static Statement),
    /// Recording the measurement.
    Recorder,
}

impl Stage {
    /// Returns the name of the stage in a trace; for a statement, the name of the statement.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Body => "body",
            Stage::Admission => "admission",
            Stage::Connection => "connection",
            Stage::Statement(statement) => statement.name(),
            Stage::Recorder => "recorder",
        }
    }
}

/// A stage that has finished or was canceled.
#[derive(Clone, Copy, Debug)]
pub struct TimedStage {
    /// The stage.
    pub stage: Stage,
    /// The start time.
    pub began: Instant,
    /// The end time.
    pub ended: Instant,
}

/// Runs `work`, and records its start and end as a stage of the current request, even if `work` is dropped before it finishes.
///
/// This is not an `async` function, because its future would have space for `work` twice: as an argument, and while it waits for it.
pub fn stage<T>(stage: Stage, work: impl Future<Output = T>) -> impl Future<Output = T> {
    struct Running(Stage, Option<Instant>);
    impl Drop for Running {
        fn drop(&mut self) {
            let Running(stage, Some(began)) = *self else { return };
            let ended = Instant::now();
            // The list existed when the stage began. It no longer exists only if the whole request is being dropped.
            let _ = STAGES.try_with(|stages| {
                let mut stages = stages.borrow_mut();
                if stages.len() < MAX_STAGES {
                    stages.push(TimedStage { stage, began, ended });
                }
            });
        }
    }
    let running = Running(stage, STAGES.try_with(|_| Instant::now()).ok());
    work.map(move |result| {
        drop(running);
        result
    })
}

/// Runs the work of a request, and returns its result and its stages.
pub fn record<T>(work: impl Future<Output = T>) -> impl Future<Output = (T, Vec<TimedStage>)> {
    let recorded = work.map(|result| (result, STAGES.with(RefCell::take)));
    STAGES.scope(RefCell::default(), recorded)
}
