//! What operators learn of answered requests.

use crate::observability::Instruments;
use crate::request_log::{Reason, RequestLog};
use partner_api_gateway::Record;

/// Reports each answered request: a line of the process's log, a row of the request log, and the metrics. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Reporter {
    log: RequestLog,
    instruments: Instruments,
}

impl Reporter {
    /// Reports to a request log and to metrics.
    pub fn new(log: RequestLog, instruments: Instruments) -> Self {
        Reporter { log, instruments }
    }

    /// Reports a request that has its answer, from whichever listener.
    pub fn report(&self, record: Record) {
        tracing::info!(
            target: "requests",
            request_id = %record.request_id,
            method = record.method,
            route = record.route,
            operation = record.operation,
            status = record.status,
            code = record.code,
            reason = record.reason.map(Reason::word),
            key_id = record.key_id.as_deref(),
            partner = record.partner.as_ref().map(|partner| partner.name.as_str()),
            address = %record.address,
            took_us = u64::try_from(record.took.as_micros()).unwrap_or(u64::MAX),
            "answered"
        );
        self.instruments.answered(&record);
        self.log.push(record);
    }
}
