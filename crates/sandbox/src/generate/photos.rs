//! Generates a report's photos, some of them hidden.

use chrono::{DateTime, Utc};
use sandbox_pictures::{self as pictures, SCENES};

use super::texts::sentence;
use crate::catalog::templates::TEMPLATES;
use crate::catalog::texts::CAPTIONS;
use crate::data::{Form, Photo, Template, Vehicle};
use crate::random::Random;

/// Generates the photos of a report: exterior, interior, engine, underbody, defects, and papers.
pub fn of_report(
    random: &mut Random,
    vehicle: &Vehicle,
    mileage_km: i32,
    forms: &[Form],
    templates: &[Template],
    created_at: DateTime<Utc>,
) -> Vec<Photo> {
    let mut photos = Vec::new();
    let mut add = |random: &mut Random, kind: &'static str, point_code: Option<&'static str>, scenes: Vec<usize>| {
        if scenes.is_empty() {
            return;
        }
        let caption = random.chance(45).then(|| sentence(random, &CAPTIONS, mileage_km, 8));
        let is_paper = pictures::is_paper(kind);
        photos.push(Photo {
            id: random.id(created_at),
            kind,
            point_code,
            caption,
            scene: scenes[random.index(scenes.len())],
            has_thumbnail: !is_paper && !random.chance(6),
            show_in_report: !random.chance(9),
        });
    };
    for scene in pictures::exteriors(vehicle.body, vehicle.color) {
        add(random, "EXTERIOR", None, vec![scene]);
    }
    add(random, "INTERIOR", None, of_kind("INTERIOR"));
    if vehicle.fuel != "ELECTRIC" {
        add(random, "ENGINE", None, of_kind("ENGINE"));
    }
    if random.chance(70) {
        add(random, "UNDERBODY", None, of_kind("UNDERBODY"));
    }
    if let Some(scene) = pictures::odometer(mileage_km) {
        add(random, "ODOMETER", None, vec![scene]);
    }
    for (code, kind) in defects(forms, templates).into_iter().take(3) {
        let scenes = if kind == "DAMAGE" {
            pictures::damage(vehicle.color)
        } else {
            of_kind(kind)
        };
        add(random, kind, Some(code), scenes);
    }
    if random.chance(70) {
        add(random, "REGISTRATION", None, of_kind("REGISTRATION"));
    }
    if random.chance(25) {
        add(random, "OTOSICIL_PDF", None, of_kind("OTOSICIL_PDF"));
    }
    photos
}

fn of_kind(kind: &str) -> Vec<usize> {
    (0..SCENES.len()).filter(|index| SCENES[*index].kind == kind).collect()
}

/// Returns the points with defects that deserve a photo, and the photo's kind.
fn defects(forms: &[Form], templates: &[Template]) -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    for form in forms {
        let Some(template) = templates.iter().find(|template| template.id == form.template) else {
            continue;
        };
        let Some(spec) = TEMPLATES.iter().find(|spec| spec.code == template.code) else {
            continue;
        };
        for answer in form
            .answers
            .iter()
            .filter(|answer| matches!(answer.severity, "MEDIUM" | "HIGH"))
        {
            if let Some(point) = template.points.iter().find(|point| point.id == answer.point) {
                found.push((point.code, spec.photo_kind));
            }
        }
    }
    found
}
