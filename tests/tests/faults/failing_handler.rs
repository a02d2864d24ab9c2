//! Requests that fail after admission.

use partner_api_tests::{ALPHA, Request, Service};

use partner_api_tests::measurements::{MEASUREMENTS, contents, package};

/// KEY-7, ERR-1
#[tokio::test]
async fn a_failure_after_admission_rolls_back_the_record_and_keeps_the_nonce() {
    let service = Service::start().await;
    let broken = "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                      RAISE EXCEPTION 'relation inspections of 35OPN205 is broken';
                  END $$;
                  CREATE TRIGGER broken BEFORE INSERT ON inspection_form_answers
                  FOR EACH ROW EXECUTE FUNCTION broken()";
    service.db.batch_execute(broken).await.unwrap();
    let before = contents(&service).await;
    let request = Request::post(MEASUREMENTS, package("M-1", "35 OPN 205"))
        .signed_by(&ALPHA)
        .nonce("of-a-write-that-fails");
    let response = service.send(request.clone()).await;
    response.assert_rejected(500, "internal_error");
    assert_eq!(contents(&service).await, before);
    assert!(service.knows_nonce(&ALPHA, "of-a-write-that-fails").await);
    service.send(request).await.assert_rejected(401, "replay_detected");

    service
        .db
        .batch_execute("DROP TRIGGER broken ON inspection_form_answers")
        .await
        .unwrap();
    service
        .measure(&ALPHA, package("M-1", "35 OPN 205"))
        .await
        .assert_status(201);
}

#[tokio::test]
async fn a_connection_returns_to_the_pool_without_a_transaction() {
    let service = Service::start().await;
    // More requests than the pool has connections.
    for number in 0..20 {
        service
            .measure(&ALPHA, package(&format!("M-{number}"), "no plate"))
            .await
            .assert_rejected(400, "invalid_request");
    }
    let open = "pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
    assert_eq!(service.count(open).await, 0);
}

#[tokio::test]
async fn a_disconnect_never_leaves_a_partial_package() {
    let service = Service::start().await;
    let holder = partner_api_tests::cluster::connect(&service.database()).await;
    holder
        .batch_execute("BEGIN; LOCK TABLE measurements IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    {
        let request = service.measure(&ALPHA, package("M-1", "35 OPN 205"));
        let waits = service.eventually(async || {
            let waiting = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
            service.count(waiting).await == 1
        });
        tokio::select! {
            response = request => panic!("answered {}", response.status),
            () = waits => {}
        }
    }
    holder.batch_execute("COMMIT").await.unwrap();
    // The request is still completed, and a retry finds its record.
    service
        .eventually(async || service.count("measurements WHERE status = 'APPLIED'").await == 1)
        .await;
    service
        .measure(&ALPHA, package("M-1", "35 OPN 205"))
        .await
        .assert_status(200);
}
