//! One record per request.

use std::net::IpAddr;
use std::time::Duration;

use http::{Method, StatusCode};

use crate::error::ApiError;
use crate::generated::errors::ErrorCode;

/// What is known of a request when it has been answered: no query, no body, no secret, no personal data.
pub(super) struct Record {
    request_id: String,
    method: String,
    path: String,
    pub address: Option<IpAddr>,
    pub key_id: Option<String>,
    pub partner: Option<String>,
    pub operation: Option<&'static str>,
    code: Option<ErrorCode>,
}

impl Record {
    pub fn new(request_id: &str, method: &Method, path: &str) -> Self {
        const LONGEST_PATH: usize = 256;
        Record {
            request_id: request_id.to_string(),
            method: method.as_str().to_string(),
            path: path.chars().take(LONGEST_PATH).collect(),
            address: None,
            key_id: None,
            partner: None,
            operation: None,
            code: None,
        }
    }

    /// Notes why the request was refused.
    pub fn refused(&mut self, error: &ApiError) {
        self.code = Some(error.code);
    }

    /// Writes the record.
    pub fn finish(self, status: StatusCode, took: Duration) {
        tracing::info!(
            target: "requests",
            request_id = self.request_id,
            method = self.method,
            path = self.path,
            operation = self.operation,
            status = status.as_u16(),
            code = self.code.map(ErrorCode::as_str),
            key_id = self.key_id,
            partner = self.partner,
            address = self.address.map(tracing::field::display),
            took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            "answered"
        );
    }
}
