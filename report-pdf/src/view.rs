//! The report as the template prints it: Turkish texts, formatted numbers, forms in their sections.

use serde::Serialize;

use crate::test_line::TestLine;
use crate::{Form, Point, Report, format, labels};

/// At most this many findings stand on the first page; the rest is counted.
const MAX_FINDINGS: usize = 8;

/// Everything the template reads.
#[derive(Serialize)]
pub(crate) struct View {
    report_number: String,
    organization: String,
    branch: String,
    status: String,
    published_day: String,
    published: String,
    created: String,
    plate: String,
    vehicle_title: String,
    vehicle: Vec<Fact>,
    package: String,
    prices: Vec<Fact>,
    total: String,
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
    verification: Option<Verification>,
}

#[derive(Serialize)]
struct Fact {
    label: &'static str,
    value: String,
}

#[derive(Serialize, Default)]
struct Counts {
    good: usize,
    borderline: usize,
    out: usize,
    other: usize,
}

#[derive(Serialize)]
struct Finding {
    form: String,
    point: String,
    value: String,
    status: Status,
}

#[derive(Serialize)]
struct Section {
    #[serde(skip)]
    category: String,
    title: String,
    forms: Vec<SectionForm>,
}

#[derive(Serialize)]
struct SectionForm {
    name: String,
    note: String,
    /// Whether any point has a value: only then is there a column for it.
    has_values: bool,
    points: Vec<SectionPoint>,
}

#[derive(Serialize)]
struct SectionPoint {
    name: String,
    value: String,
    note: String,
    status: Status,
}

/// A status with the tone it is printed in.
#[derive(Serialize)]
pub(crate) struct Status {
    label: String,
    /// `good`, `warn`, `bad`, or `grey0` to `grey3` by severity.
    tone: &'static str,
}

impl Status {
    /// The status of `point`; one without a label shows its code, one without either a dash.
    pub(crate) fn new(point: &Point) -> Status {
        let tone = match (point.status_code.as_str(), point.severity.as_str()) {
            ("GOOD", _) => "good",
            ("BORDERLINE", _) => "warn",
            ("OUT_OF_LIMIT", _) => "bad",
            (_, "HIGH") => "grey3",
            (_, "MEDIUM") => "grey2",
            (_, "LOW") => "grey1",
            _ => "grey0",
        };
        let label = [&point.status_label, &point.status_code]
            .into_iter()
            .find(|text| !text.trim().is_empty());
        Status {
            label: label.map_or_else(|| "—".to_owned(), Clone::clone),
            tone,
        }
    }

    /// Place in the list of findings, the worst first; `None` is no finding.
    fn rank(&self) -> Option<u8> {
        ["bad", "grey3", "warn", "grey2"]
            .iter()
            .position(|tone| *tone == self.tone)
            .map(|rank| rank as u8)
    }
}

