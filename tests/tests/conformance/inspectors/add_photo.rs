//! The operation `add_photo`.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use partner_api::publishing::Worker;
use partner_api_tests::fixture::inspections;
use partner_api_tests::inspectors::InspectorClient;
use partner_api_tests::{ALPHA, AYSE, DERYA, Options, Request, Service, TestResponse};
use sandbox_pictures as pictures;

fn target(id: &str, query: &str) -> String {
    format!("/inspector/v1/reports/{id}/photos?{query}")
}

/// A photo as a camera produces it.
fn photo() -> Vec<u8> {
    pictures::SCENES[0].draw().unwrap().full
}

/// The checksum of a PNG's chunk.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

async fn add(service: &Service, inspector: &InspectorClient, target: &str, bytes: Vec<u8>) -> TestResponse {
    let request = Request::new("POST", target)
        .body(bytes)
        .header("content-type", "application/octet-stream");
    service.send(inspector.sends(request)).await
}

/// INS-9
#[tokio::test]
async fn a_photo_is_stored_in_two_sizes_after_the_others() {
    let service = Service::start().await;
    let (client, received) = service.generated_inspector_client(&AYSE).await;
    let id = inspections::DRAFT.parse::<uuid::Uuid>().unwrap();
    for kind in ["ODOMETER", "REGISTRATION"] {
        let call = client.add_photo().id(id).kind(kind).caption("Gösterge".to_owned());
        call.body(photo()).send().await.unwrap();
    }
    let response = received.last();
    response
        .assert_status(201)
        .snapshot("a_photo_is_added_after_the_others");
    for row in service
        .rows("SELECT object_key, thumb_object_key FROM photos WHERE caption = 'Gösterge'")
        .await
        .as_array()
        .unwrap()
    {
        for key in [&row["object_key"], &row["thumb_object_key"]] {
            assert!(service.context().storage.exists(key.as_str().unwrap()).await.unwrap());
        }
    }
    // A browser can follow its links.
    let url = response.json()["data"]["photos"][0]["thumb_url"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = url.strip_prefix(&service.base_url).unwrap();
    service.send(Request::get(path)).await.assert_status(200);
}

/// INS-9
#[tokio::test]
async fn a_file_that_is_not_a_photo_is_rejected_whatever_its_content_type() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let target = target(inspections::DRAFT, "kind=DAMAGE");
    let rejected = add(
        &service,
        &inspector,
        &target,
        b"<svg xmlns='http://www.w3.org/2000/svg'/>".to_vec(),
    )
    .await;
    rejected
        .assert_rejected(415, "unsupported_photo")
        .snapshot("a_file_that_is_not_a_photo_is_rejected");
    // A transfer that broke off.
    let photo = photo();
    for cut in [&photo[..photo.len() / 5], &[]] {
        let rejected = add(&service, &inspector, &target, cut.to_vec()).await;
        rejected.assert_rejected(415, "photo_truncated");
        if cut.is_empty() {
            rejected.snapshot("an_empty_file_is_rejected");
        }
    }
    // A header that claims 65,535 pixels a side.
    let mut huge = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\xff\xff\0\0\xff\xff\x08\x02\0\0\0".to_vec();
    huge.extend_from_slice(&crc32(&huge[12..]).to_be_bytes());
    huge.extend_from_slice(b"\0\0\0\0IDAT\x35\xaf\x06\x1e");
    let rejected = add(&service, &inspector, &target, huge).await;
    rejected
        .assert_rejected(415, "photo_too_large")
        .snapshot("a_photo_with_too_many_pixels_is_rejected");
    assert_eq!(
        service
            .count("photos WHERE inspection_id IN (SELECT id FROM inspections WHERE plate = '35OPN205')")
            .await,
        0
    );
}

