//! The sandbox's data in a real database. The tests share their set-up, so they are in one file.

use std::time::Duration;

use bytes::Bytes;
use deadpool_postgres::Pool;
use futures::TryStreamExt as _;
use partner_api::publishing::{self, RenderOutcome, Worker};
use partner_api::server::{RunningServer, ServerParts, start};
use partner_api::storage::Storage;
use partner_api_gateway::TrustedProxies;
use partner_api_gateway::pages::Pages;
use partner_api_sandbox::fixtures::holds;
use partner_api_sandbox::manifest::Manifest;
use partner_api_sandbox::{SandboxError, generate, manifest, reset_partner, seed};
use partner_api_signing::{Headers, UnsignedRequest, split_target};
use partner_api_store::pool::{PoolSettings, pool};
use partner_api_store::secrets::MasterKey;
use partner_api_tests::cluster::Database;
use sandbox_pictures::SCENES;
use uuid::Uuid;

struct Sandbox {
    pool: Pool,
    storage: Storage,
    master_key: MasterKey,
    _objects: tempfile::TempDir,
    // Dropped last.
    database: Database,
}

async fn sandbox() -> Sandbox {
    let database = Database::without_rows().await;
    let objects = tempfile::tempdir().expect("a folder");
    Sandbox {
        pool: pool(database.config(), &PoolSettings::default()).expect("a pool"),
        storage: Storage::folder(objects.path(), "http://127.0.0.1:1", [7; 32].into()).expect("a store"),
        master_key: MasterKey::generate().expect("a key"),
        _objects: objects,
        database,
    }
}

async fn count(pool: &Pool, condition: &str) -> i64 {
    let statement = format!("SELECT count(*) FROM {condition}");
    let client = pool.get().await.expect("a connection");
    client.query_one(&statement, &[]).await.expect("a count").get(0)
}

#[tokio::test]
async fn the_sandbox_data_is_created_once_and_found_again() {
    let sandbox = sandbox().await;
    let Sandbox {
        pool,
        storage,
        master_key,
        ..
    } = &sandbox;
    let first = seed(pool, storage, master_key, "vip").await.expect("seeded");
    assert_eq!((first.is_new, first.pictures), (true, SCENES.len()));
    assert_eq!(
        count(pool, "inspections").await,
        i64::try_from(first.inspections).expect("few")
    );
    let client = pool.get().await.expect("a connection");
    let listed = "SELECT DISTINCT object_key, thumb_object_key, size_bytes FROM photos";
    for row in client.query(listed, &[]).await.expect("photos") {
        let picture = storage.stream(row.get(0)).await.expect("a picture");
        assert_eq!(i64::try_from(picture.content_length).ok(), Some(row.get(2)));
        if let Some(thumbnail) = row.get::<_, Option<&str>>(1) {
            assert!(storage.exists(thumbnail).await.expect("asked"), "{thumbnail}");
        }
    }
    let open =
        "inspections WHERE status IN ('DRAFT', 'REVISION_REQUESTED') AND created_at > now() - interval '24 hours'";
    let open_at_first = count(pool, open).await;
    assert!(open_at_first > 20);
    // An inspector can apply the measurements that wait for reports which are too old to be open.
    let waiting = "measurements m WHERE status = 'PENDING' AND EXISTS ( \
                   SELECT FROM inspections i WHERE i.plate = m.plate AND i.branch_id = m.branch_id \
                   AND i.status IN ('DRAFT', 'REVISION_REQUESTED') AND m.measured_at >= i.created_at - interval '24 hours')";
    assert_eq!(count(pool, waiting).await, 6);
    let before = manifest(pool, master_key, "http://127.0.0.1:8080")
        .await
        .expect("a manifest");

    client
        .batch_execute(
            "UPDATE inspections SET created_at = created_at - interval '3 days'; \
             UPDATE measurements SET measured_at = measured_at - interval '3 days' WHERE status = 'PENDING'",
        )
        .await
        .expect("aged");
    assert_eq!(count(pool, open).await, 0);

    storage.delete(&SCENES[3].thumbnail_key()).await.expect("deleted");
    let second = seed(pool, storage, master_key, "vip").await.expect("seeded");
    assert_eq!((second.is_new, second.pictures), (false, 1));
    assert_eq!(count(pool, open).await, open_at_first);
    assert_eq!(count(pool, waiting).await, 6);
    let after = manifest(pool, master_key, "http://127.0.0.1:8080")
        .await
        .expect("a manifest");
    let keys = |manifest: &Manifest| -> Vec<_> {
        manifest
            .partners
            .iter()
            .map(|partner| (partner.key_id.clone(), partner.secret.clone()))
            .collect()
    };
    assert_eq!(keys(&before), keys(&after));

    let example = &after.examples.open_report;
    let newest = format!(
        "inspections i JOIN branches b ON b.id = i.branch_id WHERE i.plate = '{}' AND b.code = '{}' \
         AND i.status = 'DRAFT' AND i.created_at > now() - interval '1 hour'",
        example.plate, example.branch_code
    );
    assert_eq!(count(pool, &newest).await, 1);
}

