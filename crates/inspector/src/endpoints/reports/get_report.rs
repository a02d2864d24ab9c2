//! `GET /inspector/v1/reports/{id}`: a report while it is edited, with its pending measurements.

use std::collections::BTreeMap;

use codegen_runtime::ExactNumber;
use data_encoding::HEXLOWER;
use partner_api::plausible;
use partner_api::storage::LINK_LIFETIME;
use partner_api_domain::axle::Computed;
use partner_api_domain::{score, template, threshold};
use partner_api_store::connection::Connection;
use partner_api_store::measurements::{self, PendingMeasurement};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::link_failed;
use crate::caller::{Caller, Inspector};
use crate::context::Context;
use crate::db::report::{self, Answer, Writer};
use crate::error::{self, ApiError};
use crate::generated::responses::GetReportResponse;
use crate::generated::types::{
    Assessment, Bounds, ComputedValue, EarlierAnswer, Form, GetReportPath, Photo, PhotoKind, PlateCorrection, Point,
    PointStatus, Pricing, PublishedPdf, ReplacedAnswer, Report, ReportData, SettledMeasurement, Transition, Vehicle,
    WaitingMeasurement, WaitingValue,
};
use crate::rules::moves::Status;

/// Returns the report with its forms, photos and transitions, and with the pending measurements for its plate at its branch.
///
/// # Errors
/// `not_found` if the report does not exist at the inspector's branches.
pub async fn handle(context: &Context, caller: &Caller, path: GetReportPath) -> Result<GetReportResponse, ApiError> {
    let inspector = caller.inspector()?;
    let client = context.db(caller).await?;
    Ok(GetReportResponse::Ok(read(context, &client, inspector, path.id).await?))
}

/// Reads a report as the API returns it.
pub(in crate::endpoints) async fn read(
    context: &Context,
    client: &Connection,
    inspector: &Inspector,
    id: Uuid,
) -> Result<Report, ApiError> {
    let report = report::find(client, inspector, id).await?;
    let report = report.ok_or_else(error::no_such_report)?;
    // Shown in all other statuses, even if the report cannot be edited, so that an inspector can discard them.
    let waiting = match report.status {
        Status::Archived | Status::Cancelled | Status::Discarded => Vec::new(),
        _ => measurements::pending(client, inspector.organization_id(), id, plausible::documented).await?,
    };
    let today = report::numbers(&report);
    let waiting = waiting
        .into_iter()
        .map(|one| waiting_measurement(one, &today, &report.axle_limits.current))
        .collect();
    let is_published = report.published_at.is_some();
    let mut may_become = report.status.may_become(report.before_request());
    if !report.is_untouched() {
        may_become.retain(|status| *status != Status::Discarded);
    }
    if !report.review.allows(report.status, inspector) {
        may_become.retain(|status| *status != Status::Published);
    }
    let mut photos = Vec::with_capacity(report.photos.len());
    for photo in &report.photos {
        photos.push(linked(context, photo).await?);
    }
    Ok(Report {
        data: ReportData {
            id: report.id,
            version: report.version,
            report_number: report.report_number.clone(),
            status: report.status.into(),
            may_become: may_become.into_iter().map(Status::into).collect(),
            needs_review: report.review.is_needed,
            branch_id: report.branch_id,
            plate: report.plate.clone(),
            vehicle: vehicle(&report.vehicle),
            mileage_km: report.mileage_km,
            summary: report.summary.clone(),
            recommendation: report.recommendation.clone(),
            pricing: pricing(&report.pricing),
            forms: report.forms.iter().map(|one| form(one, &report, &today)).collect(),
            photo_kinds: report.photo_kinds.iter().map(photo_kind).collect(),
            photos,
            waiting,
            settled: report.settled.iter().map(settled_measurement).collect(),
            transitions: report.transitions.iter().map(transition).collect(),
            plate_corrections: report.plate_corrections.iter().map(plate_correction).collect(),
            published_pdfs: report.pdfs.iter().map(|pdf| published_pdf(pdf, &report)).collect(),
            assessment: assessment(report.assessment()),
            overall_score: is_published.then_some(report.overall_score),
            public_slug: report.public_slug.clone(),
            pdf_sha256: report.pdf_sha256.as_deref().map(|digest| HEXLOWER.encode(digest)),
            created_at: report.created_at,
            published_at: report.published_at,
        },
    })
}

