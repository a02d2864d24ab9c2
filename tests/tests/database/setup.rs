//! The set-up of the tests of this target: a database with the schema, and the few rows that a test needs.
//!
//! [`Setup`] has organizations, branches and reports; [`MeasurementSetup`] adds a test line and a recorder.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use deadpool_postgres::{Manager, Object, Pool};
use partner_api::plausible::documented;
use partner_api::recorder::{self, Outcome, RecordError};
use partner_api_domain::plate::Plate;
use partner_api_domain::threshold::Bounds;
use partner_api_store::connection::Connection;
use partner_api_store::deadline::Deadline;
use partner_api_store::measurements::{self, Applied, Package, Point, Replay, SkipReason, Skipped};
use partner_api_store::pool::{PoolSettings, pool};
use partner_api_store::standby::Reader;
use partner_api_store::thresholds;
use partner_api_tests::cluster::Database;
use rust_decimal::Decimal;
use tokio_postgres::NoTls;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);

pub const PLATE: &str = "34ABC123";
pub const OPEN: &str = "DRAFT";

/// A branch of an organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    pub id: Uuid,
    pub organization_id: Uuid,
}

/// A report that a test adds.
#[derive(Clone, Copy)]
pub struct Report {
    pub organization: Uuid,
    pub branch: Uuid,
    pub status: &'static str,
    /// Seconds from [`beginning`] to its creation.
    pub created: i64,
    /// Seconds between creation and publication.
    pub lag: i64,
    /// Seconds between publication and its last change.
    pub kept: i64,
}

impl Report {
    /// When it last changed.
    pub fn updated_at(&self) -> DateTime<Utc> {
        at(self.created + self.lag + self.kept)
    }
}

/// The time that the times of a [`Report`] are counted from.
pub fn beginning() -> DateTime<Utc> {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// This many seconds later.
pub fn at(seconds: i64) -> DateTime<Utc> {
    beginning() + TimeDelta::seconds(seconds)
}

/// A test's database, with the schema and a vehicle.
pub struct Setup {
    pool: Pool,
    vehicle: Uuid,
    // Dropped last.
    database: Database,
}

impl Setup {
    pub async fn new() -> Self {
        let database = Database::without_rows().await;
        let setup = Self {
            pool: sessions(&database, 8),
            vehicle: Uuid::now_v7(),
            database,
        };
        setup
            .execute(
                "INSERT INTO vehicles (id, plate, vin, brand, model, year, type, fuel_type, transmission, color, mileage_km)
                 VALUES ($1, '34ABC123', 'WVWZZZ1JZ3W386752', 'Volkswagen', 'Golf', 2021, 'HATCHBACK', 'GASOLINE',
                         'MANUAL', 'Beyaz', 48210)",
                &[&setup.vehicle],
            )
            .await;
        setup
    }

    /// A connection of the service's kind, with a deadline that no test reaches.
    pub async fn db(&self) -> Connection {
        Connection::take(&self.pool, Duration::from_secs(600)).await.unwrap()
    }

    /// The same, to read.
    pub async fn reader(&self) -> Reader {
        self.db().await.into()
    }

    /// Sets a parameter of PostgreSQL for the sessions that begin from now on.
    pub async fn set_for_later_sessions(&self, parameter: &str, value: &str) {
        let database = self.database.config().get_dbname().unwrap().to_owned();
        let sql = format!("ALTER DATABASE {database} SET {parameter} = {value}");
        self.execute(&sql, &[]).await;
        self.pool.retain(|_, _| false);
        let shown = self.client().await.query_one(&format!("SHOW {parameter}"), &[]).await;
        assert_eq!(shown.unwrap().get::<_, &str>(0), value);
    }

    /// A session that may execute anything.
    pub async fn client(&self) -> Object {
        self.pool.get().await.unwrap()
    }

    /// A pool of one session.
    pub fn session(&self) -> Pool {
        sessions(&self.database, 1)
    }

    /// Executes a statement; the number of rows that it concerned.
    pub async fn execute(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> u64 {
        self.client().await.execute(sql, parameters).await.unwrap()
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
        tokio::time::timeout(PATIENCE, waiting)
            .await
            .expect("nobody waits for a lock");
    }

    pub async fn partner(&self, name: &str) -> Uuid {
        let id = Uuid::now_v7();
        let sql = "INSERT INTO partners (id, name) VALUES ($1, $2)";
        self.execute(sql, &[&id, &name]).await;
        id
    }

    /// Grants the whole organization.
    pub async fn grant(&self, partner: Uuid, organization_id: Uuid) {
        let sql = "INSERT INTO grants (partner_id, organization_id, all_branches) VALUES ($1, $2, true)";
        self.execute(sql, &[&partner, &organization_id]).await;
    }

    pub async fn organization(&self, name: &str, pii_mode: &str) -> Uuid {
        let id = Uuid::now_v7();
        self.execute(
            "INSERT INTO organizations (id, slug, name, pii_mode, reports_changed_at) VALUES ($1, $2, $2, $3, $4)",
            &[&id, &name, &pii_mode, &beginning()],
        )
        .await;
        id
    }

    pub async fn branch(&self, organization_id: Uuid, code: &str, city: &str, is_active: bool) -> Branch {
        let id = Uuid::now_v7();
        self.execute(
            "INSERT INTO branches (id, organization_id, code, code_folded, name, city, district, is_active)
             VALUES ($1, $2, $3, $3, $3, $4, 'Merkez', $5)",
            &[&id, &organization_id, &code, &city, &is_active],
        )
        .await;
        Branch { id, organization_id }
    }

    /// Adds reports in one statement; returns their ids in the same order.
    pub async fn reports(&self, reports: &[Report]) -> Vec<Uuid> {
        let ids: Vec<Uuid> = reports.iter().map(|_| Uuid::new_v4()).collect();
        let organizations: Vec<Uuid> = reports.iter().map(|report| report.organization).collect();
        let branches: Vec<Uuid> = reports.iter().map(|report| report.branch).collect();
        let statuses: Vec<&str> = reports.iter().map(|report| report.status).collect();
        let created: Vec<_> = reports.iter().map(|report| at(report.created)).collect();
        let published: Vec<_> = reports.iter().map(|report| at(report.created + report.lag)).collect();
        let updated: Vec<_> = reports.iter().map(Report::updated_at).collect();
        self.execute(
            "INSERT INTO inspections (id, report_number, organization_id, branch_id, vehicle_id, status, plate,
                    package_name, package_base_price, base_price, discount_percent, final_price, payment_type,
                    snapshot_vin, snapshot_mileage_km, published_at, created_at, updated_at)
                 SELECT id, id::text, organization, branch, $1, status, '34ABC123', 'Tam', 3000, 3000, 10, 2700, 'CARD',
                    'WVWZZZ1JZ3W386752', 48195, published, created, updated
                 FROM unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::timestamptz[], $7::timestamptz[],
                    $8::timestamptz[]) AS new (id, organization, branch, status, created, published, updated)",
            &[
                &self.vehicle,
                &ids,
                &organizations,
                &branches,
                &statuses,
                &created,
                &published,
                &updated,
            ],
        )
        .await;
        ids
    }
}

