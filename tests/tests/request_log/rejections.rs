//! Every rejection leaves an entry with its reason.

use std::time::Duration;

use partner_api::request_log::{Filter, Reason};
use partner_api_tests::fixture::{
    ALLOWLISTED, BETA, DISABLED, EXPIRED, LIVE, REVOKED, THREE_A_MINUTE, inspections, partners,
};
use partner_api_tests::request_log::Log;
use partner_api_tests::{ALPHA, MEHMET, Options, Request, Service, TestKey, cluster};
use tokio::io::AsyncWriteExt;

const HEALTH: &str = "/api/v1/partner/health";
const ORGANIZATIONS: &str = "/api/v1/partner/organizations";
const MEASUREMENTS: &str = "/api/v1/partner/test-line/measurements";
const SIGNATURE: &str = "x-partner-signature";

/// A request with its expected status, error code and reason.
type Case = (Request, u16, &'static str, Reason);

fn health() -> Request {
    Request::get(HEALTH).signed_by(&ALPHA)
}

/// Sends the requests one after the other, and checks the entry of each.
async fn assert_reasons(service: &Service, cases: Vec<Case>) {
    let log = Log::of(service);
    let mut sent = Vec::new();
    for (request, status, code, reason) in cases {
        let response = service.send(request).await;
        response.assert_rejected(status, code);
        sent.push((response, reason));
    }
    for (response, reason) in sent {
        log.assert_reason(&response, reason).await;
        let entry = log.entry(&response).await;
        assert_eq!(i32::from(entry.status), i32::from(response.status.as_u16()));
        assert_eq!(entry.code, response.code());
        assert_eq!(entry.reason_about, Some(reason.about()));
        assert_eq!(entry.address.to_string(), "127.0.0.1");
        assert_eq!(entry.sent_bytes, Some(i64::try_from(response.body.len()).unwrap()));
    }
}

/// SVC-5
#[tokio::test]
async fn reasons_of_invalid_signature_headers() {
    let service = Service::start().await;
    let mut cases = Vec::new();
    for (name, missing, empty, repeated) in [
        (
            "x-partner-key-id",
            Reason::KeyIdMissing,
            Reason::KeyIdEmpty,
            Reason::KeyIdRepeated,
        ),
        (
            "x-partner-timestamp",
            Reason::TimestampMissing,
            Reason::TimestampEmpty,
            Reason::TimestampRepeated,
        ),
        (
            "x-partner-nonce",
            Reason::NonceMissing,
            Reason::NonceEmpty,
            Reason::NonceRepeated,
        ),
        (
            SIGNATURE,
            Reason::SignatureMissing,
            Reason::SignatureEmpty,
            Reason::SignatureRepeated,
        ),
    ] {
        cases.extend([
            (health().without(name), missing),
            (health().with(name, ""), empty),
            (health().header(name, "again"), repeated),
        ]);
    }
    cases.extend([
        (health().with("x-partner-timestamp", "now"), Reason::TimestampMalformed),
        (health().with("x-partner-nonce", "short"), Reason::NonceMalformed),
    ]);
    let of = |(request, reason)| (request, 401, "missing_signature_headers", reason);
    assert_reasons(&service, cases.into_iter().map(of).collect()).await;
    let without_nonce = service.send(health().without("x-partner-nonce")).await;
    let entry = Log::of(&service).entry(&without_nonce).await;
    assert_eq!(
        entry.key_id.as_deref(),
        Some(ALPHA.id),
        "the key is identified although a header is missing"
    );
    assert_eq!(entry.partner_id.unwrap().to_string(), partners::ALPHA);
}

/// SVC-5, ERR-3
#[tokio::test]
async fn reasons_of_inactive_keys() {
    let service = Service::start().await;
    let unusable = "UPDATE api_keys SET secret_ciphertext = '\\x00' WHERE key_id = $1";
    service.db.execute(unusable, &[&BETA.id]).await.unwrap();
    // The replica loads the changed key when it starts.
    let service = service.replica().await;
    let named = |id| TestKey { id, ..ALPHA };
    let (unknown, foreign) = ("vip_test_UNKNOWNAAAAAAAAAAAAAAA", "vip_live_UNKNOWNAAAAAAAAAAAAAAA");
    let table = [
        (named(unknown), Reason::KeyUnknown, Some(unknown), None),
        (named(foreign), Reason::KeyOfOtherEnvironment, Some(foreign), None),
        (named("vip_test_short"), Reason::KeyMalformed, None, None),
        (named(ALPHA.secret), Reason::KeyMalformed, None, None),
        (
            LIVE,
            Reason::KeyOfOtherEnvironment,
            Some(LIVE.id),
            Some(partners::ALPHA),
        ),
        (REVOKED, Reason::KeyRevoked, Some(REVOKED.id), Some(partners::ALPHA)),
        (EXPIRED, Reason::KeyExpired, Some(EXPIRED.id), Some(partners::ALPHA)),
        (
            DISABLED,
            Reason::PartnerDisabled,
            Some(DISABLED.id),
            Some(partners::EPSILON),
        ),
        (BETA, Reason::KeyUnusable, Some(BETA.id), Some(partners::BETA)),
        (
            ALLOWLISTED,
            Reason::AddressNotAllowed,
            Some(ALLOWLISTED.id),
            Some(partners::ALPHA),
        ),
    ];
    let log = Log::of(&service);
    for (key, reason, key_id, partner) in table {
        let response = service.get(&key, HEALTH).await;
        response.assert_rejected(401, "invalid_key");
        let entry = log.entry(&response).await;
        assert_eq!(entry.reason.as_deref(), Some(reason.as_str()), "{}", key.id);
        assert_eq!(entry.key_id.as_deref(), key_id, "{}", key.id);
        assert_eq!(
            entry.partner_id.map(|id| id.to_string()).as_deref(),
            partner,
            "{}",
            key.id
        );
    }
}

/// SVC-5
#[tokio::test]
async fn reasons_of_invalid_timestamps_signatures_and_nonces() {
    let service = Service::start().await;
    let digest = "00b8332449583da2c92d54fa0ee432290c99864df6d9226fca919be2d027f8d7";
    let signed = |signature: &str| health().with(SIGNATURE, signature);
    let used = || health().nonce("used-for-the-second-time");
    service.send(used()).await.assert_status(200);
    let mut cases = vec![
        (
            health().clock_ahead_by(-400),
            401,
            "expired_timestamp",
            Reason::TimestampBehind,
        ),
        (
            health().clock_ahead_by(400),
            401,
            "expired_timestamp",
            Reason::TimestampAhead,
        ),
        (used(), 401, "replay_detected", Reason::NonceUsed),
        (
            health().with_query("a=%zz"),
            400,
            "invalid_request",
            Reason::QueryMalformed,
        ),
    ];
    for (signature, reason) in [
        (digest.to_owned(), Reason::SignaturePrefix),
        (format!("SHA256={digest}"), Reason::SignaturePrefix),
        (format!("sha256={}", &digest[1..]), Reason::SignatureLength),
        (format!("sha256={}", digest.to_uppercase()), Reason::SignatureUpperCase),
        (format!("sha256={}g", &digest[1..]), Reason::SignatureNotHex),
        (format!("sha256={digest}"), Reason::SignatureDiffers),
    ] {
        cases.push((signed(&signature), 401, "invalid_signature", reason));
    }
    for _ in 0..3 {
        service.get(&THREE_A_MINUTE, ORGANIZATIONS).await.assert_status(200);
    }
    let one_more = Request::get(ORGANIZATIONS).signed_by(&THREE_A_MINUTE);
    cases.push((one_more, 429, "rate_limited", Reason::KeyOverLimit));
    assert_reasons(&service, cases).await;
}

/// SVC-5
#[tokio::test]
async fn reasons_of_an_inspectors_invalid_query() {
    let service = Service::start().await;
    let log = Log::of(&service);
    let inspector = service.inspector(&MEHMET).await;
    for (target, reason) in [
        ("/inspector/v1/reports?stauts=DRAFT", Reason::ParameterUnknown),
        (
            "/inspector/v1/reports?status=DRAFT&status=DRAFT",
            Reason::ParameterRepeated,
        ),
        ("/inspector/v1/reports?status=%FF", Reason::QueryMalformed),
        ("/inspector/v1/reports?status=%zz", Reason::QueryMalformed),
        ("/inspector/v1/reports?status=FINISHED", Reason::ArgumentRejected),
        ("/inspector/v1/session?verbose=1", Reason::ParameterUnknown),
    ] {
        let response = inspector.get(&service, target).await;
        response.assert_rejected(400, "invalid_request");
        log.assert_reason(&response, reason).await;
    }
}

/// SVC-5
#[tokio::test]
async fn reasons_of_errors_after_admission() {
    let service = Service::start().await;
    let alpha = |target: &str| Request::get(target).signed_by(&ALPHA);
    let list = "/api/v1/partner/inspections";
    let nowhere = format!("{list}/{}", uuid::Uuid::nil());
    let body = r#"{"branch_code":"IST-02","plate":"no plate","measurements":{"BRAKE_FRONT_LEFT":2.85}}"#;
    let elsewhere = body.replace("no plate", "34 TOO 001").replace("IST-02", "NOWHERE");
    let post = |body: &str| Request::post(MEASUREMENTS, body.to_owned());
    assert_reasons(
        &service,
        vec![
            (alpha("/api/v1/partner/34ABC123"), 404, "not_found", Reason::NoSuchPath),
            (
                Request::new("DELETE", list).signed_by(&ALPHA),
                405,
                "method_not_allowed",
                Reason::NoSuchMethod,
            ),
            (post(body).signed_by(&BETA), 403, "scope_required", Reason::ScopeMissing),
            (
                alpha(list).with_query("plate=1"),
                400,
                "invalid_request",
                Reason::ParameterUnknown,
            ),
            (
                alpha(list).with_query("limit=1&limit=2"),
                400,
                "invalid_request",
                Reason::ParameterRepeated,
            ),
            (
                alpha(list).with_query("limit=0"),
                400,
                "invalid_request",
                Reason::ArgumentRejected,
            ),
            (
                post(body).signed_by(&ALPHA),
                400,
                "invalid_request",
                Reason::ArgumentRejected,
            ),
            (post(&elsewhere).signed_by(&ALPHA), 404, "not_found", Reason::NotVisible),
            (alpha(&nowhere), 404, "not_found", Reason::NotVisible),
            (
                Request::get("/files/x?expires=1&signature=x"),
                404,
                "not_found",
                Reason::LinkRejected,
            ),
            (Request::get("/34ABC123"), 404, "not_found", Reason::NoSuchPath),
            (
                Request::post("/openapi.json", "{}"),
                405,
                "method_not_allowed",
                Reason::NoSuchMethod,
            ),
        ],
    )
    .await;
}

/// SVC-5
#[tokio::test]
async fn reasons_of_invalid_bodies() {
    let service = Service::start_with(Options {
        body_timeout: Duration::from_millis(300),
        ..Options::default()
    })
    .await;
    let post = |body: String| Request::post(MEASUREMENTS, body).signed_by(&ALPHA);
    let announced = post("{".into()).header("content-length", "1048577").stalled();
    let endless = post("x".repeat(1_048_577)).stalled();
    let slow = post("half of it".into()).stalled();
    let log = Log::of(&service);
    for (request, status, reason) in [
        (announced, 413, Reason::BodyAnnouncedTooLarge),
        (endless, 413, Reason::BodyTooLarge),
        (slow, 408, Reason::BodyTooSlow),
    ] {
        let response = service.send(request).await;
        let entry = log.entry(response.assert_status(status)).await;
        assert_eq!(entry.reason.as_deref(), Some(reason.as_str()));
        match reason {
            Reason::BodyAnnouncedTooLarge => assert_eq!(entry.received_bytes, 0),
            Reason::BodyTooLarge => assert!(entry.received_bytes > 1_048_576, "{}", entry.received_bytes),
            _ => assert_eq!(entry.received_bytes, 10),
        }
    }
    // A client that disconnects gets no response.
    let mut stream = tokio::net::TcpStream::connect(service.base_url.trim_start_matches("http://"))
        .await
        .unwrap();
    let now = chrono::Utc::now().timestamp();
    let head = format!(
        "POST {MEASUREMENTS} HTTP/1.1\r\nhost: x\r\nx-partner-key-id: {}\r\nx-partner-timestamp: {now}\r\n\
         x-partner-nonce: of-one-that-hangs-up\r\nx-partner-signature: sha256=0\r\ncontent-length: 100\r\n\r\nthree",
        ALPHA.id
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let broke_off = Filter {
        reason: Some(Reason::BodyBrokeOff.as_str().to_owned()),
        ..Filter::default()
    };
    let entry = log.when(async || log.list(&broke_off).await.pop()).await;
    assert_eq!(entry.received_bytes, 5);
}

/// SVC-5
#[tokio::test]
async fn an_address_over_its_limit() {
    let service = Service::start_with(Options {
        ip_limit: 1,
        ..Options::default()
    })
    .await;
    service.send(health()).await.assert_status(200);
    assert_reasons(
        &service,
        vec![(health(), 429, "ip_rate_limited", Reason::AddressOverLimit)],
    )
    .await;
}

/// SVC-5
#[tokio::test]
async fn reasons_of_internal_errors() {
    let service = Service::start().await;
    let broken = "ALTER VIEW shown_photos RENAME TO gone";
    service.db.batch_execute(broken).await.unwrap();
    let photos = format!("/api/v1/partner/inspections/{}/photos", inspections::FULL_PUBLISHED);
    let photos = || Request::get(&photos).signed_by(&ALPHA);
    let organizations = || Request::get(ORGANIZATIONS).signed_by(&ALPHA);
    assert_reasons(
        &service,
        vec![(photos(), 500, "internal_error", Reason::StatementFailed)],
    )
    .await;
    let out_of_memory = "
        CREATE FUNCTION out_of_memory() RETURNS boolean STABLE LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'out of memory' USING ERRCODE = '53200'; END $$;
        CREATE VIEW shown_photos AS SELECT * FROM gone WHERE out_of_memory();
        GRANT SELECT ON shown_photos TO PUBLIC";
    service.db.batch_execute(out_of_memory).await.unwrap();
    assert_reasons(
        &service,
        vec![(photos(), 503, "service_unavailable", Reason::DatabaseUnavailable)],
    )
    .await;
    let holder = cluster::connect(&service.database()).await;
    for (table, reasons) in [
        ("used_nonces", &[Reason::AdmissionOverdue, Reason::AdmissionFailed][..]),
        (
            "organizations",
            &[Reason::DatabaseOverdue, Reason::DatabaseUnavailable][..],
        ),
    ] {
        let lock = format!("BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE");
        holder.batch_execute(&lock).await.unwrap();
        let response = service.send(organizations()).await;
        response.assert_rejected(503, "service_unavailable");
        let entry = Log::of(&service).entry(&response).await;
        let reason = Reason::from_text(entry.reason.as_deref().unwrap()).unwrap();
        assert!(reasons.contains(&reason), "{table}: {reason:?}");
        holder.batch_execute("COMMIT").await.unwrap();
    }
}

/// SVC-5, KEY-8
#[tokio::test]
async fn keys_that_were_not_compared_with_the_database_for_too_long() {
    let service = Service::start().await;
    let holder = cluster::connect(&service.database()).await;
    holder
        .batch_execute("BEGIN; LOCK TABLE directory_version IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let response = Log::of(&service)
        .when(async || {
            let response = service.get(&ALPHA, ORGANIZATIONS).await;
            (response.status == 503).then_some(response)
        })
        .await;
    let entry = Log::of(&service).entry(&response).await;
    assert_eq!(entry.reason.as_deref(), Some(Reason::DirectoryStale.as_str()));
}
