//! Renderers that are killed, frozen, too many or out of luck.

use std::net::Ipv4Addr;
use std::time::Duration;

use futures::TryStreamExt;
use partner_api::db::connection::Connection;
use partner_api::db::renderings::{self, Published, StoredPdf};
use partner_api::publishing::{MIME_TYPE, PublishError, Turn, Worker};
use partner_api::rules::pdf_key;
use partner_api::storage::{S3Settings, Storage};
use partner_api_tests::fixture::inspections::{DRAFT, FULL_PUBLISHED, NONE_PUBLISHED, OTHER_BRANCH, PUBLISHED};
use partner_api_tests::{ALPHA, Service};
use tokio::net::TcpListener;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

const LEASE: Duration = Duration::from_secs(120);

fn pdf(report: &str) -> String {
    format!("/api/v1/partner/inspections/{report}/pdf")
}

fn id(report: &str) -> Uuid {
    report.parse().unwrap()
}

fn worker(service: &Service) -> Worker {
    Worker::new(service.pool().clone(), service.context().storage.clone(), 1)
}

async fn connection(service: &Service) -> Connection {
    Connection::take(service.pool(), Duration::from_secs(20)).await.unwrap()
}

/// Makes the stored PDF stale.
async fn rewrite(service: &Service, report: &str, summary: &str) {
    let sql = "UPDATE inspections SET summary = $2 WHERE id = $1";
    assert_eq!(service.db.execute(sql, &[&id(report), &summary]).await.unwrap(), 1);
}

async fn ask(service: &Service, report: &str) {
    service
        .get(&ALPHA, &pdf(report))
        .await
        .assert_refused(503, "service_unavailable");
}

fn rendered(report: &str) -> Turn {
    Turn::Rendered {
        report: id(report),
        is_asked: true,
    }
}

async fn object_key(service: &Service, report: &str) -> String {
    let sql = "SELECT pdf_object_key FROM inspections WHERE id = $1";
    service.db.query_one(sql, &[&id(report)]).await.unwrap().get(0)
}

/// Each PDF that the report came to name: its key, and the SHA-256 of what the storage holds under it.
async fn kept(service: &Service, report: &str) -> Vec<(String, Vec<u8>, i64)> {
    let sql =
        "SELECT object_key, sha256, size_bytes FROM published_pdfs WHERE inspection_id = $1 ORDER BY published_at";
    let rows = service.db.query(sql, &[&id(report)]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

/// REP-19
#[tokio::test]
async fn what_is_published_at_once_is_what_is_served_and_its_sha256_is_kept() {
    let service = Service::start().await;
    let worker = worker(&service);
    let before = kept(&service, PUBLISHED).await;
    rewrite(&service, PUBLISHED, "Hemen.").await;
    let pdf_of_it = worker.publish(id(PUBLISHED)).await.unwrap();
    let answer = service.get(&ALPHA, &pdf(PUBLISHED)).await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.starts_with(b"%PDF"));
    let sha256: Vec<u8> = service
        .db
        .query_one("SELECT sha256($1)", &[&answer.body.to_vec()])
        .await
        .unwrap()
        .get(0);
    assert_eq!(
        (&pdf_of_it.sha256, pdf_of_it.size_bytes),
        (&sha256, answer.body.len() as i64)
    );
    assert_eq!(pdf_of_it.object_key, object_key(&service, PUBLISHED).await);
    let now = kept(&service, PUBLISHED).await;
    assert_eq!(now[..before.len()], before, "what was kept stays");
    assert_eq!(
        now[before.len()..],
        [(pdf_of_it.object_key.clone(), sha256, pdf_of_it.size_bytes)]
    );
    // Nothing is drawn twice, and nothing is left in line.
    assert_eq!(worker.publish(id(PUBLISHED)).await.unwrap(), pdf_of_it);
    assert_eq!(kept(&service, PUBLISHED).await.len(), now.len());
    assert_eq!(worker.turn().await.unwrap(), Turn::Idle);
    // Nobody takes any of it away.
    for lost in [
        "DELETE FROM published_pdfs",
        "UPDATE published_pdfs SET size_bytes = 0",
        "TRUNCATE published_pdfs",
    ] {
        service.db.batch_execute(lost).await.unwrap_err();
    }
}

#[tokio::test]
async fn who_publishes_waits_for_the_renderer_that_has_the_report() {
    let service = Service::start().await;
    rewrite(&service, PUBLISHED, "Bekle.").await;
    ask(&service, PUBLISHED).await;
    let client = connection(&service).await;
    let claim = renderings::claim(&client, LEASE).await.unwrap().unwrap();
    let document = renderings::document(&client, &claim).await.unwrap().unwrap();
    let other = uploaded(&pdf_key::fresh(id(PUBLISHED), &document.fingerprint));
    let publisher = worker(&service);
    let waits = tokio::spawn(async move { publisher.publish(id(PUBLISHED)).await });
    renderings::record(&client, &claim, &other.object_key).await.unwrap();
    let storage = &service.context().storage;
    storage.put(&other.object_key, "x".into(), MIME_TYPE).await.unwrap();
    assert!(
        renderings::switch(&client, &claim, &other, &document.fingerprint)
            .await
            .unwrap()
    );
    assert_eq!(waits.await.unwrap().unwrap(), other);
    assert_eq!(
        renderings::published(&client, id(PUBLISHED)).await.unwrap(),
        Published::Now(other)
    );
}

#[tokio::test]
async fn a_report_that_is_not_published_has_no_pdf_to_publish() {
    let service = Service::start().await;
    let error = worker(&service).publish(id(DRAFT)).await.unwrap_err();
    assert!(matches!(error, PublishError::NotPublished), "{error}");
    assert_eq!(worker(&service).turn().await.unwrap(), Turn::Idle);
}

/// The database's clock moves past every lease and backoff.
async fn leases_run_out(service: &Service) {
    let sql = "UPDATE report_renderings SET due_at = now()";
    service.db.execute(sql, &[]).await.unwrap();
}

/// A store that takes connections and never answers. It is there as long as the listener.
async fn hung_store() -> (Storage, TcpListener) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let settings = S3Settings {
        bucket: "reports".to_owned(),
        region: Some("eu-central-1".to_owned()),
        endpoint: Some(format!("http://{}", listener.local_addr().unwrap())),
        access_key_id: Some("AKIATEST".to_owned()),
        secret_access_key: Some("a secret of the test".to_owned().into()),
        ..S3Settings::default()
    };
    (Storage::s3(&settings).unwrap(), listener)
}

