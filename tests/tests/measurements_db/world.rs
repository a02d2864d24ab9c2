//! A database with one organisation, its test-line form, one branch, and a partner.

use std::collections::BTreeMap;
use std::time::Duration;

use deadpool_postgres::{Manager, Object, Pool};
use partner_api::db::connection::Connection;
use partner_api::db::measurements::{self, Applied, Package, Point, Replay, SkipReason, Skipped};
use partner_api::db::pool::{PoolSettings, pool};
use partner_api::db::thresholds;
use partner_api::deadline::Deadline;
use partner_api::recorder::{self, Outcome, RecordError};
use partner_api::rules::plate::Plate;
use partner_api::rules::threshold::Bounds;
use partner_api_tests::cluster::Database;
use rust_decimal::Decimal;
use tokio_postgres::NoTls;
use uuid::Uuid;

pub const PLATE: &str = "34ABC123";
pub const OPEN: &str = "DRAFT";

/// A branch of an organisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    pub id: Uuid,
    pub organization_id: Uuid,
}

/// A database of its own, with an organisation that the partner is granted, a template, and a recorder.
pub struct World {
    pool: Pool,
    pub recorder: Recorder,
    pub partner: Uuid,
    pub branch: Branch,
    template: Uuid,
    // Dropped last.
    database: Database,
}

impl World {
    pub async fn new() -> Self {
        let database = Database::without_rows().await;
        let pool = sessions(&database, 8);
        let client = pool.get().await.unwrap();
        let (partner, template) = (partner(&client, "maker").await, Uuid::now_v7());
        for key in ["first", "second"] {
            let key_sql = "INSERT INTO api_keys (key_id, partner_id, environment, secret_nonce, secret_ciphertext)
                           VALUES ($1, $2, 'test', decode(repeat('00', 24), 'hex'), '')";
            client.execute(key_sql, &[&key, &partner]).await.unwrap();
        }
        let organization_id = organization(&client).await;
        let branch = branch(&client, organization_id, "IZM-01", true).await;
        client
            .execute(
                "INSERT INTO form_templates (id, organization_id, code, name, score_category, position, is_test_line)
                 VALUES ($1, $2, 'TEST_LINE', 'Test hattı', 'MECHANICAL', 1, true)",
                &[&template, &organization_id],
            )
            .await
            .unwrap();
        grant(&client, partner, organization_id).await;
        let world = World {
            pool,
            recorder: recorder(&database),
            partner,
            branch,
            template,
            database,
        };
        for code in ["SLIP_FRONT", "DYNO_MEASURED_HP", "SUSP_FRONT_LEFT"] {
            world.add_point(code).await;
        }
        world.set_bounds("SLIP_FRONT", ["-5", "5", "-7", "7"]).await;
        world.set_bounds("DYNO_MEASURED_HP", ["0", "", "", ""]).await;
        world
    }

    /// The service's way to the database.
    pub async fn db(&self) -> Connection {
        Connection::take(&self.pool, Duration::from_secs(60)).await.unwrap()
    }

    pub async fn client(&self) -> Object {
        self.pool.get().await.unwrap()
    }

    /// A pool of one session.
    pub fn session(&self) -> Pool {
        sessions(&self.database, 1)
    }

    /// An inspector's click that applies a waiting measurement to a report.
    pub async fn click(&self, measurement: Uuid, report: Uuid) -> Option<Applied> {
        let db = self.db().await;
        let transaction = db.transaction();
        let applied = measurements::apply(&transaction, measurement, report, "Ayşe")
            .await
            .unwrap();
        transaction.commit().await.unwrap();
        applied
    }

    pub async fn add_point(&self, code: &str) {
        let sql = "INSERT INTO form_template_points (id, template_id, code, name, position) VALUES ($1, $2, $3, $3, 1)";
        self.client()
            .await
            .execute(sql, &[&Uuid::now_v7(), &self.template, &code])
            .await
            .unwrap();
    }

    pub async fn set_bounds(&self, code: &str, bounds: [&str; 4]) {
        let [good_min, good_max, borderline_min, borderline_max] =
            bounds.map(|bound| (!bound.is_empty()).then(|| bound.parse().unwrap()));
        let bounds = Bounds {
            good_min,
            good_max,
            borderline_min,
            borderline_max,
        };
        thresholds::set(&self.db().await, self.branch.organization_id, code, &bounds)
            .await
            .unwrap();
    }

