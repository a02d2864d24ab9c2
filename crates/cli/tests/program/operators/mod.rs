//! The operators' commands. Each test has its own database.

mod backup;
mod changes;
mod deployments;
mod doctor;
mod erase;
mod export;
mod failures;
mod import;
mod inspectors;
mod keys;
mod program;
mod read;
mod recorded;
