//! The contract, operation by operation: each file is one operation, each test a sentence about it.
//!
//! Every answer is held against the OpenAPI document by the harness before a test looks at it.

// A test says what is wrong by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod health {
    mod get_health;
}
mod organizations {
    mod list_branches;
    mod list_organizations;
}
mod inspections {
    mod conditional;
    mod get_inspection;
    mod get_inspection_forms;
    mod get_inspection_pdf;
    mod get_inspection_pdf_current;
    mod get_inspection_photos;
    mod list_inspections;
    mod list_inspections_changes;
}
mod measurements {
    pub mod state;
    mod submit_measurement;
    mod submit_measurement_bounds;
    mod submit_measurement_recorded;
    mod submit_measurement_refused;
    mod submit_measurement_replayed;
}
mod inspectors {
    mod add_photo;
    mod apply_measurement;
    mod discard_measurement;
    mod every_operation;
    mod fill_form;
    mod get_report;
    mod get_session;
    mod list_open_reports;
    mod move_report;
    mod open_report;
    mod order_photos;
    mod publishing;
    mod sign_in;
    mod sign_out;
    mod update_report;
    mod watch_reports;
}
mod front_door {
    mod addresses;
    mod bodies;
    mod every_operation;
    mod limits;
    mod messages;
    mod pages;
    mod paths;
    mod preferences;
    mod queries;
    mod replay;
    mod signature;
    mod vectors;
}
mod rules {
    mod access;
    mod limits;
    mod logs;
    mod measurements;
    mod order;
    mod reports;
    mod requests;
}
#[path = "../faults"]
mod faults {
    mod crowding;
    mod durable_cluster;
    mod failing_handler;
    mod heard_changes;
    mod hung_backends;
    mod killed_database;
    mod locked_tables;
    mod nonce_partitions;
    mod rendering;
    mod replicas;
    mod standbys;
    mod withdrawn_access;
}
#[path = "../observability"]
mod observability {
    mod alerts;
    mod metrics;
    pub mod page;
    mod ready;
    mod traces;
}
#[path = "../request_log"]
mod request_log {
    mod faults;
    pub mod log;
    mod partitions;
    mod reading;
    mod reasons;
    mod refusals;
    mod rows;
}
#[path = "../properties"]
mod properties {
    mod fields;
    mod inspectors_see;
    mod paging;
    mod privacy_table;
    mod tenant_cross_product;
}
#[path = "../tls"]
mod tls {
    mod renewing;
    mod serving;
    pub mod world;
}
