//! The test-line form: its points, the values that devices send, and the organizations' thresholds.

use super::places::{FULL, MASKED, NONE};

/// A measurement point: code, name, unit.
pub struct TestLinePoint {
    /// The measurement point code.
    pub code: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The lowest and highest value that a device sends, in hundredths. Power values depend on the vehicle instead.
    pub hundredths: (i64, i64),
}

const fn point(code: &'static str, name: &'static str, unit: &'static str, low: i64, high: i64) -> TestLinePoint {
    TestLinePoint {
        code,
        name,
        unit,
        hundredths: (low, high),
    }
}

/// Form code.
pub const CODE: &str = "TEST_LINE";
/// Form name.
pub const NAME: &str = "Test Hattı Kontrolleri";
/// The form's score category.
pub const SCORE_CATEGORY: &str = "TEST_LINE";
/// The point for the vehicle's registered power.
pub const FACTORY_HP: &str = "DYNO_FACTORY_HP";

/// The fourteen points that devices send, and the computed power ratio.
pub const POINTS: [TestLinePoint; 15] = [
    point(FACTORY_HP, "Dinamometre, fabrika gücü", "HP", 0, 0),
    point(
        partner_api_domain::dyno::MEASURED_HP,
        "Dinamometre, ölçülen güç",
        "HP",
        0,
        0,
    ),
    point(
        partner_api_domain::dyno::RATIO,
        "Dinamometre, güç oranı",
        "percent",
        0,
        0,
    ),
    point("SUSP_FRONT_LEFT", "Süspansiyon verimi, sol ön", "percent", 3400, 9200),
    point("SUSP_FRONT_RIGHT", "Süspansiyon verimi, sağ ön", "percent", 3400, 9200),
    point("SUSP_REAR_LEFT", "Süspansiyon verimi, sol arka", "percent", 3100, 8800),
    point("SUSP_REAR_RIGHT", "Süspansiyon verimi, sağ arka", "percent", 3100, 8800),
    point("BRAKE_FRONT_LEFT", "Fren kuvveti, sol ön", "kN", 135, 390),
    point("BRAKE_FRONT_RIGHT", "Fren kuvveti, sağ ön", "kN", 135, 390),
    point("BRAKE_REAR_LEFT", "Fren kuvveti, sol arka", "kN", 85, 260),
    point("BRAKE_REAR_RIGHT", "Fren kuvveti, sağ arka", "kN", 85, 260),
    point("HANDBRAKE_LEFT", "El freni kuvveti, sol", "kN", 55, 210),
    point("HANDBRAKE_RIGHT", "El freni kuvveti, sağ", "kN", 55, 210),
    point("SLIP_FRONT", "Yanal kayma, ön", "m/km", -850, 850),
    point("SLIP_REAR", "Yanal kayma, arka", "m/km", -790, 790),
];

/// Points that are computed from both sides of an axle and have their own thresholds: the sum and the difference.
pub const COMPUTED: [&str; 8] = [
    "SUSP_FRONT_DIFFERENCE",
    "SUSP_REAR_DIFFERENCE",
    "BRAKE_FRONT_SUM",
    "BRAKE_FRONT_DIFFERENCE",
    "BRAKE_REAR_SUM",
    "BRAKE_REAR_DIFFERENCE",
    "HANDBRAKE_SUM",
    "HANDBRAKE_DIFFERENCE",
];

/// Returns whether an organization's template lacks a point. A device's value for it is skipped as `unknown_point`.
#[must_use]
pub fn is_left_out(organization: usize, code: &str) -> bool {
    organization == NONE && matches!(code, "HANDBRAKE_LEFT" | "HANDBRAKE_RIGHT" | "SLIP_REAR")
}

/// A point's bounds in hundredths: lowest good, highest good, lowest borderline, highest borderline.
pub type BoundsSpec = (Option<i64>, Option<i64>, Option<i64>, Option<i64>);

const fn at_least(good: i64, borderline: i64) -> Option<BoundsSpec> {
    Some((Some(good), None, Some(borderline), None))
}

const fn at_most(good: i64, borderline: i64) -> Option<BoundsSpec> {
    Some((None, Some(good), None, Some(borderline)))
}

const fn around_zero(good: i64, borderline: i64) -> Option<BoundsSpec> {
    Some((Some(-good), Some(good), Some(-borderline), Some(borderline)))
}

/// Returns an organization's thresholds for a point. Without thresholds, a device's value is skipped as `no_status`.
#[must_use]
pub fn thresholds(organization: usize, code: &str) -> Option<BoundsSpec> {
    // One organization is stricter, and each lacks the thresholds of some points.
    let strict = if organization == FULL { 110 } else { 100 };
    let without = match organization {
        MASKED => code == "SUSP_REAR_RIGHT",
        NONE => code == "BRAKE_REAR_LEFT" || code == FACTORY_HP,
        _ => code == "SLIP_REAR" || code == FACTORY_HP,
    };
    if without {
        return None;
    }
    let percent = |value: i64| value * strict / 100;
    match code {
        code if code.ends_with("_DIFFERENCE") => at_most(2_000, 3_000),
        "BRAKE_FRONT_SUM" => at_least(percent(400), percent(300)),
        "BRAKE_REAR_SUM" => at_least(percent(260), percent(190)),
        "HANDBRAKE_SUM" => at_least(percent(180), percent(130)),
        FACTORY_HP => Some((Some(1), None, None, None)),
        partner_api_domain::dyno::MEASURED_HP => at_least(percent(5_000), percent(3_500)),
        partner_api_domain::dyno::RATIO => at_least(9_000, 8_000),
        code if code.starts_with("SUSP_") => at_least(percent(6_000), percent(4_000)),
        code if code.starts_with("BRAKE_FRONT") => at_least(percent(200), percent(150)),
        code if code.starts_with("BRAKE_REAR") => at_least(percent(130), percent(95)),
        code if code.starts_with("HANDBRAKE") => at_least(percent(90), percent(65)),
        code if code.starts_with("SLIP_") => around_zero(500, 700),
        _ => None,
    }
}
