//! Converts a report into the data that the template prints: Turkish texts, formatted numbers, and forms in sections.

mod findings;
mod sections;

use rust_decimal::Decimal;
use serde::Serialize;

use self::findings::{Counts, Finding, counts, findings};
use self::sections::{Section, sections};
use crate::test_line::TestLine;
use crate::{Branch, Form, Point, Report, format, labels};

/// The maximum number of findings on the first page; the others are only counted.
const MAX_FINDINGS: usize = 8;
/// The number of characters above which the inspector's texts follow the findings, which would otherwise not be on the first pages.
const LONG_TEXTS: usize = 700;
/// The number of characters of a verification address in a line. One line holds most addresses.
const ADDRESS_LINE: usize = 100;

/// The data of the template.
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
    /// The score; `None` if nothing was inspected.
    score: Option<i32>,
    score_tone: &'static str,
    summary: String,
    recommendation: String,
    counts: Counts,
    findings: Vec<Finding>,
    more_findings: usize,
    /// Whether the findings come before the summary and the recommendation.
    has_long_texts: bool,
    /// How much was inspected, unless everything was.
    inspected: String,
    sections: Vec<Section>,
    test_lines: Vec<TestLine>,
    photos: Vec<Picture>,
    photos_note: String,
    verification: Option<Verification>,
}

#[derive(Serialize)]
struct Fact {
    label: &'static str,
    value: String,
}

#[derive(Serialize)]
struct Picture {
    /// The path in the template's file system; `None` draws a placeholder.
    href: Option<String>,
    kind: String,
    caption: String,
    alt: String,
}

#[derive(Serialize)]
struct Verification {
    /// The target of the link, if the address is a plain http(s) address.
    href: Option<String>,
    /// The address, in lines that fit the page.
    lines: Vec<String>,
    has_qr: bool,
}

impl View {
    /// Converts `report`. `photos` has the path of each photo, or `None` for one that cannot be drawn.
    pub(crate) fn new(report: &Report, photos: &[Option<String>], has_qr: bool) -> View {
        let mut findings = findings(&report.forms);
        let more_findings = findings.len().saturating_sub(MAX_FINDINGS);
        findings.truncate(MAX_FINDINGS);
        let vehicle = &report.vehicle;
        let branch = &report.branch;
        let is_inspected = count_inspected(&report.forms) > 0;
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
            score: is_inspected.then(|| report.overall_score.clamp(0, 100)),
            score_tone: match report.overall_score {
                _ if !is_inspected => "plain",
                75.. => "good",
                50..75 => "warn",
                _ => "bad",
            },
            summary: report.summary.clone(),
            recommendation: report.recommendation.clone(),
            counts: counts(&report.forms),
            findings,
            more_findings,
            has_long_texts: report.summary.chars().count() + report.recommendation.chars().count() > LONG_TEXTS,
            inspected: inspected(&report.forms),
            sections: sections(&report.forms),
            test_lines: report
                .forms
                .iter()
                .filter(|form| form.is_test_line && !is_left_out(form))
                .map(TestLine::new)
                .collect(),
            photos: pictures(report, photos),
            photos_note: photos_note(report),
            verification: report.verification_url.as_ref().map(|url| Verification {
                href: link_target(url),
                lines: lines_of(url),
                has_qr,
            }),
        }
    }
}

/// Returns `url` if it is safe as the target of a link: http(s), visible ASCII, and not too long.
pub(crate) fn link_target(url: &str) -> Option<String> {
    let scheme = url.starts_with("https://") || url.starts_with("http://");
    (scheme && url.len() <= 1000 && url.bytes().all(|byte| byte.is_ascii_graphic())).then(|| url.to_owned())
}

/// Divides an address into lines.
fn lines_of(address: &str) -> Vec<String> {
    let characters: Vec<char> = address.chars().collect();
    characters
        .chunks(ADDRESS_LINE)
        .map(|line| line.iter().collect())
        .collect()
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
        fact("Ekspertiz anındaki km", format::kilometers(report.snapshot_mileage_km)),
        fact("Kayıtlı km", format::kilometers(vehicle.mileage_km)),
    ]
}

/// The facts about the inspection. Unknown ones are omitted, because an empty line would look like a form field.
fn inspection_facts(report: &Report) -> Vec<Fact> {
    let branch = &report.branch;
    let facts = [
        ("Ekspertiz uzmanı", report.inspector.clone()),
        ("Şube", branch.name.clone()),
        ("Adres", address(branch)),
        ("Telefon", branch.telephone.clone()),
        ("Rapor açılış tarihi", format::minute(report.created_at)),
        ("Yayım tarihi", format::minute(report.published_at)),
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
        "Toplam tutar",
        format::money(pricing.final_price, &pricing.currency),
    ));
    facts
}

