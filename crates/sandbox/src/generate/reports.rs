//! Generates vehicles and their reports.

use chrono::{DateTime, Duration, Utc};
use rust_decimal::Decimal;

use super::forms::FormContext;
use super::texts::true_sentence;
use super::{base, forms, measurements, photos};
use crate::catalog::places::{BRANCHES, OPEN_REPORT_CODE, ORGANIZATIONS};
use crate::catalog::templates::{DISCOUNTS, PACKAGES};
use crate::catalog::texts::{INSPECTORS, RECOMMENDATIONS, SERVICES, SUMMARIES};
use crate::catalog::vehicles::{COLORS, MODELS};
use crate::data::{Dataset, Form, Inspection, Opened, Template, Vehicle};
use crate::findings::Findings;
use crate::random::Random;
use sandbox_pictures as pictures;

/// The number of reports in each status.
const STATUSES: [(&str, usize); 7] = [
    ("PUBLISHED", 216),
    ("ARCHIVED", 210),
    ("CANCELLED", 56),
    ("DRAFT", 60),
    ("IN_REVIEW", 34),
    ("REVISION_REQUESTED", 32),
    ("CANCEL_REQUESTED", 32),
];
/// The number of published reports without a public page.
const WITHOUT_SLUG: usize = 7;
/// The number of published and of archived reports that were opened at the same time, by an import. Together they exceed one page.
const IMPORTED: usize = 40;

/// Returns the age of the report that every start reopens, which is the newest.
pub fn newest_age() -> Duration {
    Duration::minutes(5)
}

