//! `GET /health`.

pub mod get_health;
