//! Reads a report.

use std::collections::BTreeMap;

use partner_api_domain::{pdf_key, template};
use partner_api_store::connection::Connection;
use partner_api_store::statement;
use partner_api_store::{DbError, thresholds};
use tokio_postgres::Row;
use uuid::Uuid;

use super::{
    Answer, AxleLimits, EarlierAnswer, Form, Pdf, Photo, PlateCorrection, Point, Pricing, Replaced, Report, Settled,
    Transition, Vehicle, Writer, review, review_of, version,
};
use crate::caller::Inspector;
use crate::db::listed;

statement! {
    /// The report `$1` if it is at one of the branches `$2` of the organization `$3`.
    HEAD = concat!("\
SELECT i.id, ", version!("$3"), " AS version, i.report_number, i.status, i.branch_id, i.plate, i.snapshot_mileage_km, i.summary,
       i.recommendation, i.package_name, i.base_price, i.discount_percent, i.discount_name, i.final_price, i.payment_type,
       i.currency, i.overall_score, i.public_slug, i.created_at, i.published_at,
       v.plate AS vehicle_plate, i.snapshot_vin, v.brand, v.model, v.year, v.type, v.fuel_type, v.transmission, v.color,
       v.factory_power_hp, d.sha256 AS pdf_sha256, d.object_key AS pdf_key,
       CASE WHEN i.status = 'PUBLISHED' THEN report_fingerprint(i.id) END AS fingerprint, ", review!("$3"), "
FROM inspections i JOIN organizations o ON o.id = i.organization_id JOIN vehicles v ON v.id = i.vehicle_id
LEFT JOIN published_pdfs d
       ON d.object_key = i.pdf_object_key AND d.organization_id = i.organization_id AND i.status = 'PUBLISHED'
WHERE i.id = $1 AND i.organization_id = $3 AND i.branch_id = ANY ($2::uuid[])");

    /// A row for each point of each template of the organization `$2` of the report `$1`, with its answer if it has one.
    FORMS = "\
SELECT t.code AS template_code, t.name AS template_name, t.is_test_line, f.general_note,
       p.id AS point_id, p.code, p.name, p.unit, p.place,
       CASE WHEN row_number() OVER (PARTITION BY t.id ORDER BY p.position, p.code) = 1 THEN t.statuses END AS statuses,
       coalesce(p.is_required, t.is_required) AS is_required,
       r.status_code AS replaced_status, r.numeric_value AS replaced_number, r.written_by AS replaced_writer,
       r.written_at AS replaced_time,
       a.status_code, a.status_label, a.severity, a.numeric_value, a.note, a.written_by, a.written_at,
       m.id AS device_measurement, m.device_serial,
       h.point_code IS NOT NULL AS has_bounds, h.good_min, h.good_max, h.borderline_min, h.borderline_max
FROM inspections i
JOIN form_templates t ON t.organization_id = i.organization_id
JOIN form_template_points p ON p.template_id = t.id AND p.organization_id = t.organization_id
LEFT JOIN thresholds h ON t.is_test_line AND h.organization_id = i.organization_id AND h.point_code = p.code
LEFT JOIN inspection_forms f ON f.inspection_id = i.id AND f.template_id = t.id AND f.organization_id = i.organization_id
LEFT JOIN inspection_form_answers a
       ON a.inspection_form_id = f.id AND a.point_id = p.id AND a.organization_id = f.organization_id
LEFT JOIN measurements m ON m.id = a.measurement_id AND m.organization_id = a.organization_id
-- An inspector's answer that a device replaced without being asked.
LEFT JOIN LATERAL (
    SELECT x.status_code, x.numeric_value, x.written_by, x.written_at FROM inspection_form_answer_history x
    WHERE x.inspection_form_id = f.id AND x.point_id = p.id AND x.organization_id = $2 AND NOT x.by_device
      -- A cleared answer was not replaced by the device.
      AND x.replaced_at >= (
        SELECT min(w.settled_at) FROM measurements w WHERE w.inspection_id = $1 AND w.organization_id = $2 AND w.settled_by IS NULL)
    ORDER BY x.replaced_at DESC, x.ordinal DESC LIMIT 1
) AS r ON m.id IS NOT NULL AND m.settled_by IS NULL
WHERE i.id = $1 AND i.organization_id = $2
ORDER BY t.position, t.code, p.position, p.code";

    /// The last 20 replaced and removed answers of each point of the report `$1` of the organization `$2`, the last one first.
    EARLIER = "\
SELECT e.* FROM (
    SELECT h.point_id, h.status_code, h.status_label, h.severity, h.numeric_value, h.note, h.written_by, h.written_at, h.replaced_at,
           h.ordinal, h.measurement_id AS device_measurement, m.device_serial,
           row_number() OVER (PARTITION BY h.point_id ORDER BY h.replaced_at DESC, h.ordinal DESC) AS place
    FROM inspection_forms f
    JOIN inspection_form_answer_history h ON h.inspection_form_id = f.id AND h.organization_id = f.organization_id
    LEFT JOIN measurements m ON m.id = h.measurement_id AND m.organization_id = h.organization_id
    WHERE f.inspection_id = $1 AND f.organization_id = $2) AS e
WHERE e.place <= 20 ORDER BY e.point_id, e.place";

    /// The kinds of photos of each template of the organization `$1`.
    PHOTO_KINDS = "SELECT photo_kinds FROM form_templates WHERE organization_id = $1 ORDER BY position, code";

    /// The photos of the report `$1` of the organization `$2`, in order.
    PHOTOS = "\
SELECT id, kind, point_code, caption, object_key, coalesce(thumb_object_key, object_key) AS thumb_object_key,
       show_in_report AND kind NOT IN ('REGISTRATION', 'OTOSICIL_PDF') AS is_shown
FROM photos WHERE inspection_id = $1 AND organization_id = $2 ORDER BY position, id";

    /// The published PDFs of the report `$1` of the organization `$2`, the oldest first.
    PDFS = "\
SELECT sha256, published_at FROM published_pdfs WHERE inspection_id = $1 AND organization_id = $2
ORDER BY published_at, object_key";

    /// The last 20 measurements that were applied to the report `$1` of the organization `$2`, or discarded for its plate at its
    /// branch since it was opened.
    SETTLED = "\
SELECT m.id, m.device_serial, m.measured_at, m.settled_at, m.settled_by, true AS is_applied
FROM measurements m WHERE m.inspection_id = $1 AND m.organization_id = $2 AND m.status = 'APPLIED'
UNION ALL
SELECT m.id, m.device_serial, m.measured_at, m.settled_at, m.settled_by, false
FROM inspections i
JOIN measurements m ON m.branch_id = i.branch_id AND m.organization_id = i.organization_id AND m.plate = i.plate
    AND m.status = 'DISCARDED' AND m.settled_at >= i.created_at
WHERE i.id = $1 AND i.organization_id = $2
ORDER BY settled_at DESC, id LIMIT 20";

    /// The transitions of the report `$1` of the organization `$2`, the oldest first.
    TRANSITIONS = "\
SELECT from_status, to_status, inspector_name, reason, occurred_at FROM inspection_transitions
WHERE inspection_id = $1 AND organization_id = $2 ORDER BY number";

    /// The corrections of the plate of the report `$1` of the organization `$2`, the oldest first.
    PLATE_CORRECTIONS = "\
SELECT old_plate, new_plate, inspector_name, corrected_at FROM plate_corrections
WHERE inspection_id = $1 AND organization_id = $2 ORDER BY number";

    /// The limits of sums and differences for the report `$1` of the organization `$2`: those that applied when the last value of
    /// its test line was written, and the current ones. A code without good bounds has no limits.
    AXLE_LIMITS = "\
SELECT v.is_current, h.point_code, h.good_min, h.good_max, h.borderline_min, h.borderline_max
FROM (VALUES (false), (true)) AS v (is_current)
CROSS JOIN LATERAL (
    SELECT DISTINCT ON (x.point_code) x.* FROM threshold_versions x
    WHERE x.organization_id = $2 AND (x.point_code LIKE '%\\_SUM' OR x.point_code LIKE '%\\_DIFFERENCE')
      AND (v.is_current OR x.valid_from <= (
        SELECT max(a.written_at) FROM inspection_forms f
        JOIN form_templates t ON t.id = f.template_id AND t.organization_id = f.organization_id AND t.is_test_line
        JOIN inspection_form_answers a ON a.inspection_form_id = f.id AND a.organization_id = f.organization_id
        WHERE f.inspection_id = $1 AND f.organization_id = $2))
    ORDER BY x.point_code, x.valid_from DESC) AS h
WHERE h.good_min IS NOT NULL OR h.good_max IS NOT NULL";
}

