//! `POST /api/v1/partner/test-line/measurements`: records a package of device values once (MEA-4, MEA-10).

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use codegen_runtime::names::nearest;
use codegen_runtime::{ValidationError, ValidationErrors};
use partner_api_domain::branch_code;
use partner_api_domain::dyno::RATIO;
use partner_api_domain::plate::Plate;
use partner_api_signing::TIMESTAMP_TOLERANCE_SECONDS;
use partner_api_store::measurements::{self, Package, Point, Replay, Skipped};
use serde_json::Value;
use uuid::Uuid;

use crate::caller::Caller;
use crate::context::Context;
use crate::error::ApiError;
use crate::generated::responses::SubmitMeasurementResponse;
use crate::generated::types::{
    Measurement, MeasurementRequest, MeasurementResponse, MeasurementStatus, SkipReason, SkippedPoint,
};
use crate::recorder::{Outcome, RecordError};
use crate::request_log::Reason;

/// The time by which a device's clock may be ahead: the tolerance of signed requests.
const CLOCK_TOLERANCE: TimeDelta = TimeDelta::seconds(TIMESTAMP_TOLERANCE_SECONDS.cast_signed());

/// Records a package and returns its outcome.
///
/// # Errors
/// `invalid_request` for an invalid plate or time, or an ambiguous branch code; `not_found`, always with the same message, for a branch
/// code without a match in the partner's grants; `service_unavailable` if the outcome is unknown.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    body: MeasurementRequest,
    raw: Bytes,
) -> Result<SubmitMeasurementResponse, ApiError> {
    let (plate, measured_at) = (plate(&body.plate), check_measured_at(body.measured_at, Utc::now()));
    let plate = match (plate, measured_at) {
        (Ok(plate), Ok(())) => plate,
        (plate, measured_at) => {
            let errors = ValidationErrors::of(plate.err().into_iter().chain(measured_at.err()));
            return Err(errors.map_or_else(ApiError::internal, ApiError::invalid_request));
        }
    };
    let points = body.measurements.into_iter().map(|(code, number)| Point {
        code,
        value: number.value,
        text: number.text,
    });
    let package = Package {
        id: Uuid::now_v7(),
        partner_id: caller.key().partner.id,
        key_id: caller.key().id.to_string(),
        branch_code: branch_code::folded(&body.branch_code),
        plate: plate.clone(),
        external_id: body.external_id,
        device_serial: body.device_serial,
        measured_at: body.measured_at,
        raw,
        points: points.collect(),
    };
    let outcome = context.record(caller, package).await.map_err(record_error)?;
    response(outcome, plate, &body.branch_code)
}

/// Returns the violations that the contract's schema cannot express. They are reported together with violations of the schema, so
/// that one response lists all errors of a package (ERR-9).
pub fn further_errors(document: &Value) -> Vec<ValidationError> {
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    let measured_at = text("measured_at").and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    let measured_at = measured_at.map(|time| time.with_timezone(&Utc));
    let plate = text("plate").and_then(|text| plate(text).err());
    plate
        .into_iter()
        .chain(check_measured_at(measured_at, Utc::now()).err())
        .collect()
}

/// Parses a plate.
fn plate(text: &str) -> Result<Plate, ValidationError> {
    Plate::parse(text).map_err(|problem| {
        ValidationError::of_member(
            "plate",
            format!("{problem}; {}", partner_api_domain::plate::read_as(text)),
        )
    })
}

/// Returns 503 if the outcome is unknown; the partner learns it by sending the same external_id again.
fn record_error(error: RecordError) -> ApiError {
    let reason = match &error {
        RecordError::Busy => Reason::RecorderCrowded,
        RecordError::Overdue => Reason::RecorderOverdue,
        RecordError::Db(error) => Reason::from(&**error),
    };
    if error.is_unavailable() {
        tracing::warn!(%error, "failed to record a measurement; its outcome may be unknown");
        return ApiError::unavailable(reason);
    }
    tracing::error!(%error, "failed to record a measurement");
    ApiError::internal().with_reason(reason)
}

