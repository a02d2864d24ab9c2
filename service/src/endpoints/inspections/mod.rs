//! Inspection reports: the list, and the parts of one report.

pub mod get_inspection;
pub mod get_inspection_forms;
pub mod get_inspection_pdf;
pub mod get_inspection_photos;
pub mod list_inspections;

use partner_api_domain::etag::ETag;
use partner_api_domain::privacy::PiiMode;
use partner_api_store::inspections::{self, Status};
use serde::Serialize;

use crate::error::ApiError;
use crate::generated::types::{self, InspectionStatus};
use crate::request_log::Reason;
use crate::storage::StorageError;

/// Returns the error for a report that does not exist, is not granted, or is not visible to partners.
fn not_found() -> ApiError {
    ApiError::not_found("no such inspection")
}

/// Returns the error for an object that cannot be read from the storage, and logs the cause.
fn storage_failed(error: &StorageError) -> ApiError {
    match error {
        StorageError::Store(_) => {
            tracing::warn!(%error, "the object storage is unavailable");
            ApiError::unavailable(Reason::StorageUnavailable)
        }
        _ => {
            tracing::error!(%error, "failed to read a stored object");
            ApiError::internal().with_reason(Reason::StorageFailed)
        }
    }
}

/// Returns the ETag of a response's body (REP-16).
fn tag<T: Serialize>(body: &T) -> Result<ETag, ApiError> {
    ETag::of_json(body).map_err(|error| {
        tracing::error!(%error, "failed to serialize a response");
        ApiError::internal()
    })
}

/// Converts a vehicle, masked by its organization's privacy mode.
fn vehicle(vehicle: inspections::Vehicle, mode: PiiMode) -> types::Vehicle {
    types::Vehicle {
        plate_masked: mode.plate(&vehicle.plate),
        vin_masked: mode.vin(&vehicle.vin),
        brand: vehicle.brand,
        model: vehicle.model,
        year: vehicle.year,
        r#type: vehicle.body_type,
        fuel_type: vehicle.fuel_type,
        transmission: vehicle.transmission,
        color: vehicle.color,
        mileage_km: vehicle.mileage_km,
    }
}

impl From<Status> for InspectionStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Published => Self::Published,
            Status::Archived => Self::Archived,
            Status::Cancelled => Self::Cancelled,
        }
    }
}

impl From<InspectionStatus> for Status {
    fn from(status: InspectionStatus) -> Self {
        match status {
            InspectionStatus::Published => Self::Published,
            InspectionStatus::Archived => Self::Archived,
            InspectionStatus::Cancelled => Self::Cancelled,
        }
    }
}

impl From<PiiMode> for types::PiiMode {
    fn from(mode: PiiMode) -> Self {
        match mode {
            PiiMode::None => Self::None,
            PiiMode::Masked => Self::Masked,
            PiiMode::Full => Self::Full,
        }
    }
}
