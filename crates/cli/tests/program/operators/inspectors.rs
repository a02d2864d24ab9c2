//! Inspectors and their tokens.

use partner_api_domain::inspector_token;
use partner_api_tests::cluster;

use super::program::Deployment;

/// INS-1, INS-2
#[tokio::test]
async fn an_inspectors_token_is_shown_once_and_stored_only_as_a_hash() {
    let deployment = Deployment::new().await;
    deployment.with_one_of_each();
    let created = deployment.json(&["inspector", "create", "Mehmet Demir", "--branch", "IZM-01"]);
    let token = created["result"]["token"].as_str().unwrap();
    assert_eq!((token.len(), &token[..5]), (31, "insp_"));
    for printed in [
        deployment.run(&["inspector", "list", "--all", "--json"]),
        deployment.run(&["inspector", "show", "Mehmet Demir", "--json"]),
        deployment.run(&["audit", "list", "--json"]),
    ] {
        assert_eq!(printed.code, 0);
        assert!(printed.stdout.contains("Mehmet Demir"), "{}", printed.stdout);
        assert!(!printed.stdout.contains(&token[5..]), "{}", printed.stdout);
    }
    let client = cluster::connect(&deployment.config).await;
    let texts = "SELECT string_agg(i::text, '') || (SELECT string_agg(a::text, '') FROM audit_log a) FROM inspectors i";
    let all: String = client.query_one(texts, &[]).await.unwrap().get(0);
    assert!(!all.contains(&token[5..]) && all.contains("Mehmet Demir"));
    // The token that is typed at the sign-in is found by its hash.
    let found = "SELECT name, token_hint FROM inspectors WHERE token_hash = $1";
    let typed = inspector_token::hash(&token.to_lowercase());
    let row = client.query_one(found, &[&typed.as_slice()]).await.unwrap();
    let (name, hint): (String, String) = (row.get(0), row.get(1));
    assert_eq!((name.as_str(), hint.as_str()), ("Mehmet Demir", &token[27..]));
}

/// INS-1: the branches by code, name or ID, each once.
#[tokio::test]
async fn an_inspector_works_at_branches_of_one_organization() {
    let deployment = Deployment::new().await;
    deployment.with_one_of_each();
    deployment.shell("partner-api organization create Ankara --slug ankara");
    deployment.shell("partner-api branch create ankara ANK-01 --name Konak --city Ankara");
    deployment
        .run(&["inspector", "create", "Ali", "--branch", "IZM-01", "--branch", "ANK-01"])
        .failed(4, "`IZM-01` is a branch of `izmir` and `ANK-01` one of `ankara`");
    // The name is ambiguous, because two organizations have it.
    deployment
        .run(&["inspector", "create", "Ali", "--branch", "Konak"])
        .failed(2, "in `ankara` and `izmir`; choose with --organization");
    deployment
        .run(&[
            "inspector",
            "create",
            "Ali",
            "--branch",
            "ANK-01",
            "--organization",
            "izmir",
        ])
        .failed(3, "there is no branch `ANK-01`");
    let branches = deployment.json(&["branch", "list", "izmir"]);
    let second = branches[1]["id"].as_str().unwrap();
    let created = deployment.shell(&format!(
        "partner-api inspector create Ali --organization izmir --branch Konak --branch izm-02 --branch {second} --branch IZM-01 --json"
    ));
    assert_eq!(
        created.json()["result"]["branches"],
        serde_json::json!(["IZM-01", "IZM-02"])
    );

    // Another organization also has an Ali, so the name is ambiguous.
    let other = deployment.json(&["inspector", "create", "ali", "--branch", "ANK-01"]);
    assert_eq!(other["result"]["organization"], "ankara");
    deployment
        .run(&["inspector", "revoke", "ALI"])
        .failed(2, "in `ankara` and `izmir`; choose with --organization");
    let shown = deployment.json(&["inspector", "show", "ALI", "--organization", "Ankara"]);
    assert_eq!(shown["id"], other["result"]["id"]);
}

