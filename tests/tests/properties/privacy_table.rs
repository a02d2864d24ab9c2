//! Personal data in responses, by organization mode × partner × operation × field.
//!
//! The tables in [`rows`] list every text of every response about organizations and reports. A text without a row fails.

mod rows;

use std::collections::{BTreeMap, BTreeSet};

use lopdf::{Document, Object};
use partner_api::publishing::{RenderOutcome, Worker};
use partner_api_domain::scrub::{REMOVED, REMOVED_IN_PDF};
use partner_api_tests::fixture::{Subject, inspections};
use partner_api_tests::operations::{OPERATIONS, Operation, operation};
use partner_api_tests::{Service, TestKey, TestResponse};

use crate::{text_fields, texts};
use rows::{
    CAPTION, DISCOUNT, EXEMPT, GENERAL_NOTE, HIDDEN_CAPTION, INSPECTOR, MODES, NOTE, PACKAGE, PDF, PERSONAL, PHOTOS,
    PUBLIC, RECOMMENDATION, SUBJECTS, SUMMARY,
};

type Field = (String, String);

fn public_fields() -> BTreeSet<Field> {
    let fields = |(operation, fields): &(&str, &'static [&str])| {
        let operation = (*operation).to_owned();
        fields.iter().map(move |field| (operation.clone(), (*field).to_owned()))
    };
    PUBLIC.iter().flat_map(fields).collect()
}

fn all_fields() -> BTreeSet<Field> {
    let personal = PERSONAL
        .iter()
        .map(|(operation, field, _)| ((*operation).to_owned(), (*field).to_owned()));
    personal.chain(public_fields()).collect()
}

/// The operations with texts in their responses, except the exempt ones.
fn json_operations() -> impl Iterator<Item = &'static Operation> {
    OPERATIONS
        .iter()
        .filter(|operation| operation.response_schema().is_some() && !operation.tags().any(|tag| EXEMPT.contains(&tag)))
}

/// The operations of [`json_operations`] that the key has permission for.
fn operations_of(key: &TestKey) -> impl Iterator<Item = &'static Operation> {
    json_operations().filter(|operation| {
        operation
            .required_scope()
            .is_none_or(|permission| key.permissions.contains(&permission))
    })
}

/// Sends a partner's request about an organization and its report.
async fn response(service: &Service, key: &TestKey, operation: &Operation, subject: &Subject) -> TestResponse {
    let request = operation.narrowed_request(subject).signed_by(key);
    service.send(request).await
}

/// Plants personal data in every field of the three reports, and photos of every kind.
async fn plant(service: &Service) {
    let reports = SUBJECTS
        .map(|(subject, _)| format!("'{}'", subject.inspection))
        .join(", ");
    let [summary, recommendation, general_note, note, package, discount] =
        [SUMMARY, RECOMMENDATION, GENERAL_NOTE, NOTE, PACKAGE, DISCOUNT].map(|row| row[2]);
    let mut sql = format!(
        "UPDATE inspections SET summary = '{summary}', recommendation = '{recommendation}', package_name = '{package}',
             discount_name = '{discount}',
             inspector_name = '{}',
             snapshot_vin = 'SNPZZZAUZLW009' || right(id::text, 3), created_at = '2026-06-30T08:00:00Z'
             WHERE id IN ({reports});
         UPDATE inspections SET status = 'PUBLISHED', published_at = now(), created_at = '2026-06-29T08:00:00Z'
             WHERE id = '{}';
         UPDATE inspection_forms SET general_note = '{general_note}' WHERE inspection_id IN ({reports});
         UPDATE form_template_points SET unit = 'kN';
         DELETE FROM inspection_form_answers;
         INSERT INTO inspection_form_answers (inspection_form_id, point_id, organization_id, status_code, status_label, severity,
             note, by_device, written_by, written_at)
             SELECT f.id, p.id, f.organization_id, 'GOOD', 'İyi', 'NONE', '{note}', false, 'Ayşe Usta', now()
             FROM inspection_forms f JOIN form_template_points p USING (template_id) WHERE f.inspection_id IN ({reports});
         DELETE FROM photos;",
        INSPECTOR[2],
        inspections::FULL_DRAFT
    );
    for (position, (kind, show, shown)) in PHOTOS.iter().enumerate() {
        let caption = if shown.contains(&true) {
            CAPTION[2]
        } else {
            HIDDEN_CAPTION
        };
        sql += &format!(
            "INSERT INTO photos (id, organization_id, inspection_id, position, kind, point_code, caption, object_key, thumb_object_key,
                 mime_type, size_bytes, show_in_report)
             SELECT gen_random_uuid(), organization_id, id, {position}, '{kind}', 'FRONT_HOOD', '{caption}', 'photos/{position}.jpg',
                 'thumbs/{position}.jpg', 'image/jpeg', 1, {show} FROM inspections WHERE id IN ({reports});"
        );
    }
    service.db.batch_execute(&sql).await.unwrap();
}

