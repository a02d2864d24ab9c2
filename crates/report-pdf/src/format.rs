//! Formats numbers and dates in Turkish.

use chrono::{DateTime, Datelike, FixedOffset, Timelike, Utc};
use rust_decimal::{Decimal, RoundingStrategy};

/// Turkey's offset from UTC: +3 h all year since 2016.
const ISTANBUL_SECONDS: i32 = 3 * 3600;

/// The maximum number of decimals. No device measures more precisely.
const MAX_DECIMALS: u32 = 4;

const MONTHS: [&str; 12] = [
    "Ocak", "Şubat", "Mart", "Nisan", "Mayıs", "Haziran", "Temmuz", "Ağustos", "Eylül", "Ekim", "Kasım", "Aralık",
];

/// Formats a decimal with `.` between thousands and `,` before the fraction, and keeps its scale: `-1.250,50`.
pub(crate) fn decimal(value: Decimal) -> String {
    let text = value.abs().to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::with_capacity(text.len() + 8);
    if value.is_sign_negative() && !value.is_zero() {
        out.push('-');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push('.');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push(',');
        out.push_str(fraction);
    }
    out
}

/// Formats an amount with two decimals and its currency: `1.250,00 TL`.
pub(crate) fn money(amount: Decimal, currency: &str) -> String {
    let mut amount = amount.round_dp_with_strategy(2, RoundingStrategy::MidpointAwayFromZero);
    amount.rescale(2);
    let currency = if currency == "TRY" { "TL" } else { currency };
    format!("{}\u{a0}{currency}", decimal(amount))
}

/// Formats a percentage without trailing zeros, with the sign first as in Turkish: `%12,5`.
pub(crate) fn percent(value: Decimal) -> String {
    format!("%{}", decimal(value.normalize()))
}

/// Formats a measured value with its [decimals] and its unit: `3,21 kN`, `%78,0`.
pub(crate) fn quantity(value: Decimal, unit: Option<&str>) -> String {
    let number = measured(value, unit);
    match unit {
        Some("percent" | "%") => match number.strip_prefix('-') {
            Some(number) => format!("-%{number}"),
            None => format!("%{number}"),
        },
        Some(unit) if !unit.is_empty() => format!("{number}\u{a0}{unit}"),
        _ => number,
    }
}

/// Formats a measured value, or a limit of one, without its unit.
pub(crate) fn measured(value: Decimal, unit: Option<&str>) -> String {
    let decimals = decimals(unit, value);
    let mut value = value.round_dp_with_strategy(decimals, RoundingStrategy::MidpointAwayFromZero);
    value.rescale(decimals);
    decimal(value)
}

/// The number of decimals of a value: as many as it has, but at least the usual number for its unit, and at most four. A more precise
/// neighbor adds none, because they would claim a precision that was not measured.
pub(crate) fn decimals(unit: Option<&str>, value: Decimal) -> u32 {
    let default = match unit {
        Some("kN") => 2,
        Some("percent" | "%" | "m/km" | "HP") => 1,
        _ => 0,
    };
    value.normalize().scale().clamp(default, MAX_DECIMALS)
}

/// Formats a mileage: `128.450 km`.
pub(crate) fn kilometers(value: i32) -> String {
    format!("{}\u{a0}km", decimal(Decimal::from(value)))
}

/// Formats a day in Turkish time: `5 Mayıs 2026`.
pub(crate) fn day(time: DateTime<Utc>) -> String {
    let local = istanbul(time);
    let month = MONTHS.get(local.month0() as usize).copied().unwrap_or_default();
    format!("{} {month} {}", local.day(), local.year())
}

/// Formats a day and minute in Turkish time: `05.05.2026 14:03`.
pub(crate) fn minute(time: DateTime<Utc>) -> String {
    let local = istanbul(time);
    format!(
        "{:02}.{:02}.{:04} {:02}:{:02}",
        local.day(),
        local.month(),
        local.year(),
        local.hour(),
        local.minute()
    )
}

fn istanbul(time: DateTime<Utc>) -> chrono::NaiveDateTime {
    match FixedOffset::east_opt(ISTANBUL_SECONDS) {
        Some(offset) => time.with_timezone(&offset).naive_local(),
        None => time.naive_utc(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Decimal {
        text.parse().unwrap_or_default()
    }

    #[test]
    fn money_is_written_the_turkish_way() {
        for (amount, written) in [
            ("1250", "1.250,00\u{a0}TL"),
            ("0.5", "0,50\u{a0}TL"),
            ("999.995", "1.000,00\u{a0}TL"),
            ("1234567.10", "1.234.567,10\u{a0}TL"),
            ("-1250", "-1.250,00\u{a0}TL"),
        ] {
            assert_eq!(money(number(amount), "TRY"), written);
        }
        assert_eq!(money(number("7"), "EUR"), "7,00\u{a0}EUR");
    }

    #[test]
    fn values_have_their_units_and_the_percent_sign_comes_first() {
        assert_eq!(quantity(number("3"), Some("kN")), "3,00\u{a0}kN");
        assert_eq!(quantity(number("-4.1"), Some("m/km")), "-4,1\u{a0}m/km");
        assert_eq!(quantity(number("78"), Some("percent")), "%78,0");
        assert_eq!(quantity(number("-78"), Some("percent")), "-%78,0");
        assert_eq!(quantity(number("0.00005"), None), "0,0001");
        assert_eq!(percent(number("12.50")), "%12,5");
    }

    #[test]
    fn a_value_has_its_own_decimals_and_at_least_those_of_its_unit() {
        let of = |unit, value| decimals(unit, number(value));
        assert_eq!(of(Some("kN"), "3"), 2);
        assert_eq!(of(Some("kN"), "3.8312"), 4);
        assert_eq!(of(Some("kN"), "3.1234567"), 4);
        assert_eq!(of(Some("percent"), "61.50"), 1);
        assert_eq!(of(Some("µm"), "120"), 0);
        assert_eq!(of(Some("bar"), "12.4"), 1);
        assert_eq!(of(Some("bar"), "13"), 0);
    }

    #[test]
    fn days_are_in_turkish_time() {
        let time = DateTime::from_timestamp(1_777_935_600, 0).unwrap_or_default(); // 2026-05-04T23:00:00Z
        assert_eq!(day(time), "5 Mayıs 2026");
        assert_eq!(minute(time), "05.05.2026 02:00");
    }
}