/// INS-9
#[tokio::test]
async fn photos_are_limited_in_size_and_need_an_editable_report() {
    let service = Service::start_with(Options {
        body_timeout: std::time::Duration::from_millis(300),
        ..Options::default()
    })
    .await;
    let (inspector, derya) = (service.inspector(&AYSE).await, service.inspector(&DERYA).await);
    let damage = |id: &str| target(id, "kind=DAMAGE");
    let announced = Request::new("POST", &damage(inspections::DRAFT))
        .body("x")
        .stalled()
        .header("content-length", "10485761");
    service
        .send(inspector.sends(announced))
        .await
        .assert_rejected(413, "payload_too_large")
        .snapshot("a_photo_that_is_too_large_is_rejected");
    let slow = Request::new("POST", &damage(inspections::DRAFT)).body("x").stalled();
    service
        .send(inspector.sends(slow))
        .await
        .assert_rejected(408, "request_timeout")
        .snapshot("a_photo_that_does_not_arrive_in_time_is_rejected");
    let unknown = target(inspections::DRAFT, "kind=DAMAGE&point_code=ROOF_RACK");
    add(&service, &inspector, &unknown, photo())
        .await
        .assert_rejected(400, "invalid_request")
        .snapshot("a_photo_of_an_unknown_point_is_rejected");
    add(&service, &derya, &damage(inspections::DRAFT), photo())
        .await
        .assert_rejected(404, "not_found")
        .snapshot("a_photo_for_a_report_of_another_branch_is_rejected");
    add(&service, &inspector, &damage(inspections::IN_REVIEW), photo())
        .await
        .assert_rejected(409, "transition_rejected")
        .snapshot("a_photo_for_a_report_in_review_is_rejected");
}

/// INS-9
#[tokio::test]
async fn slow_uploads_of_one_inspector_leave_places_for_others() {
    let service = Service::start().await;
    let (slow, quick) = (service.inspector(&AYSE).await, service.inspector(&DERYA).await);
    let damage = |id: &str| target(id, "kind=DAMAGE");
    // Longer than what an upload may send without a place. A decoder ignores what follows the picture.
    let long = [photo(), vec![0; 100_000]].concat();
    let mut uploads: FuturesUnordered<_> = (0..20)
        .map(|_| {
            let request = Request::new("POST", &damage(inspections::DRAFT))
                .body(long.clone())
                .stalled();
            service.send(slow.sends(request))
        })
        .collect();
    // The others wait for a place.
    let crowded = uploads.next().await.unwrap();
    crowded.assert_rejected(503, "service_unavailable");
    let added = add(&service, &quick, &damage(inspections::FULL_DRAFT), long).await;
    added.assert_status(201);
}

/// INS-9
#[tokio::test]
async fn objects_of_a_failed_upload_are_deleted_and_photos_in_use_are_kept() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let target = target(inspections::DRAFT, "kind=DAMAGE");
    let storage = service.context().storage.clone();
    add(&service, &inspector, &target, photo()).await.assert_status(201);
    assert_eq!(service.count("orphaned_objects").await, 0);

    // The report gets no photo, and the objects are recorded as orphaned.
    let reject = "CREATE FUNCTION reject() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$";
    service.db.batch_execute(reject).await.unwrap();
    let fails = |name: &str, on: &str| format!("CREATE TRIGGER {name} BEFORE {on} EXECUTE FUNCTION reject()");
    let stored = "CREATE TABLE stored AS SELECT object_key FROM orphaned_objects WHERE false;
        GRANT INSERT ON stored TO PUBLIC;
        CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO stored VALUES (NEW.object_key); RETURN NEW; END $$;
        CREATE TRIGGER keep BEFORE INSERT ON orphaned_objects FOR EACH ROW EXECUTE FUNCTION keep();";
    service.db.batch_execute(stored).await.unwrap();
    let reject = fails("reject", "INSERT ON photos");
    service.db.batch_execute(&reject).await.unwrap();
    let exist = async || {
        let mut exist = Vec::new();
        for row in service.rows("SELECT object_key FROM stored").await.as_array().unwrap() {
            exist.push(storage.exists(row["object_key"].as_str().unwrap()).await.unwrap());
        }
        exist
    };
    add(&service, &inspector, &target, photo()).await.assert_status(500);
    assert_eq!(exist().await, [false, false]);
    assert_eq!(service.count("orphaned_objects").await, 0);

    // The process ends before it can record or delete anything.
    let end = fails("ends", "UPDATE ON orphaned_objects");
    service.db.batch_execute(&end).await.unwrap();
    add(&service, &inspector, &target, photo()).await.assert_status(500);
    assert_eq!(exist().await, [false, false, true, true]);
    let worker = Worker::new(service.pool().clone(), storage.clone(), 1);
    service
        .db
        .batch_execute("DROP TRIGGER ends ON orphaned_objects")
        .await
        .unwrap();
    worker.delete_orphaned().await.unwrap();
    assert_eq!(
        exist().await,
        [false, false, true, true],
        "the upload may still be running"
    );
    // A photo that a report references is kept, whatever the table contains.
    let all_due = "INSERT INTO orphaned_objects SELECT object_key, inspection_id, organization_id, now() FROM photos WHERE kind = 'DAMAGE'
            AND inspection_id = ";
    let due = "UPDATE orphaned_objects SET delete_at = now()";
    service
        .db
        .batch_execute(&format!("{all_due}'{}'; {due}", inspections::DRAFT))
        .await
        .unwrap();
    worker.delete_orphaned().await.unwrap();
    assert_eq!(exist().await, [false, false, false, false, true]);
    assert_eq!(service.count("orphaned_objects").await, 0);
}

