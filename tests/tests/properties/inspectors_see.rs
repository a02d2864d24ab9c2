//! Inspectors see the data of their own branches as stored, whatever the organization shows to partners, and no other data (INS-5).
//!
//! Every text of every response of the inspectors' contract has a row here. A new text fails until it is classified as personal
//! or not.

use std::collections::BTreeSet;

use partner_api_tests::Service;
use partner_api_tests::fixture::{Subject, inspections, organizations};
use partner_api_tests::inspectors::{AYSE, DERYA, InspectorClient};
use partner_api_tests::operations::INSPECTOR_OPERATIONS;
use serde_json::Value;

use crate::{text_fields, texts};

/// Fields of a report that contain, or may contain, personal data, and the value that is planted in each.
const PERSONAL: &[(&str, &str)] = &[
    ("/data/plate", "35OPN205"),
    ("/data/vehicle/plate", "35OPN205"),
    ("/data/vehicle/vin", "SNPZZZAUZLW009205"),
    ("/data/summary", "Sahibi Ali Veli 0532 700 00 01, kimlik 28765432101."),
    ("/data/recommendation", "Ali Veli aranmalı: +90 (532) 700-00-02."),
    ("/data/forms/*/general_note", "Telefon 532 700 00 03."),
    ("/data/forms/*/points/*/note", "Boyacı 0532.700.00.04."),
    ("/data/forms/*/points/*/earlier/*/note", "Eski not 0532.700.00.07."),
    ("/data/photos/*/caption", "Sahibi 0532-700-00-05"),
    ("/data/transitions/*/reason", "Müşteri 0532 700 00 06 aradı."),
    // The same reason.
    ("/data/published_pdfs/*/revised_for", "Müşteri 0532 700 00 06 aradı."),
    ("/data/plate_corrections/*/from", "35YNI777"),
    ("/data/plate_corrections/*/to", "35OPN205"),
];

/// Fields of a report without personal data.
const IMPERSONAL: &[&str] = &[
    "/data/branch_id",
    "/data/created_at",
    "/data/forms/*/computed/*/code",
    "/data/forms/*/computed/*/status_code",
    "/data/forms/*/computed/*/unit",
    "/data/forms/*/name",
    // A status, a time and the name of a colleague.
    "/data/forms/*/points/*/replaced/status_code",
    "/data/forms/*/points/*/replaced/written_at",
    "/data/forms/*/points/*/replaced/written_by",
    "/data/forms/*/points/*/earlier/*/replaced_at",
    "/data/forms/*/points/*/earlier/*/severity",
    "/data/forms/*/points/*/earlier/*/status_code",
    "/data/forms/*/points/*/earlier/*/status_label",
    "/data/forms/*/points/*/earlier/*/written_at",
    // The name of a colleague or a device.
    "/data/forms/*/points/*/earlier/*/written_by",
    "/data/forms/*/points/*/code",
    "/data/forms/*/points/*/name",
    "/data/forms/*/points/*/place",
    "/data/forms/*/points/*/severity",
    "/data/forms/*/points/*/status_code",
    "/data/forms/*/points/*/status_label",
    "/data/forms/*/points/*/unit",
    "/data/forms/*/points/*/written_at",
    // The name of a colleague or a device.
    "/data/forms/*/points/*/written_by",
    "/data/forms/*/statuses/*/code",
    "/data/forms/*/statuses/*/label",
    "/data/forms/*/statuses/*/label_en",
    "/data/forms/*/statuses/*/severity",
    "/data/forms/*/template_code",
    "/data/id",
    "/data/may_become/*",
    "/data/pdf_sha256",
    "/data/photo_kinds/*/code",
    "/data/photo_kinds/*/label",
    "/data/photo_kinds/*/label_en",
    "/data/photos/*/id",
    "/data/photos/*/kind",
    "/data/photos/*/point_code",
    "/data/photos/*/thumb_url",
    "/data/photos/*/url",
    "/data/plate_corrections/*/at",
    // The name of a colleague.
    "/data/plate_corrections/*/by",
    "/data/pricing/base_price",
    "/data/pricing/currency",
    "/data/pricing/discount_name",
    "/data/pricing/discount_percent",
    "/data/pricing/final_price",
    "/data/pricing/package_name",
    "/data/pricing/payment_type",
    "/data/public_slug",
    "/data/published_at",
    "/data/published_pdfs/*/published_at",
    "/data/published_pdfs/*/sha256",
    "/data/report_number",
    "/data/settled/*/device_serial",
    "/data/settled/*/id",
    "/data/settled/*/measured_at",
    "/data/settled/*/settled_at",
    "/data/settled/*/settled_by",
    "/data/status",
    "/data/transitions/*/at",
    "/data/transitions/*/by",
    "/data/transitions/*/from",
    "/data/transitions/*/to",
    "/data/vehicle/brand",
    "/data/vehicle/color",
    "/data/vehicle/factory_power_hp",
    "/data/vehicle/fuel_type",
    "/data/vehicle/model",
    "/data/vehicle/transmission",
    "/data/vehicle/type",
    "/data/waiting/*/computed/*/code",
    "/data/waiting/*/computed/*/status_code",
    "/data/waiting/*/computed/*/unit",
    "/data/waiting/*/device_serial",
    "/data/waiting/*/id",
    "/data/waiting/*/measured_at",
    "/data/waiting/*/partner",
    "/data/waiting/*/received_at",
    "/data/waiting/*/values/*/code",
    "/data/waiting/*/values/*/skipped_for",
    "/data/waiting/*/values/*/would_be",
];