/// Only the letters and digits, without line breaks and grouping, and the asterisks of masks.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric() || *c == '*').collect()
}

/// Everything that was planted in a report, squeezed: common digits of phone numbers and IDs, the plate, and the VINs.
async fn planted(service: &Service, report: &str) -> Vec<String> {
    let sql = "SELECT v.plate, v.vin, i.snapshot_vin FROM inspections i JOIN vehicles v ON v.id = i.vehicle_id \
               WHERE i.id = $1::text::uuid";
    let row = service.db.query_one(sql, &[&report]).await.unwrap();
    let mut planted = vec!["53270000".to_owned(), "287654321".to_owned()];
    planted.extend((0..3).map(|column| row.get(column)));
    planted
}

/// Every text of a document outside the page contents, one per line.
fn unprinted(document: &Document) -> String {
    fn collect(object: &Object, found: &mut String) {
        match object {
            Object::String(..) => {
                *found += &lopdf::decode_text_string(object).unwrap_or_default();
                found.push('\n');
            }
            Object::Array(items) => items.iter().for_each(|item| collect(item, found)),
            Object::Dictionary(members) => members.iter().for_each(|(_, member)| collect(member, found)),
            Object::Stream(stream) if stream.dict.has_type(b"Metadata") => {
                let content = stream.get_plain_content().unwrap();
                *found += &String::from_utf8_lossy(&content);
            }
            Object::Stream(stream) => stream.dict.iter().for_each(|(_, member)| collect(member, found)),
            _ => {}
        }
    }
    let mut found = String::new();
    document.objects.values().for_each(|object| collect(object, &mut found));
    found
}

#[test]
fn the_privacy_table_names_every_text_of_every_response() {
    let mut declared = BTreeSet::new();
    for operation in json_operations() {
        let mut fields = BTreeSet::new();
        text_fields(
            operation.contract(),
            operation.response_schema().unwrap(),
            "",
            &mut fields,
        );
        assert!(
            !fields.is_empty(),
            "{} has a response without text members",
            operation.id
        );
        declared.extend(fields.into_iter().map(|field| (operation.id.to_owned(), field)));
    }
    let table = all_fields();
    let missing: Vec<_> = declared.difference(&table).collect();
    let stale: Vec<_> = table.difference(&declared).collect();
    assert!(
        missing.is_empty(),
        "texts without a row in the privacy table: {missing:?}"
    );
    assert!(stale.is_empty(), "rows of the privacy table without a text: {stale:?}");
    assert_eq!(
        table.len(),
        PERSONAL.len() + PUBLIC.iter().map(|(_, fields)| fields.len()).sum::<usize>()
    );
}

/// PII-1, PII-2
#[tokio::test]
async fn every_cell_shows_only_what_its_mode_allows() {
    let service = Service::start().await;
    plant(&service).await;
    for (mode, (subject, partners)) in SUBJECTS.into_iter().enumerate() {
        let planted = planted(&service, subject.inspection).await;
        for key in partners {
            let mut found_fields = BTreeSet::new();
            for operation in operations_of(key) {
                let mut json = response(&service, key, operation, &subject).await.json();
                if !operation.can_be_narrowed() {
                    let items = json["data"].as_array_mut().unwrap();
                    items.retain(|item| item["id"] == subject.organization);
                }
                let operation = operation.id;
                let mut found = Vec::new();
                texts(&json, "", &mut found);
                for (field, text) in found {
                    let at = format!("{} × {} × {operation} × {field}", MODES[mode], key.id);
                    let row = PERSONAL.iter().find(|row| (row.0, row.1) == (operation, &*field));
                    match row {
                        Some((_, _, cells)) => assert_eq!(text, cells[mode], "{at}"),
                        None => {
                            let known = public_fields().contains(&(operation.to_owned(), field.clone()));
                            assert!(known, "{at}: no row in the privacy table");
                            let text = squeezed(&text);
                            let leaked = planted.iter().find(|datum| text.contains(datum.as_str()));
                            assert_eq!(leaked, None, "{at}: {text}");
                        }
                    }
                    found_fields.insert((operation.to_owned(), field));
                }
            }
            let is_requested = |(id, _): &&Field| operations_of(key).any(|operation| operation.id == id);
            let fields = all_fields();
            let unseen: Vec<_> = fields
                .iter()
                .filter(is_requested)
                .filter(|field| !found_fields.contains(field))
                .collect();
            assert!(unseen.is_empty(), "{} × {}: not found: {unseen:?}", MODES[mode], key.id);
        }
    }
}

