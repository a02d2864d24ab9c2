//! A PDF is served only while what it was rendered under still holds.

use std::time::Duration;

use hayro::hayro_interpret::InterpreterSettings;
use hayro::hayro_syntax::Pdf;
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::{RenderCache, RenderSettings};
use lopdf::Document;
use partner_api::publishing::{Turn, Worker};
use partner_api_store::connection::Connection;
use partner_api_store::report_settings;
use partner_api_tests::fixture::inspections::PUBLISHED;
use partner_api_tests::fixture::{branches, organizations};
use partner_api_tests::options::Options;
use partner_api_tests::{ALPHA, Answer, Service};
use rqrr::PreparedImage;

const PLATE: &str = "35 MSK 201";
const VIN: &str = "NM0GXXTTPGL000201";

fn path(id: &str) -> String {
    format!("/api/v1/partner/inspections/{id}/pdf")
}

async fn get(service: &Service) -> Answer {
    service.get(&ALPHA, &path(PUBLISHED)).await
}

/// One turn of a renderer of the service's, as its background would take it.
async fn turn(service: &Service) -> Turn {
    let context = service.context();
    let worker = Worker::new(service.pool().clone(), context.storage.clone(), 1);
    worker.turn().await.unwrap()
}

async fn change(service: &Service, sql: &str) {
    let changed = service.db.execute(sql, &[]).await.unwrap();
    assert_eq!(changed, 1, "{sql}");
}

/// All text on the pages, without white space: line breaks are the layout's business.
fn text(answer: &Answer) -> String {
    let document = Document::load_mem(&answer.assert_status(200).body).unwrap();
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    squeezed(&document.extract_text(&pages).unwrap())
}

fn squeezed(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && *c != '\u{200b}')
        .collect()
}

/// The answer while the stored PDF does not hold, and the text of the one that is rendered then.
async fn rendered_anew(service: &Service) -> String {
    let waiting = get(service).await;
    waiting.assert_refused(503, "service_unavailable");
    assert_eq!(waiting.header("retry-after"), Some("2"));
    assert!(
        waiting.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("rendered")
    );
    let rendered = Turn::Rendered {
        report: PUBLISHED.parse().unwrap(),
        is_asked: true,
    };
    assert_eq!(turn(service).await, rendered);
    text(&get(service).await)
}

fn mode(mode: &str) -> String {
    format!(
        "UPDATE organizations SET pii_mode = '{mode}' WHERE id = '{}'",
        organizations::MASKED
    )
}

/// REP-8
#[tokio::test]
async fn a_pdf_is_not_served_while_it_is_rendered_anew() {
    let service = Service::start().await;
    change(&service, &mode("NONE")).await;
    get(&service)
        .await
        .assert_refused(503, "service_unavailable")
        .snapshot("a_pdf_is_not_served_while_it_is_rendered_anew");
}

/// REP-8, PII-3
#[tokio::test]
async fn a_pdf_of_a_laxer_privacy_mode_is_never_served_again() {
    let service = Service::start().await;
    change(&service, &mode("FULL")).await;
    let full = rendered_anew(&service).await;
    assert!(full.contains(&squeezed(PLATE)) && full.contains(VIN), "{full}");

    for (stricter, plate) in [("MASKED", "35***01"), ("NONE", "***")] {
        change(&service, &mode(stricter)).await;
        let text = rendered_anew(&service).await;
        assert!(text.contains(plate), "{stricter}: {text}");
        assert!(
            !text.contains(&squeezed(PLATE)) && !text.contains(VIN),
            "{stricter}: {text}"
        );
    }
}

/// REP-8
#[tokio::test]
async fn a_photo_that_was_hidden_after_publishing_is_in_no_pdf() {
    let service = Service::start().await;
    let photo = "UPDATE photos SET caption = 'Çizik yakından' WHERE object_key = 'photos/20101.jpg'";
    change(&service, photo).await;
    let caption = squeezed("Çizik yakından");
    assert!(rendered_anew(&service).await.contains(&caption));
    for hidden in ["show_in_report = false", "show_in_report = true, kind = 'REGISTRATION'"] {
        let shown = "UPDATE photos SET show_in_report = true, kind = 'DAMAGE' WHERE object_key = 'photos/20101.jpg'";
        let hide = format!("UPDATE photos SET {hidden} WHERE object_key = 'photos/20101.jpg'");
        change(&service, &hide).await;
        assert!(!rendered_anew(&service).await.contains(&caption), "{hidden}");
        change(&service, shown).await;
        assert!(rendered_anew(&service).await.contains(&caption));
    }
}

