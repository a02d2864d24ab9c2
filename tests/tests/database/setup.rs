//! The setup of the tests of this target: a database with the schema and the few rows that a test needs.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use deadpool_postgres::{Manager, Object, Pool};
use partner_api_store::connection::Connection;
use partner_api_store::standby::Reader;
use partner_api_tests::cluster::Database;
use tokio_postgres::NoTls;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// How long a test waits for an event that must happen.
const TIMEOUT: Duration = Duration::from_secs(60);

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
    pub unchanged_for: i64,
}

impl Report {
    /// When it last changed.
    pub fn updated_at(&self) -> DateTime<Utc> {
        at(self.created + self.lag + self.unchanged_for)
    }
}

/// The origin of the times of a [`Report`].
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
    pub database: Database,
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

    /// A connection like the service's, with a deadline that no test reaches.
    pub async fn db(&self) -> Connection {
        Connection::take(&self.pool, Duration::from_secs(600)).await.unwrap()
    }

    /// The same for reads.
    pub async fn reader(&self) -> Reader {
        self.db().await.into()
    }

    /// Sets a PostgreSQL parameter for the sessions that begin from now on.
    pub async fn set_for_later_sessions(&self, parameter: &str, value: &str) {
        let database = self.database.config().get_dbname().unwrap().to_owned();
        let sql = format!("ALTER DATABASE {database} SET {parameter} = {value}");
        self.execute(&sql, &[]).await;
        self.pool.retain(|_, _| false);
        let shown = self.client().await.query_one(&format!("SHOW {parameter}"), &[]).await;
        assert_eq!(shown.unwrap().get::<_, &str>(0), value);
    }

    /// A session that can execute any statement.
    pub async fn client(&self) -> Object {
        self.pool.get().await.unwrap()
    }

    /// A pool of one session.
    pub fn session(&self) -> Pool {
        sessions(&self.database, 1)
    }

    /// Executes a statement and returns the number of affected rows.
    pub async fn execute(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> u64 {
        self.client().await.execute(sql, parameters).await.unwrap()
    }

    pub async fn count(&self, sql: &str) -> i64 {
        self.client().await.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// Waits until a session of the database waits for a lock; panics if none does.
    pub async fn until_lock_wait(&self) {
        let waiting = async {
            while self.count("SELECT count(*) FROM pg_locks WHERE NOT granted").await == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TIMEOUT, waiting)
            .await
            .expect("no session waits for a lock");
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

    /// Adds reports in one statement; returns their IDs in the same order.
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

fn sessions(database: &Database, count: usize) -> Pool {
    Pool::builder(Manager::new(database.config(), NoTls))
        .max_size(count)
        .build()
        .unwrap()
}