/// INS-3
#[tokio::test]
async fn a_revoked_token_stays_revoked_and_its_name_can_be_reused() {
    let deployment = Deployment::new().await;
    deployment.with_one_of_each();
    let revoked = deployment.json(&["inspector", "revoke", "Ayşe Yılmaz"]);
    assert_eq!(revoked["changed"], true);
    let undo = revoked["undo"].as_str().unwrap();
    let again = "partner-api inspector create 'Ayşe Yılmaz' --branch IZM-01 --organization izmir";
    assert!(undo.starts_with("cannot be undone") && undo.ends_with(again), "{undo}");
    // Revoking it again, by name or ID, changes nothing.
    let id = revoked["result"]["id"].as_str().unwrap();
    for text in ["Ayşe Yılmaz", id] {
        let twice = deployment.json(&["inspector", "revoke", text]);
        assert_eq!(
            (&twice["changed"], &twice["result"]["revoked_at"]),
            (&false.into(), &revoked["result"]["revoked_at"])
        );
    }
    assert_eq!(deployment.json(&["inspector", "list"]), serde_json::json!([]));

    let second = deployment.shell(&format!("{again} --json")).json();
    assert_ne!(second["result"]["id"], id);
    let listed = deployment.json(&["inspector", "list", "izmir", "--all"]);
    assert_eq!(listed.as_array().unwrap().len(), 2);
    // The name refers to the active one.
    let shown = deployment.json(&["inspector", "show", "Ayşe Yılmaz"]);
    assert_eq!(shown["id"], second["result"]["id"]);
}

/// INS-1
#[tokio::test]
async fn only_one_of_several_concurrently_created_inspectors_gets_the_name() {
    let deployment = Deployment::new().await;
    deployment.with_one_of_each();
    let mut codes = std::thread::scope(|scope| {
        let making: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| deployment.run(&["inspector", "create", "Ali", "--branch", "IZM-01"])))
            .collect();
        making
            .into_iter()
            .map(|created| created.join().unwrap().code)
            .collect::<Vec<_>>()
    });
    codes.sort_unstable();
    assert_eq!(codes, [0, 4, 4, 4]);
}

/// INS-1
#[tokio::test]
async fn an_inspector_changes_branches_and_keeps_the_token() {
    let deployment = Deployment::new().await;
    deployment.with_one_of_each();
    deployment.shell("partner-api branch create izmir IZM-03 --name Buca --city İzmir");
    let before = deployment.json(&["inspector", "show", "Ayşe Yılmaz"]);
    let moved = deployment.json(&[
        "inspector",
        "branches",
        "Ayşe Yılmaz",
        "--branch",
        "IZM-03",
        "--branch",
        "IZM-01",
    ]);
    assert_eq!(moved["changed"], true);
    assert_eq!(moved["result"]["branches"], serde_json::json!(["IZM-01", "IZM-03"]));
    assert_eq!(moved["result"]["token_hint"], before["token_hint"]);
    let again = [
        "inspector",
        "branches",
        "Ayşe Yılmaz",
        "--branch",
        "IZM-01",
        "--branch",
        "Buca",
    ];
    assert_eq!(deployment.json(&again)["changed"], false);
    let undo = moved["undo"].as_str().unwrap();
    let undone = deployment.shell(&format!("{undo} --json")).json();
    assert_eq!(undone["result"]["branches"], before["branches"]);

    deployment
        .run(&["inspector", "branches", "Ayşe Yılmaz", "--branch", "IZM-99"])
        .failed(3, "there is no branch `IZM-99`");
    deployment.json(&["inspector", "revoke", "Ayşe Yılmaz"]);
    deployment
        .run(&[
            "inspector",
            "branches",
            before["id"].as_str().unwrap(),
            "--branch",
            "IZM-01",
        ])
        .failed(4, "was revoked; create a new one with");
}