/// REP-8
#[tokio::test]
async fn whatever_is_printed_and_changed_by_sql_is_rendered_anew() {
    let service = Service::start().await;
    // As a restore or a replicating database writes: no trigger hears of it.
    let unheard = "SET session_replication_role = replica";
    service.db.batch_execute(unheard).await.unwrap();
    let report = format!("WHERE id = '{PUBLISHED}'");
    let form = "01974d20-0000-7f00-8000-000000020122";
    let answer = format!("WHERE inspection_form_id = '{form}' AND point_id = '01974d1f-0000-7f00-8000-000000002201'");
    for (sql, expected) in [
        (
            format!("UPDATE inspections SET final_price = 1234.50 {report}"),
            "1.234,50 TL",
        ),
        (
            format!("UPDATE inspections SET summary = 'Sonradan yazıldı.' {report}"),
            "Sonradan yazıldı.",
        ),
        (format!("UPDATE inspections SET overall_score = 33 {report}"), "33"),
        (
            format!("UPDATE inspection_form_answers SET numeric_value = 1.23 {answer}"),
            "1,23 kN",
        ),
        (
            format!("UPDATE inspection_form_answers SET note = 'Balata bitmiş.' {answer}"),
            "Balata bitmiş.",
        ),
        (format!("DELETE FROM inspection_form_answers {answer}"), "1.234,50 TL"),
        (
            format!("UPDATE inspection_forms SET general_note = 'Soğuk ölçüldü.' WHERE id = '{form}'"),
            "Soğuk ölçüldü.",
        ),
        (
            format!(
                "UPDATE branches SET name = 'Anadolu Alsancak' WHERE id = '{}'",
                branches::IZMIR_01
            ),
            "Anadolu Alsancak",
        ),
        (
            "UPDATE vehicles SET color = 'Turuncu' WHERE plate = '35MSK201'".to_owned(),
            "Turuncu",
        ),
        (
            "UPDATE form_template_points SET name = 'Yanal kayma, ön' WHERE template_id = \
             '01974d1e-0000-7f00-8000-000000000022' AND code = 'SLIP_FRONT'"
                .to_owned(),
            "Yanal kayma, ön",
        ),
    ] {
        change(&service, &sql).await;
        let text = rendered_anew(&service).await;
        assert!(text.contains(&squeezed(expected)), "{sql}: {text}");
    }
}

#[tokio::test]
async fn what_is_not_printed_leaves_the_pdf_as_it_is() {
    let service = Service::start().await;
    for sql in [
        format!(
            "UPDATE branches SET code = 'IZMIR-09' WHERE id = '{}'",
            branches::IZMIR_01
        ),
        // What was written is judged by the limits of its time.
        "UPDATE thresholds SET good_min = 2.9 WHERE point_code = 'BRAKE_FRONT_LEFT' AND good_min = 2.5 AND organization_id::text LIKE '%2'".to_owned(),
        "UPDATE photos SET thumb_object_key = NULL WHERE object_key = 'photos/20101.jpg'".to_owned(),
        "UPDATE photos SET caption = 'gizli kalır' WHERE object_key = 'photos/20103.jpg'".to_owned(),
        "UPDATE inspections SET summary = 'başka rapor' WHERE report_number = 'ANK-2026-000211'".to_owned(),
        format!(
            "UPDATE organizations SET pii_mode = 'NONE' WHERE id = '{}'",
            organizations::FULL
        ),
    ] {
        change(&service, &sql).await;
        assert_eq!(
            get(&service).await.assert_status(200).body,
            "%PDF-1.7 report 201",
            "{sql}"
        );
    }
    // The time zone of a session changes the text of its times, but nothing of the report.
    let before = service
        .rows(&format!("SELECT report_fingerprint('{PUBLISHED}') AS of"))
        .await;
    let elsewhere = "SET timezone = 'Asia/Tokyo'; SET datestyle = 'German'; SET extra_float_digits = 0";
    service.db.batch_execute(elsewhere).await.unwrap();
    let after = service
        .rows(&format!("SELECT report_fingerprint('{PUBLISHED}') AS of"))
        .await;
    assert_eq!(before, after);
}

#[tokio::test]
async fn a_pdf_that_the_storage_has_lost_is_rendered_anew() {
    let service = Service::start().await;
    let key = service
        .rows(&format!(
            "SELECT pdf_object_key AS key FROM inspections WHERE id = '{PUBLISHED}'"
        ))
        .await;
    service
        .context()
        .storage
        .delete(key[0]["key"].as_str().unwrap())
        .await
        .unwrap();
    assert!(rendered_anew(&service).await.contains("IZM-2026-000201"));
}

#[tokio::test]
async fn a_report_is_rendered_in_the_background_when_it_is_published() {
    let service = Service::start_with(Options {
        renderers: 1,
        ..Options::default()
    })
    .await;
    change(
        &service,
        &format!("UPDATE inspections SET status = 'IN_REVIEW' WHERE id = '{PUBLISHED}'"),
    )
    .await;
    change(&service, &mode("FULL")).await;
    change(
        &service,
        &format!("UPDATE inspections SET status = 'PUBLISHED' WHERE id = '{PUBLISHED}'"),
    )
    .await;
    let is_served = async || {
        let answer = get(&service).await;
        if answer.status != 200 {
            answer.assert_refused(503, "service_unavailable");
        }
        answer.status == 200
    };
    service.within(Duration::from_secs(120), is_served).await;
    assert!(text(&get(&service).await).contains(&squeezed(PLATE)));
}

