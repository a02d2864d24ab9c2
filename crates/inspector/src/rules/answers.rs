//! Validates an inspector's answers and determines their statuses (INS-7), and computes the ratio of a power (INS-12).

use codegen_runtime::validation::{Path, ValidationError, ValidationErrors};
use partner_api::plausible::documented;
use partner_api_domain::dyno;
use partner_api_domain::plausible::{self, NarrowedRange};
use partner_api_domain::template::Status;
use partner_api_domain::threshold::{self, Bounds};
use rust_decimal::Decimal;
use uuid::Uuid;

/// An answer to write; `None` leaves a value unchanged.
#[derive(Clone, Debug)]
pub struct NewAnswer {
    /// The point's code.
    pub point_code: String,
    /// The code of its status. If it is `None`, the thresholds determine the status, or it stays unchanged.
    pub status: Option<String>,
    /// Its number.
    pub number: Option<Decimal>,
    /// The inspector's note.
    pub note: Option<String>,
}

/// A form's template, with the data that determines statuses and ratios.
pub struct Template {
    /// Its ID.
    pub id: Uuid,
    /// Whether devices write to the form.
    pub is_test_line: bool,
    /// The vehicle's registered power, in HP.
    pub factory_power_hp: Option<Decimal>,
    /// The statuses of its points.
    pub statuses: Vec<Status>,
    /// Its points.
    pub points: Vec<TemplatePoint>,
    /// Whether the request clears the measured power.
    pub is_power_cleared: bool,
}

/// A point of a template, and its current answer.
pub struct TemplatePoint {
    /// Its ID.
    pub id: Uuid,
    /// Its code.
    pub code: String,
    /// The thresholds that determine a number's status, if there are any.
    pub bounds: Option<Bounds>,
    /// The organization's plausible range.
    pub narrowed: NarrowedRange,
    /// Whether the point has an answer.
    pub is_answered: bool,
    /// The current number.
    pub number: Option<Decimal>,
}

/// A validated answer; `None` leaves a value unchanged.
pub struct ValidatedAnswer<'a> {
    /// The point's ID.
    pub point: Uuid,
    /// Its status.
    pub status: Option<Status>,
    /// Its number.
    pub number: Option<Decimal>,
    /// The inspector's note.
    pub note: Option<&'a str>,
}

impl Template {
    fn point(&self, code: &str) -> Option<&TemplatePoint> {
        self.points.iter().find(|point| point.code == code)
    }

    /// Finds the status with this code.
    ///
    /// # Errors
    /// The message for an unknown code.
    fn status(&self, code: &str) -> Result<Status, String> {
        let known = self.statuses.iter().find(|status| status.code == code);
        known.cloned().ok_or_else(|| {
            let codes: Vec<_> = self.statuses.iter().map(|status| status.code.as_str()).collect();
            format!(
                "{code} is not a status of the form; its statuses are {}",
                codes.join(", ")
            )
        })
    }

    /// Clears points before the answers are validated. Returns the IDs of those that had an answer.
    ///
    /// # Errors
    /// All codes of unknown points.
    pub fn clear(&mut self, codes: &[String]) -> Result<Vec<Uuid>, ValidationErrors> {
        let (mut errors, mut cleared) = (Vec::new(), Vec::new());
        for (index, code) in codes.iter().enumerate() {
            let Some(point) = self.points.iter_mut().find(|point| point.code == *code) else {
                let place = Path::default().member("clear").item(index);
                let message = format!("the template has no point {code}; see the report's forms");
                errors.push(ValidationError::in_body(&place, message));
                continue;
            };
            if point.is_answered {
                cleared.push(point.id);
            }
            point.is_answered = false;
            point.number = None;
            self.is_power_cleared |= self.is_test_line && code == dyno::MEASURED_HP;
        }
        ValidationErrors::of(errors).map_or(Ok(cleared), Err)
    }

