use partner_api_tests::fixture::organizations;
use partner_api_tests::{ALPHA, BETA, GAMMA, Service};

fn branches(organization: &str, query: &str) -> String {
    format!("/api/v1/partner/organizations/{organization}/branches{query}")
}

/// REP-10
#[tokio::test]
async fn active_branches_are_listed_by_code() {
    let service = Service::start().await;
    service
        .client(&ALPHA)
        .list_branches()
        .org_id(organizations::MASKED)
        .send()
        .await
        .unwrap();
    service.last().snapshot("active_branches_are_listed_by_code");
}

/// REP-10
#[tokio::test]
async fn inactive_branches_are_listed_on_request() {
    let service = Service::start().await;
    service
        .client(&ALPHA)
        .list_branches()
        .org_id(organizations::MASKED)
        .active(false)
        .send()
        .await
        .unwrap();
    service.last().snapshot("inactive_branches_are_listed_on_request");
}

/// REP-2
#[tokio::test]
async fn a_restricted_partner_sees_only_its_branches() {
    let service = Service::start().await;
    let active = service.get(&BETA, &branches(organizations::MASKED, "")).await;
    assert_eq!(active.data("code"), ["IZMIR-01"]);
    let inactive = service
        .get(&BETA, &branches(organizations::MASKED, "?active=false"))
        .await;
    assert_eq!(inactive.data("code"), ["ESK-01"]);
}

/// REP-10
#[tokio::test]
async fn a_city_must_match_exactly() {
    let service = Service::start().await;
    for (query, codes) in [
        ("?city=%C4%B0zmir", vec!["IZMIR-01"]),
        ("?city=İzmir", vec!["IZMIR-01"]),
        ("?city=izmir", vec![]),
        ("?city=Izmir", vec![]),
        ("?city=%C4%B0zmir%20", vec![]),
        ("?city=", vec![]),
        ("?city=%25", vec![]),
        ("?active=true&city=Ankara", vec!["ANK-01"]),
    ] {
        let response = service.get(&ALPHA, &branches(organizations::MASKED, query)).await;
        assert_eq!(response.assert_status(200).data("code"), codes, "{query}");
    }
}

/// ERR-6
#[tokio::test]
async fn an_organization_without_a_grant_looks_like_an_unknown_one() {
    let service = Service::start().await;
    let closed = service.get(&BETA, &branches(organizations::FULL, "")).await;
    closed
        .assert_rejected(404, "not_found")
        .snapshot("an_organization_without_a_grant_is_not_found");
    let unknown = service
        .get(&BETA, &branches("01974d1a-7c00-7a00-8000-000000000999", ""))
        .await;
    assert_eq!(closed.message(), unknown.assert_rejected(404, "not_found").message());
    service
        .get(&GAMMA, &branches(organizations::MASKED, ""))
        .await
        .assert_rejected(404, "not_found");
}

#[tokio::test]
async fn a_malformed_id_is_not_found() {
    let service = Service::start().await;
    let upper = organizations::MASKED.to_uppercase();
    let braced = format!("{{{}}}", organizations::MASKED);
    for id in [
        "1",
        "anadolu-ekspertiz",
        "'",
        &upper,
        &organizations::MASKED.replace('-', ""),
        "null",
        &braced,
    ] {
        let id = id.replace('{', "%7B").replace('}', "%7D");
        service
            .get(&ALPHA, &branches(&id, ""))
            .await
            .assert_rejected(404, "not_found");
    }
}

#[tokio::test]
async fn an_invalid_parameter_is_rejected_and_named() {
    let service = Service::start().await;
    let response = service
        .get(&ALPHA, &branches(organizations::MASKED, "?active=yes"))
        .await;
    response
        .assert_rejected(400, "invalid_request")
        .snapshot("an_invalid_parameter_is_rejected_and_named");
    let long = format!("?city={}", "a".repeat(101));
    for (query, name) in [
        ("?active=1", "active"),
        ("?active=", "active"),
        ("?active=TRUE", "active"),
        ("?aktive=true", "aktive"),
        ("?city=a&city=b", "city"),
        ("?city=%00", "city"),
        ("?city=%ff", "city"),
        (long.as_str(), "city"),
    ] {
        let response = service.get(&ALPHA, &branches(organizations::MASKED, query)).await;
        let message = response.assert_rejected(400, "invalid_request").message();
        assert!(message.contains(name), "{query}: {message}");
    }
}
