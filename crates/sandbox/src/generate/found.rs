//! What a report's forms say, so that its texts can say the same.

use rust_decimal::Decimal;

use crate::data::{Form, Template};

/// What was found, and the mileage that was read.
#[derive(Clone, Debug)]
pub struct Found {
    /// In km.
    pub mileage_km: i32,
    answers: Vec<Answered>,
}

#[derive(Clone, Debug)]
struct Answered {
    point: &'static str,
    status: &'static str,
    severity: &'static str,
    value: Option<Decimal>,
}

impl Found {
    /// Of these forms, whose templates are among `templates`.
    pub fn new(mileage_km: i32, forms: &[Form], templates: &[Template]) -> Self {
        let mut answers = Vec::new();
        for form in forms {
            let template = templates.iter().find(|template| template.id == form.template);
            for answer in &form.answers {
                let points = template.into_iter().flat_map(|template| &template.points);
                if let Some(point) = points.into_iter().find(|point| point.id == answer.point) {
                    answers.push(Answered {
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

    /// The answers to points of these codes, or that begin so; to all of them where there is none.
    fn of<'a>(&'a self, points: &'a [&str]) -> impl Iterator<Item = &'a Answered> {
        let all = points.is_empty();
        let is_one = move |answer: &&Answered| all || points.iter().any(|point| answer.point.starts_with(point));
        self.answers.iter().filter(is_one)
    }

    /// Whether a point was looked at.
    pub fn has(&self, point: &str) -> bool {
        self.answers.iter().any(|answer| answer.point == point)
    }

    /// Whether one of the points has one of these statuses.
    pub fn any(&self, points: &[&str], statuses: &[&str]) -> bool {
        self.of(points).any(|answer| statuses.contains(&answer.status))
    }

    /// Whether one of the points is worse than worn.
    pub fn is_bad(&self, points: &[&str]) -> bool {
        self.of(points)
            .any(|answer| matches!(answer.severity, "MEDIUM" | "HIGH"))
    }

    /// Whether the points were looked at, and none has anything.
    pub fn is_fine(&self, points: &[&str]) -> bool {
        self.of(points).count() >= points.len().min(1) && self.of(points).all(|answer| answer.severity == "NONE")
    }

    /// Whether this is what was read at the point.
    pub fn reads(&self, point: &str, value: i64) -> bool {
        self.answers
            .iter()
            .any(|answer| answer.point == point && answer.value == Some(Decimal::from(value)))
    }
}
