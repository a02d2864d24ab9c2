//! `add_photo`

use partner_api::publishing::Worker;
use partner_api_tests::fixture::inspections;
use partner_api_tests::inspectors::InspectorClient;
use partner_api_tests::{ALPHA, AYSE, Answer, DERYA, Options, Request, Service};
use sandbox_pictures as pictures;

fn target(id: &str, query: &str) -> String {
    format!("/inspector/v1/reports/{id}/photos?{query}")
}

/// A photo as a camera would give it.
fn photo() -> Vec<u8> {
    pictures::SCENES[0].draw().unwrap().full
}

async fn add(service: &Service, inspector: &InspectorClient, target: &str, bytes: Vec<u8>) -> Answer {
    let request = Request::new("POST", target)
        .body(bytes)
        .header("content-type", "application/octet-stream");
    service.send(inspector.sends(request)).await
}

/// INS-9
#[tokio::test]
async fn a_photo_is_kept_in_two_sizes_behind_the_others() {
    let service = Service::start().await;
    let (client, seen) = service.generated_inspector_client(&AYSE).await;
    let id = inspections::DRAFT.parse::<uuid::Uuid>().unwrap();
    for kind in ["ODOMETER", "REGISTRATION"] {
        let call = client.add_photo().id(id).kind(kind).caption("Gösterge".to_owned());
        call.body(photo()).send().await.unwrap();
    }
    let answer = seen.last();
    answer.assert_status(201).snapshot("a_photo_is_added_behind_the_others");
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
    // Its links work for a browser.
    let url = answer.json()["data"]["photos"][0]["thumb_url"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = url.strip_prefix(&service.base_url).unwrap();
    service.send(Request::get(path)).await.assert_status(200);
}

/// INS-9
#[tokio::test]
async fn what_is_no_photo_is_refused_by_its_bytes_whatever_it_is_called() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let target = target(inspections::DRAFT, "kind=DAMAGE");
    let refused = add(
        &service,
        &inspector,
        &target,
        b"<svg xmlns='http://www.w3.org/2000/svg'/>".to_vec(),
    )
    .await;
    refused
        .assert_refused(415, "unsupported_photo")
        .snapshot("what_is_no_photo_is_refused");
    let half = add(&service, &inspector, &target, photo()[..200].to_vec()).await;
    half.assert_refused(415, "unsupported_photo");
    add(&service, &inspector, &target, Vec::new())
        .await
        .assert_refused(415, "unsupported_photo");
    assert_eq!(
        service
            .count("photos WHERE inspection_id IN (SELECT id FROM inspections WHERE plate = '35OPN205')")
            .await,
        0
    );
}

/// INS-9
#[tokio::test]
async fn a_photo_has_its_bounds_and_its_report() {
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
        .assert_refused(413, "payload_too_large")
        .snapshot("a_photo_that_is_too_large_is_refused");
    let slow = Request::new("POST", &damage(inspections::DRAFT)).body("x").stalled();
    service
        .send(inspector.sends(slow))
        .await
        .assert_refused(408, "request_timeout")
        .snapshot("a_photo_that_does_not_arrive_is_given_up");
    let unknown = target(inspections::DRAFT, "kind=DAMAGE&point_code=ROOF_RACK");
    add(&service, &inspector, &unknown, photo())
        .await
        .assert_refused(400, "invalid_request")
        .snapshot("a_photo_of_no_point_is_refused");
    add(&service, &derya, &damage(inspections::DRAFT), photo())
        .await
        .assert_refused(404, "not_found")
        .snapshot("no_photo_goes_into_a_report_of_another_branch");
    add(&service, &inspector, &damage(inspections::IN_REVIEW), photo())
        .await
        .assert_refused(409, "transition_refused")
        .snapshot("a_report_in_review_takes_no_photo");
}

/// INS-9
#[tokio::test]
async fn what_a_request_stored_that_came_to_nothing_is_deleted_at_once_or_later_and_no_photo_is() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let target = target(inspections::DRAFT, "kind=DAMAGE");
    let storage = service.context().storage.clone();
    add(&service, &inspector, &target, photo()).await.assert_status(201);
    assert_eq!(service.count("orphaned_objects").await, 0);

    // The report comes to have no photo; the statement that says so tells the objects.
    let fails = |name: &str, on: &str| {
        format!(
            "CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
             CREATE TRIGGER {name} BEFORE {on} EXECUTE FUNCTION {name}();"
        )
    };
    let stored = "CREATE TABLE stored AS SELECT object_key FROM orphaned_objects WHERE false;
        CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO stored VALUES (NEW.object_key); RETURN NEW; END $$;
        CREATE TRIGGER keep BEFORE INSERT ON orphaned_objects FOR EACH ROW EXECUTE FUNCTION keep();";
    service.db.batch_execute(stored).await.unwrap();
    let refuse = fails("refuse", "INSERT ON photos");
    service.db.batch_execute(&refuse).await.unwrap();
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

    // The process ends before it can say or do anything more.
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
    worker.delete_unnamed().await.unwrap();
    assert_eq!(exist().await, [false, false, true, true], "it might be under way still");
    // A photo that a report names stays, whatever the table says.
    let all_due = "INSERT INTO orphaned_objects SELECT object_key, inspection_id, organization_id, now() FROM photos WHERE kind = 'DAMAGE'
            AND inspection_id = ";
    let due = "UPDATE orphaned_objects SET delete_at = now()";
    service
        .db
        .batch_execute(&format!("{all_due}'{}'; {due}", inspections::DRAFT))
        .await
        .unwrap();
    worker.delete_unnamed().await.unwrap();
    assert_eq!(exist().await, [false, false, false, false, true]);
    assert_eq!(service.count("orphaned_objects").await, 0);
}

/// INS-9, REP-7
#[tokio::test]
async fn partners_see_the_photo_once_the_report_is_published_and_a_registration_never() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    for kind in ["DAMAGE", "REGISTRATION"] {
        let target = target(inspections::DRAFT, &format!("kind={kind}&point_code=FRONT_HOOD"));
        add(&service, &inspector, &target, photo()).await.assert_status(201);
    }
    let report = inspector.report(&service, inspections::DRAFT).await;
    let body = serde_json::json!({ "version": report["version"], "to": "PUBLISHED" });
    let status = format!("/inspector/v1/reports/{}/status", inspections::DRAFT);
    inspector.write(&service, "PUT", &status, body).await.assert_status(200);
    let photos = format!("/api/v1/partner/inspections/{}/photos", inspections::DRAFT);
    let seen = service.get(&ALPHA, &photos).await.json()["photos"].clone();
    assert_eq!(seen.as_array().map(Vec::len), Some(1), "{seen}");
    assert_eq!(seen[0]["kind"], "DAMAGE");
}
