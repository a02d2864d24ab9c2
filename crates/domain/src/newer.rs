//! Decides which of two device values for a point is newer (MEA-8).

use chrono::{DateTime, Utc};

/// The times of a device value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueTimes {
    /// The time of the measurement, or the time of arrival if the device did not send one.
    pub measured_at: DateTime<Utc>,
    /// The time of arrival by the database's clock.
    pub received_at: DateTime<Utc>,
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
    use chrono::DateTime;

    use super::{ValueTimes, is_superseded};

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