#[tokio::test]
async fn each_of_the_four_partners_has_its_keys_and_grants() {
    let sandbox = sandbox().await;
    seed(&sandbox.pool, &sandbox.storage, &sandbox.master_key, "vip")
        .await
        .expect("seeded");
    let manifest = manifest(&sandbox.pool, &sandbox.master_key, "http://127.0.0.1:8080")
        .await
        .expect("a manifest");
    let shape: Vec<_> = manifest
        .partners
        .iter()
        .map(|partner| {
            let branches = partner.branches.as_ref().map(Vec::len);
            (
                partner.name.as_str(),
                partner.scopes.len(),
                partner.organizations.len(),
                branches,
                partner.rate_limit,
            )
        })
        .collect();
    let expected = [
        ("alpha", 1, 3, None, 600_000),
        ("beta", 0, 1, Some(2), 6_000),
        ("delta", 1, 1, None, 60),
        ("gamma", 1, 0, None, 6_000),
    ];
    assert_eq!(shape, expected);
    for partner in &manifest.partners {
        assert!(partner.key_id.starts_with("vip_test_") && partner.key_id.len() == 31);
        assert_eq!(partner.secret.len(), 32);
    }
}

/// SVC-9
#[tokio::test]
async fn a_reset_partner_is_as_in_a_new_sandbox_and_others_are_unchanged() {
    let sandbox = sandbox().await;
    let (pool, master_key) = (&sandbox.pool, &sandbox.master_key);
    seed(pool, &sandbox.storage, master_key, "vip").await.expect("seeded");
    let described = async || {
        let manifest = manifest(pool, master_key, "http://127.0.0.1:8080").await;
        let partners = manifest.expect("a manifest").partners;
        serde_json::to_value(partners).expect("JSON")
    };
    let before = described().await;
    let own = count(
        pool,
        "measurements m JOIN partners p ON p.id = m.partner_id WHERE p.name = 'alpha'",
    )
    .await;
    let written = "inspection_form_answers WHERE measurement_id IS NOT NULL";
    let written_before = count(pool, written).await;
    // The scenarios leave a measurement that was applied to an open report, and a pending one.
    let server = serve(&sandbox).await;
    let target = manifest(pool, master_key, &server.public_url)
        .await
        .expect("a manifest");
    let outcomes = partner_api_acceptance::run(&target.acceptance().expect("a target")).await;
    assert!(outcomes.expect("run").passed());
    assert!(server.stop(Duration::from_secs(5)).await);
    assert!(count(pool, written).await > written_before);
    // Everything else that an operator can change.
    let client = pool.get().await.expect("a connection");
    client
        .batch_execute(
            "UPDATE partners SET is_enabled = false WHERE name IN ('alpha', 'beta'); \
             UPDATE api_keys SET revoked_at = now(), scopes = '{}', rate_limit = 1, allowlist = '{203.0.113.0/24}'; \
             DELETE FROM rate_windows; \
             INSERT INTO rate_windows SELECT key_id, now(), 1 FROM api_keys; \
             DELETE FROM grants",
        )
        .await
        .expect("changed");

    let reset = reset_partner(pool, "alpha").await.expect("reset");
    let of = |partners: &serde_json::Value, name: &str| {
        let mut partners = partners.as_array().expect("an array").iter();
        partners.find(|partner| partner["name"] == name).cloned()
    };
    assert_eq!(
        (reset.measurements, Some(reset.key_id.as_str())),
        (2, of(&before, "alpha").expect("alpha")["key_id"].as_str())
    );
    let after = described().await;
    assert_eq!(of(&after, "alpha"), of(&before, "alpha"));
    assert_eq!(of(&after, "beta"), None);
    assert_eq!(count(pool, written).await, written_before);
    let alphas = "partners p ON p.id = m.partner_id WHERE p.name = 'alpha'";
    assert_eq!(count(pool, &format!("measurements m JOIN {alphas}")).await, own);
    assert_eq!(count(pool, "partners WHERE NOT is_enabled").await, 2);
    let allowlists = "api_keys k JOIN partners p ON p.id = k.partner_id WHERE p.name = 'alpha' AND k.allowlist = '{}'";
    assert_eq!(count(pool, allowlists).await, 1);
    assert_eq!(count(pool, "rate_windows").await, 3);
    assert!(matches!(
        reset_partner(pool, "epsilon").await,
        Err(SandboxError::NoPartner(_))
    ));
}