    /// Validates answers and determines their statuses. If they contain a measured power, adds the ratio that follows from it.
    ///
    /// # Errors
    /// All invalid answers.
    pub fn validate<'a>(&self, answers: &'a [NewAnswer]) -> Result<Vec<ValidatedAnswer<'a>>, ValidationErrors> {
        let mut errors = Vec::new();
        let mut validated = Vec::new();
        for (index, answer) in answers.iter().enumerate() {
            match self.validate_one(index, answer, answers) {
                Ok(answer) => validated.push(answer),
                Err(error) => errors.push(error),
            }
        }
        if let Some(errors) = ValidationErrors::of(errors) {
            return Err(errors);
        }
        if !answers.iter().any(|answer| answer.point_code == dyno::RATIO) {
            validated.extend(self.computed_ratio(answers));
        }
        Ok(validated)
    }

    fn validate_one<'a>(
        &self,
        index: usize,
        answer: &'a NewAnswer,
        all: &[NewAnswer],
    ) -> Result<ValidatedAnswer<'a>, ValidationError> {
        let place = Path::default().member("answers").item(index);
        let error = |member: &str, message: String| ValidationError::in_body(&place.member(member), message);
        let code = &answer.point_code;
        let point = self.point(code).ok_or_else(|| {
            error(
                "point_code",
                format!("the template has no point {code}; see the report's forms"),
            )
        })?;
        if all[..index].iter().any(|other| other.point_code == *code) {
            return Err(error("point_code", format!("{code} appears twice; send it once")));
        }
        if let (true, Some(number)) = (self.is_test_line, answer.number)
            && !plausible::is_plausible(documented(code), number, point.narrowed)
        {
            return Err(error(
                "numeric_value",
                format!("{number} is implausible for {code}; check its unit"),
            ));
        }
        let written = match self.is_test_line && code == dyno::RATIO {
            true => self
                .ratio(point, answer.number, all)
                .map_err(|(member, message)| error(member, message))?,
            false => answer.number,
        };
        let number = written.or(point.number);
        let given = number.and_then(|number| threshold::status(number, point.bounds.as_ref()));
        let sent = answer.status.as_deref().map(|code| self.status(code)).transpose();
        let sent = sent.map_err(|message| error("status_code", message))?;
        let status = match (given.map(Status::from), sent) {
            // The answer contains only a note, or nothing.
            (_, None) if written.is_none() && point.is_answered => None,
            (Some(given), Some(sent)) if given.code != sent.code => {
                let message = format!(
                    "the organization's thresholds give this number the status {}; omit status_code",
                    given.code
                );
                return Err(error("status_code", message));
            }
            (Some(given), _) => Some(given),
            (None, Some(sent)) => Some(sent),
            (None, None) => {
                let message = "is required unless a number with thresholds determines it".to_owned();
                return Err(error("status_code", message));
            }
        };
        Ok(ValidatedAnswer {
            point: point.id,
            status,
            number: written,
            note: answer.note.as_deref(),
        })
    }

    /// Computes `DYNO_RATIO` from the measured power in the answers, or from the current one (MEA-9).
    fn compute_ratio(&self, answers: &[NewAnswer]) -> Option<Decimal> {
        let measured = sent_power(answers).or_else(|| self.point(dyno::MEASURED_HP)?.number)?;
        dyno::ratio(measured, self.factory_power_hp?)
    }

    /// Returns the number to write for an answer to `DYNO_RATIO`, where `sent` is the number in the answer (INS-12).
    ///
    /// # Errors
    /// The invalid member of the answer, and the message.
    fn ratio(
        &self,
        point: &TemplatePoint,
        sent: Option<Decimal>,
        all: &[NewAnswer],
    ) -> Result<Option<Decimal>, (&'static str, String)> {
        let computed = self.compute_ratio(all);
        match (sent, computed) {
            (Some(sent), Some(ratio)) if sent != ratio => {
                let message = format!("is computed as {ratio} from the measured and the registered power; omit it");
                Err(("numeric_value", message))
            }
            (Some(sent), _) => Ok(Some(sent)),
            (None, _) if sent_power(all).is_none() => Ok(None),
            // A status or note for the ratio applies to the newly computed one.
            (None, _) => match computed.filter(|ratio| point.status_of(*ratio).is_some()) {
                Some(ratio) => Ok(Some(ratio)),
                None => {
                    let message = format!("the measured power in this request gives no ratio; omit {}", point.code);
                    Err(("point_code", message))
                }
            },
        }
    }

    /// The answer to `DYNO_RATIO` that follows from a measured power, if the request does not answer it itself.
    fn computed_ratio<'a>(&self, answers: &'a [NewAnswer]) -> Option<ValidatedAnswer<'a>> {
        let point = self.point(dyno::RATIO).filter(|_| self.is_test_line)?;
        sent_power(answers)?;
        let ratio = self.compute_ratio(answers)?;
        Some(ValidatedAnswer {
            point: point.id,
            status: Some(point.status_of(ratio)?),
            number: Some(ratio),
            note: None,
        })
    }

    /// The point of an existing ratio that has to be removed: the request changes or clears the measured power, and gives no new
    /// ratio.
    #[must_use]
    pub fn outdated_ratio(&self, answers: &[NewAnswer], written: &[ValidatedAnswer<'_>]) -> Option<Uuid> {
        let ratio = self
            .point(dyno::RATIO)
            .filter(|point| self.is_test_line && point.is_answered)?;
        let is_written = written.iter().any(|answer| answer.point == ratio.id);
        ((sent_power(answers).is_some() || self.is_power_cleared) && !is_written).then_some(ratio.id)
    }
}

impl TemplatePoint {
    /// The status of a computed number; `None` if the number is implausible or has no thresholds.
    fn status_of(&self, number: Decimal) -> Option<Status> {
        let status = threshold::status(number, self.bounds.as_ref())?;
        plausible::is_plausible(documented(&self.code), number, self.narrowed).then(|| status.into())
    }
}

/// The measured power in the answers, in HP, if there is one.
fn sent_power(answers: &[NewAnswer]) -> Option<Decimal> {
    answers
        .iter()
        .find(|answer| answer.point_code == dyno::MEASURED_HP)?
        .number
}
