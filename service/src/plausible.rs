//! The plausible ranges of measured values (MEA-17).

use rust_decimal::Decimal;

use crate::generated::types::MeasurementRequest;

/// Returns the plausible range of a point's values according to the contract, or `None` if the contract has none for it.
pub fn documented(code: &str) -> Option<(Decimal, Decimal)> {
    let mut ranges = MeasurementRequest::MEASUREMENTS_PLAUSIBLE_RANGES.iter();
    let range = ranges.find(|range| range.name == code)?;
    Some((range.minimum, range.maximum))
}

#[cfg(test)]
mod tests {
    use partner_api_domain::plausible::{NarrowedRange, is_plausible};

    use super::*;

    fn number(text: &str) -> Decimal {
        text.parse().expect("a number")
    }

    /// MEA-17
    #[test]
    fn a_force_in_newtons_is_implausible_in_kilonewtons() {
        let table = [
            ("BRAKE_FRONT_LEFT", "2.85", true),
            ("BRAKE_FRONT_LEFT", "2850", false),
            ("BRAKE_FRONT_LEFT", "0", true),
            ("BRAKE_FRONT_LEFT", "-0.01", false),
            ("HANDBRAKE_LEFT", "-3", false),
            ("SUSP_REAR_RIGHT", "100", true),
            ("SUSP_REAR_RIGHT", "100.01", false),
            ("SLIP_FRONT", "-9.5", true),
            ("SLIP_FRONT", "-950", false),
            ("DYNO_MEASURED_HP", "146.5", true),
            ("DYNO_MEASURED_HP", "-1", false),
            // The contract has no range for this point.
            ("ABS", "99999999", true),
        ];
        for (code, value, plausible) in table {
            assert_eq!(
                is_plausible(documented(code), number(value), NarrowedRange::default()),
                plausible,
                "{code} {value}"
            );
        }
    }

    #[test]
    fn the_table_of_the_contract_has_the_same_ranges() {
        let document = include_str!("../../spec/partner-api.yaml");
        let rows = document.lines().filter_map(|line| {
            let cells: Vec<&str> = line.trim().strip_prefix("| `")?.split('|').map(str::trim).collect();
            let (minimum, maximum) = cells.get(3)?.split_once(" to ")?;
            let code = cells.first()?.trim_end_matches('`').to_string();
            Some((code, minimum.parse::<Decimal>().ok()?, maximum.parse::<Decimal>().ok()?))
        });
        let ranges = MeasurementRequest::MEASUREMENTS_PLAUSIBLE_RANGES.iter();
        let ranges = ranges.map(|range| (range.name.to_string(), range.minimum, range.maximum));
        assert_eq!(rows.collect::<Vec<_>>(), ranges.collect::<Vec<_>>());
    }

    /// MEA-17
    #[test]
    fn an_organization_can_narrow_a_range_but_not_widen_it() {
        let narrowed = |minimum: &str, maximum: &str| NarrowedRange {
            minimum: minimum.parse().ok(),
            maximum: maximum.parse().ok(),
        };
        let table = [
            ("SLIP_FRONT", "12", narrowed("", "10"), false),
            ("SLIP_FRONT", "10", narrowed("", "10"), true),
            ("SLIP_FRONT", "-12", narrowed("", "10"), true),
            ("SLIP_FRONT", "-12", narrowed("-10", "10"), false),
            ("SLIP_FRONT", "1000", narrowed("-2000", "2000"), false),
            ("ABS", "5", narrowed("6", ""), false),
        ];
        for (code, value, narrowed, plausible) in table {
            assert_eq!(
                is_plausible(documented(code), number(value), narrowed),
                plausible,
                "{code} {value} {narrowed:?}"
            );
        }
    }
}
