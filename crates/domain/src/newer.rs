//! Which of two device values for a point is the newer one (MEA-8).

use chrono::{DateTime, Utc};

/// When a device value came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When it was measured; where the device did not say, when it arrived.
    pub measured_at: DateTime<Utc>,
    /// When it arrived, by the database's clock.
    pub received_at: DateTime<Utc>,
}

/// Whether a value of `arriving` is superseded by the device value of `present` that the report has.
///
/// Newer is what was measured later, and of two measured at the same time what arrived later. Of two that cannot be told
/// apart, the one that is written later stands.
pub fn is_superseded(arriving: Moment, present: Option<Moment>) -> bool {
    present.is_some_and(|present| {
        (present.measured_at, present.received_at) > (arriving.measured_at, arriving.received_at)
    })
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::{Moment, is_superseded};

    /// MEA-8
    #[test]
    fn the_value_measured_later_stands_and_at_equal_times_the_later_arrival() {
        let at = |second| DateTime::from_timestamp(second, 0).expect("a time");
        let moment = |(measured, received)| Moment {
            measured_at: at(measured),
            received_at: at(received),
        };
        // (measured, received) of the value that comes, and of the one that is there.
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
            // It waited for an inspector's click, and another one came meanwhile.
            ((10, 20), Some((10, 25)), true),
        ];
        for (arriving, present, expected) in table {
            assert_eq!(
                is_superseded(moment(arriving), present.map(moment)),
                expected,
                "{arriving:?} after {present:?}"
            );
        }
    }
}
