//! The report as the template prints it: Turkish texts, formatted numbers, forms in their sections.

mod findings;
mod sections;
mod status;

use rust_decimal::Decimal;
use serde::Serialize;

use self::findings::{Counts, Finding, counts, findings};
use self::sections::{Section, sections};
use crate::test_line::TestLine;
use crate::{Branch, Form, Point, Report, format, labels};

pub(crate) use status::{Status, tone_of_status};

/// At most this many findings stand on the first page; the rest is counted.
const MAX_FINDINGS: usize = 8;

/// Everything the template reads.
#[derive(Serialize)]
pub(crate) struct View {
    report_number: String,
    organization: String,
    branch: String,
    telephone: String,
    status: String,
    published_day: String,
    plate: String,
    vehicle_title: String,
    vehicle: Vec<Fact>,
    inspection: Vec<Fact>,
    prices: Vec<Fact>,
    score: i32,
    score_tone: &'static str,
    summary: String,
    recommendation: String,
    counts: Counts,
    findings: Vec<Finding>,
    more_findings: usize,
    sections: Vec<Section>,
    test_lines: Vec<TestLine>,
    photos: Vec<Picture>,
    photos_told: String,
    verification: Option<Verification>,
}

#[derive(Serialize)]
struct Fact {
    label: &'static str,
    value: String,
}

#[derive(Serialize)]
struct Picture {
    /// Path in the template's file system; `None` draws a placeholder.
    href: Option<String>,
    kind: String,
    caption: String,
    alt: String,
}

#[derive(Serialize)]
struct Verification {
    /// Target of the link, only if it is a plain http(s) address.
    href: Option<String>,
    text: String,
    has_qr: bool,
}

impl View {
    /// Arranges `report`; `photos` says which photos can be drawn and under which path.
    pub(crate) fn new(report: &Report, photos: &[Option<String>], has_qr: bool) -> View {
        let mut findings = findings(&report.forms);
        let more_findings = findings.len().saturating_sub(MAX_FINDINGS);
        findings.truncate(MAX_FINDINGS);
        let vehicle = &report.vehicle;
        let branch = &report.branch;
        View {
            report_number: report.report_number.clone(),
            organization: report.organization_name.clone(),
            branch: branch.name.clone(),
            telephone: branch.telephone.clone(),
            status: report.status_label.clone(),
            published_day: format::day(report.published_at),
            plate: vehicle.plate.clone(),
            vehicle_title: joined(" ", &[&vehicle.brand, &vehicle.model]),
            vehicle: vehicle_facts(report),
            inspection: inspection_facts(report),
            prices: price_facts(report),
            score: report.overall_score.clamp(0, 100),
            score_tone: match report.overall_score {
                75.. => "good",
                50..75 => "warn",
                _ => "bad",
            },
            summary: report.summary.clone(),
            recommendation: report.recommendation.clone(),
            counts: counts(&report.forms),
            findings,
            more_findings,
            sections: sections(&report.forms),
            test_lines: report
                .forms
                .iter()
                .filter(|form| form.is_test_line)
                .map(TestLine::new)
                .collect(),
            photos: pictures(report, photos),
            photos_told: photos_told(report),
            verification: report.verification_url.as_ref().map(|url| Verification {
                href: link_target(url),
                text: url.clone(),
                has_qr,
            }),
        }
    }
}

/// `url` if it can safely be a link's target: http(s), visible ASCII, of a length that readers take.
pub(crate) fn link_target(url: &str) -> Option<String> {
    let scheme = url.starts_with("https://") || url.starts_with("http://");
    (scheme && url.len() <= 1000 && url.bytes().all(|byte| byte.is_ascii_graphic())).then(|| url.to_owned())
}

fn joined(separator: &str, parts: &[&str]) -> String {
    let parts: Vec<&str> = parts
        .iter()
        .map(|part| part.trim())
        .filter(|part| !part.is_empty())
        .collect();
    parts.join(separator)
}

/// `Moda Cad. No: 3, Kadıköy / İstanbul`.
fn address(branch: &Branch) -> String {
    let place = joined(" / ", &[&branch.district, &branch.city]);
    joined(", ", &[&branch.address, &place])
}

fn fact(label: &'static str, value: String) -> Fact {
    let value = if value.trim().is_empty() {
        "—".to_owned()
    } else {
        value
    };
    Fact { label, value }
}