#[tokio::test]
async fn a_database_with_other_data_is_left_alone() {
    let sandbox = sandbox().await;
    let client = sandbox.pool.get().await.expect("a connection");
    let insert = "INSERT INTO organizations (id, slug, name, pii_mode) VALUES (gen_random_uuid(), 'a', 'A', 'NONE')";
    client.batch_execute(insert).await.expect("inserted");
    let rejected = seed(&sandbox.pool, &sandbox.storage, &sandbox.master_key, "vip").await;
    assert!(matches!(rejected, Err(SandboxError::OtherData)));
    assert_eq!(count(&sandbox.pool, "partners").await, 0);
}

#[tokio::test]
async fn a_published_report_gets_a_pdf_that_honors_its_privacy_mode() {
    let sandbox = sandbox().await;
    let Sandbox {
        pool,
        storage,
        master_key,
        ..
    } = &sandbox;
    seed(pool, storage, master_key, "vip").await.expect("seeded");
    let data = generate::dataset(generate::SEED);
    // A requested report is rendered before those that were queued with the sample data.
    let id = data.inspections[data.examples.published].id;
    let client = pool.get().await.expect("a connection");
    let enqueue = "SELECT enqueue_rendering($1, report_fingerprint($1), 0, true)";
    client.execute(enqueue, &[&id]).await.expect("enqueued");
    let queued = count(pool, "report_renderings").await;
    assert_eq!(
        queued,
        count(
            pool,
            "inspections WHERE status = 'PUBLISHED' AND public_slug IS NOT NULL"
        )
        .await
    );
    let turn = Worker::new(pool.clone(), storage.clone(), 1)
        .render_next()
        .await
        .expect("a turn");
    assert_eq!(
        turn,
        RenderOutcome::Rendered {
            report: id,
            is_requested: true
        }
    );
    let named = "SELECT id, pdf_object_key FROM inspections WHERE pdf_object_key IS NOT NULL";
    let named = client.query_one(named, &[]).await.expect("one");
    assert_eq!(named.get::<_, Uuid>(0), id);
    let pdf: Vec<Bytes> = storage
        .stream(named.get(1))
        .await
        .expect("stored")
        .stream
        .try_collect()
        .await
        .expect("read");
    assert!(pdf.concat().starts_with(b"%PDF-"));

    for (organization, mode) in data.organizations.iter().enumerate() {
        let published = data.inspections.iter().find(|row| {
            row.status == "PUBLISHED"
                && data.branches[row.branch].organization == organization
                && row.photos.len() > 6
                && row.forms.len() == 5
        });
        let published = published.expect("a published report");
        let vehicle = &data.vehicles[published.vehicle];
        let document = "SELECT report_document($1)::text";
        let document = client.query_one(document, &[&published.id]).await.expect("a document");
        let (report, photos) = publishing::read(document.get(0)).expect("printable");
        assert_eq!(report.vehicle.vin == vehicle.vin, mode.pii_mode == "FULL");
        assert_eq!(report.vehicle.plate == "***", mode.pii_mode == "NONE");
        let shown = published
            .photos
            .iter()
            .filter(|photo| photo.show_in_report && !sandbox_pictures::is_paper(photo.kind));
        assert_eq!(report.photos_in_all, shown.count());
        assert_eq!(photos.len(), report.photos_in_all.min(publishing::PHOTOS_MAX));
        let first_other = report
            .photos
            .iter()
            .position(|photo| photo.kind != "DAMAGE")
            .unwrap_or(0);
        assert!(report.photos[first_other..].iter().all(|photo| photo.kind != "DAMAGE"));
        // The status of each test-line value is the one that its thresholds give.
        for form in report.forms.iter().filter(|form| form.is_test_line) {
            for point in form
                .points
                .iter()
                .chain(&form.computed)
                .filter(|point| !point.status_code.is_empty())
            {
                let limits = point.limits.as_ref().expect("limits");
                let value = point.numeric_value.expect("a value");
                let of = limits
                    .status_ranges
                    .iter()
                    .find(|range| range.until.is_none_or(|until| value < until));
                let on_a_bound = limits.status_ranges.iter().any(|range| range.until == Some(value));
                assert!(
                    on_a_bound || of.expect("a range").status_code == point.status_code,
                    "{point:?}"
                );
            }
        }
        assert!(
            report
                .photos
                .iter()
                .all(|photo| !sandbox_pictures::is_paper(&photo.kind))
        );
    }
}

