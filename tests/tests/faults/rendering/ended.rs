//! Renderers that are killed, stopped, suspended or overtaken during their work.

use std::net::Ipv4Addr;
use std::time::Duration;

use partner_api::publishing::{RenderOutcome, Worker};
use partner_api::storage::{S3Settings, Storage};
use partner_api_store::renderings;
use partner_api_tests::fixture::inspections::PUBLISHED;
use partner_api_tests::{ALPHA, Service};
use tokio::net::TcpListener;

use super::{
    LEASE, connection, expire_leases, id, object_key, pdf, rendered, request_rendering, rewrite, uploaded, worker,
};

/// A store that accepts connections and never responds. It exists as long as the listener.
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
async fn renderer_stuck_in_upload(service: &Service) -> (tokio::task::JoinHandle<()>, TcpListener) {
    service.db.execute("DELETE FROM photos", &[]).await.unwrap();
    request_rendering(service, PUBLISHED).await;
    let (storage, listener) = hung_store().await;
    let worker = Worker::new(service.pool().clone(), storage, 1);
    let task = tokio::spawn(async move { drop(worker.render_next().await) });
    let (_socket, _) = listener.accept().await.unwrap();
    assert_eq!(
        service.count("orphaned_objects").await,
        1,
        "an object is noted before it is uploaded"
    );
    (task, listener)
}

#[tokio::test]
async fn the_work_of_a_killed_renderer_is_resumed_by_another_replica() {
    let service = Service::start().await;
    let replica = service.replica().await;
    let (task, _listener) = renderer_stuck_in_upload(&service).await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(
        worker(&replica).render_next().await.unwrap(),
        RenderOutcome::Idle,
        "its lease still runs"
    );
    expire_leases(&service).await;
    assert_eq!(worker(&replica).render_next().await.unwrap(), rendered(PUBLISHED));
    replica.get(&ALPHA, &pdf(PUBLISHED)).await.assert_status(200);
    // Its object is orphaned, so it stays recorded beside the replaced one.
    assert_eq!(service.count("orphaned_objects").await, 2);
}

#[tokio::test]
async fn a_stopped_renderer_releases_its_work() {
    let service = Service::start().await;
    service.db.execute("DELETE FROM photos", &[]).await.unwrap();
    request_rendering(&service, PUBLISHED).await;
    let (storage, listener) = hung_store().await;
    let stopped = Worker::new(service.pool().clone(), storage, 1);
    let at_its_upload = async { drop(listener.accept().await.unwrap()) };
    let turn = stopped.render_next_until(at_its_upload).await.unwrap();
    assert_eq!(turn, RenderOutcome::Stopped(id(PUBLISHED)));
    assert_eq!(
        service
            .count("report_renderings WHERE claim IS NULL AND attempts = 0")
            .await,
        1
    );
    assert_eq!(worker(&service).render_next().await.unwrap(), rendered(PUBLISHED));
}

#[tokio::test]
async fn a_suspended_renderer_that_resumes_changes_nothing() {
    let service = Service::start().await;
    rewrite(&service, PUBLISHED, "Yeniden.").await;
    request_rendering(&service, PUBLISHED).await;
    let client = connection(&service).await;
    let claimed = renderings::claim(&client, LEASE).await.unwrap().unwrap();
    let document = renderings::document(&client, &claimed).await.unwrap().unwrap();
    let late = format!("reports/{PUBLISHED}/late.pdf");
    renderings::record(&client, &claimed, &late).await.unwrap();
    expire_leases(&service).await;
    let other = renderings::claim(&client, LEASE).await.unwrap().unwrap();

    // While the other renderer is working, and after it.
    assert!(
        !renderings::switch(&client, &claimed, &uploaded(&late), &document.fingerprint)
            .await
            .unwrap()
    );
    assert!(
        !renderings::postpone(&client, &claimed, Duration::ZERO, 0)
            .await
            .unwrap()
    );
    let key = format!("reports/{PUBLISHED}/other.pdf");
    renderings::record(&client, &other, &key).await.unwrap();
    assert!(
        renderings::switch(&client, &other, &uploaded(&key), &document.fingerprint)
            .await
            .unwrap()
    );
    assert!(
        !renderings::switch(&client, &claimed, &uploaded(&late), &document.fingerprint)
            .await
            .unwrap()
    );
    assert_eq!(object_key(&service, PUBLISHED).await, key);
}

#[tokio::test]
async fn a_report_that_changes_while_it_is_rendered_is_rendered_again() {
    let service = Service::start().await;
    rewrite(&service, PUBLISHED, "Bir.").await;
    request_rendering(&service, PUBLISHED).await;
    let before = object_key(&service, PUBLISHED).await;
    let client = connection(&service).await;
    let claim = renderings::claim(&client, LEASE).await.unwrap().unwrap();
    let document = renderings::document(&client, &claim).await.unwrap().unwrap();
    let key = format!("reports/{PUBLISHED}/drawn.pdf");
    renderings::record(&client, &claim, &key).await.unwrap();

    // A transaction is changing the report. The renderer does not wait for it and replaces nothing.
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

    request_rendering(&service, PUBLISHED).await;
    assert_eq!(worker(&service).render_next().await.unwrap(), rendered(PUBLISHED));
    service.get(&ALPHA, &pdf(PUBLISHED)).await.assert_status(200);
}