fn vehicle_facts(report: &Report) -> Vec<Fact> {
    let vehicle = &report.vehicle;
    vec![
        fact("Şasi numarası", vehicle.vin.clone()),
        fact("Model yılı", vehicle.year.to_string()),
        fact("Kasa tipi", labels::body(&vehicle.body_type)),
        fact("Renk", vehicle.color.clone()),
        fact("Yakıt", labels::fuel(&vehicle.fuel_type)),
        fact("Vites", labels::transmission(&vehicle.transmission)),
        fact("Ekspertizdeki km", format::kilometres(report.snapshot_mileage_km)),
        fact("Kayıtlı km", format::kilometres(vehicle.mileage_km)),
    ]
}

/// What is not known is left out here: a line without a name would look like one that is to be filled in.
fn inspection_facts(report: &Report) -> Vec<Fact> {
    let branch = &report.branch;
    let facts = [
        ("Ekspertiz uzmanı", report.inspector.clone()),
        ("Şube", branch.name.clone()),
        ("Adres", address(branch)),
        ("Telefon", branch.telephone.clone()),
        ("Rapor açılışı", format::minute(report.created_at)),
        ("Yayım", format::minute(report.published_at)),
    ];
    let known = facts.into_iter().filter(|(_, value)| !value.trim().is_empty());
    known.map(|(label, value)| fact(label, value)).collect()
}

fn price_facts(report: &Report) -> Vec<Fact> {
    let pricing = &report.pricing;
    let mut facts = vec![
        fact("Paket", report.package_name.clone()),
        fact("Liste fiyatı", format::money(pricing.base_price, &pricing.currency)),
    ];
    if !pricing.discount_percent.is_zero() || !pricing.discount_name.trim().is_empty() {
        let percent = format::percent(pricing.discount_percent);
        facts.push(fact("İndirim", joined(" · ", &[&percent, &pricing.discount_name])));
    }
    facts.push(fact("Ödeme", labels::payment(&pricing.payment_type)));
    facts.push(fact(
        "Ödenen tutar",
        format::money(pricing.final_price, &pricing.currency),
    ));
    facts
}

/// A point's value with the decimals of all values of its form that have its unit.
fn value(form: &Form, point: &Point) -> String {
    if form.is_test_line {
        return TestLine::value_of(form, point);
    }
    let unit = point.unit.as_deref();
    let alike = form.points.iter().filter(|other| other.unit == point.unit);
    let decimals = format::decimals(unit, alike.filter_map(|other| other.numeric_value));
    let written = |value: Decimal| format::quantity(value, decimals, unit);
    point.numeric_value.map(written).unwrap_or_default()
}

fn pictures(report: &Report, paths: &[Option<String>]) -> Vec<Picture> {
    let pictures = report.photos.iter().zip(paths).enumerate();
    pictures
        .map(|(index, (photo, path))| {
            let place = photo.point.as_deref().unwrap_or_default();
            let kind = joined(" · ", &[&labels::photo(&photo.kind), place]);
            let caption = photo.caption.as_deref().unwrap_or_default().trim().to_owned();
            Picture {
                href: path.clone(),
                alt: joined(": ", &[&format!("Fotoğraf {}, {kind}", index + 1), &caption]),
                kind,
                caption,
            }
        })
        .collect()
}

/// How many of how many, where not all are shown.
fn photos_told(report: &Report) -> String {
    let (shown, all) = (report.photos.len(), report.photos_in_all);
    if shown >= all {
        return String::new();
    }
    format!(
        "{shown} / {all} fotoğraf: raporun {all} fotoğrafından {shown} tanesi basılıdır, hasar fotoğrafları önce gelir."
    )
}

#[cfg(test)]
fn form(name: &str, category: &str, points: Vec<Point>) -> Form {
    Form {
        name: name.to_owned(),
        score_category: category.to_owned(),
        general_note: String::new(),
        points,
        is_test_line: false,
        computed: Vec::new(),
        devices: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_web_addresses_become_links() {
        assert!(link_target("https://example.org/r/1?x=ü").is_none());
        assert!(link_target("javascript:alert(1)").is_none());
        assert!(link_target("https://example.org/\n").is_none());
        assert_eq!(
            link_target("https://example.org/r/1").as_deref(),
            Some("https://example.org/r/1")
        );
    }
}
