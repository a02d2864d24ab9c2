//! `GET /api/v1/partner/inspections/{id}`: one report (REP-1, REP-12).

use partner_api_domain::id;
use partner_api_store::inspections::{self, Detail};

use super::{not_found, tag, vehicle};
use crate::caller::Caller;
use crate::context::Context;
use crate::error::ApiError;
use crate::generated::responses::GetInspectionResponse;
use crate::generated::types::{
    BranchRef, GetInspectionHeaders, GetInspectionPath, Inspection, Links, OrganizationRef, Package, Pricing, Snapshot,
};

/// Returns one report, with personal data as the organization's `pii_mode` allows, or 304 if the caller has the current version.
///
/// # Errors
/// `not_found`, always with the same message, for a report that does not exist, is not granted or is not visible to partners;
/// `service_unavailable` if the database is unavailable.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: GetInspectionPath,
    headers: GetInspectionHeaders,
) -> Result<GetInspectionResponse, ApiError> {
    let id = id::parse(&path.id).ok_or_else(not_found)?;
    let client = context.reader(caller).await?;
    let detail = inspections::detail(&client, caller.grants(), id)
        .await?
        .ok_or_else(not_found)?;
    let body = inspection(detail, context.public_url.as_str());
    let tag = tag(&body)?;
    Ok(match tag.matches(headers.if_none_match.as_deref()) {
        true => GetInspectionResponse::Status304 {
            e_tag: tag.into_header(),
        },
        false => GetInspectionResponse::Ok {
            body,
            e_tag: tag.into_header(),
        },
    })
}

fn inspection(detail: Detail, public_url: &str) -> Inspection {
    let mode = detail.pii_mode;
    let address = |part| {
        format!(
            "{}/api/v1/partner/inspections/{}/{part}",
            public_url.trim_end_matches('/'),
            detail.id
        )
    };
    Inspection {
        links: Links {
            forms: address("forms"),
            photos: address("photos"),
            pdf: address("pdf"),
        },
        id: detail.id,
        report_number: detail.report_number,
        organization: OrganizationRef {
            id: detail.organization_id,
            slug: detail.organization_slug,
            name: detail.organization_name,
        },
        branch: BranchRef {
            id: detail.branch_id,
            name: detail.branch_name,
            city: detail.branch_city,
        },
        status: detail.status.into(),
        package: Package {
            name: mode.text(detail.package_name),
            base_price_try: detail.package_base_price,
        },
        pricing: Pricing {
            base_price_try: detail.base_price,
            discount_percent: detail.discount_percent,
            discount_name: mode.text(detail.discount_name),
            final_price_try: detail.final_price,
            payment_type: detail.payment_type,
            currency: detail.currency,
        },
        vehicle: vehicle(detail.vehicle, mode),
        snapshot: Snapshot {
            vin_masked: mode.vin(&detail.snapshot_vin),
            mileage_km: detail.snapshot_mileage_km,
        },
        summary: mode.text(detail.summary),
        recommendation: mode.text(detail.recommendation),
        overall_score: detail.overall_score,
        updated_at: detail.updated_at,
    }
}

#[cfg(test)]
mod tests {
    use partner_api_domain::privacy::PiiMode;
    use partner_api_store::inspections::{Status, Vehicle};
    use rust_decimal::Decimal;
    use uuid::Uuid;

    use super::*;

    fn detail(pii_mode: PiiMode) -> Detail {
        Detail {
            id: Uuid::from_u128(1),
            report_number: "ANK-2026-000482".to_owned(),
            status: Status::Published,
            pii_mode,
            organization_id: Uuid::from_u128(2),
            organization_slug: "anadolu".to_owned(),
            organization_name: "Anadolu".to_owned(),
            branch_id: Uuid::from_u128(3),
            branch_name: "Merkez".to_owned(),
            branch_city: "Ankara".to_owned(),
            package_name: "Tam 0532 123 45 67".to_owned().into(),
            package_base_price: Decimal::new(300_000, 2),
            base_price: Decimal::new(300_000, 2),
            discount_percent: Decimal::new(1000, 2),
            discount_name: "Yaz 0532 123 45 67".to_owned().into(),
            final_price: Decimal::new(270_000, 2),
            payment_type: "CARD".to_owned(),
            currency: "TRY".to_owned(),
            vehicle: Vehicle {
                plate: "34ABC123".to_owned().into(),
                vin: "WVWZZZ1JZ3W386752".to_owned().into(),
                brand: "Volkswagen".to_owned(),
                model: "Golf".to_owned(),
                year: 2021,
                body_type: "HATCHBACK".to_owned(),
                fuel_type: "GASOLINE".to_owned(),
                transmission: "MANUAL".to_owned(),
                color: "Beyaz".to_owned(),
                mileage_km: 48_210,
            },
            snapshot_vin: "WVWZZZ1JZ3W386752".to_owned().into(),
            snapshot_mileage_km: 48_195,
            summary: "Sahibi 0532 123 45 67".to_owned().into(),
            recommendation: "TC 12345678901".to_owned().into(),
            overall_score: 84,
            updated_at: chrono::DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn links_are_absolute_whether_or_not_the_base_url_ends_with_a_slash() {
        for base in ["https://partner.example", "https://partner.example/"] {
            let links = inspection(detail(PiiMode::Full), base).links;
            let id = Uuid::from_u128(1);
            assert_eq!(
                links.forms,
                format!("https://partner.example/api/v1/partner/inspections/{id}/forms")
            );
            assert_eq!(
                links.photos,
                format!("https://partner.example/api/v1/partner/inspections/{id}/photos")
            );
            assert_eq!(
                links.pdf,
                format!("https://partner.example/api/v1/partner/inspections/{id}/pdf")
            );
        }
    }

    #[test]
    fn modes_that_hide_personal_data_remove_it_from_a_report() {
        for mode in [PiiMode::None, PiiMode::Masked] {
            let response = serde_json::to_string(&inspection(detail(mode), "http://localhost")).unwrap();
            for hidden in [
                "34ABC123",
                "34 ABC 123",
                "WVWZZZ1JZ3W386752",
                "0532 123 45 67",
                "12345678901",
            ] {
                assert!(!response.contains(hidden), "{mode:?} {hidden}");
            }
        }
        let response = serde_json::to_string(&inspection(detail(PiiMode::Full), "http://localhost")).unwrap();
        for shown in ["34 ABC 123", "WVWZZZ1JZ3W386752", "0532 123 45 67", "12345678901"] {
            assert!(response.contains(shown), "{shown}");
        }
    }

    /// REP-9
    #[test]
    fn amounts_keep_their_two_decimals() {
        let response = serde_json::to_value(inspection(detail(PiiMode::None), "http://localhost")).unwrap();
        assert_eq!(response["pricing"]["final_price_try"], "2700.00");
        assert_eq!(response["pricing"]["discount_percent"], "10.00");
        assert_eq!(response["package"]["base_price_try"], "3000.00");
    }
}