/// A renderer in the middle of its upload, which does not come to an end; the report has no photos to read before.
async fn stuck_at_its_upload(service: &Service) -> (tokio::task::JoinHandle<()>, TcpListener) {
    service.db.execute("DELETE FROM photos", &[]).await.unwrap();
    ask(service, PUBLISHED).await;
    let (storage, listener) = hung_store().await;
    let worker = Worker::new(service.pool().clone(), storage, 1);
    let task = tokio::spawn(async move { drop(worker.turn().await) });
    let (_socket, _) = listener.accept().await.unwrap();
    assert_eq!(
        service.count("unnamed_pdfs").await,
        1,
        "an object is noted before it is uploaded"
    );
    (task, listener)
}

#[tokio::test]
async fn what_a_killed_renderer_left_is_taken_up_by_another_replica() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let (task, _listener) = stuck_at_its_upload(&service).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(
        worker(&replica).turn().await.unwrap(),
        Turn::Idle,
        "its lease still runs"
    );
    leases_run_out(&service).await;
    assert_eq!(worker(&replica).turn().await.unwrap(), rendered(PUBLISHED));
    replica.get(&ALPHA, &pdf(PUBLISHED)).await.assert_status(200);
    // Its object would be an orphan: it stays noted, beside the one that was replaced.
    assert_eq!(service.count("unnamed_pdfs").await, 2);
}

#[tokio::test]
async fn a_renderer_that_is_stopped_gives_its_work_back() {
    let service = Service::start().await;
    service.db.execute("DELETE FROM photos", &[]).await.unwrap();
    ask(&service, PUBLISHED).await;
    let (storage, listener) = hung_store().await;
    let stopped = Worker::new(service.pool().clone(), storage, 1);
    let at_its_upload = async { drop(listener.accept().await.unwrap()) };
    let turn = stopped.turn_until(at_its_upload).await.unwrap();
    assert_eq!(turn, Turn::Stopped(id(PUBLISHED)));
    assert_eq!(
        service
            .count("report_renderings WHERE claim IS NULL AND attempts = 0")
            .await,
        1
    );
    assert_eq!(worker(&service).turn().await.unwrap(), rendered(PUBLISHED));
}
/// A PDF under this key.
fn uploaded(key: &str) -> StoredPdf {
    StoredPdf {
        object_key: key.to_owned(),
        sha256: vec![7; 32],
        size_bytes: 1,
    }
}

