//! The measured operations: their requests and the expected responses.

use std::io::Write;

use rand::Rng;
use serde_json::Value;
use uuid::Uuid;

use crate::draft::{Draft, Signing};
use crate::fixture::{FULL_REPORTS, Fixture, ONE_REPORT, OPEN_REPORTS, REPORTS, open_report, report};

const ROOT: &str = "/api/v1/partner";

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Hello,
    Health,
    Organizations,
    List,
    Detail,
    Forms,
    Photos,
    Pdf,
    Pending,
    Applied,
    AppliedToOne,
    WrongSignature,
    Replay,
    OverLimit,
}

/// An operation under load.
pub struct Operation<'w> {
    /// Its name in the table and for `--only`.
    pub name: &'static str,
    /// The expected status.
    pub expected: u16,
    /// Another status that is allowed.
    pub tolerated: Option<u16>,
    kind: Kind,
    fixture: &'w Fixture,
    /// The values of a measurement, as JSON.
    values: String,
}

impl<'w> Operation<'w> {
    /// Returns all operations.
    pub fn all(fixture: &'w Fixture) -> Vec<Self> {
        [
            ("hello", Kind::Hello, 200),
            ("health", Kind::Health, 200),
            ("organizations", Kind::Organizations, 200),
            ("list", Kind::List, 200),
            ("detail", Kind::Detail, 200),
            ("forms", Kind::Forms, 200),
            ("photos", Kind::Photos, 200),
            ("pdf", Kind::Pdf, 200),
            ("pending", Kind::Pending, 201),
            ("applied", Kind::Applied, 201),
            ("applied-one", Kind::AppliedToOne, 201),
            ("wrong-signature", Kind::WrongSignature, 401),
            ("replay", Kind::Replay, 401),
            ("over-limit", Kind::OverLimit, 429),
        ]
        .map(|(name, kind, expected)| Self {
            name,
            expected,
            tolerated: match kind {
                // The first request of each connection is admitted.
                Kind::Replay => Some(200),
                // The limit admits one request per minute.
                Kind::OverLimit => Some(200),
                _ => None,
            },
            kind,
            fixture,
            values: values(&fixture.points),
        })
        .into()
    }

    /// Returns whether the operation runs on the service instead of the minimal server.
    pub fn is_of_service(&self) -> bool {
        self.kind != Kind::Hello
    }

    /// Returns whether each correct response means that a measurement was recorded.
    pub fn records(&self) -> bool {
        matches!(self.kind, Kind::Pending | Kind::Applied | Kind::AppliedToOne)
    }

    /// Fills in the next request.
    pub fn write(&self, draft: &mut Draft<'w>) {
        draft.path.clear();
        let mut random = rand::rng();
        let path = &mut draft.path;
        match self.kind {
            Kind::Hello => {
                path.push_str("/hello");
                draft.signing = Signing::None;
            }
            Kind::Health => path.push_str(&format!("{ROOT}/health")),
            Kind::Organizations => path.push_str(&format!("{ROOT}/organizations")),
            Kind::List | Kind::WrongSignature | Kind::Replay | Kind::OverLimit => {
                path.push_str(&format!("{ROOT}/inspections?limit=25"));
                match self.kind {
                    Kind::WrongSignature => draft.signing = Signing::Wrong,
                    Kind::Replay => draft.signing = Signing::Repeated,
                    Kind::OverLimit => draft.sign_with(&self.fixture.limited),
                    _ => {}
                }
            }
            Kind::Detail => {
                draft.drawn = random.random_range(0..REPORTS);
                path.push_str(&format!("{ROOT}/inspections/{}", report(draft.drawn)));
            }
            Kind::Forms | Kind::Photos => {
                draft.drawn = random.random_range(0..FULL_REPORTS);
                let part = if self.kind == Kind::Forms { "forms" } else { "photos" };
                path.push_str(&format!("{ROOT}/inspections/{}/{part}", report(draft.drawn)));
            }
            Kind::Pdf => {
                let id = self.fixture.pdfs[random.random_range(0..self.fixture.pdfs.len())];
                path.push_str(&format!("{ROOT}/inspections/{id}/pdf"));
            }
            Kind::Pending | Kind::Applied | Kind::AppliedToOne => {
                path.push_str(&format!("{ROOT}/test-line/measurements"));
                draft.method = "POST";
                draft.drawn = match self.kind {
                    Kind::Applied => random.random_range(OPEN_REPORTS),
                    Kind::AppliedToOne => ONE_REPORT,
                    _ => random.random_range(1_000..100_000),
                };
                // No open report has a plate of this province.
                let plate = if self.kind == Kind::Pending { "06PND" } else { "34BNC" };
                draft.body.clear();
                // Writing into a vector cannot fail.
                let _ = write!(
                    draft.body,
                    "{{\"branch_code\":\"{}\",\"plate\":\"{plate}{}\",\"external_id\":\"{}\",\"device_serial\":\"BRK2000-A\",\
                     \"measurements\":{{{}}}}}",
                    self.fixture.branch_code,
                    draft.drawn,
                    Uuid::new_v4().simple(),
                    self.values,
                );
            }
        }
    }

    /// Checks the body of a response with the expected status.
    ///
    /// # Errors
    /// If the body is wrong.
    pub fn check(&self, draft: &Draft<'_>, body: &[u8]) -> Result<(), String> {
        if self.kind == Kind::Pdf {
            let whole = body.starts_with(b"%PDF-") && body.trim_ascii_end().ends_with(b"%%EOF");
            return whole.then_some(()).ok_or_else(|| "incomplete PDF".to_owned());
        }
        let body: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let items = |pointer: &str| body.pointer(pointer).and_then(Value::as_array).map_or(0, Vec::len);
        let is = |pointer: &str, wanted: &str| body.pointer(pointer).and_then(Value::as_str) == Some(wanted);
        let id = || report(draft.drawn).to_string();
        let right = match self.kind {
            Kind::Hello | Kind::Health => is("/status", "ok"),
            Kind::Organizations => items("/data") == self.fixture.organizations.len(),
            Kind::List => items("/data") == 25 && body.pointer("/page/has_more") == Some(&Value::Bool(true)),
            Kind::Detail => is("/id", &id()),
            Kind::Forms => is("/inspection_id", &id()) && items("/forms") > 0 && items("/forms/0/points") > 0,
            Kind::Photos => is("/inspection_id", &id()) && items("/photos") > 0,
            Kind::Pending => is("/data/status", "pending"),
            Kind::Applied | Kind::AppliedToOne => {
                is("/data/status", "applied")
                    && is("/data/inspection_id", &open_report(draft.drawn).to_string())
                    && items("/data/applied_points") >= self.fixture.points.len()
            }
            Kind::WrongSignature => is("/error/code", "invalid_signature"),
            Kind::Replay => is("/error/code", "replay_detected"),
            Kind::OverLimit => is("/error/code", "rate_limited"),
            Kind::Pdf => true,
        };
        right
            .then_some(())
            .ok_or_else(|| format!("wrong response to {}", draft.path))
    }
}

/// Returns small values, which are plausible in the unit of every point.
fn values(points: &[String]) -> String {
    let values = points.iter().zip(1..);
    let values: Vec<String> = values
        .map(|(code, number)| format!("\"{code}\":{number}.{:02}", number * 7 % 100))
        .collect();
    values.join(",")
}
