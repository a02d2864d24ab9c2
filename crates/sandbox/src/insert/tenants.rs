//! Inserts tenants: organizations, branches, templates and thresholds.

use partner_api_domain::branch_code;
use partner_api_store::DbError;
use partner_api_store::transaction::Transaction;
use tokio_postgres::types::Json;

use super::{Copy, position};
use crate::catalog::templates::BODY_PAINT;
use crate::data::Dataset;

copy_table! {
    ORGANIZATIONS = "organizations", [
        "id" UUID, "slug" TEXT, "name" TEXT, "pii_mode" TEXT, "created_at" TIMESTAMPTZ,
    ];
    BRANCHES = "branches", [
        "id" UUID, "organization_id" UUID, "code" TEXT, "code_folded" TEXT, "name" TEXT, "city" TEXT,
        "district" TEXT, "address" TEXT, "telephone" TEXT, "is_active" BOOL,
    ];
    TEMPLATES = "form_templates", [
        "id" UUID, "organization_id" UUID, "code" TEXT, "name" TEXT, "score_category" TEXT, "position" INT4,
        "is_test_line" BOOL, "is_required" BOOL, "statuses" JSONB, "photo_kinds" JSONB,
    ];
    POINTS = "form_template_points", [
        "id" UUID, "organization_id" UUID, "template_id" UUID, "code" TEXT, "name" TEXT, "unit" TEXT, "position" INT4,
        "place" TEXT,
    ];
    THRESHOLDS = "thresholds", [
        "organization_id" UUID, "point_code" TEXT, "good_min" NUMERIC, "good_max" NUMERIC,
        "borderline_min" NUMERIC, "borderline_max" NUMERIC, "valid_from" TIMESTAMPTZ,
    ];
}

pub(super) async fn organizations_and_branches(transaction: &Transaction<'_>, data: &Dataset) -> Result<(), DbError> {
    let mut copy = Copy::into(transaction, &ORGANIZATIONS).await?;
    for row in &data.organizations {
        copy.row(&[&row.id, &row.slug, &row.name, &row.pii_mode, &row.created_at])
            .await?;
    }
    copy.finish().await?;
    let mut copy = Copy::into(transaction, &BRANCHES).await?;
    for row in &data.branches {
        let organization = data.organizations[row.organization].id;
        let folded = branch_code::folded(row.code);
        copy.row(&[
            &row.id,
            &organization,
            &row.code,
            &folded,
            &row.name,
            &row.city,
            &row.district,
            &row.address,
            &row.telephone,
            &row.is_active,
        ])
        .await?;
    }
    copy.finish().await
}

pub(super) async fn templates_and_thresholds(transaction: &Transaction<'_>, data: &Dataset) -> Result<(), DbError> {
    let mut copy = Copy::into(transaction, &TEMPLATES).await?;
    for (index, row) in data.templates.iter().enumerate() {
        let organization = data.organizations[row.organization].id;
        let place = position(index);
        // Not every package contains the other forms.
        let is_required = row.code == BODY_PAINT;
        copy.row(&[
            &row.id,
            &organization,
            &row.code,
            &row.name,
            &row.score_category,
            &place,
            &row.is_test_line,
            &is_required,
            &Json(&row.statuses),
            &Json(&row.photo_kinds),
        ])
        .await?;
    }
    copy.finish().await?;
    let mut copy = Copy::into(transaction, &POINTS).await?;
    for template in &data.templates {
        let organization = data.organizations[template.organization].id;
        for (index, row) in template.points.iter().enumerate() {
            let place = position(index);
            copy.row(&[
                &row.id,
                &organization,
                &template.id,
                &row.code,
                &row.name,
                &row.unit,
                &place,
                &row.place,
            ])
            .await?;
        }
    }
    copy.finish().await?;
    let mut copy = Copy::into(transaction, &THRESHOLDS).await?;
    for row in &data.thresholds {
        let organization = data.organizations[row.organization].id;
        let bounds = (&row.good_min, &row.good_max, &row.borderline_min, &row.borderline_max);
        copy.row(&[
            &organization,
            &row.point_code,
            bounds.0,
            bounds.1,
            bounds.2,
            bounds.3,
            &row.since,
        ])
        .await?;
    }
    copy.finish().await
}
