//! What becomes of answers that an inspector writes (INS-7): their statuses, and the ratio that follows from a power (INS-12).

use codegen_runtime::fault::{Fault, Faults, Path};
use partner_api::plausible::documented;
use partner_api_domain::dyno;
use partner_api_domain::plausible::{self, Narrowed};
use partner_api_domain::threshold::{self, Bounds};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::vocabulary::Word;

/// An answer to write; what is not said stays as it was.
#[derive(Clone, Debug)]
pub struct ToWrite {
    /// The point's code.
    pub point_code: String,
    /// Its status; none: what the thresholds give the number, else what it was.
    pub status: Option<Word>,
    /// Its number.
    pub number: Option<Decimal>,
    /// What the inspector saw; none leaves what was there.
    pub note: Option<String>,
}

/// A form's template, with what decides about its numbers.
pub struct Template {
    /// Its id.
    pub id: Uuid,
    /// Whether devices write into it.
    pub is_test_line: bool,
    /// The power that is registered of the vehicle, in HP.
    pub factory_power_hp: Option<Decimal>,
    /// Its points.
    pub points: Vec<TemplatePoint>,
}

/// A point of it, and the answer that is there.
pub struct TemplatePoint {
    /// Its id.
    pub id: Uuid,
    /// Its code.
    pub code: String,
    /// The limits that give a number its status, if there are any.
    pub bounds: Option<Bounds>,
    /// What the organisation takes for possible.
    pub narrowed: Narrowed,
    /// Whether there is an answer.
    pub is_answered: bool,
    /// The number that is there.
    pub number: Option<Decimal>,
}

/// An answer as it is written; `None` leaves what was there.
pub struct Judged<'a> {
    /// The point's id.
    pub point: Uuid,
    /// Its status.
    pub word: Option<Word>,
    /// Its number.
    pub number: Option<Decimal>,
    /// What the inspector saw.
    pub note: Option<&'a str>,
}

impl Template {
    fn point(&self, code: &str) -> Option<&TemplatePoint> {
        self.points.iter().find(|point| point.code == code)
    }