/// Rejects a time that is further in the future than clocks may differ.
fn check_measured_at(measured_at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Result<(), ValidationError> {
    match measured_at {
        Some(measured_at) if measured_at.signed_duration_since(now) > CLOCK_TOLERANCE => {
            Err(ValidationError::of_member(
                "measured_at",
                format!(
                    "must not be in the future; the server's time is {}; check the device's clock and its UTC offset",
                    now.format("%Y-%m-%dT%H:%M:%SZ")
                ),
            ))
        }
        _ => Ok(()),
    }
}

/// Returns the error for a code without a branch (MEA-1). It depends only on the code that was sent.
fn unknown_branch(code: &str) -> ApiError {
    let spaces = match code.trim() == code {
        true => "",
        false => "; the code sent begins or ends with a space",
    };
    let message =
        format!("you have access to no active branch with this code; see the branches endpoint for the codes{spaces}");
    ApiError::not_found("").with_validation_errors(ValidationError::of_member("branch_code", message))
}

fn response(outcome: Outcome, plate: Plate, branch_code: &str) -> Result<SubmitMeasurementResponse, ApiError> {
    Ok(match outcome {
        Outcome::UnknownBranch => return Err(unknown_branch(branch_code)),
        Outcome::AmbiguousBranch => {
            let message = "you have access to more than one branch with this code; ask the operator for a unique code";
            return Err(ApiError::invalid_request(ValidationError::of_member(
                "branch_code",
                message,
            )));
        }
        Outcome::Recorded { id, applied } => {
            let (status, inspection_id, applied) = match applied {
                Some((inspection_id, applied)) => (MeasurementStatus::Applied, Some(inspection_id), applied),
                None => (MeasurementStatus::Pending, None, measurements::Applied::default()),
            };
            SubmitMeasurementResponse::Created(MeasurementResponse {
                data: Measurement {
                    measurement_id: id,
                    status,
                    plate: plate.into(),
                    inspection_id,
                    applied_points: Some(applied.applied),
                    skipped_points: skipped_points(applied.skipped),
                    idempotent_replay: false,
                    payload_mismatch: None,
                },
            })
        }
        Outcome::Replayed(Replay {
            id,
            status,
            plate,
            inspection_id,
            skipped,
            same_raw,
        }) => SubmitMeasurementResponse::Ok {
            body: MeasurementResponse {
                data: Measurement {
                    measurement_id: id,
                    status: match status {
                        measurements::Status::Applied => MeasurementStatus::Applied,
                        measurements::Status::Pending => MeasurementStatus::Pending,
                        measurements::Status::Discarded => MeasurementStatus::Discarded,
                    },
                    plate,
                    inspection_id,
                    applied_points: None,
                    skipped_points: skipped_points(skipped),
                    idempotent_replay: true,
                    payload_mismatch: (!same_raw).then_some(true),
                },
            },
            x_idempotency_payload_mismatch: (!same_raw).then(|| "true".to_string()),
        },
    })
}

/// Converts the skipped points. Returns `None` if there are none, because the response then omits the list.
fn skipped_points(skipped: Vec<Skipped>) -> Option<Vec<SkippedPoint>> {
    let points: Vec<SkippedPoint> = skipped
        .into_iter()
        .map(|Skipped { code, reason }| SkippedPoint {
            hint: hint(&code, reason),
            code,
            reason: SkipReason(reason.as_str().to_owned()),
        })
        .collect();
    (!points.is_empty()).then_some(points)
}

/// Returns the remedy for a skipped point (MEA-7).
fn hint(code: &str, reason: measurements::SkipReason) -> Option<String> {
    match reason {
        measurements::SkipReason::UnknownPoint if code == RATIO => {
            Some("do not send this point; the service computes it".to_owned())
        }
        measurements::SkipReason::UnknownPoint => {
            let documented = MeasurementRequest::MEASUREMENTS_PLAUSIBLE_RANGES.iter();
            let near = nearest(code, documented.map(|range| range.name)).filter(|near| *near != code)?;
            Some(format!("did you mean {near}?"))
        }
        measurements::SkipReason::Stale => Some("check measured_at and the device's clock".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MEA-7
    #[test]
    fn a_skipped_point_has_a_hint_if_there_is_a_remedy() {
        use measurements::SkipReason::{NoStatus, Stale, UnknownPoint};
        let table = [
            ("BRAKE_FRONT_LEFF", UnknownPoint, Some("did you mean BRAKE_FRONT_LEFT?")),
            // The organization's template lacks this point.
            ("BRAKE_FRONT_LEFT", UnknownPoint, None),
            ("WHEEL_ALIGNMENT", UnknownPoint, None),
            (
                "DYNO_RATIO",
                UnknownPoint,
                Some("do not send this point; the service computes it"),
            ),
            ("BRAKE_FRONT_LEFF", NoStatus, None),
            ("SLIP_FRONT", Stale, Some("check measured_at and the device's clock")),
        ];
        for (code, reason, expected) in table {
            assert_eq!(hint(code, reason).as_deref(), expected, "{code}");
        }
    }

    /// MEA-3
    #[test]
    fn a_time_in_the_future_is_rejected_beyond_the_clock_tolerance() {
        let now = Utc::now();
        let table = [
            (None, true),
            (Some(TimeDelta::days(-3650)), true),
            (Some(TimeDelta::zero()), true),
            (Some(TimeDelta::seconds(300)), true),
            (Some(TimeDelta::milliseconds(300_001)), false),
            (Some(TimeDelta::days(1)), false),
        ];
        for (ahead, admitted) in table {
            let result = check_measured_at(ahead.map(|ahead| now + ahead), now);
            assert_eq!(result.is_ok(), admitted, "{ahead:?}");
        }
    }

    /// MEA-14
    #[test]
    fn a_pending_response_has_no_points_and_no_report() {
        let id = Uuid::now_v7();
        let plate = Plate::parse("34 abc 123").expect("a plate");
        let Ok(SubmitMeasurementResponse::Created(body)) =
            response(Outcome::Recorded { id, applied: None }, plate, "IZMIR-01")
        else {
            panic!("201 expected");
        };
        assert_eq!(
            serde_json::to_value(&body).expect("JSON"),
            serde_json::json!({"data": {
                "measurement_id": id, "status": "pending", "plate": "34ABC123", "inspection_id": null,
                "applied_points": [], "idempotent_replay": false,
            }})
        );
    }

    /// MEA-11
    #[test]
    fn a_replay_returns_the_recorded_plate_and_reports_a_different_body() {
        let (id, report) = (Uuid::now_v7(), Uuid::now_v7());
        let plate = Plate::parse("06 Z 9999").expect("a plate");
        let skipped = vec![Skipped {
            code: "X".into(),
            reason: measurements::SkipReason::UnknownPoint,
        }];
        let replay = Replay {
            id,
            status: measurements::Status::Applied,
            plate: "34ABC123".into(),
            inspection_id: Some(report),
            skipped,
            same_raw: false,
        };
        let Ok(SubmitMeasurementResponse::Ok {
            body,
            x_idempotency_payload_mismatch,
        }) = response(Outcome::Replayed(replay), plate, "IZMIR-01")
        else {
            panic!("200 expected");
        };
        assert_eq!(x_idempotency_payload_mismatch.as_deref(), Some("true"));
        assert_eq!(
            serde_json::to_value(&body).expect("JSON"),
            serde_json::json!({"data": {
                "measurement_id": id, "status": "applied", "plate": "34ABC123", "inspection_id": report,
                "skipped_points": [{"code": "X", "reason": "unknown_point"}], "idempotent_replay": true,
                "payload_mismatch": true,
            }})
        );
    }
}
