//! What waits to be rendered: put in line, taken once, tried again, and what it replaces.

use futures::TryStreamExt;
use partner_api::publishing::{Turn, Worker};
use partner_api_tests::fixture::inspections::{FULL_PUBLISHED, NONE_PUBLISHED, OTHER_BRANCH, PUBLISHED};
use partner_api_tests::{ALPHA, Service};
use tokio_postgres::error::SqlState;

use super::{ask, id, leases_run_out, object_key, pdf, rendered, rewrite, worker};

#[tokio::test]
async fn asking_for_a_pdf_does_not_wait_behind_an_open_transaction() {
    let service = Service::start().await;
    let editor = partner_api_tests::cluster::connect(&service.database()).await;
    // The trigger's row is this transaction's until it ends.
    let publish = format!("BEGIN; UPDATE inspections SET status = 'PUBLISHED' WHERE id = '{FULL_PUBLISHED}'");
    editor.batch_execute(&publish).await.unwrap();
    assert_eq!(
        editor.query("SELECT FROM report_renderings", &[]).await.unwrap().len(),
        1
    );
    ask(&service, FULL_PUBLISHED).await;
    // What asked has given way, and was not cut off.
    service.db.batch_execute("SET statement_timeout = '20s'").await.unwrap();
    let wants = "SELECT try_enqueue_rendering($1, NULL, 0, true)";
    let refused = service.db.execute(wants, &[&id(FULL_PUBLISHED)]).await.unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::LOCK_NOT_AVAILABLE));
    editor.batch_execute("COMMIT").await.unwrap();
    ask(&service, FULL_PUBLISHED).await;
    assert_eq!(worker(&service).turn().await.unwrap(), rendered(FULL_PUBLISHED));
}

#[tokio::test]
async fn a_report_that_cannot_be_rendered_keeps_no_other_back() {
    let service = Service::start().await;
    // A number beyond what is printed, as nothing but plain SQL writes.
    let poison = "UPDATE inspection_form_answers SET numeric_value = 1e60 \
                  WHERE inspection_form_id = '01974d20-0000-7f00-8000-000000020122'";
    service.db.execute(poison, &[]).await.unwrap();
    ask(&service, PUBLISHED).await;
    ask(&service, FULL_PUBLISHED).await;
    let worker = worker(&service);
    assert_eq!(worker.turn().await.unwrap(), Turn::Failed(id(PUBLISHED)));
    assert_eq!(worker.turn().await.unwrap(), rendered(FULL_PUBLISHED));
    assert_eq!(worker.turn().await.unwrap(), Turn::Idle);
    service.get(&ALPHA, &pdf(FULL_PUBLISHED)).await.assert_status(200);

    // However often it is asked for, it is tried after its pause alone, which grows.
    let pauses = "SELECT attempts, extract(epoch FROM due_at - now()) > 20 AS first, \
                  extract(epoch FROM due_at - now()) > 50 AS second FROM report_renderings";
    assert_eq!(
        service.rows(pauses).await,
        serde_json::json!([{"attempts": 1, "first": true, "second": false}])
    );
    ask(&service, PUBLISHED).await;
    assert_eq!(worker.turn().await.unwrap(), Turn::Idle);
    leases_run_out(&service).await;
    assert_eq!(worker.turn().await.unwrap(), Turn::Failed(id(PUBLISHED)));
    assert_eq!(
        service.rows(pauses).await,
        serde_json::json!([{"attempts": 2, "first": true, "second": true}])
    );

    // Mended, it does not wait for its pause.
    let mended = poison.replace("1e60", "1.5");
    service.db.execute(&mended, &[]).await.unwrap();
    ask(&service, PUBLISHED).await;
    assert_eq!(worker.turn().await.unwrap(), rendered(PUBLISHED));
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_never_render_one_report_at_the_same_time() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let watch = "
        CREATE TABLE seen (what text, report uuid);
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
        ask(&service, report).await;
    }
    let all = async |worker: Worker| {
        let mut turns = Vec::new();
        loop {
            match worker.turn().await.unwrap() {
                Turn::Idle => return turns,
                turn => turns.push(turn),
            }
        }
    };
    let (one, two, three) = tokio::join!(all(worker(&service)), all(worker(&replica)), all(worker(&replica)));
    let turns: Vec<_> = [one, two, three].concat();
    assert_eq!(turns.len(), reports.len(), "{turns:?}");
    for report in reports {
        assert!(turns.contains(&rendered(report)));
        for what in ["claim", "switch"] {
            let seen = format!("seen WHERE what = '{what}' AND report = '{report}'");
            assert_eq!(service.count(&seen).await, 1, "{what} {report}");
        }
        service.get(&ALPHA, &pdf(report)).await.assert_status(200);
    }
    assert_eq!(service.count("report_renderings").await, 0);
}

