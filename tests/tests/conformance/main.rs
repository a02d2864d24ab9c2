//! Conformance tests, with one file for each operation and one test for each statement about it.
//!
//! The harness checks every response against the OpenAPI document before a test examines it.

// Tests report failures by panicking.
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
    mod submit_measurement;
    mod submit_measurement_bounds;
    mod submit_measurement_recorded;
    mod submit_measurement_rejected;
    mod submit_measurement_replayed;
}
mod inspectors {
    mod add_photo;
    mod apply_measurement;
    mod correct_vehicle;
    mod delete_photo;
    mod discard_measurement;
    mod every_operation;
    mod fill_form;
    mod get_report;
    mod get_report_pdf;
    mod get_session;
    mod list_open_reports;
    mod move_report;
    mod open_report;
    mod order_photos;
    mod publishing;
    mod races;
    mod sign_in;
    mod sign_out;
    mod undo_measurement;
    mod update_photo;
    mod update_report;
    mod watch_reports;
}
mod gateway {
    mod addresses;
    mod bodies;
    mod every_operation;
    mod messages;
    mod nonces;
    mod pages;
    mod paths;
    mod preferences;
    mod queries;
    mod rate_limits;
    mod report_page;
    mod signature;
    mod vectors;
}
mod rules {
    mod access;
    mod logs;
    mod measurements;
    mod order;
    mod reports;
    mod requests;
}
mod tls;
