//! Measurements as devices sent them.

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand, ValueEnum};
use partner_api_domain::branch_code;
use serde::Serialize;
use tokio_postgres::Row as DbRow;
use uuid::Uuid;

use crate::failure::{Failure, Kind};
use crate::names;
use crate::output::{Output, Row};
use crate::session::Session;
use crate::when;

partner_api_store::statement! {
    LIST = "WITH found AS MATERIALIZED ( \
              SELECT m.id, m.partner_id, m.key_id, o.slug AS organization, b.code AS branch, m.external_id, m.device_serial, \
                m.status, m.inspection_id, m.measured_at, m.received_at, m.settled_at, m.settled_by, octet_length(m.raw) AS bytes, \
                encode(m.raw_sha256, 'hex') AS sha256 \
              FROM measurements m JOIN organizations o ON o.id = m.organization_id \
                JOIN branches b ON b.id = m.branch_id AND b.organization_id = m.organization_id \
              WHERE ($1::uuid IS NULL OR m.id = $1) AND ($2::uuid IS NULL OR m.partner_id = $2) \
                AND ($3::text IS NULL OR b.code_folded = $3) AND ($4::text IS NULL OR m.status = $4) \
                AND ($5::text IS NULL OR m.external_id = $5) AND ($6::timestamptz IS NULL OR m.received_at >= $6) \
              ORDER BY m.received_at DESC, m.id DESC LIMIT $7) \
            SELECT m.*, p.name AS partner, \
              (SELECT count(*) FROM measurement_mismatches x WHERE x.measurement_id = m.id) AS mismatches \
            FROM found m JOIN partners p ON p.id = m.partner_id ORDER BY m.received_at DESC, m.id DESC";
    POINTS = "SELECT u.code, u.value_text, u.outcome FROM measurements m \
                CROSS JOIN unnest(m.point_codes, m.point_texts, m.point_outcomes) WITH ORDINALITY \
                  AS u (code, value_text, outcome, position) WHERE m.id = $1 ORDER BY u.position";
    RAW = "SELECT raw FROM measurements WHERE id = $1";
}

/// The examples in the help of the group.
pub const EXAMPLES: &str = "\
Packages contain license plates. `list` and `show` omit them; `raw` prints the exact bytes.

Examples:
  partner-api measurement list --status pending --branch IZM-01
  partner-api measurement show 0190a5c2-…
  partner-api measurement raw 0190a5c2-… > package.json";

/// Commands on measurements.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List measurements, newest first
    List(ListArgs),
    /// Show a measurement with its points and their results
    Show(IdArgs),
    /// Print the exact bytes that the device sent
    Raw(IdArgs),
}

/// The options of `measurement list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Only of this partner, by name or ID
    #[arg(long, value_name = "PARTNER")]
    partner: Option<String>,
    /// Only of branches with this code
    #[arg(long, value_name = "CODE")]
    branch: Option<String>,
    /// Only with this status
    #[arg(long, value_name = "STATUS")]
    status: Option<Status>,
    /// Only the one with this external ID
    #[arg(long, value_name = "ID")]
    external_id: Option<String>,
    /// Only within this time, such as 24h
    #[arg(long, value_name = "TIME", value_parser = when::span)]
    since: Option<std::time::Duration>,
    /// Maximum number of results
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    limit: u16,
}

/// A measurement.
#[derive(Args, Debug)]
pub struct IdArgs {
    /// The ID of the measurement
    id: Uuid,
}

/// The status of a measurement.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Status {
    /// Applied to a report
    Applied,
    /// Waiting for a report
    Pending,
    /// Dismissed by an inspector
    Discarded,
}

/// A measurement without personal data.
#[derive(Debug, Serialize)]
struct Measurement {
    id: Uuid,
    partner: String,
    key_id: String,
    organization: String,
    branch: String,
    external_id: Option<String>,
    device_serial: Option<String>,
    status: String,
    inspection_id: Option<Uuid>,
    measured_at: DateTime<Utc>,
    received_at: DateTime<Utc>,
    settled_at: Option<DateTime<Utc>>,
    settled_by: Option<String>,
    bytes: i32,
    sha256: String,
    mismatches: i64,
}

impl Measurement {
    fn of(row: &DbRow) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            partner: row.try_get("partner")?,
            key_id: row.try_get("key_id")?,
            organization: row.try_get("organization")?,
            branch: row.try_get("branch")?,
            external_id: row.try_get("external_id")?,
            device_serial: row.try_get("device_serial")?,
            status: row.try_get("status")?,
            inspection_id: row.try_get("inspection_id")?,
            measured_at: row.try_get("measured_at")?,
            received_at: row.try_get("received_at")?,
            settled_at: row.try_get("settled_at")?,
            settled_by: row.try_get("settled_by")?,
            bytes: row.try_get("bytes")?,
            sha256: row.try_get("sha256")?,
            mismatches: row.try_get("mismatches")?,
        })
    }
}