#[tokio::test]
async fn who_reads_a_replaced_pdf_reads_it_to_its_end() {
    let service = Service::start().await;
    let storage = &service.context().storage;
    rewrite(&service, PUBLISHED, "Eski.").await;
    ask(&service, PUBLISHED).await;
    let worker = worker(&service);
    assert_eq!(worker.turn().await.unwrap(), rendered(PUBLISHED));
    let old = object_key(&service, PUBLISHED).await;
    let mut reading = storage.stream(&old).await.unwrap();
    let mut bytes = reading.stream.try_next().await.unwrap().unwrap().to_vec();

    rewrite(&service, PUBLISHED, "Yeni.").await;
    ask(&service, PUBLISHED).await;
    assert_eq!(worker.turn().await.unwrap(), rendered(PUBLISHED));
    let new = object_key(&service, PUBLISHED).await;
    assert_ne!(new, old);
    // Not before its time, and never what a report names, whatever the table says.
    worker.delete_unnamed().await.unwrap();
    assert!(storage.exists(&old).await.unwrap());
    let all_due =
        "INSERT INTO orphaned_objects SELECT pdf_object_key, id, organization_id, now() FROM inspections WHERE id = $1";
    service.db.execute(all_due, &[&id(PUBLISHED)]).await.unwrap();
    service
        .db
        .execute("UPDATE orphaned_objects SET delete_at = now()", &[])
        .await
        .unwrap();
    worker.delete_unnamed().await.unwrap();
    assert!(!storage.exists(&old).await.unwrap());
    assert!(storage.exists(&new).await.unwrap());
    assert_eq!(service.count("orphaned_objects").await, 0);
    service.get(&ALPHA, &pdf(PUBLISHED)).await.assert_status(200);

    while let Some(part) = reading.stream.try_next().await.unwrap() {
        bytes.extend_from_slice(&part);
    }
    assert_eq!(bytes.len() as u64, reading.content_length);
    assert!(bytes.trim_ascii_end().ends_with(b"%%EOF"));
}

#[tokio::test]
async fn the_sweep_finds_what_became_stale_without_a_trigger() {
    let service = Service::start().await;
    let worker = worker(&service);
    // Two published reports of the fixture data have never had a PDF.
    assert_eq!(worker.sweep().await.unwrap(), 2);
    assert_eq!(
        worker.sweep().await.unwrap(),
        0,
        "of all replicas one takes a step, every ten seconds"
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
    // Who is asked for comes first.
    ask(&service, PUBLISHED).await;
    assert_eq!(worker.turn().await.unwrap(), rendered(PUBLISHED));
    // A claimed report that is withdrawn meanwhile is no work any more.
    service
        .db
        .execute("UPDATE inspections SET public_slug = NULL", &[])
        .await
        .unwrap();
    for _ in 0..3 {
        assert!(matches!(worker.turn().await.unwrap(), Turn::Settled(_)));
    }
    assert_eq!(worker.turn().await.unwrap(), Turn::Idle);
}

#[tokio::test]
async fn an_older_renderer_leaves_to_a_newer_one_what_that_one_wants() {
    let service = Service::start().await;
    let newer = "SELECT enqueue_rendering($1, report_fingerprint($1), 1000000, true)";
    service.db.execute(newer, &[&id(PUBLISHED)]).await.unwrap();
    assert_eq!(worker(&service).turn().await.unwrap(), Turn::Idle);
    assert_eq!(service.count("report_renderings").await, 1);
}
