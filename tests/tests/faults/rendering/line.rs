//! The rendering queue: requests, claims, retries, and replaced PDFs.

use futures::TryStreamExt;
use partner_api::publishing::{RenderOutcome, Worker};
use partner_api_tests::fixture::inspections::{FULL_PUBLISHED, NONE_PUBLISHED, OTHER_BRANCH, PUBLISHED};
use partner_api_tests::{ALPHA, Service};
use tokio_postgres::error::SqlState;

use super::{expire_leases, id, object_key, pdf, rendered, request_rendering, rewrite, worker};

#[tokio::test]
async fn a_pdf_request_does_not_wait_for_an_open_transaction() {
    let service = Service::start().await;
    let editor = partner_api_tests::cluster::connect(&service.database()).await;
    // The row that the trigger inserted is locked until the transaction ends.
    let publish = format!("BEGIN; UPDATE inspections SET status = 'PUBLISHED' WHERE id = '{FULL_PUBLISHED}'");
    editor.batch_execute(&publish).await.unwrap();
    assert_eq!(
        editor.query("SELECT FROM report_renderings", &[]).await.unwrap().len(),
        1
    );
    request_rendering(&service, FULL_PUBLISHED).await;
    // The request skipped the locked row; no statement timeout ended it.
    service.db.batch_execute("SET statement_timeout = '20s'").await.unwrap();
    let request = "SELECT try_enqueue_rendering($1, NULL, 0, true)";
    let rejected = service.db.execute(request, &[&id(FULL_PUBLISHED)]).await.unwrap_err();
    assert_eq!(rejected.code(), Some(&SqlState::LOCK_NOT_AVAILABLE));
    editor.batch_execute("COMMIT").await.unwrap();
    request_rendering(&service, FULL_PUBLISHED).await;
    assert_eq!(worker(&service).render_next().await.unwrap(), rendered(FULL_PUBLISHED));
}

#[tokio::test]
async fn a_report_that_cannot_be_rendered_delays_no_other() {
    let service = Service::start().await;
    // A number that cannot be printed, which only plain SQL can write.
    let unprintable = "UPDATE inspection_form_answers SET numeric_value = 1e60 \
                  WHERE inspection_form_id = '01974d20-0000-7f00-8000-000000020122'";
    service.db.execute(unprintable, &[]).await.unwrap();
    request_rendering(&service, PUBLISHED).await;
    request_rendering(&service, FULL_PUBLISHED).await;
    let worker = worker(&service);
    assert_eq!(
        worker.render_next().await.unwrap(),
        RenderOutcome::Failed(id(PUBLISHED))
    );
    assert_eq!(worker.render_next().await.unwrap(), rendered(FULL_PUBLISHED));
    assert_eq!(worker.render_next().await.unwrap(), RenderOutcome::Idle);
    service.get(&ALPHA, &pdf(FULL_PUBLISHED)).await.assert_status(200);

    // However often it is requested, it is retried only after a backoff, which grows.
    let backoff = "SELECT attempts, extract(epoch FROM due_at - now()) > 20 AS first, \
                  extract(epoch FROM due_at - now()) > 50 AS second FROM report_renderings";
    assert_eq!(
        service.rows(backoff).await,
        serde_json::json!([{"attempts": 1, "first": true, "second": false}])
    );
    request_rendering(&service, PUBLISHED).await;
    assert_eq!(worker.render_next().await.unwrap(), RenderOutcome::Idle);
    expire_leases(&service).await;
    assert_eq!(
        worker.render_next().await.unwrap(),
        RenderOutcome::Failed(id(PUBLISHED))
    );
    assert_eq!(
        service.rows(backoff).await,
        serde_json::json!([{"attempts": 2, "first": true, "second": true}])
    );

    // After the data is corrected, a request does not wait for the backoff.
    let corrected = unprintable.replace("1e60", "1.5");
    service.db.execute(&corrected, &[]).await.unwrap();
    request_rendering(&service, PUBLISHED).await;
    assert_eq!(worker.render_next().await.unwrap(), rendered(PUBLISHED));
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_never_render_one_report_at_the_same_time() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let watch = "
        CREATE TABLE seen (what text, report uuid);
        GRANT INSERT ON seen TO PUBLIC;
        CREATE FUNCTION see_claim() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO seen VALUES ('claim', NEW.inspection_id); RETURN NULL; END $$;
        CREATE TRIGGER see AFTER UPDATE ON report_renderings FOR EACH ROW
            WHEN (NEW.claim IS DISTINCT FROM OLD.claim AND NEW.claim IS NOT NULL) EXECUTE FUNCTION see_claim();
        CREATE FUNCTION see_switch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO seen VALUES ('switch', NEW.id); RETURN NULL; END $$;
        CREATE TRIGGER see AFTER UPDATE OF pdf_object_key ON inspections FOR EACH ROW EXECUTE FUNCTION see_switch();";
    service.db.batch_execute(watch).await.unwrap();
    let reports = [NONE_PUBLISHED, PUBLISHED, OTHER_BRANCH, FULL_PUBLISHED];
    for report in reports {
        rewrite(&service, report, "Herkes için.").await;
        request_rendering(&service, report).await;
    }
    let all = async |worker: Worker| {
        let mut outcomes = Vec::new();
        loop {
            match worker.render_next().await.unwrap() {
                RenderOutcome::Idle => return outcomes,
                outcome => outcomes.push(outcome),
            }
        }
    };
    let (one, two, three) = tokio::join!(all(worker(&service)), all(worker(&replica)), all(worker(&replica)));
    let outcomes: Vec<_> = [one, two, three].concat();
    assert_eq!(outcomes.len(), reports.len(), "{outcomes:?}");
    for report in reports {
        assert!(outcomes.contains(&rendered(report)));
        for what in ["claim", "switch"] {
            let seen = format!("seen WHERE what = '{what}' AND report = '{report}'");
            assert_eq!(service.count(&seen).await, 1, "{what} {report}");
        }
        service.get(&ALPHA, &pdf(report)).await.assert_status(200);
    }
    assert_eq!(service.count("report_renderings").await, 0);
}

