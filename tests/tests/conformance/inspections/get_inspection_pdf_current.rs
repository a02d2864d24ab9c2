//! A PDF is returned only while the data that it was rendered from is unchanged.

use std::time::Duration;

use hayro::hayro_interpret::InterpreterSettings;
use hayro::hayro_syntax::Pdf;
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::{RenderCache, RenderSettings};
use lopdf::Document;
use partner_api::publishing::{RenderOutcome, Worker};
use partner_api_store::connection::Connection;
use partner_api_store::public_reports;
use partner_api_tests::fixture::inspections::PUBLISHED;
use partner_api_tests::fixture::{branches, organizations};
use partner_api_tests::options::Options;
use partner_api_tests::{ALPHA, Service, TestResponse};
use rqrr::PreparedImage;

const PLATE: &str = "35 MSK 201";
const VIN: &str = "NM0GXXTTPGL000201";

fn path(id: &str) -> String {
    format!("/api/v1/partner/inspections/{id}/pdf")
}

async fn get(service: &Service) -> TestResponse {
    service.get(&ALPHA, &path(PUBLISHED)).await
}

/// Runs a renderer of the service once, as its background worker does.
async fn render_once(service: &Service) -> RenderOutcome {
    let context = service.context();
    let worker = Worker::new(service.pool().clone(), context.storage.clone(), 1);
    worker.render_next().await.unwrap()
}

async fn change(service: &Service, sql: &str) {
    let changed = service.db.execute(sql, &[]).await.unwrap();
    assert_eq!(changed, 1, "{sql}");
}

/// All text on the pages, without white space, because the layout decides on line breaks.
fn text(response: &TestResponse) -> String {
    let document = Document::load_mem(&response.assert_status(200).body).unwrap();
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    squeezed(&document.extract_text(&pages).unwrap())
}

fn squeezed(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && *c != '\u{200b}')
        .collect()
}

/// Asserts that the stored PDF is stale, renders it again, and returns the text of the new one.
async fn rendered_again(service: &Service) -> String {
    let waiting = get(service).await;
    waiting.assert_rejected(503, "service_unavailable");
    assert_eq!(waiting.header("retry-after"), Some("2"));
    assert!(
        waiting.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("rendered")
    );
    let rendered = RenderOutcome::Rendered {
        report: PUBLISHED.parse().unwrap(),
        is_requested: true,
    };
    assert_eq!(render_once(service).await, rendered);
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
async fn a_stale_pdf_is_not_served_while_it_is_rendered_again() {
    let service = Service::start().await;
    change(&service, &mode("NONE")).await;
    get(&service)
        .await
        .assert_rejected(503, "service_unavailable")
        .snapshot("a_stale_pdf_is_not_served_while_it_is_rendered_again");
}

/// REP-8, PII-3
#[tokio::test]
async fn a_pdf_of_a_laxer_privacy_mode_is_never_served_again() {
    let service = Service::start().await;
    change(&service, &mode("FULL")).await;
    let full = rendered_again(&service).await;
    assert!(full.contains(&squeezed(PLATE)) && full.contains(VIN), "{full}");

    for (stricter, plate) in [("MASKED", "35***01"), ("NONE", "***")] {
        change(&service, &mode(stricter)).await;
        let text = rendered_again(&service).await;
        assert!(text.contains(plate), "{stricter}: {text}");
        assert!(
            !text.contains(&squeezed(PLATE)) && !text.contains(VIN),
            "{stricter}: {text}"
        );
    }
}

/// REP-8
#[tokio::test]
async fn a_photo_that_is_hidden_after_publishing_is_removed_from_the_pdf() {
    let service = Service::start().await;
    let photo = "UPDATE photos SET caption = 'Çizik yakından' WHERE object_key = 'photos/20101.jpg'";
    change(&service, photo).await;
    let caption = squeezed("Çizik yakından");
    assert!(rendered_again(&service).await.contains(&caption));
    for hidden in ["show_in_report = false", "show_in_report = true, kind = 'REGISTRATION'"] {
        let shown = "UPDATE photos SET show_in_report = true, kind = 'DAMAGE' WHERE object_key = 'photos/20101.jpg'";
        let hide = format!("UPDATE photos SET {hidden} WHERE object_key = 'photos/20101.jpg'");
        change(&service, &hide).await;
        assert!(!rendered_again(&service).await.contains(&caption), "{hidden}");
        change(&service, shown).await;
        assert!(rendered_again(&service).await.contains(&caption));
    }
}

/// REP-8
#[tokio::test]
async fn a_change_by_sql_of_printed_data_renders_the_pdf_again() {
    let service = Service::start().await;
    // Triggers are disabled, as in a restore or in logical replication.
    let without_triggers = "SET session_replication_role = replica";
    service.db.batch_execute(without_triggers).await.unwrap();
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
        let text = rendered_again(&service).await;
        assert!(text.contains(&squeezed(expected)), "{sql}: {text}");
    }
}

