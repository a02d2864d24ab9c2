//! The report as the template prints it: Turkish texts, formatted numbers, forms in their sections.

use rust_decimal::Decimal;
use serde::Serialize;

use crate::layout::{self, Run};
use crate::test_line::TestLine;
use crate::{Branch, Form, Point, Report, format, labels};

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

/// How many points are how bad.
#[derive(Serialize, Default, Debug, PartialEq)]
struct Counts {
    good: usize,
    low: usize,
    medium: usize,
    high: usize,
    /// Points that nobody could look at.
    unseen: usize,
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
    /// Empty where the section's title says it.
    name: String,
    note: String,
    /// Whether any point has a value: only then is there a column for it.
    has_values: bool,
    points: Vec<SectionPoint>,
    runs: Vec<Run>,
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
    tone: &'static str,
}

/// The tone of a status that device values have.
pub(crate) fn tone_of_status(code: &str) -> &'static str {
    match code {
        "GOOD" => "good",
        "BORDERLINE" => "warn",
        "OUT_OF_LIMIT" => "bad",
        _ => "plain",
    }
}

impl Status {
    /// The status of `point`; one without a label shows its code, one without either a dash.
    pub(crate) fn new(point: &Point) -> Status {
        let label = [&point.status_label, &point.status_code]
            .into_iter()
            .find(|text| !text.trim().is_empty());
        Status {
            label: label.map_or_else(|| "—".to_owned(), Clone::clone),
            tone: Weight::of(point).tone(),
        }
    }
}

/// How much a point weighs with the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    Unseen,
    Good,
    Low,
    Medium,
    High,
}

impl Weight {
    /// A status of device values says it itself, any other by its severity: what is as the maker left it is no finding.
    fn of(point: &Point) -> Weight {
        match (point.status_code.as_str(), point.severity.as_str()) {
            ("GOOD", _) => Weight::Good,
            ("BORDERLINE", _) => Weight::Medium,
            ("OUT_OF_LIMIT", _) => Weight::High,
            (_, "HIGH") => Weight::High,
            (_, "MEDIUM") => Weight::Medium,
            (_, "LOW") => Weight::Low,
            (code, _) if code.is_empty() || code.starts_with("NOT_") => Weight::Unseen,
            _ => Weight::Good,
        }
    }

    fn tone(self) -> &'static str {
        match self {
            Weight::Unseen => "plain",
            Weight::Good => "good",
            Weight::Low => "low",
            Weight::Medium => "warn",
            Weight::High => "bad",
        }
    }
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

/// Everything that was judged: the points, and what follows from a test line's values.
fn judged(forms: &[Form]) -> impl Iterator<Item = (&Form, &Point)> {
    forms.iter().flat_map(|form| {
        let computed = form.computed.iter().filter(|point| !point.status_code.is_empty());
        form.points.iter().chain(computed).map(move |point| (form, point))
    })
}

fn counts(forms: &[Form]) -> Counts {
    let mut counts = Counts::default();
    for (_, point) in judged(forms) {
        *match Weight::of(point) {
            Weight::Unseen => &mut counts.unseen,
            Weight::Good => &mut counts.good,
            Weight::Low => &mut counts.low,
            Weight::Medium => &mut counts.medium,
            Weight::High => &mut counts.high,
        } += 1;
    }
    counts
}

