//! A database with organisations, branches and reports.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use deadpool_postgres::{Manager, Object, Pool};
use partner_api::db::connection::Connection;
use partner_api::db::standby::Reader;
use partner_api_tests::cluster::Database;
use tokio_postgres::NoTls;
use uuid::Uuid;

/// A database of its own, with a vehicle and nothing else that reports need.
pub struct World {
    pub client: Object,
    /// The service's way to the database, to read.
    pub db: Reader,
    /// Its way to what may be written there.
    pub primary: Connection,
    pub vehicle: Uuid,
    // Dropped last.
    _database: Database,
}

/// A report that a test adds.
#[derive(Clone, Copy)]
pub struct Report {
    pub organization: Uuid,
    pub branch: Uuid,
    pub status: &'static str,
    /// Seconds after the world's beginning.
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

/// The beginning of the world's time.
pub fn beginning() -> DateTime<Utc> {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// So many seconds later.
pub fn at(seconds: i64) -> DateTime<Utc> {
    beginning() + TimeDelta::seconds(seconds)
}

impl World {
    pub async fn new() -> Self {
        let database = Database::without_rows().await;
        let pool = Pool::builder(Manager::new(database.config(), NoTls))
            .max_size(3)
            .build()
            .unwrap();
        let client = pool.get().await.unwrap();
        let take = async || Connection::take(&pool, Duration::from_secs(600)).await.unwrap();
        let (db, primary) = (take().await.into(), take().await);
        let vehicle = Uuid::now_v7();
        client
            .execute(
                "INSERT INTO vehicles VALUES ($1, '34ABC123', 'WVWZZZ1JZ3W386752', 'Volkswagen', 'Golf', 2021,
                 'HATCHBACK', 'GASOLINE', 'MANUAL', 'Beyaz', 48210, NULL)",
                &[&vehicle],
            )
            .await
            .unwrap();
        Self {
            client,
            db,
            primary,
            vehicle,
            _database: database,
        }
    }

    pub async fn organization(&self, name: &str, pii_mode: &str) -> Uuid {
        let id = Uuid::now_v7();
        self.client
            .execute(
                "INSERT INTO organizations (id, slug, name, pii_mode, reports_changed_at) VALUES ($1, $2, $2, $3, $4)",
                &[&id, &name, &pii_mode, &beginning()],
            )
            .await
            .unwrap();
        id
    }

    pub async fn branch(&self, organization: Uuid, code: &str, city: &str, active: bool) -> Uuid {
        let id = Uuid::now_v7();
        self.client
            .execute(
                "INSERT INTO branches VALUES ($1, $2, $3, $3, $3, $4, 'Merkez', $5)",
                &[&id, &organization, &code, &city, &active],
            )
            .await
            .unwrap();
        id
    }

    /// Adds reports, all at once; their ids in the same order.
    pub async fn reports(&self, reports: &[Report]) -> Vec<Uuid> {
        let ids: Vec<Uuid> = reports.iter().map(|_| Uuid::new_v4()).collect();
        let organizations: Vec<Uuid> = reports.iter().map(|report| report.organization).collect();
        let branches: Vec<Uuid> = reports.iter().map(|report| report.branch).collect();
        let statuses: Vec<&str> = reports.iter().map(|report| report.status).collect();
        let created: Vec<_> = reports.iter().map(|report| at(report.created)).collect();
        let published: Vec<_> = reports.iter().map(|report| at(report.created + report.lag)).collect();
        let updated: Vec<_> = reports.iter().map(Report::updated_at).collect();
        self.client
            .execute(
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
            .await
            .unwrap();
        ids
    }
}