#[tokio::test]
async fn a_change_of_data_that_is_not_printed_keeps_the_pdf() {
    let service = Service::start().await;
    for sql in [
        format!(
            "UPDATE branches SET code = 'IZMIR-09' WHERE id = '{}'",
            branches::IZMIR_01
        ),
        // Values keep the thresholds of the time when they were written.
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
    // The time zone of a session changes the text of its times, but not the report.
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
async fn a_pdf_missing_from_the_storage_is_rendered_again() {
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
    assert!(rendered_again(&service).await.contains("IZM-2026-000201"));
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
        let response = get(&service).await;
        if response.status != 200 {
            response.assert_rejected(503, "service_unavailable");
        }
        response.status == 200
    };
    service.within(Duration::from_secs(120), is_served).await;
    assert!(text(&get(&service).await).contains(&squeezed(PLATE)));
}

/// The contents of the QR codes on the first page of a PDF, read from its pixels at growing resolutions until one is found.
fn qr_codes(pdf: &[u8]) -> Vec<String> {
    let pdf = Pdf::new(pdf.to_vec()).unwrap();
    let decoded = [144.0, 250.0, 350.0].into_iter().map(|dots_per_inch| {
        let (width, height, pixels) = pixels(&pdf, dots_per_inch);
        let mut picture = PreparedImage::prepare_from_greyscale(width, height, |x, y| pixels[y * width + x]);
        let codes = picture.detect_grids();
        codes
            .iter()
            .filter_map(|code| Some(code.decode().ok()?.1))
            .collect::<Vec<_>>()
    });
    decoded.into_iter().find(|codes| !codes.is_empty()).unwrap_or_default()
}

/// The rendered first page: its width and height, and the brightness of each pixel.
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
async fn a_pdf_links_to_its_public_page_if_there_is_one() {
    let service = Service::start().await;
    let stored = service
        .rows(&format!(
            "SELECT public_slug AS slug FROM inspections WHERE id = '{PUBLISHED}'"
        ))
        .await;
    let slug = stored[0]["slug"].as_str().unwrap();
    // The longest address that the configuration accepts.
    let long = format!("{:x<200}", "https://reports.example/{slug}?of=");
    for address in [Some("https://reports.example/{slug}"), Some(&long), None] {
        let client = Connection::take(service.pool(), Duration::from_secs(20)).await.unwrap();
        assert!(public_reports::set_address(&client, address).await.unwrap());
        assert!(!public_reports::set_address(&client, address).await.unwrap());
        drop(client);
        let text = rendered_again(&service).await;
        let link = address.map(|address| address.replace("{slug}", slug));
        let is_printed = text.contains(&squeezed(link.as_deref().unwrap_or("reports.example")));
        assert_eq!(is_printed, link.is_some(), "{text}");
        assert_eq!(text.contains(&squeezed("Raporu doğrula")), link.is_some(), "{text}");
        assert_eq!(qr_codes(&get(&service).await.body), Vec::from_iter(link));
    }
}

/// REP-18, PII-6
#[tokio::test]
async fn a_pdf_names_the_inspector_the_branch_the_device_and_the_thresholds() {
    let service = Service::start().await;
    for sql in [
        // The measurement that the answer in the form refers to.
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
    let text = rendered_again(&service).await;
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
        // A value that an inspector wrote, with thresholds that give the same status.
        "-6,25 m/km",
        "elle girildi",
        "iyi: ±5,0",
    ] {
        assert!(text.contains(&squeezed(expected)), "{expected} in {text}");
    }
    assert!(!text.contains("ŞuleTaş"), "{text}");
}
