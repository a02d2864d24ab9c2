//! The dynamometer's computed point (MEA-9).

use rust_decimal::{Decimal, RoundingStrategy};

/// The computed point: the measured power in percent of the factory power. Devices do not send it.
pub const RATIO: &str = "DYNO_RATIO";
/// The point from which the ratio is computed: the measured power, in HP.
pub const MEASURED_HP: &str = "DYNO_MEASURED_HP";

/// Returns the measured power in percent of the registered factory power, with two decimals and halves rounded away from zero.
///
/// Returns `None` if the factory power is not positive, or the result cannot be represented exactly.
pub fn ratio(measured_hp: Decimal, factory_hp: Decimal) -> Option<Decimal> {
    if factory_hp <= Decimal::ZERO {
        return None;
    }
    let percent = measured_hp.checked_mul(Decimal::ONE_HUNDRED)?.checked_div(factory_hp)?;
    let mut percent = percent.round_dp_with_strategy(2, RoundingStrategy::MidpointAwayFromZero);
    percent.rescale(2);
    // A number with too many digits for two decimals has fewer of them. It is then outside any sensible range.
    (percent.scale() == 2).then_some(percent)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rust_decimal::Decimal;

    use super::ratio;

    /// MEA-9
    #[test]
    fn the_ratio_has_two_decimals_with_halves_rounded_away_from_zero() {
        let table = [
            ("146.5", "150", Some("97.67")),
            ("150", "150", Some("100.00")),
            ("1", "3", Some("33.33")),
            ("2", "3", Some("66.67")),
            ("1.00005", "100", Some("1.00")),
            ("1.005", "100", Some("1.01")),
            ("0.125", "1000", Some("0.01")),
            ("0.05", "1000", Some("0.01")),
            ("0.04", "1000", Some("0.00")),
            ("-1.005", "100", Some("-1.01")),
            ("0", "75", Some("0.00")),
            ("100", "0", None),
            ("100", "-5", None),
            ("79228162514264337593543950335", "1", None),
            ("792281625142643375935439503", "1", None),
        ];
        for (measured, factory, expected) in table {
            let number = |text: &str| text.parse::<Decimal>().expect("a number");
            let ratio = ratio(number(measured), number(factory)).map(|ratio| ratio.to_string());
            assert_eq!(ratio.as_deref(), expected, "{measured} of {factory}");
        }
    }

    proptest! {
        #[test]
        fn the_ratio_is_within_half_a_hundredth(measured in 0u32..1_000_000, factory in 1u32..100_000) {
            let measured = Decimal::new(i64::from(measured), 2);
            let factory = Decimal::new(i64::from(factory), 2);
            let ratio = ratio(measured, factory).expect("a ratio");
            let error = (ratio * factory / Decimal::ONE_HUNDRED - measured).abs();
            prop_assert!(error <= factory * Decimal::new(51, 6), "{ratio}");
        }
    }
}
