//! Publishing a report: renders its PDF and keeps it in the object storage, from where it is streamed (decisions: PDF).
//!
//! The contract calls the PDF "the same report as shown to the customer", and the decisions call `NONE` "no personal data".
//! Both hold only if the stored document is no richer than the JSON beside it: one document serves every partner that is
//! granted the report, and a partner of a `NONE` or `MASKED` organisation must not find in the PDF what the detail hides.
//! So plate, VIN and free texts pass the organisation's privacy mode before they are drawn, and hidden photos stay out.

use std::time::Duration;

use bytes::Bytes;
use deadpool_postgres::Pool;
use futures::TryStreamExt as _;
use report_pdf::{Form, Photo, Point, Pricing, RenderError, Renderer, Report, Vehicle};
use thiserror::Error;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::db::connection::Connection;
use crate::db::{self, DbError};
use crate::rules::privacy::PiiMode;
use crate::statement;
use crate::storage::{Storage, StorageError};

/// The most photos a PDF shows; the API has them all.
pub const PHOTOS_MAX: usize = 6;
/// How long publishing waits for the database.
const PATIENCE: Duration = Duration::from_secs(30);
/// Media type of a rendered report.
pub const MIME_TYPE: &str = "application/pdf";

statement! {
    /// All that is printed of a published report, but for its forms and photos.
    REPORT = "SELECT i.report_number, o.name AS organization_name, o.pii_mode, b.name AS branch_name, b.city, \
    i.published_at, i.created_at, v.plate, i.snapshot_vin, v.brand, v.model, v.year, v.type, v.fuel_type, \
    v.transmission, v.color, v.mileage_km, i.snapshot_mileage_km, i.package_name, i.base_price, i.discount_percent, \
    i.discount_name, i.final_price, i.payment_type, i.currency, i.overall_score, i.summary, i.recommendation \
    FROM inspections i JOIN organizations o ON o.id = i.organization_id JOIN branches b ON b.id = i.branch_id \
    JOIN vehicles v ON v.id = i.vehicle_id WHERE i.id = $1::uuid AND i.status = 'PUBLISHED'";

    /// The codes of its test-line forms.
    TEST_LINE_CODES = "SELECT t.code FROM inspection_forms f JOIN form_templates t ON t.id = f.template_id \
    WHERE f.inspection_id = $1::uuid AND t.is_test_line";

    /// Names the object that holds its PDF.
    SET_KEY = "UPDATE inspections SET pdf_object_key = $2 WHERE id = $1::uuid";
}

/// Why a report has no PDF.
#[derive(Debug, Error)]
pub enum PublishError {
    /// There is no such report, or it is not published.
    #[error("inspection {0} is not a published report")]
    NotPublished(Uuid),
    /// The database cannot be reached or refuses.
    #[error(transparent)]
    Db(#[from] DbError),
    /// A photo cannot be read, or the PDF cannot be stored.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The report cannot be rendered.
    #[error("inspection {id}: {source}")]
    Render {
        /// The report.
        id: Uuid,
        /// What the renderer says.
        source: RenderError,
    },
    /// The rendering thread was lost.
    #[error("rendering was interrupted: {0}")]
    Interrupted(#[from] tokio::task::JoinError),
}

impl From<tokio_postgres::Error> for PublishError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Db(error.into())
    }
}

/// Key of a report's PDF in the object storage.
#[must_use]
pub fn object_key(inspection: Uuid) -> String {
    format!("reports/{inspection}.pdf")
}

/// Renders the PDF of a published report, stores it and notes its key in the report. Doing it again replaces the document.
///
/// # Errors
/// See [`PublishError`]. The key is noted only when the document is stored.
pub async fn publish_pdf(
    pool: &Pool,
    storage: &Storage,
    renderer: &Renderer,
    inspection: Uuid,
) -> Result<String, PublishError> {
    let (mut report, photos) = {
        let client = Connection::take(pool, PATIENCE).await?;
        load(&client, inspection).await?
    };
    // The connection is back in the pool while photos are read and pages drawn.
    for (photo, key) in report.photos.iter_mut().zip(photos) {
        photo.jpeg = read(storage, &key).await?;
    }
    let renderer = renderer.clone();
    let pdf = tokio::task::spawn_blocking(move || renderer.render(&report))
        .await?
        .map_err(|source| PublishError::Render { id: inspection, source })?;
    let key = object_key(inspection);
    storage.put(&key, Bytes::from(pdf), MIME_TYPE).await?;
    let client = Connection::take(pool, PATIENCE).await?;
    client.execute(SET_KEY, &[&inspection, &key]).await?;
    Ok(key)
}