/// Returns the report, if it is at one of the inspector's branches.
///
/// The version is read before the content. A change in between is therefore detected when the content is written back.
///
/// # Errors
/// The database failed.
pub async fn find(client: &Connection, inspector: &Inspector, id: Uuid) -> Result<Option<Report>, DbError> {
    let (branches, organization) = (inspector.branch_ids(), inspector.organization_id());
    let Some(head) = client.query_opt(HEAD, &[&id, &branches, &organization]).await? else {
        return Ok(None);
    };
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&id, &organization];
    let (forms, earlier, kinds, photos, transitions, corrections, pdfs, settled, limits) = futures::join!(
        client.query(FORMS, &parameters),
        client.query(EARLIER, &parameters),
        client.query(PHOTO_KINDS, &parameters[1..]),
        client.query(PHOTOS, &parameters),
        client.query(TRANSITIONS, &parameters),
        client.query(PLATE_CORRECTIONS, &parameters),
        client.query(PDFS, &parameters),
        client.query(SETTLED, &parameters),
        client.query(AXLE_LIMITS, &parameters),
    );
    let mut photo_kinds = Vec::new();
    for row in &kinds? {
        photo_kinds.extend(listed::<template::PhotoKind>(row, "photo_kinds")?);
    }
    let pdfs: Result<_, DbError> = pdfs?.iter().map(pdf).collect();
    let settled: Result<_, DbError> = settled?.iter().map(settled_measurement).collect();
    let photos: Result<_, DbError> = photos?.iter().map(photo).collect();
    let transitions: Result<_, DbError> = transitions?.iter().map(transition).collect();
    let corrections: Result<_, DbError> = corrections?.iter().map(plate_correction).collect();
    Ok(Some(Report {
        id: head.try_get("id")?,
        version: head.try_get("version")?,
        report_number: head.try_get("report_number")?,
        status: head.try_get("status")?,
        review: review_of(&head)?,
        branch_id: head.try_get("branch_id")?,
        plate: head.try_get("plate")?,
        mileage_km: head.try_get("snapshot_mileage_km")?,
        summary: head.try_get("summary")?,
        recommendation: head.try_get("recommendation")?,
        pricing: Pricing {
            package_name: head.try_get("package_name")?,
            base_price: head.try_get("base_price")?,
            discount_percent: head.try_get("discount_percent")?,
            discount_name: head.try_get("discount_name")?,
            final_price: head.try_get("final_price")?,
            payment_type: head.try_get("payment_type")?,
            currency: head.try_get("currency")?,
        },
        overall_score: head.try_get("overall_score")?,
        public_slug: head.try_get("public_slug")?,
        pdf_sha256: current_pdf(&head, id)?,
        created_at: head.try_get("created_at")?,
        published_at: head.try_get("published_at")?,
        vehicle: Vehicle {
            plate: head.try_get("vehicle_plate")?,
            vin: head.try_get("snapshot_vin")?,
            brand: head.try_get("brand")?,
            model: head.try_get("model")?,
            year: head.try_get("year")?,
            body_type: head.try_get("type")?,
            fuel_type: head.try_get("fuel_type")?,
            transmission: head.try_get("transmission")?,
            color: head.try_get("color")?,
            factory_power_hp: head.try_get("factory_power_hp")?,
        },
        forms: grouped(&forms?, &earlier?)?,
        photo_kinds: template::merged(photo_kinds),
        photos: photos?,
        transitions: transitions?,
        plate_corrections: corrections?,
        pdfs: pdfs?,
        settled: settled?,
        axle_limits: axle_limits(&limits?)?,
    }))
}