/// INS-9, REP-7
#[tokio::test]
async fn partners_see_a_photo_after_publication_but_never_a_registration() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    for kind in ["DAMAGE", "REGISTRATION"] {
        let target = target(inspections::DRAFT, &format!("kind={kind}&point_code=FRONT_HOOD"));
        add(&service, &inspector, &target, photo()).await.assert_status(201);
    }
    inspector.answer_required_points(&service, inspections::DRAFT).await;
    let published = inspector.move_to(&service, inspections::DRAFT, "PUBLISHED", None).await;
    published.assert_status(200);
    let photos = format!("/api/v1/partner/inspections/{}/photos", inspections::DRAFT);
    let photos_of_partner = service.get(&ALPHA, &photos).await.json()["photos"].clone();
    assert_eq!(
        photos_of_partner.as_array().map(Vec::len),
        Some(1),
        "{photos_of_partner}"
    );
    assert_eq!(photos_of_partner[0]["kind"], "DAMAGE");
}

/// INS-21
#[tokio::test]
async fn a_photo_has_a_kind_of_the_organizations_templates() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let set = r#"UPDATE form_templates SET photo_kinds = '[
        {"code": "WHEEL", "label": "Jant", "label_en": "Wheel", "expected": 4}]'"#;
    service.db.batch_execute(set).await.unwrap();
    let added = add(&service, &inspector, &target(inspections::DRAFT, "kind=WHEEL"), photo()).await;
    added.assert_status(201);
    let report = added.json()["data"].clone();
    assert_eq!(
        report["photo_kinds"],
        serde_json::json!([{ "code": "WHEEL", "label": "Jant", "label_en": "Wheel", "expected": 4 }])
    );
    let rejected = add(
        &service,
        &inspector,
        &target(inspections::DRAFT, "kind=DAMAGE"),
        photo(),
    )
    .await;
    rejected
        .assert_rejected(400, "invalid_request")
        .snapshot("an_unknown_kind_of_photo_is_rejected");
    let id = report["photos"].as_array().unwrap().last().unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/inspector/v1/reports/{}/photos/{id}", inspections::DRAFT);
    let body = serde_json::json!({ "kind": "DAMAGE" });
    let unchanged = inspector.write(&service, "PATCH", &path, body).await;
    unchanged.assert_rejected(400, "invalid_request");
    assert_eq!(service.count("photos WHERE kind = 'WHEEL'").await, 1);
}

/// INS-9
#[tokio::test]
async fn a_repeated_upload_adds_no_second_photo_and_renews_the_description() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let upload = |caption: &str| {
        let query = format!("kind=DAMAGE&caption={caption}&upload_id=0e5b9c5e-3b1f-4a59-9a44-0d6f2c1f7b3a");
        target(inspections::DRAFT, &query)
    };
    // Both requests find no photo of the upload, and decode.
    let (first, second) = (upload("A"), upload("A"));
    let (first, second) = futures::join!(
        add(&service, &inspector, &first, photo()),
        add(&service, &inspector, &second, photo()),
    );
    first.assert_status(201);
    second.assert_status(201);
    let repeated = add(&service, &inspector, &upload("B"), photo()).await;
    repeated.assert_status(201);
    assert_eq!(repeated.json()["data"]["photos"].as_array().map(Vec::len), Some(1));
    let photos = "photos WHERE upload_id = '0e5b9c5e-3b1f-4a59-9a44-0d6f2c1f7b3a'";
    assert_eq!(service.count(&format!("{photos} AND caption = 'B'")).await, 1);
    // The objects of the request that lost are deleted, and those of the photo are not.
    assert_eq!(service.count("orphaned_objects").await, 0);
    let rows = service
        .rows(&format!("SELECT object_key, thumb_object_key FROM {photos}"))
        .await;
    for key in [&rows[0]["object_key"], &rows[0]["thumb_object_key"]] {
        assert!(service.context().storage.exists(key.as_str().unwrap()).await.unwrap());
    }
    // Another upload of the same file is another photo.
    let other = target(
        inspections::DRAFT,
        "kind=DAMAGE&upload_id=5f1d2c3b-0000-4000-8000-000000000001",
    );
    add(&service, &inspector, &other, photo()).await.assert_status(201);
    assert_eq!(service.count("photos WHERE upload_id IS NOT NULL").await, 2);
}
