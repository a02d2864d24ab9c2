//! The limits of a report's device values, and the values computed from them. The rules are the same as for arriving measurements
//! (`threshold`, `axle` and `dyno` of `partner_api_domain`).

use std::collections::BTreeMap;

use report_pdf::{Limits, Point, Source, StatusRange};
use rust_decimal::Decimal;
use serde::Deserialize;

use partner_api_domain::threshold::{self, Bounds, PointStatus};
use partner_api_domain::{axle, dyno};

/// The limits in the database's `report_document`.
#[derive(Clone, Copy, Deserialize)]
pub(super) struct StoredLimits {
    good_min: Option<Decimal>,
    good_max: Option<Decimal>,
    borderline_min: Option<Decimal>,
    borderline_max: Option<Decimal>,
}

impl StoredLimits {
    /// Returns the bounds, or `None` if they were removed.
    fn bounds(self) -> Option<Bounds> {
        let bounds = Bounds {
            good_min: self.good_min,
            good_max: self.good_max,
            borderline_min: self.borderline_min,
            borderline_max: self.borderline_max,
        };
        (bounds.good_min.is_some() || bounds.good_max.is_some()).then_some(bounds)
    }

    /// Returns the limits to print beside a value. Returns `None` if the value's status does not follow from them: an inspector may
    /// have changed the status, and older values were stored without the limits of their time.
    pub(super) fn of_value(self, value: Decimal, status_code: &str) -> Option<Limits> {
        let bounds = self.bounds()?;
        let status = threshold::status(value, Some(&bounds))?;
        (status.code() == status_code).then(|| limits(&bounds))
    }
}

fn limits(bounds: &Bounds) -> Limits {
    Limits {
        good: (bounds.good_min, bounds.good_max),
        borderline: (bounds.borderline_min, bounds.borderline_max),
        status_ranges: threshold::status_ranges(bounds)
            .into_iter()
            .map(|status_range| StatusRange {
                until: status_range.until,
                status_code: status_range.status.code().to_owned(),
            })
            .collect(),
    }
}

/// Computes values from those of a test line: sums and differences of axles, and the power ratio if the form has none.
pub(super) fn computed(
    value_of: impl Fn(&str) -> Option<Decimal>,
    limits_of: &BTreeMap<String, StoredLimits>,
    factory_power_hp: Option<Decimal>,
) -> Vec<Point> {
    let bounds_of = |code: &str| limits_of.get(code).and_then(|limits| limits.bounds());
    let mut points: Vec<Point> = axle::computed(&value_of, bounds_of)
        .into_iter()
        .map(|one| {
            let unit = one.unit();
            point(one.code, unit, one.value, one.bounds, one.status)
        })
        .collect();
    if value_of(dyno::RATIO).is_none()
        && let Some((measured, factory)) = value_of(dyno::MEASURED_HP).zip(factory_power_hp)
        && let Some(ratio) = dyno::ratio(measured, factory)
    {
        let bounds = bounds_of(dyno::RATIO);
        let status = threshold::status(ratio, bounds.as_ref());
        points.push(point(dyno::RATIO.to_owned(), "percent", ratio, bounds, status));
    }
    points
}

fn point(code: String, unit: &str, value: Decimal, bounds: Option<Bounds>, status: Option<PointStatus>) -> Point {
    Point {
        code,
        name: String::new(),
        status_code: status.map_or("", PointStatus::code).to_owned(),
        status_label: status.map_or("", PointStatus::label).to_owned(),
        severity: status.map_or("NONE", PointStatus::severity).to_owned(),
        numeric_value: Some(value),
        unit: Some(unit.to_owned()),
        note: String::new(),
        limits: bounds.as_ref().map(limits),
        source: Source::Computed,
    }
}