/// REP-7
#[tokio::test]
async fn the_visibility_of_photos_depends_only_on_kind_and_flag() {
    let service = Service::start().await;
    plant(&service).await;
    let photos_of = operation("get_inspection_photos");
    for (mode, (subject, partners)) in SUBJECTS.into_iter().enumerate() {
        let ids: BTreeMap<String, (String, bool)> = service
            .db
            .query(
                "SELECT id::text, kind, show_in_report FROM photos WHERE inspection_id = $1::text::uuid",
                &[&subject.inspection],
            )
            .await
            .unwrap()
            .iter()
            .map(|row| (row.get(0), (row.get(1), row.get(2))))
            .collect();
        assert_eq!(ids.len(), PHOTOS.len());
        for key in partners {
            let response = response(&service, key, &photos_of, &subject).await.json();
            let photos = response["photos"].as_array().unwrap();
            let got: Vec<_> = photos
                .iter()
                .map(|photo| ids[photo["id"].as_str().unwrap()].clone())
                .collect();
            let shown = PHOTOS.iter().filter(|(_, _, cells)| cells[mode]);
            let expected: Vec<_> = shown.map(|(kind, show, _)| ((*kind).to_owned(), *show)).collect();
            assert_eq!(got, expected, "{} × {}", MODES[mode], key.id);
        }
    }
}

/// Compares one report in every mode. Only the personal fields change.
#[tokio::test]
async fn a_mode_changes_only_the_personal_fields() {
    let service = Service::start().await;
    plant(&service).await;
    let (subject, partners) = SUBJECTS[2];
    let mut first_fields: BTreeMap<&str, Vec<Field>> = BTreeMap::new();
    for mode in MODES {
        let set = format!(
            "UPDATE organizations SET pii_mode = '{mode}' WHERE id = '{}'",
            subject.organization
        );
        service.db.execute(&set, &[]).await.unwrap();
        for key in partners {
            // Responses that cannot be narrowed depend on the caller's grants, and responses to writes are new each time.
            let stays = |operation: &&Operation| operation.can_be_narrowed() && operation.method() == "GET";
            for operation in json_operations().filter(stays) {
                let json = response(&service, key, operation, &subject).await.json();
                let operation = operation.id;
                let mut found = Vec::new();
                texts(&json, "", &mut found);
                // The times and signatures of links and the cursor differ between requests. A change of mode changes `updated_at`
                // (REP-13).
                let volatile = ["url", "thumb_url", "expires_at", "next_cursor", "updated_at"];
                found.retain(|(field, _)| {
                    let personal = PERSONAL.iter().any(|row| (row.0, row.1) == (operation, field));
                    !personal && !volatile.contains(&field.rsplit('/').next().unwrap())
                });
                assert!(!found.is_empty());
                let first = first_fields.entry(operation).or_insert_with(|| found.clone());
                assert_eq!(found.len(), first.len(), "{mode} × {} × {operation}", key.id);
                for (now, before) in found.iter().zip(first.iter()) {
                    assert_eq!(now, before, "{mode} × {} × {operation}", key.id);
                }
            }
        }
    }
}

/// PII-3
#[tokio::test]
async fn the_pdf_shows_no_more_than_the_mode_allows() {
    let service = Service::start().await;
    plant(&service).await;
    let context = service.context();
    let worker = Worker::new(service.pool().clone(), context.storage.clone(), 1);
    let pdf = operation("get_inspection_pdf");
    for (mode, (subject, partners)) in SUBJECTS.into_iter().enumerate() {
        response(&service, &partners[0], &pdf, &subject)
            .await
            .assert_rejected(503, "service_unavailable");
        let rendered = RenderOutcome::Rendered {
            report: subject.inspection.parse().unwrap(),
            is_requested: true,
        };
        assert_eq!(worker.render_next().await.unwrap(), rendered);
        let planted = planted(&service, subject.inspection).await;
        for key in partners {
            let response = response(&service, key, &pdf, &subject).await;
            response.assert_status(200);
            let document = Document::load_mem(&response.body).unwrap();
            let pages: Vec<u32> = document.get_pages().into_keys().collect();
            let printed = squeezed(&document.extract_text(&pages).unwrap());
            for (field, cells) in PDF {
                let at = format!("{} × {} × get_inspection_pdf × {field}", MODES[mode], key.id);
                let shown = cells[mode].replace(REMOVED, REMOVED_IN_PDF);
                assert!(printed.contains(&squeezed(&shown)), "{at}: not in {printed}");
            }
            assert!(!printed.contains("Saklı"), "{}: a hidden photo is printed", MODES[mode]);
            if MODES[mode] == "FULL" {
                continue;
            }
            // The document's properties and alternative texts must not contain it either.
            assert!(!printed.contains("Yılmazer"), "{}: the inspector is named", MODES[mode]);
            let unprinted = squeezed(&unprinted(&document));
            assert!(!unprinted.is_empty());
            for datum in &planted {
                for (place, text) in [("text", &printed), ("properties", &unprinted)] {
                    let found = text.contains(datum.as_str());
                    assert!(!found, "{} × {}: {datum} is in the {place}", MODES[mode], key.id);
                }
            }
        }
    }
}
