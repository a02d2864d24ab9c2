//! Decides by time whether a device value is written: it must not be stale (MEA-7), nor older than the report's value (MEA-8).

use chrono::{DateTime, TimeDelta, Utc};

/// How long before the creation of its report a value may have been measured.
const STALE_AFTER: TimeDelta = TimeDelta::hours(24);

/// The times of a device value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueTimes {
    /// The time of the measurement, or the time of arrival if the device did not send one.
    pub measured_at: DateTime<Utc>,
    /// The time of arrival by the database's clock.
    pub received_at: DateTime<Utc>,
}

/// Returns whether a value that was measured at `measured_at` is too old for a report that was created at `report_created_at`.
/// A device whose clock has lost the time sends times such as 1970.
pub fn is_stale(measured_at: DateTime<Utc>, report_created_at: DateTime<Utc>) -> bool {
    report_created_at.signed_duration_since(measured_at) > STALE_AFTER
}

/// Returns whether an `arriving` value is superseded by the `present` device value of the report.
///
/// The value that was measured later is newer; if both were measured at the same time, the one that arrived later is. If both
/// times are equal, the value that is written later replaces the other.
pub fn is_superseded(arriving: ValueTimes, present: Option<ValueTimes>) -> bool {
    present.is_some_and(|present| {
        (present.measured_at, present.received_at) > (arriving.measured_at, arriving.received_at)
    })
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta, Utc};

    use super::{ValueTimes, is_stale, is_superseded};

    /// MEA-7
    #[test]
    fn a_value_is_stale_if_it_was_measured_more_than_24_hours_before_its_report_was_created() {
        let created_at: DateTime<Utc> = "2026-11-23T09:30:00Z".parse().expect("a time");
        let before = |span| created_at - span;
        let table = [
            (before(TimeDelta::hours(-1)), false),
            (created_at, false),
            (before(TimeDelta::hours(24)), false),
            (before(TimeDelta::hours(24) + TimeDelta::microseconds(1)), true),
            (DateTime::UNIX_EPOCH, true),
            (DateTime::<Utc>::MIN_UTC, true),
        ];
        for (measured_at, expected) in table {
            assert_eq!(is_stale(measured_at, created_at), expected, "{measured_at}");
        }
    }

    /// MEA-8
    #[test]
    fn the_value_that_was_measured_later_wins_and_then_the_one_that_arrived_later() {
        let at = |second| DateTime::from_timestamp(second, 0).expect("a time");
        let times = |(measured, received)| ValueTimes {
            measured_at: at(measured),
            received_at: at(received),
        };
        // (measured, received) of the arriving and of the present value.
        let table = [
            ((10, 20), None, false),
            // Measured later, whenever it arrives.
            ((11, 20), Some((10, 15)), false),
            ((11, 20), Some((10, 25)), false),
            // Measured earlier, whenever it arrives.
            ((9, 20), Some((10, 15)), true),
            ((9, 20), Some((10, 25)), true),
            // Measured at the same time.
            ((10, 20), Some((10, 15)), false),
            ((10, 20), Some((10, 20)), false),
            // The arriving value was pending, and the present one arrived meanwhile.
            ((10, 20), Some((10, 25)), true),
        ];
        for (arriving, present, expected) in table {
            assert_eq!(
                is_superseded(times(arriving), present.map(times)),
                expected,
                "{arriving:?} after {present:?}"
            );
        }
    }
}
