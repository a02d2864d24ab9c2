//! Renderers that are killed, stopped, frozen or overtaken in the midst of their work.

use std::net::Ipv4Addr;
use std::time::Duration;

use partner_api::publishing::{Turn, Worker};
use partner_api::storage::{S3Settings, Storage};
use partner_api_store::renderings;
use partner_api_tests::fixture::inspections::PUBLISHED;
use partner_api_tests::{ALPHA, Service};
use tokio::net::TcpListener;

use super::{LEASE, ask, connection, id, leases_run_out, object_key, pdf, rendered, rewrite, uploaded, worker};

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
        service.count("orphaned_objects").await,
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
    assert_eq!(service.count("orphaned_objects").await, 2);
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
