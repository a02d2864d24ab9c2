//! Decides, without I/O, which points of a measurement are written to a report, and with which status (MEA-7, MEA-9, MEA-12,
//! MEA-17).

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use partner_api_domain::dyno;
use partner_api_domain::newer::{self, ValueTimes};
use partner_api_domain::plausible::{self, DocumentedRanges, NarrowedRange};
use partner_api_domain::threshold::{self, Bounds, PointStatus};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::{APPLIED, Applied, Point, SkipReason, Skipped};

/// The test-line form of a report: its points, and the values that measurements have written since it was read.
#[derive(Debug)]
pub(super) struct TestLine {
    /// The plausible ranges of the contract.
    pub documented: DocumentedRanges,
    /// When the report was created.
    pub created_at: DateTime<Utc>,
    /// The form's points, by code.
    pub points: BTreeMap<String, TestLinePoint>,
    /// The vehicle's registered factory power, in HP.
    pub factory_power_hp: Option<Decimal>,
    /// Answers that were written and replaced since the form was read, in order.
    pub replaced: Vec<DeviceValue>,
}

/// A point of the form.
#[derive(Debug)]
pub(super) struct TestLinePoint {
    pub id: Uuid,
    pub bounds: Option<Bounds>,
    /// The plausible range of the organization.
    pub narrowed: NarrowedRange,
    /// The time of the report's current device value; `None` if there is none.
    pub present: Option<ValueTimes>,
    /// The value that was written since the form was read.
    pub answer: Option<DeviceValue>,
}

/// A device value for the form.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceValue {
    pub point_id: Uuid,
    pub status: PointStatus,
    pub value: Decimal,
    /// The measurement that the value belongs to.
    pub measurement_id: Uuid,
}

/// A measurement with the outcomes of its points.
#[derive(Debug, Default)]
pub(super) struct Decided {
    /// The code, text and outcome of each point, as they are recorded. The computed point is the last; if the device sent it,
    /// the device's text is recorded.
    pub points: Vec<(String, String, &'static str)>,
    /// The outcomes for the response.
    pub applied: Applied,
}

/// The ID of the form's point and the status of the value, or why the value is not written.
pub(super) type PointOutcome = Result<(Uuid, PointStatus), SkipReason>;

impl TestLine {
    /// Writes the points of a measurement into the form.
    pub fn apply(&mut self, measurement_id: Uuid, times: ValueTimes, points: &[Point]) -> Decided {
        let mut decided = Decided::default();
        let mut codes = BTreeSet::new();
        for (point, outcome) in self.outcomes(times, points) {
            let (code, text) = (point.code, point.text);
            let is_new = codes.insert(code.clone());
            let outcome = match outcome {
                Ok((point_id, status)) => {
                    self.write(
                        &code,
                        times,
                        DeviceValue {
                            point_id,
                            status,
                            value: point.value,
                            measurement_id,
                        },
                    );
                    decided.applied.applied.push(code.clone());
                    APPLIED
                }
                Err(reason) => {
                    // If the device sent the computed point, its code occurs twice but is reported once.
                    if is_new {
                        decided.applied.skipped.push(Skipped {
                            code: code.clone(),
                            reason,
                        });
                    }
                    reason.as_str()
                }
            };
            if is_new {
                decided.points.push((code, text, outcome));
            }
        }
        decided
    }

    /// Returns the values that were written, one per point.
    pub fn answers(&self) -> impl Iterator<Item = &DeviceValue> {
        self.points.values().filter_map(|point| point.answer.as_ref())
    }

    fn write(&mut self, code: &str, times: ValueTimes, answer: DeviceValue) {
        if let Some(point) = self.points.get_mut(code) {
            point.present = Some(times);
            self.replaced.extend(point.answer.replace(answer));
        }
    }

    /// Decides on each point, and then on the computed `DYNO_RATIO`.
    ///
    /// The ratio is treated like a value that was sent, with two exceptions. If the form does not have the point, the ratio is
    /// omitted silently. If the measured power is implausible, stale or superseded, so is the ratio.
    pub fn outcomes(&self, times: ValueTimes, points: &[Point]) -> Vec<(Point, PointOutcome)> {
        let outcome = |point: &Point| {
            let known = self.points.get(&point.code).ok_or(SkipReason::UnknownPoint)?;
            if !plausible::is_plausible((self.documented)(&point.code), point.value, known.narrowed) {
                return Err(SkipReason::Implausible);
            }
            let status = threshold::status(point.value, known.bounds.as_ref()).ok_or(SkipReason::NoStatus)?;
            if newer::is_stale(times.measured_at, self.created_at) {
                return Err(SkipReason::Stale);
            }
            if newer::is_superseded(times, known.present) {
                return Err(SkipReason::Superseded);
            }
            Ok((known.id, status))
        };
        let mut outcomes: Vec<_> = points
            .iter()
            .map(|point| {
                // Devices must not send the ratio; for them the point is unknown.
                let is_ratio = point.code == dyno::RATIO;
                let outcome = if is_ratio {
                    Err(SkipReason::UnknownPoint)
                } else {
                    outcome(point)
                };
                (point.clone(), outcome)
            })
            .collect();
        let measured = outcomes.iter().find(|(point, _)| point.code == dyno::MEASURED_HP);
        if let (Some((measured, of_measured)), Some(factory), true) =
            (measured, self.factory_power_hp, self.points.contains_key(dyno::RATIO))
            && let Some(value) = dyno::ratio(measured.value, factory)
        {
            let ratio = Point {
                code: dyno::RATIO.to_string(),
                value,
                text: value.to_string(),
            };
            let outcome = match of_measured {
                Err(reason @ (SkipReason::Implausible | SkipReason::Stale | SkipReason::Superseded)) => Err(*reason),
                _ => outcome(&ratio),
            };
            outcomes.push((ratio, outcome));
        }
        outcomes
    }
}
