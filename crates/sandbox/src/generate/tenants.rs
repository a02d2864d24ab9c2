//! Generates tenants: organizations, branches, their templates and thresholds.

use chrono::{DateTime, Duration, Utc};
use partner_api_domain::template;
use rust_decimal::Decimal;

use super::base;
use crate::catalog::places::{BRANCHES, ORGANIZATIONS};
use crate::catalog::templates::TEMPLATES;
use crate::catalog::test_line;
use crate::data::{Branch, Organization, Template, TemplatePoint, ThresholdRow};
use crate::random::Random;

/// Returns the time at which the organizations joined the platform.
fn joined_at() -> DateTime<Utc> {
    base() - Duration::days(700)
}

pub fn organizations(random: &mut Random) -> Vec<Organization> {
    ORGANIZATIONS
        .iter()
        .map(|spec| Organization {
            id: random.id(joined_at()),
            slug: spec.slug,
            name: spec.name,
            pii_mode: spec.pii_mode,
            created_at: joined_at(),
        })
        .collect()
}

pub fn branches(random: &mut Random) -> Vec<Branch> {
    BRANCHES
        .iter()
        .map(|spec| Branch {
            id: random.id(joined_at() + Duration::days(1)),
            organization: spec.organization,
            code: spec.code,
            name: format!("{} {} Şubesi", ORGANIZATIONS[spec.organization].short, spec.district),
            city: spec.city,
            district: spec.district,
            province: spec.province,
            address: spec.address,
            telephone: spec.telephone,
            is_active: spec.is_active,
        })
        .collect()
}

/// Generates the templates of each organization, with the test-line form last.
pub fn templates(random: &mut Random) -> Vec<Template> {
    let created_at = joined_at() + Duration::days(2);
    let mut templates = Vec::new();
    for organization in 0..ORGANIZATIONS.len() {
        for spec in &TEMPLATES {
            let points = spec.points.iter().map(|(code, name, reading)| TemplatePoint {
                id: random.id(created_at),
                code,
                name,
                unit: reading.map(|reading| reading.unit),
                place: template::PLACES.iter().find(|place| *place == code).copied(),
            });
            let points = points.collect();
            templates.push(Template {
                id: random.id(created_at),
                organization,
                code: spec.code,
                name: spec.name,
                score_category: spec.score_category,
                is_test_line: false,
                statuses: spec.stored_statuses(),
                photo_kinds: spec.stored_photo_kinds(),
                points,
            });
        }
        let points = test_line::POINTS
            .iter()
            .filter(|point| !test_line::is_left_out(organization, point.code));
        let points = points
            .map(|point| TemplatePoint {
                id: random.id(created_at),
                code: point.code,
                name: point.name,
                unit: Some(point.unit),
                place: None,
            })
            .collect();
        templates.push(Template {
            id: random.id(created_at),
            organization,
            code: test_line::CODE,
            name: test_line::NAME,
            score_category: test_line::SCORE_CATEGORY,
            is_test_line: true,
            statuses: Vec::new(),
            photo_kinds: Vec::new(),
            points,
        });
    }
    templates
}

pub fn thresholds() -> Vec<ThresholdRow> {
    let mut rows = Vec::new();
    for organization in 0..ORGANIZATIONS.len() {
        let codes = test_line::POINTS.iter().map(|point| point.code);
        for code in codes.chain(test_line::COMPUTED) {
            if let Some((good_min, good_max, borderline_min, borderline_max)) =
                test_line::thresholds(organization, code)
            {
                let hundredths = |value: Option<i64>| value.map(|value| Decimal::new(value, 2));
                rows.push(ThresholdRow {
                    organization,
                    point_code: code,
                    good_min: hundredths(good_min),
                    good_max: hundredths(good_max),
                    borderline_min: hundredths(borderline_min),
                    borderline_max: hundredths(borderline_max),
                    since: joined_at(),
                });
            }
        }
    }
    rows
}
