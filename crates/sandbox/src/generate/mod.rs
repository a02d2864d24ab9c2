//! Makes the sandbox's data from a seed. Pure: the same seed gives the same rows on every machine and day.

mod forms;
pub mod found;
mod measurements;
mod photos;
mod reports;
mod tenants;
#[cfg(test)]
mod tests;
mod texts;

use chrono::{DateTime, TimeZone as _, Utc};

use super::catalogue::places;
use super::data::{Dataset, Examples, Inspection, Opened};
use super::random::Random;

/// The seed of the data that `partner-api sandbox` serves. Another one makes another data set, whose organisations have
/// other ids: a database made with an older one is recognised by that.
pub const SEED: u64 = 20_261_122;

/// The day before which everything in the data happened that is not tied to the sandbox's last start.
#[must_use]
pub fn base() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 6, 1, 0, 0, 0).single().unwrap_or_default()
}

/// All of the data of a seed.
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

/// The examples are the first reports that show the most.
fn choose_examples(data: &mut Dataset) {
    let first = |wanted: &dyn Fn(&Inspection) -> bool| data.inspections.iter().position(wanted).unwrap_or(0);
    let rich = |inspection: &Inspection| {
        data.branches[inspection.branch].organization == places::MASKED
            && inspection.forms.len() == 5
            && inspection.photos.iter().any(|photo| photo.kind == "REGISTRATION")
            && inspection.photos.iter().any(|photo| photo.kind == "OTOSICIL_PDF")
            && inspection.photos.iter().any(|photo| !photo.show_in_report)
    };
    let published =
        first(&|inspection| inspection.status == "PUBLISHED" && inspection.public_slug.is_some() && rich(inspection));
    let archived = first(&|inspection| inspection.status == "ARCHIVED" && !inspection.photos.is_empty());
    let cancelled = first(&|inspection| inspection.status == "CANCELLED");
    // The youngest: of several open reports for one plate a measurement goes to the newest.
    let open_report = first(&|inspection| inspection.opened == Opened::Before(reports::youngest()));
    data.examples = Examples {
        published,
        archived,
        cancelled,
        open_report,
        ..data.examples.clone()
    };
}