/// A point's value with its unit.
fn value(point: &Point) -> String {
    let written = |value: Decimal| format::quantity(value, point.unit.as_deref());
    point.numeric_value.map(written).unwrap_or_default()
}

fn pictures(report: &Report, paths: &[Option<String>]) -> Vec<Picture> {
    let pictures = report.photos.iter().zip(paths).enumerate();
    pictures
        .map(|(index, (photo, path))| {
            let place = photo.point.as_deref().unwrap_or_default();
            let kind = joined(" · ", &[&photo.kind, place]);
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

/// Whether a form has no section, because nothing in it was inspected. The first page names it.
fn is_left_out(form: &Form) -> bool {
    form.points.is_empty() && form.general_note.trim().is_empty() && !form.not_inspected.is_empty()
}

/// Returns the number of points that were inspected.
fn count_inspected(forms: &[Form]) -> usize {
    let points = forms.iter().flat_map(|form| &form.points);
    points.filter(|point| point.is_inspected()).count()
}

/// States how many points were inspected and which forms were not, unless all points were inspected.
fn inspected(forms: &[Form]) -> String {
    let count = count_inspected(forms);
    let all: usize = forms
        .iter()
        .map(|form| form.points.len() + form.not_inspected.len())
        .sum();
    let left = all - count;
    if left == 0 {
        return String::new();
    }
    let counted = match count {
        0 => format!("{all} noktanın hiçbiri incelenmedi."),
        _ => format!(
            "{all} noktanın {count} tanesi incelendi, {left} tanesi incelenmedi. Puan, incelenen noktalara göredir."
        ),
    };
    let left_out: Vec<&str> = forms
        .iter()
        .filter(|form| is_left_out(form))
        .map(|form| form.name.as_str())
        .collect();
    match left_out.is_empty() {
        true => counted,
        false => format!("{counted} İncelenmeyen formlar: {}.", left_out.join(", ")),
    }
}

/// A note on the number of printed photos, if not all are printed.
fn photos_note(report: &Report) -> String {
    let (shown, all) = (report.photos.len(), report.photos_in_all);
    if shown >= all {
        return String::new();
    }
    format!("Rapordaki {all} fotoğraftan {shown} tanesi basılmıştır; hasar fotoğraflarına öncelik verilmiştir.")
}

#[cfg(test)]
fn form(name: &str, category: &str, points: Vec<Point>) -> Form {
    Form {
        name: name.to_owned(),
        score_category: category.to_owned(),
        general_note: String::new(),
        points,
        not_inspected: Vec::new(),
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

    #[test]
    fn the_report_states_what_was_not_inspected_and_has_no_score_without_an_inspection() {
        let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let empty = Form {
            not_inspected: of(&["Motor yağı", "Turbo"]),
            ..form("Motor", "ENGINE", Vec::new())
        };
        assert_eq!(
            inspected(std::slice::from_ref(&empty)),
            "2 noktanın hiçbiri incelenmedi. İncelenmeyen formlar: Motor."
        );
        let point = Point {
            code: "HOOD".to_owned(),
            name: "Ön kaput".to_owned(),
            status_code: "ORIGINAL".to_owned(),
            status_label: "Orijinal".to_owned(),
            severity: "NONE".to_owned(),
            numeric_value: None,
            unit: None,
            note: String::new(),
            limits: None,
            source: crate::Source::Inspector,
        };
        let whole = form("Kaporta", "BODY", vec![point.clone()]);
        assert_eq!(inspected(std::slice::from_ref(&whole)), "");
        let unchecked = Point {
            status_code: "NOT_CHECKED".to_owned(),
            ..point.clone()
        };
        assert_eq!(
            inspected(&[form("Kaporta", "BODY", vec![unchecked])]),
            "1 noktanın hiçbiri incelenmedi."
        );
        let half = Form {
            not_inspected: of(&["Tavan"]),
            ..whole
        };
        assert_eq!(half.not_inspected_note(), "İncelenmeyen noktalar (1): Tavan.");
        assert_eq!(
            inspected(&[half, empty]),
            "4 noktanın 1 tanesi incelendi, 3 tanesi incelenmedi. Puan, incelenen noktalara göredir. İncelenmeyen formlar: Motor."
        );
    }
}