/// A test's database with a test line: an organization that the partner is granted, a branch, a template, and a recorder.
pub struct MeasurementSetup {
    setup: Setup,
    pub recorder: Recorder,
    pub partner: Uuid,
    pub branch: Branch,
    template: Uuid,
}

impl Deref for MeasurementSetup {
    type Target = Setup;

    fn deref(&self) -> &Setup {
        &self.setup
    }
}

impl MeasurementSetup {
    pub async fn new() -> Self {
        let setup = Setup::new().await;
        let partner = setup.partner("maker").await;
        for key in ["first", "second"] {
            let sql = "INSERT INTO api_keys (key_id, partner_id, environment, secret_nonce, secret_ciphertext)
                       VALUES ($1, $2, 'test', decode(repeat('00', 24), 'hex'), '')";
            setup.execute(sql, &[&key, &partner]).await;
        }
        let organization_id = setup.organization("tenant", "FULL").await;
        let branch = setup.branch(organization_id, "IZM-01", "İzmir", true).await;
        let template = Uuid::now_v7();
        setup
            .execute(
                "INSERT INTO form_templates (id, organization_id, code, name, score_category, position, is_test_line)
                 VALUES ($1, $2, 'TEST_LINE', 'Test hattı', 'MECHANICAL', 1, true)",
                &[&template, &organization_id],
            )
            .await;
        setup.grant(partner, organization_id).await;
        let setup = Self {
            recorder: recorder(&setup.database),
            setup,
            partner,
            branch,
            template,
        };
        for code in ["SLIP_FRONT", "DYNO_MEASURED_HP", "SUSP_FRONT_LEFT"] {
            setup.add_point(code).await;
        }
        setup.set_bounds("SLIP_FRONT", ["-5", "5", "-7", "7"]).await;
        setup.set_bounds("DYNO_MEASURED_HP", ["0", "", "", ""]).await;
        setup
    }

    /// An inspector's click that applies a waiting measurement to a report.
    pub async fn click(&self, measurement: Uuid, report: Uuid) -> Option<Applied> {
        let db = self.db().await;
        let transaction = db.transaction();
        let applied = measurements::apply(&transaction, measurement, report, "Ayşe", documented)
            .await
            .unwrap();
        transaction.commit().await.unwrap();
        applied
    }

    pub async fn add_point(&self, code: &str) {
        let sql = "INSERT INTO form_template_points (id, organization_id, template_id, code, name, position)
                   SELECT $1, organization_id, id, $3, $3, 1 FROM form_templates WHERE id = $2";
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

    /// A package for the [branch](Self::branch).
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
        recorder(&self.setup.database)
    }

    /// The report's answers: code to status, value and writer.
    pub async fn answers(&self, report: Uuid) -> BTreeMap<String, (String, Decimal, String)> {
        let sql = "SELECT p.code, a.status_code, a.numeric_value, coalesce(a.written_by, 'device:' || a.measurement_id) FROM inspection_form_answers a
                   JOIN inspection_forms f ON f.id = a.inspection_form_id
                   JOIN form_template_points p ON p.id = a.point_id WHERE f.inspection_id = $1";
        let rows = self.client().await.query(sql, &[&report]).await.unwrap();
        rows.iter()
            .map(|row| (row.get(0), (row.get(1), row.get(2), row.get(3))))
            .collect()
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
    // On a busy machine a statement may take longer than the service allows it: here it may take as long as a request.
    Recorder(recorder::Recorder::start(pool, Duration::from_millis(1_700)))
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