/// An object's bytes; none for one that is lost, of which the page shows a placeholder.
async fn read(storage: &Storage, key: &str) -> Result<Vec<u8>, StorageError> {
    let object = match storage.stream(key).await {
        Ok(object) => object,
        Err(StorageError::NotFound(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let parts: Vec<Bytes> = object.stream.try_collect().await?;
    Ok(parts.concat())
}

/// The report as it is printed, and the keys of its photos, whose bytes are not read yet.
pub(crate) async fn load(client: &Connection, inspection: Uuid) -> Result<(Report, Vec<String>), PublishError> {
    let row = client
        .query_opt(REPORT, &[&inspection])
        .await?
        .ok_or(PublishError::NotPublished(inspection))?;
    let mode: String = row.try_get("pii_mode")?;
    let mode = PiiMode::from_name(&mode).ok_or_else(|| DbError::Data {
        table: "organizations",
        detail: "an unknown pii_mode".to_owned(),
    })?;
    let mut report = head(&row, mode)?;
    let test_line: Vec<String> = client
        .query(TEST_LINE_CODES, &[&inspection])
        .await?
        .iter()
        .map(|row| row.try_get(0))
        .collect::<Result<_, _>>()?;
    report.forms = db::forms::list(client, inspection)
        .await?
        .into_iter()
        .map(|form| printed_form(form, mode, &test_line))
        .filter(|form| !form.points.is_empty() || !form.general_note.is_empty())
        .collect();
    let mut keys = Vec::new();
    // The list leaves hidden kinds and hidden photos out, as it does for the API.
    let photos = db::photos::list(client, inspection).await?;
    for photo in photos
        .into_iter()
        .filter(|photo| photo.mime_type == "image/jpeg")
        .take(PHOTOS_MAX)
    {
        let caption = photo.caption.map(|caption| mode.text(caption));
        report.photos.push(Photo {
            caption,
            kind: photo.kind,
            jpeg: Vec::new(),
        });
        keys.push(photo.object_key);
    }
    Ok((report, keys))
}

fn head(row: &Row, mode: PiiMode) -> Result<Report, tokio_postgres::Error> {
    Ok(Report {
        report_number: row.try_get("report_number")?,
        organization_name: row.try_get("organization_name")?,
        branch_name: row.try_get("branch_name")?,
        branch_city: row.try_get("city")?,
        published_at: row.try_get("published_at")?,
        created_at: row.try_get("created_at")?,
        status_label: "Yayımlandı".to_owned(),
        vehicle: Vehicle {
            plate: mode.plate(row.try_get("plate")?),
            vin: mode.vin(row.try_get("snapshot_vin")?),
            brand: row.try_get("brand")?,
            model: row.try_get("model")?,
            year: row.try_get("year")?,
            body_type: row.try_get("type")?,
            fuel_type: row.try_get("fuel_type")?,
            transmission: row.try_get("transmission")?,
            color: row.try_get("color")?,
            mileage_km: row.try_get("mileage_km")?,
        },
        snapshot_mileage_km: row.try_get("snapshot_mileage_km")?,
        package_name: row.try_get("package_name")?,
        pricing: Pricing {
            base_price: row.try_get("base_price")?,
            discount_percent: row.try_get("discount_percent")?,
            discount_name: row.try_get("discount_name")?,
            final_price: row.try_get("final_price")?,
            payment_type: row.try_get("payment_type")?,
            currency: row.try_get("currency")?,
        },
        overall_score: row.try_get("overall_score")?,
        summary: mode.text(row.try_get("summary")?),
        recommendation: mode.text(row.try_get("recommendation")?),
        forms: Vec::new(),
        photos: Vec::new(),
        verification_url: None,
    })
}

/// A form with its answered points.
fn printed_form(form: db::forms::Form, mode: PiiMode, test_line: &[String]) -> Form {
    let points = form.points.into_iter().filter_map(|point| {
        let answer = point.answer?;
        Some(Point {
            code: point.code,
            name: point.name,
            status_code: answer.status_code,
            status_label: answer.status_label,
            severity: answer.severity,
            numeric_value: answer.numeric_value,
            unit: point.unit,
            note: mode.text(answer.note),
        })
    });
    Form {
        name: form.name,
        score_category: form.score_category,
        general_note: mode.text(form.general_note),
        points: points.collect(),
        is_test_line: test_line.contains(&form.code),
    }
}