#[derive(Serialize)]
struct Picture {
    /// Path in the template's file system; `None` draws a placeholder.
    href: Option<String>,
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
        View {
            report_number: report.report_number.clone(),
            organization: report.organization_name.clone(),
            branch: joined(&report.branch_name, &report.branch_city),
            status: report.status_label.clone(),
            published_day: format::day(report.published_at),
            published: format::minute(report.published_at),
            created: format::minute(report.created_at),
            plate: vehicle.plate.clone(),
            vehicle_title: format!("{} {}", vehicle.brand, vehicle.model),
            vehicle: vehicle_facts(report),
            package: report.package_name.clone(),
            prices: price_facts(report),
            total: format::money(report.pricing.final_price, &report.pricing.currency),
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

fn joined(first: &str, second: &str) -> String {
    [first, second]
        .iter()
        .filter(|part| !part.trim().is_empty())
        .copied()
        .collect::<Vec<_>>()
        .join(" · ")
}

fn vehicle_facts(report: &Report) -> Vec<Fact> {
    let vehicle = &report.vehicle;
    let fact = |label, value: String| Fact {
        label,
        value: or_dash(value),
    };
    vec![
        fact("Şasi numarası (VIN)", vehicle.vin.clone()),
        fact("Model yılı", vehicle.year.to_string()),
        fact("Kasa tipi", labels::body(&vehicle.body_type)),
        fact("Renk", vehicle.color.clone()),
        fact("Yakıt", labels::fuel(&vehicle.fuel_type)),
        fact("Vites", labels::transmission(&vehicle.transmission)),
        fact("Ekspertizdeki km", format::kilometres(report.snapshot_mileage_km)),
        fact("Kayıtlı km", format::kilometres(vehicle.mileage_km)),
    ]
}

fn price_facts(report: &Report) -> Vec<Fact> {
    let pricing = &report.pricing;
    let fact = |label, value: String| Fact {
        label,
        value: or_dash(value),
    };
    let mut facts = vec![
        fact("Paket", report.package_name.clone()),
        fact("Liste fiyatı", format::money(pricing.base_price, &pricing.currency)),
    ];
    if !pricing.discount_percent.is_zero() || !pricing.discount_name.trim().is_empty() {
        let percent = format::percent(pricing.discount_percent);
        facts.push(fact("İndirim", joined(&percent, &pricing.discount_name)));
    }
    facts.push(fact("Ödeme", labels::payment(&pricing.payment_type)));
    facts
}

fn or_dash(text: String) -> String {
    if text.trim().is_empty() { "—".to_owned() } else { text }
}

fn value(point: &Point) -> String {
    point
        .numeric_value
        .map(|value| format::quantity(value, point.unit.as_deref()))
        .unwrap_or_default()
}

fn counts(forms: &[Form]) -> Counts {
    let mut counts = Counts::default();
    for point in forms.iter().flat_map(|form| &form.points) {
        match point.status_code.as_str() {
            "GOOD" => counts.good += 1,
            "BORDERLINE" => counts.borderline += 1,
            "OUT_OF_LIMIT" => counts.out += 1,
            _ => counts.other += 1,
        }
    }
    counts
}

/// Points that need the reader's attention, the worst first, otherwise in the order of the report.
fn findings(forms: &[Form]) -> Vec<Finding> {
    let mut ranked: Vec<(u8, Finding)> = forms
        .iter()
        .flat_map(|form| form.points.iter().map(move |point| (form, point)))
        .filter_map(|(form, point)| {
            let status = Status::new(point);
            let (form, name) = (form.name.clone(), point.name.clone());
            Some((
                status.rank()?,
                Finding {
                    form,
                    point: name,
                    value: value(point),
                    status,
                },
            ))
        })
        .collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, finding)| finding).collect()
}

fn sections(forms: &[Form]) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for form in forms.iter().filter(|form| !form.is_test_line) {
        let section = SectionForm {
            name: form.name.clone(),
            note: form.general_note.clone(),
            has_values: form.points.iter().any(|point| point.numeric_value.is_some()),
            points: form.points.iter().map(section_point).collect(),
        };
        match sections
            .iter_mut()
            .find(|section| section.category == form.score_category)
        {
            Some(known) => known.forms.push(section),
            None => sections.push(Section {
                category: form.score_category.clone(),
                title: labels::category(&form.score_category),
                forms: vec![section],
            }),
        }
    }
    sections
}

fn section_point(point: &Point) -> SectionPoint {
    SectionPoint {
        name: point.name.clone(),
        value: value(point),
        note: point.note.clone(),
        status: Status::new(point),
    }
}

fn pictures(report: &Report, paths: &[Option<String>]) -> Vec<Picture> {
    let pictures = report.photos.iter().zip(paths).enumerate();
    pictures
        .map(|(index, (photo, path))| {
            let kind = labels::photo(&photo.kind);
            let caption = photo.caption.clone().filter(|caption| !caption.trim().is_empty());
            let alt = match &caption {
                Some(caption) => format!("Fotoğraf {}, {kind}: {caption}", index + 1),
                None => format!("Fotoğraf {}, {kind}", index + 1),
            };
            Picture {
                href: path.clone(),
                caption: caption.unwrap_or(kind),
                alt,
            }
        })
        .collect()
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
