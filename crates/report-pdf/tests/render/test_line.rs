//! The values of the test line and their limits.

use report_pdf::Report;

use crate::{render, report, squeeze, text};

/// REP-21
#[test]
fn every_value_has_its_limits_and_as_many_decimals_as_were_measured() {
    let mut report = report();
    report.forms[2].points[0].numeric_value = Some(rust_decimal::Decimal::from(3));
    report.forms[2].points[2].numeric_value = Some(rust_decimal::Decimal::new(1853, 3));
    let text = text(&render(&report));
    for expected in [
        // 3 has the usual decimals of its unit, also beside the more precise 1,853.
        "3,00 kN",
        "3,28 kN",
        "1,853 kN",
        "iyi: en az 2,50",
        "sınırda: en az 2,00",
        "iyi: en çok 20,0",
        "iyi: ±7,0",
        "Ön fren toplamı",
        "6,70 kN",
        "Arka fren sol–sağ farkı",
        "%22,9",
        "Toplam: akstaki iki tekerleğin toplam fren kuvveti.",
        "Arka süspansiyon sol–sağ farkı",
        "elle girildi",
    ] {
        assert!(text.contains(&squeeze(expected)), "{expected} in {text}");
    }
}

#[test]
fn a_single_side_stays_in_the_table_of_its_kind() {
    let header = squeeze("Ölçüm Değer Ölçek Limitler Durum");
    let tables = |report: &Report| text(&render(report)).matches(&header).count();
    let mut report = report();
    let whole = tables(&report);
    report.forms[2].points.retain(|point| point.code != "HANDBRAKE_RIGHT");
    report.forms[2]
        .computed
        .retain(|point| !point.code.starts_with("HANDBRAKE"));
    assert!(text(&render(&report)).contains(&squeeze("El freni sol")));
    // A table that continues on the next page repeats its header.
    assert!(tables(&report) <= whole, "{} of {whole}", tables(&report));
}

#[test]
fn a_power_has_a_ratio_or_a_reason_for_its_absence() {
    let mut report = report();
    let ratio = squeeze("Güç oranı");
    assert!(text(&render(&report)).contains(&ratio));
    report.forms[2].points.retain(|point| point.code != "DYNO_RATIO");
    let text = text(&render(&report));
    assert!(
        text.contains(&ratio) && text.contains(&squeeze("hesaplanamadı: fabrika gücü kayıtlı değil")),
        "{text}"
    );
}
