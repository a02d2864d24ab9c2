//! Reports completed requests to operators.

use crate::observability::Instruments;
use crate::request_log::{Reason, RequestLog};
use partner_api_gateway::Record;

/// Reports each completed request with a line in the process's log, a row in the request log, and the metrics. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Reporter {
    log: RequestLog,
    instruments: Instruments,
}

impl Reporter {
    /// Creates a reporter for a request log and the metrics.
    pub fn new(log: RequestLog, instruments: Instruments) -> Self {
        Reporter { log, instruments }
    }

    /// Reports a completed request of any listener.
    pub fn report(&self, record: Record) {
        tracing::info!(
            target: "requests",
            request_id = %record.request_id,
            method = record.method,
            route = record.route,
            operation = record.operation,
            status = record.status,
            code = record.code,
            reason = record.reason.map(Reason::as_str),
            key_id = record.key_id.as_deref(),
            partner = record.partner.as_ref().map(|partner| partner.name.as_str()),
            address = %record.address,
            took_us = u64::try_from(record.took.as_micros()).unwrap_or(u64::MAX),
            "request completed"
        );
        self.instruments.record_response(&record);
        self.log.push(record);
    }
}
