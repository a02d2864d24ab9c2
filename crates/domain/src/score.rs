//! The inspected part of a report, and its score: 100 points minus deductions for its defects (INS-8, INS-13).

/// The lowest possible score.
pub const MIN_SCORE: i32 = 30;

/// The beginning of the codes of statuses that say that a point was not inspected, such as `NOT_CHECKED`.
const NOT_INSPECTED: &str = "NOT_";

/// Returns the deduction for an answer with a severity.
fn deduction(severity: &str) -> i32 {
    match severity {
        "LOW" => 1,
        "MEDIUM" => 2,
        "HIGH" => 5,
        _ => 0,
    }
}

/// Returns whether a status says that its point was inspected. One such as `NOT_CHECKED` does not, unless its severity makes it a
/// defect, as in `NOT_WORKING`.
#[must_use]
pub fn is_inspected(status_code: &str, severity: &str) -> bool {
    deduction(severity) > 0 || !(status_code.is_empty() || status_code.starts_with(NOT_INSPECTED))
}

/// The numbers of a report's points and of those that were inspected, and the deductions for their defects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Assessment {
    /// The number of points.
    pub points: usize,
    /// The number of points that were inspected.
    pub inspected: usize,
    deductions: i32,
}

impl Assessment {
    /// Adds a point with its answer: the status code and the severity. Returns whether the point was inspected.
    pub fn add(&mut self, answer: Option<(&str, &str)>) -> bool {
        self.points += 1;
        let inspected = answer.filter(|(status_code, severity)| is_inspected(status_code, severity));
        if let Some((_, severity)) = inspected {
            self.inspected += 1;
            self.deductions = self.deductions.saturating_add(deduction(severity));
        }
        inspected.is_some()
    }

    /// Returns the score, from [`MIN_SCORE`] to 100; `None` if nothing was inspected.
    #[must_use]
    pub fn score(&self) -> Option<i32> {
        (self.inspected > 0).then(|| 100_i32.saturating_sub(self.deductions).clamp(MIN_SCORE, 100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(answers: impl IntoIterator<Item = Option<(&'a str, &'a str)>>) -> Assessment {
        let mut assessment = Assessment::default();
        for answer in answers {
            assessment.add(answer);
        }
        assessment
    }

    /// INS-8
    #[test]
    fn deductions_depend_on_severity_and_leave_at_least_thirty_points() {
        let score = |severities: &[&'static str]| of(severities.iter().map(|severity| Some(("X", *severity)))).score();
        assert_eq!(score(&["NONE", "NONE"]), Some(100));
        assert_eq!(score(&["LOW", "MEDIUM", "HIGH", "NONE"]), Some(92));
        assert_eq!(score(&["HIGH"; 40]), Some(30));
    }

    /// INS-13
    #[test]
    fn a_point_without_an_answer_or_with_a_status_that_denies_an_inspection_was_not_inspected() {
        let nothing = of([None, Some(("NOT_CHECKED", "NONE")), Some(("", "NONE"))]);
        assert_eq!((nothing.points, nothing.inspected, nothing.score()), (3, 0, None));
        let some = of([None, Some(("NOT_WORKING", "HIGH")), Some(("NOTED", "NONE"))]);
        assert_eq!((some.points, some.inspected, some.score()), (3, 2, Some(95)));
    }
}