async fn linked(context: &Context, photo: &report::Photo) -> Result<Photo, ApiError> {
    let link = async |key: &str| {
        let storage = &context.service().storage;
        let link = storage.presign(key, LINK_LIFETIME).await;
        link.map(|link| link.url).map_err(|error| link_failed(&error))
    };
    Ok(Photo {
        id: photo.id,
        kind: photo.kind.clone(),
        point_code: photo.point_code.clone(),
        caption: photo.caption.clone(),
        url: link(&photo.object_key).await?,
        thumb_url: link(&photo.thumb_object_key).await?,
        is_shown: photo.is_shown,
        may_be_shown: !template::NEVER_SHOWN.contains(&photo.kind.as_str()),
    })
}

fn vehicle(vehicle: &report::Vehicle) -> Vehicle {
    Vehicle {
        plate: vehicle.plate.clone(),
        vin: vehicle.vin.clone(),
        brand: vehicle.brand.clone(),
        model: vehicle.model.clone(),
        year: vehicle.year,
        r#type: vehicle.body_type.clone(),
        fuel_type: vehicle.fuel_type.clone(),
        transmission: vehicle.transmission.clone(),
        color: vehicle.color.clone(),
        factory_power_hp: vehicle.factory_power_hp,
    }
}

fn pricing(pricing: &report::Pricing) -> Pricing {
    Pricing {
        package_name: pricing.package_name.clone(),
        base_price: pricing.base_price,
        discount_percent: pricing.discount_percent,
        discount_name: pricing.discount_name.clone(),
        final_price: pricing.final_price,
        payment_type: pricing.payment_type.clone(),
        currency: pricing.currency.clone(),
    }
}

fn form(form: &report::Form, report: &report::Report, today: &BTreeMap<&str, Decimal>) -> Form {
    let computed = match form.is_test_line {
        true => report::computed(today, &report.axle_limits.written),
        false => Vec::new(),
    };
    Form {
        computed: computed_values(computed),
        template_code: form.template_code.clone(),
        name: form.name.clone(),
        is_test_line: form.is_test_line,
        general_note: form.general_note.clone(),
        statuses: form.statuses.iter().map(point_status).collect(),
        points: form.points.iter().map(point).collect(),
    }
}

fn point_status(status: &template::Status) -> PointStatus {
    PointStatus {
        code: status.code.clone(),
        label: status.label.clone(),
        label_en: status.label_en.clone(),
        severity: status.severity.clone(),
        is_common: status.is_common,
        is_inspected: score::is_inspected(&status.code, &status.severity),
    }
}

fn photo_kind(kind: &template::PhotoKind) -> PhotoKind {
    PhotoKind {
        code: kind.code.clone(),
        label: kind.label.clone(),
        label_en: kind.label_en.clone(),
        expected: kind.expected.into(),
    }
}

fn computed_values(computed: Vec<Computed>) -> Option<Vec<ComputedValue>> {
    let values = computed.into_iter().map(|one| ComputedValue {
        unit: one.unit().to_owned(),
        code: one.code,
        value: one.value.into(),
        status_code: one.status.map(|status| status.code().to_owned()),
    });
    Some(values.collect::<Vec<_>>()).filter(|values| !values.is_empty())
}

fn point(point: &report::Point) -> Point {
    let answer = point.answer.as_ref();
    Point {
        code: point.code.clone(),
        name: point.name.clone(),
        unit: point.unit.clone(),
        status_code: answer.map(|answer| answer.status_code.clone()),
        status_label: answer.map(|answer| answer.status_label.clone()),
        severity: answer.map(|answer| answer.severity.clone()),
        numeric_value: answer.and_then(|answer| answer.numeric_value).map(ExactNumber::from),
        note: answer.map(|answer| answer.note.clone()),
        written_by: answer.map(writer),
        written_at: answer.map(|answer| answer.written_at),
        is_required: point.is_required,
        is_inspected: point.is_inspected(),
        bounds: point.bounds.map(bounds),
        replaced: point.replaced.as_ref().map(replaced),
        place: point.place.clone(),
        earlier: match point.earlier.is_empty() {
            true => None,
            false => Some(point.earlier.iter().map(earlier).collect()),
        },
    }
}

