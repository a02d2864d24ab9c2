//! Vehicles and the reports about them.

use chrono::{DateTime, Duration, Utc};
use rust_decimal::Decimal;

use super::forms::Hand;
use super::found::Found;
use super::texts::true_sentence;
use super::{base, forms, measurements, photos};
use crate::catalogue::places::{BRANCHES, OPEN_REPORT_CODE, ORGANIZATIONS};
use crate::catalogue::templates::{DISCOUNTS, PACKAGES};
use crate::catalogue::texts::{INSPECTORS, RECOMMENDATIONS, SERVICES, SUMMARIES};
use crate::catalogue::vehicles::{COLORS, MODELS};
use crate::data::{Dataset, Form, Inspection, Opened, Template, Vehicle};
use crate::random::Random;
use sandbox_pictures as pictures;

/// How many reports of each status are made.
const STATUSES: [(&str, usize); 7] = [
    ("PUBLISHED", 216),
    ("ARCHIVED", 210),
    ("CANCELLED", 56),
    ("DRAFT", 60),
    ("IN_REVIEW", 34),
    ("REVISION_REQUESTED", 32),
    ("CANCEL_REQUESTED", 32),
];
/// Published reports whose public page is not made yet.
const WITHOUT_SLUG: usize = 7;
/// Reports that came in one import, all with one time: more than a page of them.
const IMPORTED: usize = 40;

/// The age of the report that every start opens again: less than that of any other.
pub fn youngest() -> Duration {
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
    // Reports are numbered in the order they were opened.
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

/// Two open reports of one vehicle at one branch: a measurement goes to the newer.
fn same_plate_twice(data: &mut Dataset) {
    let open: Vec<usize> = (0..data.inspections.len())
        .filter(|index| match data.inspections[*index].opened {
            Opened::Before(age) => age > youngest() && age < Duration::hours(24),
            Opened::At(_) => false,
        })
        .collect();
    for (place, first) in open.iter().enumerate() {
        let second = open[place + 1..]
            .iter()
            .find(|second| data.inspections[**second].branch == data.inspections[*first].branch);
        if let Some(second) = second {
            // They were opened on one day: one mileage, of which nothing was written yet.
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

/// When the `number`th report of a status was opened.
fn opened(random: &mut Random, status: &str, number: usize) -> Opened {
    let day = Duration::hours(24);
    match (status, number) {
        ("DRAFT", 0) => return Opened::Before(youngest()),
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
    // Within opening hours (06:00 to 15:00 UTC is 09:00 to 18:00 in Türkiye), on whole minutes of coarse grain, so that
    // now and then two are opened at the same time.
    Opened::At(base() - Duration::days(days) + Duration::minutes(360 + 15 * random.between(0, 36)))
}

fn report(random: &mut Random, data: &mut Dataset, status: &'static str, opened: Opened) -> Inspection {
    let (time, is_recent) = match opened {
        Opened::At(time) => (time, false),
        Opened::Before(age) => (base() - age, true),
    };
    let is_open_example = opened == Opened::Before(youngest());
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
    let hand = Hand {
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
        .map(|template| forms::by_hand(random, template, hand))
        .collect();
    let number = data.inspections.len();
    if has_test_line && let Some(template) = templates.iter().find(|template| template.is_test_line) {
        filled.push(if is_recent {
            // Waits for the device.
            Form {
                id: random.id(time),
                template: template.id,
                general_note: String::new(),
                answers: Vec::new(),
            }
        } else {
            measurements::test_line_form(random, data, template, vehicle, branch, number, hand)
        });
    }
    let pictured = !matches!(status, "DRAFT") && !random.chance(3);
    let photos = if pictured {
        photos::of_report(random, &data.vehicles[vehicle], mileage, &filled, &templates, time)
    } else {
        Vec::new()
    };
    let score = forms::score(&filled);
    let found = Found::new(mileage, &filled, &templates);
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
        inspector_name: hand.inspector,
        snapshot_mileage_km: mileage,
        summary: if is_draft {
            String::new()
        } else {
            true_sentence(random, &SUMMARIES, SERVICES[0], &found, 25)
        },
        recommendation: if is_draft {
            String::new()
        } else {
            true_sentence(random, &RECOMMENDATIONS, SERVICES[1], &found, 15)
        },
        overall_score: if is_draft { 0 } else { score },
        public_slug: has_page.then(|| slug(random)),
        published_at,
        opened,
        forms: filled,
        photos,
    }
}

/// A branch; one that is closed has old reports only.
fn pick_branch(random: &mut Random, is_recent: bool) -> usize {
    loop {
        // The first branches of the list are the busiest.
        let branch = random.index(BRANCHES.len()).min(random.index(BRANCHES.len() + 8));
        if BRANCHES[branch].is_active || !is_recent {
            return branch;
        }
    }
}

/// The mileage at the inspection, which is never less than what was read `before`: that of the next picture of an odometer, for
/// some, or some more.
fn mileage(random: &mut Random, before: i32) -> i32 {
    let next = pictures::ODOMETERS.iter().copied().filter(|km| *km >= before).min();
    match next {
        Some(next) if random.chance(60) && next - before < 15_000 => next,
        _ => before + i32::try_from(random.between(0, 900)).unwrap_or(0),
    }
}

/// Index of the report's vehicle: mostly a new one, sometimes one that was there before.
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
