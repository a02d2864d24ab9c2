//! Which points of a measurement a report takes, and with which status (MEA-7, MEA-9, MEA-12, MEA-17). Pure.

use std::collections::{BTreeMap, BTreeSet};

use partner_api_domain::dyno;
use partner_api_domain::newer::{self, Moment};
use partner_api_domain::plausible::{self, Documented, Narrowed};
use partner_api_domain::threshold::{self, Bounds, PointStatus};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::{APPLIED, Applied, Point, SkipReason, Skipped};

/// The test-line form of a report: its points, and what measurements have written into it since it was read.
#[derive(Debug)]
pub(super) struct TestLine {
    /// What the document says of points.
    pub documented: Documented,
    /// The form's points, by code.
    pub points: BTreeMap<String, TestLinePoint>,
    /// The vehicle's registered factory power, in HP.
    pub factory_power_hp: Option<Decimal>,
    /// Answers that were written and then replaced since, in their order.
    pub replaced: Vec<DeviceValue>,
}

/// A point of the form.
#[derive(Debug)]
pub(super) struct TestLinePoint {
    pub id: Uuid,
    pub bounds: Option<Bounds>,
    /// What the organisation takes for possible.
    pub narrowed: Narrowed,
    /// When the device value that the report has came about; `None`: it has none.
    pub present: Option<Moment>,
    /// What was written since the form was read.
    pub answer: Option<DeviceValue>,
}

/// A device value for the form.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceValue {
    pub point_id: Uuid,
    pub status: PointStatus,
    pub value: Decimal,
    /// Whose value it is.
    pub measurement_id: Uuid,
}

/// A measurement after its points were decided.
#[derive(Debug, Default)]
pub(super) struct Decided {
    /// What is kept of the points: code, text, outcome. The computed point is the last; where a device sent it, what it
    /// sent is kept.
    pub points: Vec<(String, String, &'static str)>,
    /// What is answered.
    pub applied: Applied,
}

/// The form's point and the value's status, or why it is not written.
pub(super) type PointOutcome = Result<(Uuid, PointStatus), SkipReason>;

impl TestLine {
    /// Takes the points of a measurement into the form.
    pub fn take(&mut self, measurement_id: Uuid, moment: Moment, points: &[Point]) -> Decided {
        let mut decided = Decided::default();
        let mut codes = BTreeSet::new();
        for (point, outcome) in self.outcomes(moment, points) {
            let (code, text) = (point.code, point.text);
            let is_new = codes.insert(code.clone());
            let outcome = match outcome {
                Ok((place, status)) => {
                    self.write(
                        &code,
                        moment,
                        DeviceValue {
                            point_id: place,
                            status,
                            value: point.value,
                            measurement_id,
                        },
                    );
                    decided.applied.applied.push(code.clone());
                    APPLIED
                }
                Err(reason) => {
                    // A code is skipped once, though a device may have sent the computed one.
                    if is_new {
                        decided.applied.skipped.push(Skipped {
                            code: code.clone(),
                            reason,
                        });
                    }
                    reason.word()
                }
            };
            if is_new {
                decided.points.push((code, text, outcome));
            }
        }
        decided
    }

    /// What was written, a value a point.
    pub fn answers(&self) -> impl Iterator<Item = &DeviceValue> {
        self.points.values().filter_map(|point| point.answer.as_ref())
    }

    fn write(&mut self, code: &str, moment: Moment, answer: DeviceValue) {
        if let Some(point) = self.points.get_mut(code) {
            point.present = Some(moment);
            self.replaced.extend(point.answer.replace(answer));
        }
    }

    /// Decides each point, and computes `DYNO_RATIO` after them.
    ///
    /// The ratio is decided as if it had been sent, but for a form without the point: then nobody asked for it, and it is
    /// left out without a word. It goes with the power that it is computed from where that is superseded or cannot be.
    pub fn outcomes(&self, moment: Moment, points: &[Point]) -> Vec<(Point, PointOutcome)> {
        let outcome = |point: &Point| {
            let known = self.points.get(&point.code).ok_or(SkipReason::UnknownPoint)?;
            if !plausible::is_plausible((self.documented)(&point.code), point.value, known.narrowed) {
                return Err(SkipReason::Implausible);
            }
            let status = threshold::status(point.value, known.bounds.as_ref()).ok_or(SkipReason::NoStatus)?;
            if newer::is_superseded(moment, known.present) {
                return Err(SkipReason::Superseded);
            }
            Ok((known.id, status))
        };
        let mut outcomes: Vec<_> = points
            .iter()
            .map(|point| {
                // A device does not send the ratio: to it the point is unknown.
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
                Err(reason @ (SkipReason::Superseded | SkipReason::Implausible)) => Err(*reason),
                _ => outcome(&ratio),
            };
            outcomes.push((ratio, outcome));
        }
        outcomes
    }
}
