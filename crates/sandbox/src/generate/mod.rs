//! Generates the sandbox's data from a seed. The same seed gives the same rows on every machine and day.

mod forms;
mod measurements;
mod photos;
mod reports;
mod tenants;
#[cfg(test)]
mod tests;
mod texts;

use chrono::{DateTime, TimeZone as _, Utc};

use super::catalog::places;
use super::data::{Dataset, Examples, Inspection, Opened};
use super::random::Random;

/// The seed of the data that `partner-api sandbox` serves. Another seed gives organizations with other IDs, by which a database with
/// older data is detected.
pub const SEED: u64 = 20_261_122;

/// Returns the day before which everything in the data happened, except what is relative to the sandbox's last start.
#[must_use]
pub fn base() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 6, 1, 0, 0, 0).single().unwrap_or_default()
}

/// Generates the data of a seed.
#[must_use]
pub fn dataset(seed: u64) -> Dataset {
    let mut random = Random::new(seed);
    let organizations = tenants::organizations(&mut random);
    let branches = tenants::branches(&mut random);
    let templates = tenants::templates(&mut random);
    let thresholds = tenants::thresholds();
    let mut data = Dataset {
        organizations,
        branches,
        templates,
        thresholds,
        vehicles: Vec::new(),
        inspections: Vec::new(),
        measurements: Vec::new(),
        examples: Examples {
            published: 0,
            archived: 0,
            cancelled: 0,
            open_report: 0,
            inactive_branch_code: places::INACTIVE_CODE,
            ambiguous_branch_code: places::AMBIGUOUS_CODE,
            not_granted_branch_code: places::NOT_GRANTED_CODE,
        },
    };
    reports::add(&mut random, &mut data);
    measurements::add_unsettled(&mut random, &mut data);
    choose_examples(&mut data);
    data
}

/// Selects the first reports that show as much as possible as examples.
fn choose_examples(data: &mut Dataset) {
    let first = |wanted: &dyn Fn(&Inspection) -> bool| data.inspections.iter().position(wanted).unwrap_or(0);
    let shows_everything = |inspection: &Inspection| {
        data.branches[inspection.branch].organization == places::MASKED
            && inspection.forms.len() == 5
            && inspection.photos.iter().any(|photo| photo.kind == "REGISTRATION")
            && inspection.photos.iter().any(|photo| photo.kind == "OTOSICIL_PDF")
            && inspection.photos.iter().any(|photo| !photo.show_in_report)
    };
    let published = first(&|inspection| {
        inspection.status == "PUBLISHED" && inspection.public_slug.is_some() && shows_everything(inspection)
    });
    let archived = first(&|inspection| inspection.status == "ARCHIVED" && !inspection.photos.is_empty());
    let cancelled = first(&|inspection| inspection.status == "CANCELLED");
    // The newest open report, because a measurement goes to the newest one for its plate.
    let open_report = first(&|inspection| inspection.opened == Opened::Before(reports::newest_age()));
    data.examples = Examples {
        published,
        archived,
        cancelled,
        open_report,
        ..data.examples.clone()
    };
}