    /// The statuses of answers, and the ratio that follows from a power typed in.
    ///
    /// # Errors
    /// Everything that is wrong with them at once.
    pub fn judge<'a>(&self, answers: &'a [ToWrite]) -> Result<Vec<Judged<'a>>, Faults> {
        let mut faults = Vec::new();
        let mut judged = Vec::new();
        for (index, answer) in answers.iter().enumerate() {
            match self.one(index, answer, answers) {
                Ok(one) => judged.push(one),
                Err(fault) => faults.push(fault),
            }
        }
        if let Some(faults) = Faults::of(faults) {
            return Err(faults);
        }
        if !answers.iter().any(|answer| answer.point_code == dyno::RATIO) {
            judged.extend(self.ratio_alone(answers));
        }
        Ok(judged)
    }

    fn one<'a>(&self, index: usize, answer: &'a ToWrite, all: &[ToWrite]) -> Result<Judged<'a>, Fault> {
        let place = Path::default().member("answers").item(index);
        let fault = |member: &str, message: String| Fault::in_body(&place.member(member), message);
        let code = &answer.point_code;
        let point = self.point(code).ok_or_else(|| {
            fault(
                "point_code",
                format!("the template has no point {code}; see the report's forms"),
            )
        })?;
        if all[..index].iter().any(|other| other.point_code == *code) {
            return Err(fault("point_code", format!("{code} is there twice; send it once")));
        }
        if let (true, Some(number)) = (self.is_test_line, answer.number)
            && !plausible::is_plausible(documented(code), number, point.narrowed)
        {
            return Err(fault(
                "numeric_value",
                format!("{number} is outside of what is possible at {code}; see its unit"),
            ));
        }
        let written = match self.is_test_line && code == dyno::RATIO {
            true => self
                .ratio(point, answer.number, all)
                .map_err(|(member, message)| fault(member, message))?,
            false => answer.number,
        };
        let number = written.or(point.number);
        let given = number.and_then(|number| threshold::status(number, point.bounds.as_ref()));
        let word = match (given.map(Word::from), answer.status) {
            // A note alone, or nothing at all.
            (_, None) if written.is_none() && point.is_answered => None,
            (Some(given), Some(sent)) if given != sent => {
                let message = format!(
                    "the organization's thresholds give this number {}; leave the status out",
                    given.code
                );
                return Err(fault("status_code", message));
            }
            (Some(given), _) => Some(given),
            (None, Some(sent)) => Some(sent),
            (None, None) => {
                let message = "is needed: there is no number with thresholds that would give one".to_owned();
                return Err(fault("status_code", message));
            }
        };
        Ok(Judged {
            point: point.id,
            word,
            number: written,
            note: answer.note.as_deref(),
        })
    }

    /// What `DYNO_RATIO` is, by the measured power that is typed in, else by the one that is there (MEA-9).
    fn computed(&self, answers: &[ToWrite]) -> Option<Decimal> {
        let measured = typed_power(answers).or_else(|| self.point(dyno::MEASURED_HP)?.number)?;
        dyno::ratio(measured, self.factory_power_hp?)
    }

    /// The number that an answer of `DYNO_RATIO` writes, where `sent` is typed in or none (INS-12); else which of its members is
    /// wrong, and why.
    fn ratio(
        &self,
        point: &TemplatePoint,
        sent: Option<Decimal>,
        all: &[ToWrite],
    ) -> Result<Option<Decimal>, (&'static str, String)> {
        let computed = self.computed(all);
        match (sent, computed) {
            (Some(sent), Some(ratio)) if sent != ratio => {
                let message = format!(
                    "is computed: {ratio} by the measured power and the vehicle's registered one; leave it out"
                );
                Err(("numeric_value", message))
            }
            (Some(sent), _) => Ok(Some(sent)),
            (None, _) if typed_power(all).is_none() => Ok(None),
            // What else is said of a ratio is said of the new one.
            (None, _) => match computed.filter(|ratio| point.judges(*ratio).is_some()) {
                Some(ratio) => Ok(Some(ratio)),
                None => {
                    let message = format!(
                        "the measured power that is sent gives no ratio; leave {} out",
                        point.code
                    );
                    Err(("point_code", message))
                }
            },
        }
    }

    /// `DYNO_RATIO` of a measured power that is typed in, of which itself nothing is said.
    fn ratio_alone<'a>(&self, answers: &'a [ToWrite]) -> Option<Judged<'a>> {
        let point = self.point(dyno::RATIO).filter(|_| self.is_test_line)?;
        typed_power(answers)?;
        let ratio = self.computed(answers)?;
        Some(Judged {
            point: point.id,
            word: Some(point.judges(ratio)?),
            number: Some(ratio),
            note: None,
        })
    }

    /// The point of a ratio that stands beside a power which it does not follow from: one was typed in that has none.
    #[must_use]
    pub fn ratio_without_ground(&self, answers: &[ToWrite], written: &[Judged<'_>]) -> Option<Uuid> {
        let ratio = self
            .point(dyno::RATIO)
            .filter(|point| self.is_test_line && point.is_answered)?;
        let is_written = written.iter().any(|answer| answer.point == ratio.id);
        (typed_power(answers).is_some() && !is_written).then_some(ratio.id)
    }
}

impl TemplatePoint {
    /// The status of a number that was computed; `None` where it cannot be, or has none.
    fn judges(&self, number: Decimal) -> Option<Word> {
        let status = threshold::status(number, self.bounds.as_ref())?;
        plausible::is_plausible(documented(&self.code), number, self.narrowed).then(|| status.into())
    }
}

/// The measured power, in HP, if one is typed in.
fn typed_power(answers: &[ToWrite]) -> Option<Decimal> {
    answers
        .iter()
        .find(|answer| answer.point_code == dyno::MEASURED_HP)?
        .number
}