fn axle_limits(rows: &[Row]) -> Result<AxleLimits, DbError> {
    let mut limits = AxleLimits::default();
    for row in rows {
        let of: &mut BTreeMap<_, _> = match row.try_get("is_current")? {
            true => &mut limits.current,
            false => &mut limits.written,
        };
        of.insert(row.try_get("point_code")?, thresholds::bounds(row)?);
    }
    Ok(limits)
}

/// Groups rows, which are sorted by form, into forms.
fn grouped(rows: &[Row], earlier: &[Row]) -> Result<Vec<Form>, DbError> {
    let mut earlier = earlier_answers(earlier)?;
    let mut forms: Vec<Form> = Vec::new();
    for row in rows {
        let template_code: String = row.try_get("template_code")?;
        if forms.last().is_none_or(|form| form.template_code != template_code) {
            let is_test_line = row.try_get("is_test_line")?;
            forms.push(Form {
                template_code,
                name: row.try_get("template_name")?,
                is_test_line,
                // Only the first row of a form has them.
                statuses: template::statuses(is_test_line, listed(row, "statuses")?),
                general_note: row.try_get::<_, Option<String>>("general_note")?.unwrap_or_default(),
                points: Vec::new(),
            });
        }
        if let Some(form) = forms.last_mut() {
            let id: Uuid = row.try_get("point_id")?;
            form.points.push(point(row, earlier.remove(&id).unwrap_or_default())?);
        }
    }
    Ok(forms)
}

