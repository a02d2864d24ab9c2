//! The findings in a report's forms, with which its texts must agree.

use rust_decimal::Decimal;

use crate::data::{Form, Template};

/// The answers in a report's forms and the mileage that was read.
#[derive(Clone, Debug)]
pub struct Findings {
    /// In km.
    pub mileage_km: i32,
    answers: Vec<Finding>,
}

#[derive(Clone, Debug)]
struct Finding {
    point: &'static str,
    status: &'static str,
    severity: &'static str,
    value: Option<Decimal>,
}

impl Findings {
    /// Creates the findings of these forms, whose templates are in `templates`.
    pub fn new(mileage_km: i32, forms: &[Form], templates: &[Template]) -> Self {
        let mut answers = Vec::new();
        for form in forms {
            let template = templates.iter().find(|template| template.id == form.template);
            for answer in &form.answers {
                let points = template.into_iter().flat_map(|template| &template.points);
                if let Some(point) = points.into_iter().find(|point| point.id == answer.point) {
                    answers.push(Finding {
                        point: point.code,
                        status: answer.status_code,
                        severity: answer.severity,
                        value: answer.numeric_value,
                    });
                }
            }
        }
        Self { mileage_km, answers }
    }

    /// Returns the answers to the points whose codes begin with one of these, or all answers if `points` is empty.
    fn of<'a>(&'a self, points: &'a [&str]) -> impl Iterator<Item = &'a Finding> {
        let all = points.is_empty();
        let is_one = move |answer: &&Finding| all || points.iter().any(|point| answer.point.starts_with(point));
        self.answers.iter().filter(is_one)
    }

    /// Returns whether a point has an answer.
    pub fn has(&self, point: &str) -> bool {
        self.answers.iter().any(|answer| answer.point == point)
    }

    /// Returns whether one of the points has one of these statuses.
    pub fn any(&self, points: &[&str], statuses: &[&str]) -> bool {
        self.of(points).any(|answer| statuses.contains(&answer.status))
    }

    /// Returns whether one of the points has a medium or high severity.
    pub fn is_bad(&self, points: &[&str]) -> bool {
        self.of(points)
            .any(|answer| matches!(answer.severity, "MEDIUM" | "HIGH"))
    }

    /// Returns whether the points have answers and none of them has a defect.
    pub fn is_fine(&self, points: &[&str]) -> bool {
        self.of(points).count() >= points.len().min(1) && self.of(points).all(|answer| answer.severity == "NONE")
    }

    /// Returns whether the point has this numeric value.
    pub fn reads(&self, point: &str, value: i64) -> bool {
        self.answers
            .iter()
            .any(|answer| answer.point == point && answer.value == Some(Decimal::from(value)))
    }
}
