//! What operators do with the program, over a database of each test's own.

mod changes;
mod doctor;
mod export;
mod failures;
mod import;
mod inspectors;
mod keys;
mod manual;
mod program;
mod read;
mod recorded;
mod secrets;
