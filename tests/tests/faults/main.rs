//! Failures of what the service needs. `docs/faults.md` lists them with their mitigations and tests.

// Tests report failures by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod crowding;
mod durable_cluster;
mod histories;
mod hung_backends;
mod killed_database;
mod locked_tables;
mod nonce_partitions;
mod rendering;
mod replicas;
mod request_log;
mod standbys;
mod withdrawn_access;
