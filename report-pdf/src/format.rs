//! Numbers and dates as they are written in Turkish.

use chrono::{DateTime, Datelike, FixedOffset, Timelike, Utc};
use rust_decimal::{Decimal, RoundingStrategy};

/// Turkey's offset from UTC: +3 h all year since 2016.
const ISTANBUL_SECONDS: i32 = 3 * 3600;

const MONTHS: [&str; 12] = [
    "Ocak", "Şubat", "Mart", "Nisan", "Mayıs", "Haziran", "Temmuz", "Ağustos", "Eylül", "Ekim", "Kasım", "Aralık",
];

/// A decimal with `.` between thousands and `,` before the fraction, its scale kept: `-1.250,50`.
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

/// An amount with two decimals and its currency: `1.250,00 TL`.
pub(crate) fn money(amount: Decimal, currency: &str) -> String {
    let mut amount = amount.round_dp_with_strategy(2, RoundingStrategy::MidpointAwayFromZero);
    amount.rescale(2);
    let currency = if currency == "TRY" { "TL" } else { currency };
    format!("{}\u{a0}{currency}", decimal(amount))
}

/// A percentage, sign first as in Turkish, without trailing zeros: `%12,5`.
pub(crate) fn percent(value: Decimal) -> String {
    format!("%{}", decimal(value.normalize()))
}

/// A measured value with its unit: `3,21 kN`, `%78`.
pub(crate) fn quantity(value: Decimal, unit: Option<&str>) -> String {
    match unit {
        Some("percent" | "%") => format!("%{}", decimal(value)),
        Some(unit) if !unit.is_empty() => format!("{}\u{a0}{unit}", decimal(value)),
        _ => decimal(value),
    }
}

/// A mileage: `128.450 km`.
pub(crate) fn kilometres(value: i32) -> String {
    format!("{}\u{a0}km", decimal(Decimal::from(value)))
}

/// A day in Turkey's time: `5 Mayıs 2026`.
pub(crate) fn day(time: DateTime<Utc>) -> String {
    let local = istanbul(time);
    let month = MONTHS.get(local.month0() as usize).copied().unwrap_or_default();
    format!("{} {month} {}", local.day(), local.year())
}

/// A day and minute in Turkey's time: `05.05.2026 14:03`.
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
    fn values_keep_their_decimals_and_percent_goes_first() {
        assert_eq!(quantity(number("3.20"), Some("kN")), "3,20\u{a0}kN");
        assert_eq!(quantity(number("-4.1"), Some("m/km")), "-4,1\u{a0}m/km");
        assert_eq!(quantity(number("78"), Some("percent")), "%78");
        assert_eq!(quantity(number("0.00"), None), "0,00");
        assert_eq!(percent(number("12.50")), "%12,5");
    }

    #[test]
    fn days_are_those_of_turkey() {
        let time = DateTime::from_timestamp(1_777_935_600, 0).unwrap_or_default(); // 2026-05-04T23:00:00Z
        assert_eq!(day(time), "5 Mayıs 2026");
        assert_eq!(minute(time), "05.05.2026 02:00");
    }
}