fn earlier(earlier: &report::EarlierAnswer) -> EarlierAnswer {
    let answer = &earlier.answer;
    EarlierAnswer {
        status_code: answer.status_code.clone(),
        status_label: answer.status_label.clone(),
        severity: answer.severity.clone(),
        numeric_value: answer.numeric_value.map(ExactNumber::from),
        note: answer.note.clone(),
        written_by: writer(answer),
        written_at: answer.written_at,
        replaced_at: earlier.replaced_at,
    }
}

fn writer(answer: &Answer) -> String {
    match &answer.written_by {
        Writer::Person(name) => name.clone(),
        Writer::Device(Some(serial)) => format!("device {serial}"),
        Writer::Device(None) => "device".to_owned(),
    }
}

fn replaced(answer: &report::Replaced) -> ReplacedAnswer {
    ReplacedAnswer {
        status_code: answer.status_code.clone(),
        numeric_value: answer.numeric_value.map(ExactNumber::from),
        written_by: answer.written_by.clone(),
        written_at: answer.written_at,
    }
}

fn published_pdf(pdf: &report::Pdf, report: &report::Report) -> PublishedPdf {
    PublishedPdf {
        sha256: HEXLOWER.encode(&pdf.sha256),
        published_at: pdf.published_at,
        revised_for: report.revision_of(pdf).map(str::to_owned),
    }
}

fn assessment(assessment: score::Assessment) -> Assessment {
    let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    Assessment {
        points: count(assessment.points),
        inspected: count(assessment.inspected),
        score: assessment.score(),
    }
}

fn plate_correction(correction: &report::PlateCorrection) -> PlateCorrection {
    PlateCorrection {
        from: correction.from.clone(),
        to: correction.to.clone(),
        by: correction.by.clone(),
        at: correction.at,
    }
}

fn settled_measurement(measurement: &report::Settled) -> SettledMeasurement {
    SettledMeasurement {
        id: measurement.id,
        device_serial: measurement.device_serial.clone(),
        measured_at: measurement.measured_at,
        settled_at: measurement.settled_at,
        settled_by: measurement.settled_by.clone(),
        is_applied: measurement.is_applied,
    }
}

fn bounds(bounds: threshold::Bounds) -> Bounds {
    Bounds {
        good_min: bounds.good_min.map(ExactNumber::from),
        good_max: bounds.good_max.map(ExactNumber::from),
        borderline_min: bounds.borderline_min.map(ExactNumber::from),
        borderline_max: bounds.borderline_max.map(ExactNumber::from),
    }
}

fn transition(transition: &report::Transition) -> Transition {
    Transition {
        from: transition.from.map(|status| status.as_str().to_owned()),
        to: transition.to.into(),
        by: transition.by.clone(),
        reason: transition.reason.clone(),
        at: transition.at,
    }
}

fn waiting_measurement(
    waiting: PendingMeasurement,
    today: &BTreeMap<&str, Decimal>,
    limits: &BTreeMap<String, threshold::Bounds>,
) -> WaitingMeasurement {
    let mut after = today.clone();
    let written = waiting.points.iter().filter(|point| point.outcome.is_ok());
    after.extend(written.map(|point| (point.code.as_str(), point.value)));
    let computed = report::computed(&after, limits);
    let values = waiting.points.into_iter().map(|point| WaitingValue {
        value: point.value.into(),
        would_be: point.outcome.ok().map(|status| status.code().to_owned()),
        skipped_for: point.outcome.err().map(|reason| reason.as_str().to_owned()),
        today: today.get(point.code.as_str()).copied().map(ExactNumber::from),
        code: point.code,
    });
    WaitingMeasurement {
        id: waiting.id,
        device_serial: waiting.device_serial,
        partner: Some(waiting.partner),
        received_at: waiting.received_at,
        measured_at: waiting.measured_at,
        values: values.collect(),
        computed: computed_values(computed),
    }
}