/// What the QR codes on a PDF's first page say, read from its pixels: by a camera that comes closer until it sees one.
fn qr_codes(pdf: &[u8]) -> Vec<String> {
    let pdf = Pdf::new(pdf.to_vec()).unwrap();
    let seen = [144.0, 250.0, 350.0].into_iter().map(|dots_per_inch| {
        let (width, height, pixels) = pixels(&pdf, dots_per_inch);
        let mut picture = PreparedImage::prepare_from_greyscale(width, height, |x, y| pixels[y * width + x]);
        let codes = picture.detect_grids();
        codes
            .iter()
            .filter_map(|code| Some(code.decode().ok()?.1))
            .collect::<Vec<_>>()
    });
    seen.into_iter().find(|codes| !codes.is_empty()).unwrap_or_default()
}

/// The first page, drawn: its width and height, and how bright each pixel is.
fn pixels(pdf: &Pdf, dots_per_inch: f32) -> (usize, usize, Vec<u8>) {
    let settings = RenderSettings {
        x_scale: dots_per_inch / 72.0,
        y_scale: dots_per_inch / 72.0,
        bg_color: WHITE,
        ..RenderSettings::default()
    };
    let page = hayro::render(
        &pdf.pages()[0],
        &RenderCache::new(),
        &InterpreterSettings::default(),
        &settings,
    );
    let brightness = |sum: u16| u8::try_from(sum / 3).unwrap();
    let pixels = page
        .data()
        .iter()
        .map(|pixel| brightness(u16::from(pixel.r) + u16::from(pixel.g) + u16::from(pixel.b)));
    (page.width().into(), page.height().into(), pixels.collect())
}

/// REP-20
#[tokio::test]
async fn a_pdf_links_to_its_public_page_where_there_is_one() {
    let service = Service::start().await;
    let stored = service
        .rows(&format!(
            "SELECT public_slug AS slug FROM inspections WHERE id = '{PUBLISHED}'"
        ))
        .await;
    let slug = stored[0]["slug"].as_str().unwrap();
    // The longest that the configuration takes.
    let long = format!("{:x<200}", "https://reports.example/{slug}?of=");
    for address in [Some("https://reports.example/{slug}"), Some(&long), None] {
        let client = Connection::take(service.pool(), Duration::from_secs(20)).await.unwrap();
        assert!(report_settings::set_public_report_url(&client, address).await.unwrap());
        assert!(!report_settings::set_public_report_url(&client, address).await.unwrap());
        drop(client);
        let text = rendered_anew(&service).await;
        let link = address.map(|address| address.replace("{slug}", slug));
        let is_printed = text.contains(&squeezed(link.as_deref().unwrap_or("reports.example")));
        assert_eq!(is_printed, link.is_some(), "{text}");
        assert_eq!(text.contains(&squeezed("Raporu doğrula")), link.is_some(), "{text}");
        assert_eq!(qr_codes(&get(&service).await.body), Vec::from_iter(link));
    }
}

/// REP-18, PII-6
#[tokio::test]
async fn a_pdf_says_who_inspected_where_and_which_device_measured_against_which_limits() {
    let service = Service::start().await;
    for sql in [
        // The measurement that the form's answer names.
        format!(
            "INSERT INTO measurements (id, partner_id, key_id, organization_id, branch_id, plate, device_serial, measured_at,
                 received_at, raw, raw_sha256, status, inspection_id, settled_at, point_codes, point_texts, point_outcomes)
             SELECT '01974d21-0000-7f00-8000-000000000001', k.partner_id, k.key_id, i.organization_id, i.branch_id, i.plate,
                 'BRK-7', '2026-05-12T08:30:00Z', '2026-05-12T08:31:00Z', 'x', sha256('x'), 'APPLIED', i.id,
                 '2026-05-12T08:32:00Z', '{{BRAKE_FRONT_LEFT}}', '{{2.85}}', '{{applied}}'
             FROM inspections i, (SELECT key_id, partner_id FROM api_keys LIMIT 1) k WHERE i.id = '{PUBLISHED}'"
        ),
        "UPDATE inspection_form_answers SET measurement_id = '01974d21-0000-7f00-8000-000000000001', written_by = NULL
             WHERE by_device"
            .to_owned(),
        format!("UPDATE inspections SET inspector_name = 'Şule Taş' WHERE id = '{PUBLISHED}'"),
        format!(
            "UPDATE branches SET address = 'Mithatpaşa Cad. No: 8', telephone = '0232 555 01 09' WHERE id = '{}'",
            branches::IZMIR_01
        ),
    ] {
        service.db.batch_execute(&sql).await.unwrap();
    }
    let text = rendered_anew(&service).await;
    for expected in [
        "Ş. T.",
        "Mithatpaşa Cad. No: 8, Konak / İzmir",
        "0232 555 01 09",
        "BRK-7",
        "12.05.2026 11:30",
        "12.05.2026 11:32",
        "2,85 kN",
        "iyi: en az 2,50",
        "sınırda: en az 2,00",
        // What an inspector wrote himself, with limits that say the same of it.
        "-6,25 m/km",
        "elle girildi",
        "iyi: ±5,00",
    ] {
        assert!(text.contains(&squeezed(expected)), "{expected} in {text}");
    }
    assert!(!text.contains("ŞuleTaş"), "{text}");
}
