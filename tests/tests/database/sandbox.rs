//! The sandbox's data in a real database.

use std::time::Duration;

use bytes::Bytes;
use deadpool_postgres::Pool;
use futures::TryStreamExt as _;
use partner_api::publishing::{self, Turn, Worker};
use partner_api::server::{RunningServer, ServerParts, start};
use partner_api::storage::Storage;
use partner_api_gateway::TrustedProxies;
use partner_api_gateway::pages::Pages;
use partner_api_sandbox::fixtures::holds;
use partner_api_sandbox::manifest::Manifest;
use partner_api_sandbox::{SandboxError, generate, manifest, seed};
use partner_api_signing::{Headers, UnsignedRequest, split_target};
use partner_api_store::pool::{PoolSettings, pool};
use partner_api_store::secrets::MasterKey;
use partner_api_tests::cluster::Database;
use sandbox_pictures::SCENES;
use uuid::Uuid;

struct Place {
    pool: Pool,
    storage: Storage,
    master_key: MasterKey,
    _objects: tempfile::TempDir,
    // Dropped last.
    database: Database,
}

async fn place() -> Place {
    let database = Database::without_rows().await;
    let objects = tempfile::tempdir().expect("a folder");
    Place {
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
async fn the_data_is_made_once_found_again_and_opened_again() {
    let place = place().await;
    let Place {
        pool,
        storage,
        master_key,
        ..
    } = &place;
    let first = seed(pool, storage, master_key, "vip").await.expect("made");
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
    let before = manifest(pool, master_key, "http://127.0.0.1:8080")
        .await
        .expect("a manifest");

    client
        .batch_execute("UPDATE inspections SET created_at = created_at - interval '3 days'")
        .await
        .expect("aged");
    assert_eq!(count(pool, open).await, 0);

    storage.delete(&SCENES[3].thumbnail_key()).await.expect("deleted");
    let second = seed(pool, storage, master_key, "vip").await.expect("found");
    assert_eq!((second.is_new, second.pictures), (false, 1));
    assert_eq!(count(pool, open).await, open_at_first);
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
async fn four_partners_have_keys_and_grants_of_their_own() {
    let place = place().await;
    seed(&place.pool, &place.storage, &place.master_key, "vip")
        .await
        .expect("made");
    let manifest = manifest(&place.pool, &place.master_key, "http://127.0.0.1:8080")
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

#[tokio::test]
async fn a_database_with_other_data_is_left_alone() {
    let place = place().await;
    let client = place.pool.get().await.expect("a connection");
    let insert = "INSERT INTO organizations (id, slug, name, pii_mode) VALUES (gen_random_uuid(), 'a', 'A', 'NONE')";
    client.batch_execute(insert).await.expect("inserted");
    let refused = seed(&place.pool, &place.storage, &place.master_key, "vip").await;
    assert!(matches!(refused, Err(SandboxError::OtherData)));
    assert_eq!(count(&place.pool, "partners").await, 0);
}

#[tokio::test]
async fn a_published_report_gets_a_pdf_without_what_its_privacy_mode_hides() {
    let place = place().await;
    let Place {
        pool,
        storage,
        master_key,
        ..
    } = &place;
    seed(pool, storage, master_key, "vip").await.expect("made");
    let data = generate::dataset(generate::SEED);
    // Asked for: it comes before those that were wanted when the rows were made.
    let id = data.inspections[data.examples.published].id;
    let client = pool.get().await.expect("a connection");
    let asked = "SELECT enqueue_rendering($1, report_fingerprint($1), 0, true)";
    client.execute(asked, &[&id]).await.expect("asked");
    let wanted = count(pool, "report_renderings").await;
    assert_eq!(
        wanted,
        count(
            pool,
            "inspections WHERE status = 'PUBLISHED' AND public_slug IS NOT NULL"
        )
        .await
    );
    let turn = Worker::new(pool.clone(), storage.clone(), 1)
        .turn()
        .await
        .expect("a turn");
    assert_eq!(
        turn,
        Turn::Rendered {
            report: id,
            is_asked: true
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
        // Each value of a test line is judged by limits, and the limits say of it what the report does.
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
                    .stretches
                    .iter()
                    .find(|stretch| stretch.until.is_none_or(|until| value < until));
                let on_a_bound = limits.stretches.iter().any(|stretch| stretch.until == Some(value));
                assert!(
                    on_a_bound || of.expect("a stretch").status_code == point.status_code,
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

async fn serve(place: &Place) -> RunningServer {
    let storage = place.storage.clone();
    let parts = ServerParts {
        listen: ([127, 0, 0, 1], 0).into(),
        internal_listen: None,
        public_url: None,
        tls: None,
        environment: partner_api_signing::Environment::Test,
        pool: place.pool.clone(),
        admission_pool: place.pool.clone(),
        recorder_pool: place.pool.clone(),
        database: place.database.config(),
        request_log: None,
        standbys: None,
        storage: Box::new(move |_| Ok(storage)),
        pages: Box::new(|_| Pages::default()),
        internal_routes: None,
        master_key: place.master_key.clone(),
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
async fn the_acceptance_scenarios_pass_again_and_again() {
    let place = place().await;
    seed(&place.pool, &place.storage, &place.master_key, "vip")
        .await
        .expect("made");
    let server = serve(&place).await;
    let mut manifest = manifest(&place.pool, &place.master_key, &server.public_url)
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

    // A branch that takes nothing, as a sandbox gone wrong might name: the scenarios must notice.
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
async fn everything_that_is_listed_to_try_answers_as_it_says() {
    let place = place().await;
    seed(&place.pool, &place.storage, &place.master_key, "vip")
        .await
        .expect("made");
    let server = serve(&place).await;
    let manifest = manifest(&place.pool, &place.master_key, &server.public_url)
        .await
        .expect("a manifest");
    let client = reqwest::Client::new();
    for fixture in &manifest.fixtures {
        let partner = manifest.partner(&fixture.partner).expect("a partner");
        for turn in 1..=fixture.times {
            let body = fixture.body.clone().unwrap_or_default();
            let (path, query) = split_target(&fixture.target);
            let unsigned = UnsignedRequest {
                method: &fixture.method,
                path,
                raw_query: query.as_bytes(),
                body: body.as_bytes(),
            };
            let key_id = partner.key_id.parse().expect("a key id");
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
            let answer = request.body(body).send().await.expect("an answer");
            let status = answer.status().as_u16();
            let text = answer.text().await.expect("a body");
            if turn == fixture.times {
                assert_eq!(status, fixture.status, "{}: {text}", fixture.name);
                let json = serde_json::from_str(&text).expect("JSON");
                assert!(holds(&json, &fixture.holds), "{}: {text}", fixture.name);
            }
        }
    }
    // Each of the open reports takes a measurement.
    assert!(manifest.examples.open_reports.len() > 4);
    assert_eq!(manifest.examples.open_reports[0], manifest.examples.open_report);
    assert!(server.stop(Duration::from_secs(5)).await);
}