#[tokio::test]
async fn a_replaced_pdf_can_still_be_read_to_its_end() {
    let service = Service::start().await;
    let storage = &service.context().storage;
    rewrite(&service, PUBLISHED, "Eski.").await;
    request_rendering(&service, PUBLISHED).await;
    let worker = worker(&service);
    assert_eq!(worker.render_next().await.unwrap(), rendered(PUBLISHED));
    let old = object_key(&service, PUBLISHED).await;
    let mut reading = storage.stream(&old).await.unwrap();
    let mut bytes = reading.stream.try_next().await.unwrap().unwrap().to_vec();

    rewrite(&service, PUBLISHED, "Yeni.").await;
    request_rendering(&service, PUBLISHED).await;
    assert_eq!(worker.render_next().await.unwrap(), rendered(PUBLISHED));
    let new = object_key(&service, PUBLISHED).await;
    assert_ne!(new, old);
    // An object is deleted only when it is due, and never while a report references it, whatever the table contains.
    worker.delete_orphaned().await.unwrap();
    assert!(storage.exists(&old).await.unwrap());
    while let Some(part) = reading.stream.try_next().await.unwrap() {
        bytes.extend_from_slice(&part);
    }
    assert_eq!(bytes.len() as u64, reading.content_length);
    assert!(bytes.trim_ascii_end().ends_with(b"%%EOF"));

    let all_due =
        "INSERT INTO orphaned_objects SELECT pdf_object_key, id, organization_id, now() FROM inspections WHERE id = $1";
    service.db.execute(all_due, &[&id(PUBLISHED)]).await.unwrap();
    service
        .db
        .execute("UPDATE orphaned_objects SET delete_at = now()", &[])
        .await
        .unwrap();
    worker.delete_orphaned().await.unwrap();
    assert!(!storage.exists(&old).await.unwrap());
    assert!(storage.exists(&new).await.unwrap());
    assert_eq!(service.count("orphaned_objects").await, 0);
    service.get(&ALPHA, &pdf(PUBLISHED)).await.assert_status(200);
}

#[tokio::test]
async fn the_sweep_finds_pdfs_that_became_stale_without_a_trigger() {
    let service = Service::start().await;
    let worker = worker(&service);
    // Two published reports of the fixture data have never had a PDF.
    assert_eq!(worker.sweep().await.unwrap(), 2);
    assert_eq!(
        worker.sweep().await.unwrap(),
        0,
        "only one replica sweeps every ten seconds"
    );
    let next = "UPDATE report_sweep SET due_at = now(), after_id = DEFAULT";
    service.db.execute(next, &[]).await.unwrap();
    service
        .db
        .execute("UPDATE organizations SET name = name || ' A.Ş.'", &[])
        .await
        .unwrap();
    assert_eq!(worker.sweep().await.unwrap(), 4);
    assert_eq!(service.count("report_renderings WHERE NOT is_requested").await, 4);
    // A requested report is rendered first.
    request_rendering(&service, PUBLISHED).await;
    assert_eq!(worker.render_next().await.unwrap(), rendered(PUBLISHED));
    // A claimed report that is withdrawn in the meantime is not rendered.
    service
        .db
        .execute("UPDATE inspections SET public_slug = NULL", &[])
        .await
        .unwrap();
    for _ in 0..3 {
        assert!(matches!(
            worker.render_next().await.unwrap(),
            RenderOutcome::UpToDate(_)
        ));
    }
    assert_eq!(worker.render_next().await.unwrap(), RenderOutcome::Idle);
}

#[tokio::test]
async fn an_older_renderer_does_not_render_for_a_newer_layout() {
    let service = Service::start().await;
    let newer = "SELECT enqueue_rendering($1, report_fingerprint($1), 1000000, true)";
    service.db.execute(newer, &[&id(PUBLISHED)]).await.unwrap();
    assert_eq!(worker(&service).render_next().await.unwrap(), RenderOutcome::Idle);
    assert_eq!(service.count("report_renderings").await, 1);
}