/// Groups earlier answers by the IDs of their points.
fn earlier_answers(rows: &[Row]) -> Result<BTreeMap<Uuid, Vec<EarlierAnswer>>, DbError> {
    let mut answers: BTreeMap<Uuid, Vec<EarlierAnswer>> = BTreeMap::new();
    for row in rows {
        let Some(answer) = answer(row)? else { continue };
        answers
            .entry(row.try_get("point_id")?)
            .or_default()
            .push(EarlierAnswer {
                answer,
                replaced_at: row.try_get("replaced_at")?,
            });
    }
    Ok(answers)
}

/// Returns the answer of a row; `None` for a point without one.
fn answer(row: &Row) -> Result<Option<Answer>, DbError> {
    let Some(status_code) = row.try_get("status_code")? else {
        return Ok(None);
    };
    Ok(Some(Answer {
        status_code,
        status_label: row.try_get("status_label")?,
        severity: row.try_get("severity")?,
        numeric_value: row.try_get("numeric_value")?,
        note: row.try_get("note")?,
        written_by: match row.try_get::<_, Option<Uuid>>("device_measurement")? {
            Some(_) => Writer::Device(row.try_get("device_serial")?),
            None => Writer::Person(row.try_get("written_by")?),
        },
        written_at: row.try_get("written_at")?,
    }))
}

fn point(row: &Row, earlier: Vec<EarlierAnswer>) -> Result<Point, DbError> {
    Ok(Point {
        code: row.try_get("code")?,
        name: row.try_get("name")?,
        unit: row.try_get("unit")?,
        answer: answer(row)?,
        place: row.try_get("place")?,
        earlier,
        bounds: match row.try_get("has_bounds")? {
            true => Some(thresholds::bounds(row)?),
            false => None,
        },
        is_required: row.try_get("is_required")?,
        replaced: replaced(row)?,
    })
}

/// Returns the SHA-256 of a published report's PDF, unless its data has changed since.
fn current_pdf(head: &Row, id: Uuid) -> Result<Option<Vec<u8>>, DbError> {
    let (key, fingerprint): (Option<String>, Option<String>) = (head.try_get("pdf_key")?, head.try_get("fingerprint")?);
    let is_current = key
        .zip(fingerprint)
        .is_some_and(|(key, fingerprint)| pdf_key::is_current(&key, id, &fingerprint));
    Ok(head.try_get::<_, Option<Vec<u8>>>("pdf_sha256")?.filter(|_| is_current))
}

fn pdf(row: &Row) -> Result<Pdf, DbError> {
    Ok(Pdf {
        sha256: row.try_get("sha256")?,
        published_at: row.try_get("published_at")?,
    })
}

fn settled_measurement(row: &Row) -> Result<Settled, DbError> {
    Ok(Settled {
        id: row.try_get("id")?,
        device_serial: row.try_get("device_serial")?,
        measured_at: row.try_get("measured_at")?,
        settled_at: row.try_get("settled_at")?,
        settled_by: row.try_get("settled_by")?,
        is_applied: row.try_get("is_applied")?,
    })
}

fn replaced(row: &Row) -> Result<Option<Replaced>, DbError> {
    Ok(match row.try_get::<_, Option<String>>("replaced_status")? {
        None => None,
        Some(status_code) => Some(Replaced {
            status_code,
            numeric_value: row.try_get("replaced_number")?,
            written_by: row.try_get("replaced_writer")?,
            written_at: row.try_get("replaced_time")?,
        }),
    })
}

fn photo(row: &Row) -> Result<Photo, DbError> {
    Ok(Photo {
        id: row.try_get("id")?,
        kind: row.try_get("kind")?,
        point_code: row.try_get("point_code")?,
        caption: row.try_get("caption")?,
        object_key: row.try_get("object_key")?,
        thumb_object_key: row.try_get("thumb_object_key")?,
        is_shown: row.try_get("is_shown")?,
    })
}

fn transition(row: &Row) -> Result<Transition, DbError> {
    Ok(Transition {
        from: row.try_get("from_status")?,
        to: row.try_get("to_status")?,
        by: row.try_get("inspector_name")?,
        reason: row.try_get("reason")?,
        at: row.try_get("occurred_at")?,
    })
}

fn plate_correction(row: &Row) -> Result<PlateCorrection, DbError> {
    Ok(PlateCorrection {
        from: row.try_get("old_plate")?,
        to: row.try_get("new_plate")?,
        by: row.try_get("inspector_name")?,
        at: row.try_get("corrected_at")?,
    })
}
