//! What a request spends its time on: its task notes its stages while it runs, and whoever answers it reads them.

use std::cell::RefCell;
use std::time::Instant;

use crate::statement::Statement;

/// Stages that one request keeps; it has a handful.
const MOST_STAGES: usize = 64;

tokio::task_local! {
    /// The stages of the request whose task this is.
    static STAGES: RefCell<Vec<Noted>>;
}

/// What a request may spend time on.
#[derive(Clone, Copy, Debug)]
pub enum Stage {
    /// The rest of its body.
    Body,
    /// Its admission, the batch before it included.
    Admission,
    /// A connection to the database.
    Connection,
    /// A statement, its way there and back included.
    Statement(&'static Statement),
    /// Its measurement's way through the recorder.
    Recorder,
}

impl Stage {
    /// Its name in a trace; of a statement its own.
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

/// A stage that has ended, or that was given up.
#[derive(Clone, Copy, Debug)]
pub struct Noted {
    /// What it was.
    pub stage: Stage,
    /// When it began.
    pub began: Instant,
    /// When it ended.
    pub ended: Instant,
}

/// Notes the stage, with its beginning and end, among those of its request: also when `work` is dropped on the way.
pub async fn stage<T>(stage: Stage, work: impl Future<Output = T>) -> T {
    struct Running(Stage, Option<Instant>);
    impl Drop for Running {
        fn drop(&mut self) {
            let Running(stage, Some(began)) = *self else { return };
            let ended = Instant::now();
            // There is a list, or there would be no beginning; it is gone only where the whole request is being dropped.
            let _ = STAGES.try_with(|stages| {
                let mut stages = stages.borrow_mut();
                if stages.len() < MOST_STAGES {
                    stages.push(Noted { stage, began, ended });
                }
            });
        }
    }
    let began = STAGES.try_with(|_| Instant::now()).ok();
    let _running = Running(stage, began);
    work.await
}

/// Does a request's work, and returns its stages beside the outcome.
pub async fn noting<T>(work: impl Future<Output = T>) -> (T, Vec<Noted>) {
    let noted = async {
        let done = work.await;
        (done, STAGES.with(RefCell::take))
    };
    STAGES.scope(RefCell::default(), noted).await
}
