//! `get_session`

use partner_api_tests::fixture::inspections::DRAFT;
use partner_api_tests::{AYSE, MEHMET, Request, Service};

/// INS-1
#[tokio::test]
async fn the_session_says_who_and_for_which_branches_that_are_open() {
    let service = Service::start().await;
    let (client, seen) = service.generated_inspector_client(&AYSE).await;
    let session = client.get_session().send().await.unwrap().into_inner().data;
    assert_eq!(session.inspector, AYSE.name);
    seen.last().snapshot("an_inspector_is_told_the_open_branches");
    let (client, _) = service.generated_inspector_client(&MEHMET).await;
    let session = client.get_session().send().await.unwrap().into_inner().data;
    let codes: Vec<&str> = session.branches.iter().map(|branch| branch.code.as_str()).collect();
    assert_eq!(codes, ["ANK-01", "IZMIR-01"]);
}

/// INS-3, INS-4
#[tokio::test]
async fn a_session_ends_by_age_by_rest_and_with_its_token() {
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
        let answer = inspector.get(&service, "/inspector/v1/session").await;
        answer.assert_refused(401, "signed_out");
    }
}

/// INS-4
#[tokio::test]
async fn what_carries_the_sessions_token_keeps_it_alive_and_what_a_page_reads_by_itself_does_not() {
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
        // Also one that is refused: somebody has done it.
        (true, inspector.sends(Request::post(&report, "{}").with_method("PATCH"))),
    ];
    for (keeps, request) in requests {
        let rested = "UPDATE inspector_sessions SET seen_at = now() - interval '29 minutes'";
        service.db.batch_execute(rested).await.unwrap();
        let answer = service.send(request).await;
        assert_ne!(answer.status, 401);
        let kept = service
            .count("inspector_sessions WHERE seen_at > now() - interval '1 minute'")
            .await;
        assert_eq!(kept, i64::from(keeps), "{} {}", answer.method, answer.target);
    }
}

/// INS-4
#[tokio::test]
async fn what_is_no_cookie_of_a_session_signs_nobody_in() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let other = service.inspector(&MEHMET).await;
    let both = format!("{}; {}", inspector.cookie, other.cookie);
    let longer = format!("{}0", inspector.cookie);
    let upper = inspector.cookie.to_uppercase();
    for cookie in ["", "inspector_session=", "inspector_session=1", &both, &longer, &upper] {
        let request = Request::get("/inspector/v1/session").header("cookie", cookie);
        service.send(request).await.assert_refused(401, "signed_out");
    }
    // Among others of the same host.
    let among = format!("a=b; {}; c=d", inspector.cookie);
    let request = Request::get("/inspector/v1/session").header("cookie", &among);
    service.send(request).await.assert_status(200);
}

/// INS-3, INS-4
#[tokio::test]
async fn a_session_that_ends_while_a_body_is_under_way_writes_nothing() {
    let service = Service::start().await;
    let inspector = service.inspector(&AYSE).await;
    let release = std::sync::Arc::new(tokio::sync::Notify::new());
    let body = r#"{"answers":[{"point_code":"FRONT_HOOD","status_code":"GOOD"}]}"#;
    let target = format!("/inspector/v1/reports/{DRAFT}/forms/BODY");
    let request = Request::post(&target, body).with_method("PUT").held_until(&release);
    let answer = service.send(inspector.sends(request));
    let revoked = async {
        // Its head has been looked at by then.
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
    let (answer, ()) = futures::join!(answer, revoked);
    answer.assert_refused(401, "signed_out");
    assert_eq!(
        service
            .count("inspection_form_answers WHERE written_by = 'Ayşe Demir'")
            .await,
        0
    );
}
