//! A report's score: what remains of a hundred points after its defects (INS-8).

/// The least that a report scores.
pub const LEAST: i32 = 30;

/// What an answer of a severity costs.
fn cost(severity: &str) -> i32 {
    match severity {
        "LOW" => 1,
        "MEDIUM" => 2,
        "HIGH" => 5,
        _ => 0,
    }
}

/// The score of answers of these severities, [`LEAST`] to 100.
pub fn score<'a>(severities: impl IntoIterator<Item = &'a str>) -> i32 {
    let lost: i32 = severities.into_iter().map(cost).fold(0, i32::saturating_add);
    100_i32.saturating_sub(lost).clamp(LEAST, 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// INS-8
    #[test]
    fn each_defect_costs_by_its_severity_and_a_report_keeps_thirty() {
        assert_eq!(score([]), 100);
        assert_eq!(score(["NONE", "NONE"]), 100);
        assert_eq!(score(["LOW", "MEDIUM", "HIGH", "NONE"]), 92);
        assert_eq!(score(std::iter::repeat_n("HIGH", 40)), 30);
    }
}