async fn serve(sandbox: &Sandbox) -> RunningServer {
    let storage = sandbox.storage.clone();
    let parts = ServerParts {
        listen: ([127, 0, 0, 1], 0).into(),
        internal_listen: None,
        inspectors_listen: None,
        public_url: None,
        tls: None,
        environment: partner_api_signing::Environment::Test,
        pool: sandbox.pool.clone(),
        admission_pool: sandbox.pool.clone(),
        recorder_pool: sandbox.pool.clone(),
        database: sandbox.database.config(),
        request_log: None,
        standbys: None,
        storage: Box::new(move |_| Ok(storage)),
        pages: Box::new(|_| Pages::default()),
        inspector_routes: None,
        master_key: sandbox.master_key.clone(),
        ip_limit: 0,
        trusted_proxies: TrustedProxies(Vec::new()),
        body_timeout: Duration::from_secs(30),
        request_timeout: Duration::from_secs(30),
        traces: None,
        renderers: 0,
    };
    start(parts).await.expect("a server")
}

/// SVC-7
#[tokio::test]
async fn the_acceptance_scenarios_pass_repeatedly() {
    let sandbox = sandbox().await;
    seed(&sandbox.pool, &sandbox.storage, &sandbox.master_key, "vip")
        .await
        .expect("seeded");
    let server = serve(&sandbox).await;
    let mut manifest = manifest(&sandbox.pool, &sandbox.master_key, &server.public_url)
        .await
        .expect("a manifest");
    for _ in 0..2 {
        let outcomes = partner_api_acceptance::run(&manifest.acceptance().expect("a target"))
            .await
            .expect("run");
        assert!(outcomes.passed(), "{outcomes}");
        assert_eq!(
            outcomes.0.iter().map(|outcome| outcome.number).collect::<Vec<_>>(),
            [1, 2, 3, 4, 5, 6]
        );
        let table = outcomes.to_string();
        assert!(
            outcomes.0.iter().all(|outcome| table.contains(&outcome.request_id)),
            "{table}"
        );
    }

    // An inactive branch, as a faulty sandbox might name it. The scenarios must fail.
    manifest.examples.open_report.branch_code = manifest.examples.inactive_branch_code.clone();
    let outcomes = partner_api_acceptance::run(&manifest.acceptance().expect("a target"))
        .await
        .expect("run");
    let passed: Vec<_> = outcomes
        .0
        .iter()
        .filter(|outcome| outcome.passed)
        .map(|outcome| outcome.number)
        .collect();
    assert_eq!(passed, [4, 5, 6], "{outcomes}");
    assert!(server.stop(Duration::from_secs(5)).await);
}

/// SVC-10, LIM-1, MEA-17
#[tokio::test]
async fn every_example_of_the_manifest_gets_the_described_response() {
    let sandbox = sandbox().await;
    seed(&sandbox.pool, &sandbox.storage, &sandbox.master_key, "vip")
        .await
        .expect("seeded");
    let server = serve(&sandbox).await;
    let manifest = manifest(&sandbox.pool, &sandbox.master_key, &server.public_url)
        .await
        .expect("a manifest");
    let client = reqwest::Client::new();
    for fixture in &manifest.fixtures {
        let partner = manifest.partner(&fixture.partner).expect("a partner");
        for attempt in 1..=fixture.times {
            let body = fixture.body.clone().unwrap_or_default();
            let (path, query) = split_target(&fixture.target);
            let unsigned = UnsignedRequest {
                method: &fixture.method,
                path,
                raw_query: query.as_bytes(),
                body: body.as_bytes(),
            };
            let key_id = partner.key_id.parse().expect("a key ID");
            let secret = partner.secret.parse().expect("a secret");
            let now = chrono::Utc::now().timestamp().unsigned_abs();
            let nonce = Uuid::new_v4().to_string();
            let headers = Headers::sign(&key_id, &secret, unsigned, now, &nonce).expect("signed");
            let mut request = client.request(
                fixture.method.parse().expect("a method"),
                format!("{}{}", manifest.base_url, fixture.target),
            );
            for (name, value) in headers.iter() {
                request = request.header(name, value);
            }
            for (name, value) in &fixture.headers {
                request = request.header(name, value);
            }
            let response = request.body(body).send().await.expect("a response");
            let status = response.status().as_u16();
            let text = response.text().await.expect("a body");
            if attempt == fixture.times {
                assert_eq!(status, fixture.status, "{}: {text}", fixture.name);
                let json = serde_json::from_str(&text).expect("JSON");
                assert!(holds(&json, &fixture.holds), "{}: {text}", fixture.name);
            }
        }
    }
    // Each of the open reports can receive a measurement.
    assert!(manifest.examples.open_reports.len() > 4);
    assert_eq!(manifest.examples.open_reports[0], manifest.examples.open_report);
    assert!(server.stop(Duration::from_secs(5)).await);
}