pub fn add(random: &mut Random, data: &mut Dataset) {
    let mut plan: Vec<(&'static str, Opened)> = Vec::new();
    for (status, count) in STATUSES {
        for number in 0..count {
            plan.push((status, opened(random, status, number)));
        }
    }
    random.shuffle(&mut plan);
    // Reports are numbered in the order in which they were opened.
    plan.sort_by_key(|(_, opened)| match opened {
        Opened::At(time) => *time,
        Opened::Before(age) => base() - *age,
    });
    let mut slugs_left_out = 0;
    for (status, opened) in plan {
        let mut inspection = report(random, data, status, opened);
        if status == "PUBLISHED" && slugs_left_out < WITHOUT_SLUG && random.chance(10) {
            inspection.public_slug = None;
            slugs_left_out += 1;
        }
        data.inspections.push(inspection);
    }
    same_plate_twice(data);
}

/// Gives two open reports of one branch the same vehicle. A measurement for it goes to the newer report.
fn same_plate_twice(data: &mut Dataset) {
    let open: Vec<usize> = (0..data.inspections.len())
        .filter(|index| match data.inspections[*index].opened {
            Opened::Before(age) => age > newest_age() && age < Duration::hours(24),
            Opened::At(_) => false,
        })
        .collect();
    for (index, first) in open.iter().enumerate() {
        let second = open[index + 1..]
            .iter()
            .find(|second| data.inspections[**second].branch == data.inspections[*first].branch);
        if let Some(second) = second {
            // Both were opened on the same day, so they have the same mileage. Texts and photos that may contradict it are removed.
            let (vehicle, mileage) = {
                let second = &data.inspections[*second];
                (second.vehicle, second.snapshot_mileage_km)
            };
            let first = &mut data.inspections[*first];
            first.vehicle = vehicle;
            first.snapshot_mileage_km = mileage;
            first.summary.clear();
            first.recommendation.clear();
            first.photos.clear();
            for form in &mut first.forms {
                form.general_note.clear();
                form.answers.iter_mut().for_each(|answer| answer.note.clear());
            }
            return;
        }
    }
}

/// Generates the time at which the report with this number within its status was opened.
fn opened(random: &mut Random, status: &str, number: usize) -> Opened {
    let day = Duration::hours(24);
    match (status, number) {
        ("DRAFT", 0) => return Opened::Before(newest_age()),
        ("DRAFT", 1..=24) | ("REVISION_REQUESTED", 0..=9) => {
            return Opened::Before(Duration::minutes(random.between(20, 23 * 60)));
        }
        ("DRAFT", 25..=31) | ("REVISION_REQUESTED", 10..=13) => {
            return Opened::Before(day + Duration::minutes(random.between(1, 90)));
        }
        ("PUBLISHED" | "ARCHIVED", ..IMPORTED) => {
            return Opened::At(base() - Duration::days(151) + Duration::minutes(1_260));
        }
        _ => {}
    }
    let days = match status {
        "ARCHIVED" => random.between(150, 500),
        "PUBLISHED" => random.between(1, 150),
        "CANCELLED" => random.between(5, 300),
        _ => random.between(2, 60),
    };
    // Within opening hours (09:00 to 18:00 in Türkiye is 06:00 to 15:00 UTC), in steps of 15 minutes, so that some reports are opened
    // at the same time.
    Opened::At(base() - Duration::days(days) + Duration::minutes(360 + 15 * random.between(0, 36)))
}

fn report(random: &mut Random, data: &mut Dataset, status: &'static str, opened: Opened) -> Inspection {
    let (time, is_recent) = match opened {
        Opened::At(time) => (time, false),
        Opened::Before(age) => (base() - age, true),
    };
    let is_open_example = opened == Opened::Before(newest_age());
    let branch = if is_open_example {
        BRANCHES
            .iter()
            .position(|branch| branch.code == OPEN_REPORT_CODE)
            .unwrap_or(0)
    } else {
        pick_branch(random, is_recent)
    };
    let organization = data.branches[branch].organization;
    let vehicle = vehicle(random, data, branch, time, is_open_example || is_recent);
    let (package, price, form_count, has_test_line) = if is_recent {
        PACKAGES[3]
    } else {
        *random.pick(&PACKAGES)
    };
    let templates: Vec<Template> = data
        .templates
        .iter()
        .filter(|template| template.organization == organization)
        .cloned()
        .collect();
    let answered = if matches!(status, "DRAFT" | "REVISION_REQUESTED") {
        45
    } else {
        95
    };
    let before = data
        .inspections
        .iter()
        .filter(|inspection| inspection.vehicle == vehicle)
        .map(|inspection| inspection.snapshot_mileage_km);
    let registered = data.vehicles[vehicle].mileage_km;
    let mileage = mileage(random, before.max().unwrap_or(registered).max(registered));
    let context = FormContext {
        inspector: random.pick::<&'static str>(&INSPECTORS),
        answered,
        mileage_km: mileage,
        time,
    };
    let is_electric = data.vehicles[vehicle].fuel == "ELECTRIC";
    let mut filled: Vec<Form> = templates
        .iter()
        .filter(|template| !template.is_test_line)
        .take(form_count)
        // An electric car has neither oil nor a clutch.
        .filter(|template| !(template.code == "ENGINE" && is_electric))
        .map(|template| forms::manual_form(random, template, context))
        .collect();
    let number = data.inspections.len();
    if has_test_line && let Some(template) = templates.iter().find(|template| template.is_test_line) {
        filled.push(if is_recent {
            // Empty until a device submits a measurement.
            Form {
                id: random.id(time),
                template: template.id,
                general_note: String::new(),
                answers: Vec::new(),
            }
        } else {
            measurements::test_line_form(random, data, template, vehicle, branch, number, context)
        });
    }
    let has_photos = !matches!(status, "DRAFT") && !random.chance(3);
    let photos = if has_photos {
        photos::of_report(random, &data.vehicles[vehicle], mileage, &filled, &templates, time)
    } else {
        Vec::new()
    };
    let score = forms::score(&filled);
    let findings = Findings::new(mileage, &filled, &templates);
    let visible = matches!(status, "PUBLISHED" | "ARCHIVED" | "CANCELLED");
    let published_at = visible.then(|| time + Duration::minutes(random.between(50, 400)));
    let base_price = price + if data.vehicles[vehicle].body == "SUV" { 450 } else { 0 };
    let (discount_name, discount) = if random.chance(40) {
        *random.pick(&DISCOUNTS)
    } else {
        ("", 0)
    };
    let final_price = (Decimal::from(base_price) * (Decimal::ONE_HUNDRED - Decimal::from(discount))
        / Decimal::ONE_HUNDRED)
        .round_dp(2);
    let has_page = matches!(status, "PUBLISHED" | "ARCHIVED");
    let is_draft = status == "DRAFT";
    Inspection {
        id: random.id(time),
        report_number: format!(
            "{}-{}-{:06}",
            ORGANIZATIONS[organization].letter,
            time.format("%Y"),
            1_000 + number
        ),
        branch,
        vehicle,
        status,
        package_name: package,
        package_base_price: Decimal::new(price * 100, 2),
        base_price: Decimal::new(base_price * 100, 2),
        discount_percent: Decimal::new(discount * 100, 2),
        discount_name,
        final_price,
        payment_type: random.weighted(&[("CARD", 55), ("CASH", 25), ("TRANSFER", 20)]),
        inspector_name: context.inspector,
        snapshot_mileage_km: mileage,
        summary: if is_draft {
            String::new()
        } else {
            true_sentence(random, &SUMMARIES, SERVICES[0], &findings, 25)
        },
        recommendation: if is_draft {
            String::new()
        } else {
            true_sentence(random, &RECOMMENDATIONS, SERVICES[1], &findings, 15)
        },
        overall_score: if is_draft { 0 } else { score },
        public_slug: has_page.then(|| slug(random)),
        published_at,
        opened,
        forms: filled,
        photos,
    }
}

/// Picks a branch. An inactive branch has only old reports.
fn pick_branch(random: &mut Random, is_recent: bool) -> usize {
    loop {
        // The first branches of the list have the most reports.
        let branch = random.index(BRANCHES.len()).min(random.index(BRANCHES.len() + 8));
        if BRANCHES[branch].is_active || !is_recent {
            return branch;
        }
    }
}

/// Generates the mileage at the inspection, which is at least `before`. For some reports it is the next one for which there is a
/// picture of an odometer.
fn mileage(random: &mut Random, before: i32) -> i32 {
    let next = pictures::ODOMETERS.iter().copied().filter(|km| *km >= before).min();
    match next {
        Some(next) if random.chance(60) && next - before < 15_000 => next,
        _ => before + i32::try_from(random.between(0, 900)).unwrap_or(0),
    }
}

/// Returns the index of the report's vehicle: usually a new one, sometimes that of an earlier report.
fn vehicle(random: &mut Random, data: &mut Dataset, branch: usize, time: DateTime<Utc>, is_new: bool) -> usize {
    if !is_new && random.chance(5) {
        let before = data
            .inspections
            .iter()
            .rev()
            .find(|inspection| inspection.branch == branch);
        if let Some(before) = before {
            return before.vehicle;
        }
    }
    let province = if random.chance(78) {
        BRANCHES[branch].province
    } else {
        random.pick(&BRANCHES).province
    };
    let model = random.pick(&MODELS);
    let (fuel, transmission, power) = *random.pick(model.engines);
    let year = i32::try_from(random.between(i64::from(model.years.0), i64::from(model.years.1))).unwrap_or(2018);
    let age = i64::from(2026 - year).max(1);
    let mileage = random.between(6_000, 21_000) * age + random.between(0, 3_000);
    data.vehicles.push(Vehicle {
        id: random.id(time),
        plate: random.plate(province),
        vin: random.vin(model.wmi, year),
        brand: model.brand,
        model: model.model,
        year,
        body: model.body,
        fuel,
        transmission,
        color: random.weighted(&COLORS),
        mileage_km: i32::try_from(mileage).unwrap_or(120_000).min(389_000),
        factory_power_hp: (is_new || !random.chance(8)).then(|| Decimal::from(power)),
    });
    data.vehicles.len() - 1
}

fn slug(random: &mut Random) -> String {
    (0..12)
        .map(|_| char::from(*random.pick(b"abcdefghijkmnpqrstuvwxyz23456789")))
        .collect()
}
