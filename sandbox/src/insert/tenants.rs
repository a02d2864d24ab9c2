//! Tenants: organisations, branches, templates and thresholds.

use deadpool_postgres::Transaction;
use partner_api::db::DbError;
use partner_api::rules::branch_code;
use tokio_postgres::types::Type;

use super::{Copy, position};
use crate::data::Dataset;

pub(super) async fn organizations_and_branches(transaction: &Transaction<'_>, data: &Dataset) -> Result<(), DbError> {
    let columns = [
        ("id", Type::UUID),
        ("slug", Type::TEXT),
        ("name", Type::TEXT),
        ("pii_mode", Type::TEXT),
        ("created_at", Type::TIMESTAMPTZ),
    ];
    let mut copy = Copy::into(transaction, "organizations", &columns).await?;
    for row in &data.organizations {
        copy.row(&[&row.id, &row.slug, &row.name, &row.pii_mode, &row.created_at])
            .await?;
    }
    copy.finish().await?;
    let columns = [
        ("id", Type::UUID),
        ("organization_id", Type::UUID),
        ("code", Type::TEXT),
        ("code_folded", Type::TEXT),
        ("name", Type::TEXT),
        ("city", Type::TEXT),
        ("district", Type::TEXT),
        ("is_active", Type::BOOL),
    ];
    let mut copy = Copy::into(transaction, "branches", &columns).await?;
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
            &row.is_active,
        ])
        .await?;
    }
    copy.finish().await
}

pub(super) async fn templates_and_thresholds(transaction: &Transaction<'_>, data: &Dataset) -> Result<(), DbError> {
    let columns = [
        ("id", Type::UUID),
        ("organization_id", Type::UUID),
        ("code", Type::TEXT),
        ("name", Type::TEXT),
        ("score_category", Type::TEXT),
        ("position", Type::INT4),
        ("is_test_line", Type::BOOL),
    ];
    let mut copy = Copy::into(transaction, "form_templates", &columns).await?;
    for (index, row) in data.templates.iter().enumerate() {
        let organization = data.organizations[row.organization].id;
        let place = position(index);
        copy.row(&[
            &row.id,
            &organization,
            &row.code,
            &row.name,
            &row.score_category,
            &place,
            &row.is_test_line,
        ])
        .await?;
    }
    copy.finish().await?;
    let columns = [
        ("id", Type::UUID),
        ("template_id", Type::UUID),
        ("code", Type::TEXT),
        ("name", Type::TEXT),
        ("unit", Type::TEXT),
        ("position", Type::INT4),
    ];
    let mut copy = Copy::into(transaction, "form_template_points", &columns).await?;
    for template in &data.templates {
        for (index, row) in template.points.iter().enumerate() {
            copy.row(&[&row.id, &template.id, &row.code, &row.name, &row.unit, &position(index)])
                .await?;
        }
    }
    copy.finish().await?;
    let columns = [
        ("organization_id", Type::UUID),
        ("point_code", Type::TEXT),
        ("good_min", Type::NUMERIC),
        ("good_max", Type::NUMERIC),
        ("borderline_min", Type::NUMERIC),
        ("borderline_max", Type::NUMERIC),
    ];
    let mut copy = Copy::into(transaction, "thresholds", &columns).await?;
    for row in &data.thresholds {
        let organization = data.organizations[row.organization].id;
        let bounds = (&row.good_min, &row.good_max, &row.borderline_min, &row.borderline_max);
        copy.row(&[&organization, &row.point_code, bounds.0, bounds.1, bounds.2, bounds.3])
            .await?;
    }
    copy.finish().await
}
