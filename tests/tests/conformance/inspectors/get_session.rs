//! The operation `get_session`.

use partner_api_tests::fixture::inspections::DRAFT;
use partner_api_tests::{AYSE, MEHMET, Request, Service};

/// INS-1
#[tokio::test]
async fn a_session_names_the_inspector_and_the_open_branches() {
    let service = Service::start().await;
    let (client, received) = service.generated_inspector_client(&AYSE).await;
    let session = client.get_session().send().await.unwrap().into_inner().data;
    assert_eq!(session.inspector, AYSE.name);
    received.last().snapshot("a_session_names_the_open_branches");
    let (client, _) = service.generated_inspector_client(&MEHMET).await;
    let session = client.get_session().send().await.unwrap().into_inner().data;
    let codes: Vec<&str> = session.branches.iter().map(|branch| branch.code.as_str()).collect();
    assert_eq!(codes, ["ANK-01", "IZMIR-01"]);
}

/// INS-3, INS-4
#[tokio::test]
async fn a_session_ends_by_age_by_idle_time_and_with_its_token() {
    for ends in [
        "UPDATE inspector_sessions SET created_at = now() - interval '12 hours'",
        "UPDATE inspector_sessions SET seen_at = now() - interval '30 minutes'",
        "UPDATE inspectors SET revoked_at = now()",
    ] {
        let service = Service::start().await;
        let inspector = service.inspector(&AYSE).await;
        inspector
            .get(&service, "/inspector/v1/session")
            .await
            .assert_status(200);
        service.db.batch_execute(ends).await.unwrap();
        let response = inspector.get(&service, "/inspector/v1/session").await;
        response.assert_rejected(401, "signed_out");
    }
}

/// INS-4
#[tokio::test]
async fn only_requests_with_the_csrf_token_extend_a_session() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let report = format!("/inspector/v1/reports/{DRAFT}");
    let get = |target: &str| Request::get(target).header("cookie", &inspector.cookie);
    let forged = Request::post(&format!("{report}/status"), "{}").with_method("PUT");
    let requests = [
        (false, get("/inspector/v1/session")),
        (false, get("/inspector/v1/reports")),
        (false, get(&report)),
        (false, forged.header("cookie", &inspector.cookie)),
        (false, get("/inspector/v1/session").header("x-csrf-token", "x")),
        (true, inspector.sends(Request::get("/inspector/v1/session"))),
        // A rejected request extends it, too, because a person made it.
        (true, inspector.sends(Request::post(&report, "{}").with_method("PATCH"))),
    ];
    for (keeps, request) in requests {
        let set_idle = "UPDATE inspector_sessions SET seen_at = now() - interval '29 minutes'";
        service.db.batch_execute(set_idle).await.unwrap();
        let response = service.send(request).await;
        assert_ne!(response.status, 401);
        let sessions = service
            .count("inspector_sessions WHERE seen_at > now() - interval '1 minute'")
            .await;
        assert_eq!(sessions, i64::from(keeps), "{} {}", response.method, response.target);
    }
}

/// INS-4
#[tokio::test]
async fn an_invalid_session_cookie_is_rejected() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let other = service.inspector(&MEHMET).await;
    let both = format!("{}; {}", inspector.cookie, other.cookie);
    let longer = format!("{}0", inspector.cookie);
    let upper = inspector.cookie.to_uppercase();
    for cookie in ["", "inspector_session=", "inspector_session=1", &both, &longer, &upper] {
        let request = Request::get("/inspector/v1/session").header("cookie", cookie);
        service.send(request).await.assert_rejected(401, "signed_out");
    }
    // Among other cookies of the same host.
    let among = format!("a=b; {}; c=d", inspector.cookie);
    let request = Request::get("/inspector/v1/session").header("cookie", &among);
    service.send(request).await.assert_status(200);
}

/// INS-3, INS-4
#[tokio::test]
async fn a_session_that_ends_while_a_body_arrives_writes_nothing() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let release = std::sync::Arc::new(tokio::sync::Notify::new());
    let body = r#"{"answers":[{"point_code":"FRONT_HOOD","status_code":"GOOD"}]}"#;
    let target = format!("/inspector/v1/reports/{DRAFT}/forms/BODY");
    let request = Request::post(&target, body).with_method("PUT").held_until(&release);
    let response = service.send(inspector.sends(request));
    let revoked = async {
        // Its head has been checked by then.
        service
            .within(std::time::Duration::from_secs(10), async || {
                service.count("inspector_sessions WHERE seen_at > created_at").await == 1
            })
            .await;
        service
            .db
            .batch_execute("UPDATE inspectors SET revoked_at = now()")
            .await
            .unwrap();
        release.notify_one();
    };
    service
        .db
        .batch_execute("UPDATE inspector_sessions SET created_at = now() - interval '3 minutes', seen_at = now() - interval '3 minutes'")
        .await
        .unwrap();
    let (response, ()) = futures::join!(response, revoked);
    response.assert_rejected(401, "signed_out");
    assert_eq!(
        service
            .count("inspection_form_answers WHERE written_by = 'Ayşe Demir'")
            .await,
        0
    );
}
