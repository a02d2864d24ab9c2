//! The score of a report: 100 points minus deductions for its defects (INS-8).

/// The lowest possible score.
pub const MIN_SCORE: i32 = 30;

/// Returns the deduction for an answer with a severity.
fn deduction(severity: &str) -> i32 {
    match severity {
        "LOW" => 1,
        "MEDIUM" => 2,
        "HIGH" => 5,
        _ => 0,
    }
}

/// Returns the score of answers with these severities, from [`MIN_SCORE`] to 100.
pub fn score<'a>(severities: impl IntoIterator<Item = &'a str>) -> i32 {
    let deductions: i32 = severities.into_iter().map(deduction).fold(0, i32::saturating_add);
    100_i32.saturating_sub(deductions).clamp(MIN_SCORE, 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// INS-8
    #[test]
    fn deductions_depend_on_severity_and_leave_at_least_thirty_points() {
        assert_eq!(score([]), 100);
        assert_eq!(score(["NONE", "NONE"]), 100);
        assert_eq!(score(["LOW", "MEDIUM", "HIGH", "NONE"]), 92);
        assert_eq!(score(std::iter::repeat_n("HIGH", 40)), 30);
    }
}