/// Fields of the other responses. In the list the plate is personal; in a session the name is the inspector's own.
const OTHER_RESPONSES: &[&str] = &[
    "/data/*/branch_id",
    "/data/*/created_at",
    "/data/*/id",
    "/data/*/plate",
    "/data/*/report_number",
    "/data/*/status",
    "/data/*/vehicle",
    "/data/branches/*/code",
    "/data/branches/*/id",
    "/data/branches/*/name",
    "/data/csrf_token",
    "/data/ends_at",
    "/data/inspector",
    "/page/next_cursor",
];

async fn plant(service: &Service) {
    let value = |field: &str| PERSONAL.iter().find(|(known, _)| *known == field).unwrap().1;
    let sql = format!(
        "UPDATE inspections SET snapshot_vin = '{}', summary = '{}', recommendation = '{}' WHERE id = '{id}';
         INSERT INTO inspection_forms (id, organization_id, inspection_id, template_id)
             SELECT gen_random_uuid(), organization_id, '{id}', id FROM form_templates WHERE organization_id = '{organization}'
             ON CONFLICT DO NOTHING;
         UPDATE inspection_forms SET general_note = '{}' WHERE inspection_id = '{id}';
         DELETE FROM inspection_form_answers;
         INSERT INTO inspection_form_answers (inspection_form_id, point_id, organization_id, status_code, status_label, severity,
             note, by_device, written_by, written_at)
             SELECT f.id, p.id, f.organization_id, 'GOOD', 'İyi', 'NONE', '{}', false, 'Ayşe', now()
             FROM inspection_forms f JOIN form_template_points p USING (template_id) WHERE f.inspection_id = '{id}';
         INSERT INTO inspection_form_answer_history (inspection_form_id, point_id, organization_id, status_code, status_label,
             severity, note, by_device, written_by, written_at)
             SELECT f.id, p.id, f.organization_id, 'GOOD', 'İyi', 'NONE', '{}', false, 'Ayşe', now()
             FROM inspection_forms f JOIN form_template_points p USING (template_id) WHERE f.inspection_id = '{id}';
         DELETE FROM photos WHERE inspection_id = '{id}';
         INSERT INTO photos (id, organization_id, inspection_id, position, kind, caption, object_key, mime_type, size_bytes)
             VALUES (gen_random_uuid(), '{organization}', '{id}', 1, 'REGISTRATION', '{}', 'photos/1.jpg', 'image/jpeg', 1);
         INSERT INTO inspection_transitions (inspection_id, number, organization_id, to_status, reason, inspector_id,
             inspector_name)
             VALUES ('{id}', 1, '{organization}', 'DRAFT', '{}', '{by}', 'Ayşe');
         INSERT INTO inspection_transitions (inspection_id, number, organization_id, from_status, to_status, reason, inspector_id,
             inspector_name)
             VALUES ('{id}', 2, '{organization}', 'PUBLISHED', 'REVISION_REQUESTED', '{}', '{by}', 'Ayşe');
         INSERT INTO published_pdfs (object_key, organization_id, inspection_id, sha256, size_bytes)
             VALUES ('reports/1.pdf', '{organization}', '{id}', sha256('1'), 1);
         INSERT INTO plate_corrections (inspection_id, number, organization_id, old_plate, new_plate, inspector_id,
             inspector_name)
             VALUES ('{id}', 1, '{organization}', '{}', '{}', '{by}', 'Ayşe')",
        value("/data/vehicle/vin"),
        value("/data/summary"),
        value("/data/recommendation"),
        value("/data/forms/*/general_note"),
        value("/data/forms/*/points/*/note"),
        value("/data/forms/*/points/*/earlier/*/note"),
        value("/data/photos/*/caption"),
        value("/data/transitions/*/reason"),
        value("/data/published_pdfs/*/revised_for"),
        value("/data/plate_corrections/*/from"),
        value("/data/plate_corrections/*/to"),
        id = inspections::DRAFT,
        organization = organizations::MASKED,
        by = AYSE.id,
    );
    service.db.batch_execute(&sql).await.unwrap();
}

