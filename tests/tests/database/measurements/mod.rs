//! How measurements are recorded and applied to reports.

mod applying;
mod implausible;
mod matching;
mod mismatches;
mod recording;
mod rounds;
mod stale;
mod superseding;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use partner_api::plausible::documented;
use partner_api::recorder::{self, Outcome, RecordError};
use partner_api_domain::plate::Plate;
use partner_api_domain::threshold::Bounds;
use partner_api_store::deadline::Deadline;
use partner_api_store::measurements::{self, Applied, Package, Point, Replay, SkipReason, Skipped};
use partner_api_store::pool::{PoolSettings, pool};
use partner_api_store::thresholds;
use partner_api_tests::cluster::Database;
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::setup::{Branch, Setup};

const PLATE: &str = "34ABC123";
const OPEN: &str = "DRAFT";

/// A test's database with a test line: an organization that the partner is granted, a branch, a template, and a recorder.
struct MeasurementSetup {
    setup: Setup,
    recorder: Recorder,
    partner: Uuid,
    branch: Branch,
    template: Uuid,
}

impl Deref for MeasurementSetup {
    type Target = Setup;

    fn deref(&self) -> &Setup {
        &self.setup
    }
}

impl MeasurementSetup {
    async fn new() -> Self {
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
    async fn click(&self, measurement: Uuid, report: Uuid) -> Option<Applied> {
        let db = self.db().await;
        let transaction = db.transaction();
        let organization = self.branch.organization_id;
        let applied = measurements::apply(&transaction, organization, measurement, report, "Ayşe", documented)
            .await
            .unwrap();
        transaction.commit().await.unwrap();
        applied
    }

    async fn add_point(&self, code: &str) {
        let sql = "INSERT INTO form_template_points (id, organization_id, template_id, code, name, position)
                   SELECT $1, organization_id, id, $3, $3, 1 FROM form_templates WHERE id = $2";
        self.client()
            .await
            .execute(sql, &[&Uuid::now_v7(), &self.template, &code])
            .await
            .unwrap();
    }

    async fn set_bounds(&self, code: &str, bounds: [&str; 4]) {
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
    async fn report(&self, plate: &str, status: &str, age: &str, factory_power_hp: Option<&str>) -> Uuid {
        let (vehicle, report) = (Uuid::now_v7(), Uuid::now_v7());
        let client = self.client().await;
        client
            .execute(
                "INSERT INTO vehicles (id, plate, vin, brand, model, year, type, fuel_type, transmission, color,
                                       mileage_km, factory_power_hp)
                 VALUES ($1, $2, '', '', '', 2020, 'SEDAN', 'DIESEL', 'MANUAL', '', 0, $3::text::numeric)",
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
    fn package(&self, plate: &str, external_id: Option<&str>, points: &[(&str, &str)]) -> Package {
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

    /// Sends a package without external ID.
    async fn send(&self, plate: &str, points: &[(&str, &str)]) -> (Uuid, Option<(Uuid, Applied)>) {
        match self.submit(self.package(plate, None, points)).await {
            Outcome::Recorded { id, applied } => (id, applied),
            other => panic!("{other:?}"),
        }
    }

    async fn submit(&self, package: Package) -> Outcome {
        self.recorder.submit(package).await.unwrap()
    }

    /// The recorder of another replica.
    fn another_recorder(&self) -> Recorder {
        recorder(&self.setup.database)
    }

    /// The report's answers: code to status, value and writer.
    async fn answers(&self, report: Uuid) -> BTreeMap<String, (String, Decimal, String)> {
        let sql = "SELECT p.code, a.status_code, a.numeric_value, coalesce(a.written_by, 'device:' || a.measurement_id) FROM inspection_form_answers a
                   JOIN inspection_forms f ON f.id = a.inspection_form_id
                   JOIN form_template_points p ON p.id = a.point_id WHERE f.inspection_id = $1";
        let rows = self.client().await.query(sql, &[&report]).await.unwrap();
        rows.iter()
            .map(|row| (row.get(0), (row.get(1), row.get(2), row.get(3))))
            .collect()
    }
}

/// A recorder, which gets each package as if its request's body had just arrived.
struct Recorder(recorder::Recorder);

impl Recorder {
    async fn submit(&self, package: Package) -> Result<Outcome, RecordError> {
        self.0.submit(package, Deadline::begin()).await
    }
}

fn recorder(database: &Database) -> Recorder {
    let settings = recorder::pool_settings(&PoolSettings::default());
    let pool = pool(database.config(), &settings).unwrap();
    // On a busy machine a statement may take longer than the service allows. Here it may take as long as a request.
    Recorder(recorder::Recorder::start(pool, Duration::from_millis(1_700)))
}

fn points_of(points: &[(&str, &str)]) -> Vec<Point> {
    points
        .iter()
        .map(|(code, text)| Point {
            code: (*code).into(),
            value: text.parse().unwrap(),
            text: (*text).into(),
        })
        .collect()
}

fn skipped(code: &str, reason: SkipReason) -> Skipped {
    Skipped {
        code: code.into(),
        reason,
    }
}

fn replay_of(outcome: Outcome) -> Replay {
    match outcome {
        Outcome::Replayed(replay) => replay,
        other => panic!("{other:?}"),
    }
}