#[tokio::test]
async fn a_frozen_renderer_that_comes_back_changes_nothing() {
    let service = Service::start().await;
    rewrite(&service, PUBLISHED, "Yeniden.").await;
    ask(&service, PUBLISHED).await;
    let client = connection(&service).await;
    let frozen = renderings::claim(&client, LEASE).await.unwrap().unwrap();
    let document = renderings::document(&client, &frozen).await.unwrap().unwrap();
    let late = format!("reports/{PUBLISHED}/late.pdf");
    renderings::record(&client, &frozen, &late).await.unwrap();
    leases_run_out(&service).await;
    let other = renderings::claim(&client, LEASE).await.unwrap().unwrap();

    // While the other is at work, and after it.
    assert!(
        !renderings::switch(&client, &frozen, &uploaded(&late), &document.fingerprint)
            .await
            .unwrap()
    );
    assert!(!renderings::postpone(&client, &frozen, Duration::ZERO, 0).await.unwrap());
    let key = format!("reports/{PUBLISHED}/other.pdf");
    renderings::record(&client, &other, &key).await.unwrap();
    assert!(
        renderings::switch(&client, &other, &uploaded(&key), &document.fingerprint)
            .await
            .unwrap()
    );
    assert!(
        !renderings::switch(&client, &frozen, &uploaded(&late), &document.fingerprint)
            .await
            .unwrap()
    );
    assert_eq!(object_key(&service, PUBLISHED).await, key);
}

#[tokio::test]
async fn what_was_changed_while_it_was_drawn_is_drawn_again() {
    let service = Service::start().await;
    rewrite(&service, PUBLISHED, "Bir.").await;
    ask(&service, PUBLISHED).await;
    let before = object_key(&service, PUBLISHED).await;
    let client = connection(&service).await;
    let claim = renderings::claim(&client, LEASE).await.unwrap().unwrap();
    let document = renderings::document(&client, &claim).await.unwrap().unwrap();
    let key = format!("reports/{PUBLISHED}/drawn.pdf");
    renderings::record(&client, &claim, &key).await.unwrap();

    // Somebody is about to change it: nobody waits for that, and nothing is switched.
    let editor = partner_api_tests::cluster::connect(&service.database()).await;
    let edit = format!("BEGIN; UPDATE inspections SET summary = 'İki.' WHERE id = '{PUBLISHED}'");
    editor.batch_execute(&edit).await.unwrap();
    assert!(
        !renderings::switch(&client, &claim, &uploaded(&key), &document.fingerprint)
            .await
            .unwrap()
    );
    editor.batch_execute("COMMIT").await.unwrap();
    assert!(
        !renderings::switch(&client, &claim, &uploaded(&key), &document.fingerprint)
            .await
            .unwrap()
    );
    assert_eq!(object_key(&service, PUBLISHED).await, before);
    assert!(renderings::postpone(&client, &claim, Duration::ZERO, 0).await.unwrap());
    drop(client);

    ask(&service, PUBLISHED).await;
    assert_eq!(worker(&service).turn().await.unwrap(), rendered(PUBLISHED));
    service.get(&ALPHA, &pdf(PUBLISHED)).await.assert_status(200);
}

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
    let wants = "SELECT want_rendering_now($1, NULL, 0, true)";
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
    let all_due = "INSERT INTO unnamed_pdfs SELECT pdf_object_key, id, now() FROM inspections WHERE id = $1";
    service.db.execute(all_due, &[&id(PUBLISHED)]).await.unwrap();
    service
        .db
        .execute("UPDATE unnamed_pdfs SET delete_at = now()", &[])
        .await
        .unwrap();
    worker.delete_unnamed().await.unwrap();
    assert!(!storage.exists(&old).await.unwrap());
    assert!(storage.exists(&new).await.unwrap());
    assert_eq!(service.count("unnamed_pdfs").await, 0);
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
    // Two published reports of the world have never had a PDF.
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
    assert_eq!(service.count("report_renderings WHERE NOT is_asked").await, 4);
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
    let newer = "SELECT want_rendering($1, report_fingerprint($1), 1000000, true)";
    service.db.execute(newer, &[&id(PUBLISHED)]).await.unwrap();
    assert_eq!(worker(&service).turn().await.unwrap(), Turn::Idle);
    assert_eq!(service.count("report_renderings").await, 1);
}