impl Row for Measurement {
    const COLUMNS: &'static [&'static str] = &["RECEIVED", "PARTNER", "BRANCH", "STATUS", "EXTERNAL ID", "ID"];

    fn cells(&self) -> Vec<String> {
        vec![
            when::at(self.received_at),
            self.partner.clone(),
            format!("{}/{}", self.organization, self.branch),
            self.status.clone(),
            self.external_id.clone().unwrap_or_else(|| "-".to_owned()),
            self.id.to_string(),
        ]
    }
}

/// A value and its result.
#[derive(Debug, Serialize)]
struct Point {
    code: String,
    value: String,
    outcome: Option<String>,
}

/// A measurement with its values.
#[derive(Debug, Serialize)]
struct MeasurementDetails {
    #[serde(flatten)]
    measurement: Measurement,
    points: Vec<Point>,
}

impl Command {
    pub(crate) async fn run(self, session: &Session) -> Result<Output, Failure> {
        match self {
            Self::List(args) => list(session, &args).await,
            Self::Show(args) => show(session, args.id).await,
            Self::Raw(args) => raw(session, args.id).await,
        }
    }
}

fn not_found(id: Uuid) -> Failure {
    Failure::NotFound {
        kind: Kind::Measurement,
        name: id.to_string(),
        suggestions: Vec::new(),
    }
}

async fn list(session: &Session, args: &ListArgs) -> Result<Output, Failure> {
    let connection = session.read().await?;
    let partner = match &args.partner {
        Some(text) => Some(names::partner(&connection, text).await?.id),
        None => None,
    };
    let branch = args.branch.as_deref().map(branch_code::folded);
    let status = args.status.map(|status| match status {
        Status::Applied => "APPLIED",
        Status::Pending => "PENDING",
        Status::Discarded => "DISCARDED",
    });
    let since = args
        .since
        .map(|span| Utc::now() - chrono::Duration::from_std(span).unwrap_or(chrono::Duration::MAX));
    let rows = connection
        .query(
            LIST,
            &[
                &None::<Uuid>,
                &partner,
                &branch,
                &status,
                &args.external_id,
                &since,
                &i64::from(args.limit),
            ],
        )
        .await?;
    let measurements = rows.iter().map(Measurement::of).collect::<Result<Vec<_>, _>>()?;
    Ok(Output::rows(&measurements, "No measurements match."))
}

async fn show(session: &Session, id: Uuid) -> Result<Output, Failure> {
    let connection = session.read().await?;
    let none = None::<String>;
    let rows = connection
        .query(
            LIST,
            &[
                &Some(id),
                &None::<Uuid>,
                &none,
                &none,
                &none,
                &None::<DateTime<Utc>>,
                &1_i64,
            ],
        )
        .await?;
    let measurement = Measurement::of(rows.first().ok_or_else(|| not_found(id))?)?;
    let mut points = Vec::new();
    for row in connection.query(POINTS, &[&id]).await? {
        points.push(Point {
            code: row.try_get("code")?,
            value: row.try_get("value_text")?,
            outcome: row.try_get("outcome")?,
        });
    }
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let mut facts = vec![
        ("id", measurement.id.to_string()),
        ("partner", format!("{} ({})", measurement.partner, measurement.key_id)),
        ("branch", format!("{}/{}", measurement.organization, measurement.branch)),
        ("external ID", or_none(&measurement.external_id)),
        ("device", or_none(&measurement.device_serial)),
        ("measured", when::at(measurement.measured_at)),
        ("received", when::at(measurement.received_at)),
        ("status", measurement.status.clone()),
        (
            "report",
            measurement
                .inspection_id
                .map_or_else(|| "-".to_owned(), |id| id.to_string()),
        ),
        ("settled", when::at_or_none(measurement.settled_at)),
        (
            "raw package",
            format!("{} bytes, SHA-256 {}", measurement.bytes, measurement.sha256),
        ),
        (
            "other bodies",
            format!("{} stored with the same external ID", measurement.mismatches),
        ),
    ];
    for (index, point) in points.iter().enumerate() {
        let became = point.outcome.as_deref().unwrap_or("waits");
        let value = format!("{} = {} ({became})", point.code, point.value);
        facts.push((if index == 0 { "points" } else { "" }, value));
    }
    Ok(Output::facts(&MeasurementDetails { measurement, points }, &facts))
}

async fn raw(session: &Session, id: Uuid) -> Result<Output, Failure> {
    let rows = session.read().await?.query(RAW, &[&id]).await?;
    let row = rows.first().ok_or_else(|| not_found(id))?;
    Ok(Output::raw(row.try_get("raw")?))
}