/// Points that need the reader's attention, the worst first, otherwise in the order of the report.
fn findings(forms: &[Form]) -> Vec<Finding> {
    let mut found: Vec<(Weight, Finding)> = judged(forms)
        .map(|(form, point)| (Weight::of(point), form, point))
        .filter(|(weight, ..)| *weight >= Weight::Medium)
        .map(|(weight, form, point)| {
            let finding = Finding {
                form: form.name.clone(),
                point: TestLine::name_of(point),
                value: value(form, point),
                status: Status::new(point),
            };
            (weight, finding)
        })
        .collect();
    found.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    found.into_iter().map(|(_, finding)| finding).collect()
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

fn sections(forms: &[Form]) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for form in forms.iter().filter(|form| !form.is_test_line) {
        let points: Vec<SectionPoint> = form.points.iter().map(|point| section_point(form, point)).collect();
        let lengths: Vec<Vec<usize>> = points
            .iter()
            .map(|point| vec![point.name.chars().count() + point.note.chars().count()])
            .collect();
        let section = SectionForm {
            name: form.name.clone(),
            note: form.general_note.clone(),
            has_values: form.points.iter().any(|point| point.numeric_value.is_some()),
            runs: layout::runs(&lengths),
            points,
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
    sections.iter_mut().for_each(Section::entitle);
    sections
}

impl Section {
    /// No heading stands twice: the only form of a section names it, and a form of the section's own name has none.
    fn entitle(&mut self) {
        if let [form] = self.forms.as_mut_slice() {
            let name = std::mem::take(&mut form.name);
            if !name.trim().is_empty() {
                self.title = name;
            }
        }
        let title = folded(&self.title);
        for form in &mut self.forms {
            if folded(&form.name) == title {
                form.name.clear();
            }
        }
    }
}

/// A heading for comparison: letter case does not count, in Turkish either.
fn folded(heading: &str) -> String {
    heading.replace('İ', "i").replace('I', "ı").trim().to_lowercase()
}

fn section_point(form: &Form, point: &Point) -> SectionPoint {
    SectionPoint {
        name: point.name.clone(),
        value: value(form, point),
        note: point.note.clone(),
        status: Status::new(point),
    }
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

    fn point(status_code: &str, severity: &str) -> Point {
        Point {
            code: "X".to_owned(),
            name: "Nokta".to_owned(),
            status_code: status_code.to_owned(),
            status_label: String::new(),
            severity: severity.to_owned(),
            numeric_value: None,
            unit: None,
            note: String::new(),
            limits: None,
            source: crate::Source::Inspector,
        }
    }

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

    #[test]
    fn what_is_as_the_maker_left_it_is_no_finding() {
        let points = vec![
            point("ORIGINAL", "NONE"),
            point("ORIGINAL", "NONE"),
            point("LOCAL_PAINT", "LOW"),
            point("PAINTED", "MEDIUM"),
            point("REPLACED", "HIGH"),
            point("BORDERLINE", "LOW"),
            point("OUT_OF_LIMIT", "HIGH"),
            point("NOT_CHECKED", "NONE"),
        ];
        let forms = [form("Kaporta", "BODY", points)];
        let expected = Counts {
            good: 2,
            low: 1,
            medium: 2,
            high: 2,
            unseen: 1,
        };
        assert_eq!(counts(&forms), expected);
        assert_eq!(findings(&forms).len(), 4);
    }

    #[test]
    fn no_heading_stands_twice() {
        let of = |forms: &[(&str, &str)]| {
            let forms: Vec<Form> = forms
                .iter()
                .map(|(name, category)| form(name, category, Vec::new()))
                .collect();
            let headings = sections(&forms).into_iter().map(|section| {
                let forms = section.forms.into_iter().map(|form| form.name);
                std::iter::once(section.title)
                    .chain(forms)
                    .filter(|text| !text.is_empty())
                    .collect::<Vec<_>>()
            });
            headings.collect::<Vec<_>>()
        };
        assert_eq!(of(&[("Kaporta ve Boya", "BODY")]), [["Kaporta ve Boya"]]);
        assert_eq!(
            of(&[("KAPORTA VE BOYA", "BODY"), ("Cam", "BODY")]),
            [["Kaporta ve boya", "Cam"]]
        );
        assert_eq!(
            of(&[("Motor", "MECHANICAL"), ("Alt Takım", "MECHANICAL")]),
            [["Mekanik", "Motor", "Alt Takım"]]
        );
        assert_eq!(of(&[("", "BODY")]), [["Kaporta ve boya"]]);
    }
}