/// The responses of all operations that read.
async fn read(service: &Service, inspector: &InspectorClient) -> Vec<Value> {
    let mut bodies = Vec::new();
    for operation in INSPECTOR_OPERATIONS.iter() {
        if operation.method() == http::Method::GET && operation.response_schema().is_some() {
            let response = service.send(inspector.sends(operation.request(&Subject::MASKED))).await;
            bodies.push(response.json());
        }
    }
    bodies
}

#[test]
fn every_text_of_the_inspectors_contract_has_a_row_and_every_row_a_text() {
    let mut declared = BTreeSet::new();
    for operation in INSPECTOR_OPERATIONS.iter() {
        if let Some(schema) = operation.response_schema() {
            text_fields(operation.contract(), schema, "", &mut declared);
        }
    }
    let personal = PERSONAL.iter().map(|(field, _)| *field);
    let rows = personal
        .chain(IMPERSONAL.iter().copied())
        .chain(OTHER_RESPONSES.iter().copied());
    let rows: BTreeSet<String> = rows.map(ToOwned::to_owned).collect();
    let missing: Vec<_> = declared.difference(&rows).collect();
    let stale: Vec<_> = rows.difference(&declared).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "fields without a row: {missing:?}; rows without a field: {stale:?}"
    );
}

/// INS-5
#[tokio::test]
async fn inspectors_see_stored_data_in_every_mode_and_only_of_their_branches() {
    let service = Service::start().await;
    plant(&service).await;
    let (own, other) = (service.inspector(&AYSE).await, service.inspector(&DERYA).await);
    for mode in ["NONE", "MASKED", "FULL"] {
        let set = format!("UPDATE organizations SET pii_mode = '{mode}'");
        service.db.batch_execute(&set).await.unwrap();
        let mut found = Vec::new();
        texts(&own.report(&service, inspections::DRAFT).await, "/data", &mut found);
        for (field, stored) in PERSONAL {
            let shown: Vec<_> = found.iter().filter(|(path, _)| path == field).collect();
            assert!(!shown.is_empty(), "{mode}: nothing at {field}");
            assert!(shown.iter().all(|(_, text)| text == stored), "{mode}: {shown:?}");
        }
        for response in read(&service, &other).await {
            let text = response.to_string();
            for (field, stored) in PERSONAL {
                assert!(
                    !text.contains(stored),
                    "{mode}: another branch's inspector sees {field}: {text}"
                );
            }
        }
    }
}