    /// A report for the plate, `age` old by the database's clock.
    pub async fn report(&self, plate: &str, status: &str, age: &str, factory_power_hp: Option<&str>) -> Uuid {
        let (vehicle, report) = (Uuid::now_v7(), Uuid::now_v7());
        let client = self.client().await;
        client
            .execute(
                "INSERT INTO vehicles (id, plate, vin, brand, model, year, type, fuel_type, transmission, color,
                                       mileage_km, factory_power_hp)
                 VALUES ($1, $2, '', '', '', 2020, '', '', '', '', 0, $3::text::numeric)",
                &[&vehicle, &plate, &factory_power_hp],
            )
            .await
            .unwrap();
        client
            .execute(
                "INSERT INTO inspections (id, report_number, organization_id, branch_id, vehicle_id, status, plate,
                                          package_name, package_base_price, base_price, final_price, payment_type,
                                          snapshot_vin, snapshot_mileage_km, created_at)
                 VALUES ($1, $1::uuid::text, $2, $3, $4, $5, $6, '', 0, 0, 0, 'CASH', '', 0,
                         now() - $7::text::interval)",
                &[
                    &report,
                    &self.branch.organization_id,
                    &self.branch.id,
                    &vehicle,
                    &status,
                    &plate,
                    &age,
                ],
            )
            .await
            .unwrap();
        report
    }

    /// A package for [`World::branch`].
    pub fn package(&self, plate: &str, external_id: Option<&str>, points: &[(&str, &str)]) -> Package {
        Package {
            id: Uuid::now_v7(),
            partner_id: self.partner,
            key_id: "first".into(),
            branch_code: "IZM-01".into(),
            plate: Plate::parse(plate).unwrap(),
            external_id: external_id.map(Into::into),
            device_serial: Some("BT-1".into()),
            measured_at: None,
            raw: (&b"{\"as\": \"sent\"}"[..]).into(),
            points: points_of(points),
        }
    }

    /// Sends a package without external id.
    pub async fn send(&self, plate: &str, points: &[(&str, &str)]) -> (Uuid, Option<(Uuid, Applied)>) {
        match self.submit(self.package(plate, None, points)).await {
            Outcome::Recorded { id, applied } => (id, applied),
            other => panic!("{other:?}"),
        }
    }

    pub async fn submit(&self, package: Package) -> Outcome {
        self.recorder.submit(package).await.unwrap()
    }

    /// The recorder of another replica.
    pub fn another_recorder(&self) -> Recorder {
        recorder(&self.database)
    }

    /// The report's answers: code to status, value and writer.
    pub async fn answers(&self, report: Uuid) -> BTreeMap<String, (String, Decimal, String)> {
        let sql = "SELECT p.code, a.status_code, a.numeric_value, a.written_by FROM inspection_form_answers a
                   JOIN inspection_forms f ON f.id = a.inspection_form_id
                   JOIN form_template_points p ON p.id = a.point_id WHERE f.inspection_id = $1";
        let rows = self.client().await.query(sql, &[&report]).await.unwrap();
        rows.iter()
            .map(|row| (row.get(0), (row.get(1), row.get(2), row.get(3))))
            .collect()
    }

    pub async fn count(&self, sql: &str) -> i64 {
        self.client().await.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// Returns once a session of the database waits for a lock; fails if none ever does.
    pub async fn until_someone_waits(&self) {
        let waiting = async {
            while self.count("SELECT count(*) FROM pg_locks WHERE NOT granted").await == 0 {
                tokio::task::yield_now().await;
            }
        };
        let deadline = Duration::from_secs(30);
        tokio::time::timeout(deadline, waiting)
            .await
            .expect("nobody waits for a lock");
    }
}

fn sessions(database: &Database, count: usize) -> Pool {
    Pool::builder(Manager::new(database.config(), NoTls))
        .max_size(count)
        .build()
        .unwrap()
}

/// A recorder, and packages of requests whose bodies have just arrived.
pub struct Recorder(recorder::Recorder);

impl Recorder {
    pub async fn submit(&self, package: Package) -> Result<Outcome, RecordError> {
        self.0.submit(package, Deadline::begin()).await
    }
}

fn recorder(database: &Database) -> Recorder {
    let settings = recorder::pool_settings(&PoolSettings::default());
    let pool = pool(database.config(), &settings).unwrap();
    // Beside other tests a statement may take longer than a service puts up with: it is as patient as its requests.
    Recorder(recorder::Recorder::start(pool, Duration::from_millis(1_700)))
}

pub async fn partner(client: &Object, name: &str) -> Uuid {
    let id = Uuid::now_v7();
    let sql = "INSERT INTO partners (id, name) VALUES ($1, $2)";
    client.execute(sql, &[&id, &name]).await.unwrap();
    id
}

pub async fn grant(client: &Object, partner: Uuid, organization_id: Uuid) {
    let sql = "INSERT INTO grants (partner_id, organization_id, all_branches) VALUES ($1, $2, true)";
    client.execute(sql, &[&partner, &organization_id]).await.unwrap();
}

pub async fn organization(client: &Object) -> Uuid {
    let id = Uuid::now_v7();
    let sql = "INSERT INTO organizations (id, slug, name, pii_mode) VALUES ($1, $1::uuid::text, '', 'FULL')";
    client.execute(sql, &[&id]).await.unwrap();
    id
}

pub async fn branch(client: &Object, organization_id: Uuid, folded_code: &str, is_active: bool) -> Branch {
    let id = Uuid::now_v7();
    let sql = "INSERT INTO branches (id, organization_id, code, code_folded, name, city, district, is_active)
               VALUES ($1, $2, $3, $3, '', '', '', $4)";
    client
        .execute(sql, &[&id, &organization_id, &folded_code, &is_active])
        .await
        .unwrap();
    Branch { id, organization_id }
}

pub fn points_of(points: &[(&str, &str)]) -> Vec<Point> {
    points
        .iter()
        .map(|(code, text)| Point {
            code: (*code).into(),
            value: text.parse().unwrap(),
            text: (*text).into(),
        })
        .collect()
}

pub fn skipped(code: &str, reason: SkipReason) -> Skipped {
    Skipped {
        code: code.into(),
        reason,
    }
}

pub fn replay_of(outcome: Outcome) -> Replay {
    match outcome {
        Outcome::Replayed(replay) => replay,
        other => panic!("{other:?}"),
    }
}
