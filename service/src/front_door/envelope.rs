//! The body of every error, whichever contract it is of (ERR-1).

use codegen_runtime::Faults;
use serde::Serialize;
use uuid::Uuid;

#[derive(Serialize)]
struct Envelope<'a> {
    error: Detail<'a>,
}

#[derive(Serialize)]
struct Detail<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<InvalidField<'a>>,
    request_id: Uuid,
}

/// A place of the request that is wrong (ERR-9).
#[derive(Serialize)]
struct InvalidField<'a> {
    field: &'a str,
    message: &'a str,
}

/// The body of an error.
pub fn body(code: &str, message: &str, faults: Option<&Faults>, request_id: Uuid) -> Vec<u8> {
    let told = faults.into_iter().flat_map(Faults::iter);
    let details = told.map(|fault| InvalidField {
        field: &fault.field,
        message: &fault.message,
    });
    let envelope = Envelope {
        error: Detail {
            code,
            message,
            field: faults.map(|faults| &*faults.first().field),
            details: details.collect(),
            request_id,
        },
    };
    serde_json::to_vec(&envelope).unwrap_or_default()
}

/// The message that tells faults: the first, and how many more there are (ERR-9).
pub fn message(faults: &Faults) -> String {
    let more = match (faults.count(), faults.iter().count()) {
        (1, _) => String::new(),
        (2, _) => "; one more fault is in error.details".to_string(),
        (all, told) if all == told => format!("; {} more faults are in error.details", all - 1),
        (all, told) => format!("; there are {all} faults in all, the first {told} are in error.details"),
    };
    format!("{}{more}", faults.first())
}
