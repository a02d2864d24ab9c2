//! `GET /api/v1/partner/inspections`: the reports granted to the partner in pages, newest first or by their changes (REP-3, REP-11,
//! REP-14).

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use codegen_runtime::{ValidationError, ValidationErrors};
use partner_api_domain::cursor::{CursorCodec, FilterDigest};
use partner_api_domain::grants::Grants;
use partner_api_domain::id;
use partner_api_store::inspections::{self, ListFilter, ListItem, ListPage};

use super::vehicle;
use crate::caller::Caller;
use crate::context::Context;
use crate::error::ApiError;
use crate::generated::responses::ListInspectionsResponse;
use crate::generated::types::{InspectionList, InspectionListItem, ListInspectionsQuery, Page};

/// Returns a page of reports. The list is empty if a filter names an organization or branch that is not granted to the partner.
///
/// # Errors
/// `invalid_request` for a range that ends before it begins, and for a cursor that was not issued to this partner for these
/// filters; `service_unavailable` if the database is unavailable.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    query: ListInspectionsQuery,
) -> Result<ListInspectionsResponse, ApiError> {
    check_order([
        (
            ("published_from", query.published_from),
            ("published_to", query.published_to),
        ),
        (("created_from", query.created_from), ("created_to", query.created_to)),
        (("updated_from", query.updated_from), ("updated_to", query.updated_to)),
    ])?;
    let partner = caller.key().partner.id;
    let digest = digest(&query);
    let cursors = CursorCodec::new(context.cursor_key.signing(), context.cursor_key.other());
    let after = match &query.cursor {
        None => None,
        Some(cursor) => Some(cursors.decode(partner, digest, cursor).map_err(|_| {
            ApiError::invalid_request(ValidationError::of_parameter(
                "cursor",
                "was not issued to this partner for these filters; return page.next_cursor unchanged, with the same \
                 filters, or leave it out to begin with the first page",
            ))
        })?),
    };
    let page = match narrowed(caller.grants(), &query) {
        Some((grants, filter)) if !grants.is_empty() => {
            let client = context.reader(caller).await?;
            inspections::list(&client, &grants, &filter, after, i64::from(query.limit)).await?
        }
        _ => ListPage::default(),
    };
    let next_cursor = page.next.map(|next| cursors.encode(partner, digest, next));
    Ok(ListInspectionsResponse::Ok(InspectionList {
        page: Page {
            has_more: next_cursor.is_some(),
            next_cursor,
        },
        data: page.items.into_iter().map(item).collect(),
    }))
}

/// A parameter and the bound of a range that it sets.
type Bound = (&'static str, Option<DateTime<Utc>>);

/// Rejects ranges that end before they begin.
fn check_order(ranges: impl IntoIterator<Item = (Bound, Bound)>) -> Result<(), ApiError> {
    let reversed = ranges.into_iter().filter_map(|(from, to)| {
        let is_reversed = from.1? > to.1?;
        let message = format!("is later than {}: a range must not end before it begins", to.0);
        is_reversed.then(|| ValidationError::of_parameter(from.0, message))
    });
    ValidationErrors::of(reversed).map_or(Ok(()), |errors| Err(ApiError::invalid_request(errors)))
}

/// Returns the digest of the filters that a cursor is bound to: all but the page size, in normalized form.
fn digest(query: &ListInspectionsQuery) -> FilterDigest {
    let time = |time: Option<DateTime<Utc>>| time.map(|time| time.to_rfc3339());
    FilterDigest::of([
        ("organization_id", query.organization_id.clone()),
        ("branch_id", query.branch_id.clone()),
        ("status", query.status.map(|status| status.as_str().to_owned())),
        ("published_from", time(query.published_from)),
        ("published_to", time(query.published_to)),
        ("created_from", time(query.created_from)),
        ("created_to", time(query.created_to)),
        ("updated_from", time(query.updated_from)),
        ("updated_to", time(query.updated_to)),
        ("report_number", query.report_number.clone()),
        ("vin", query.vin.clone()),
    ])
}

/// Returns the grants and the filter of a query. Returns `None` if it names an organization that is not granted, or contains a
/// malformed ID.
fn narrowed<'g>(grants: &'g Grants, query: &ListInspectionsQuery) -> Option<(Cow<'g, Grants>, ListFilter)> {
    let grants = match &query.organization_id {
        None => Cow::Borrowed(grants),
        Some(organization) => Cow::Owned(grants.of_organization(id::parse(organization)?)?),
    };
    let branch_id = match &query.branch_id {
        None => None,
        Some(branch) => Some(id::parse(branch)?),
    };
    let filter = ListFilter {
        branch_id,
        status: query.status.map(Into::into),
        published_from: query.published_from,
        published_to: query.published_to,
        created_from: query.created_from,
        created_to: query.created_to,
        updated_from: query.updated_from,
        updated_to: query.updated_to,
        report_number: query.report_number.clone(),
        vin: query.vin.clone(),
    };
    Some((grants, filter))
}

fn item(row: ListItem) -> InspectionListItem {
    InspectionListItem {
        id: row.id,
        report_number: row.report_number,
        organization_id: row.organization_id,
        branch_id: row.branch_id,
        status: row.status.into(),
        package_name: row.pii_mode.text(row.package_name),
        overall_score: row.overall_score,
        final_price_try: row.final_price,
        vehicle: vehicle(row.vehicle, row.pii_mode),
        published_at: row.published_at,
        created_at: row.created_at,
        updated_at: row.updated_at,
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn query() -> ListInspectionsQuery {
        ListInspectionsQuery {
            organization_id: None,
            branch_id: None,
            status: None,
            published_from: None,
            published_to: None,
            created_from: None,
            created_to: None,
            updated_from: None,
            updated_to: None,
            report_number: None,
            vin: None,
            cursor: None,
            limit: 25,
        }
    }

    fn grants() -> Grants {
        let restricted = (Uuid::from_u128(20), vec![Uuid::from_u128(21)]);
        Grants::new([Uuid::from_u128(10)], [restricted])
    }

    #[test]
    fn a_range_that_ends_before_it_begins_is_rejected_with_both_names() {
        let (early, late) = (DateTime::UNIX_EPOCH, Utc::now());
        let error = check_order([(("created_from", Some(late)), ("created_to", Some(early)))]).unwrap_err();
        assert!(error.message.contains("created_from") && error.message.contains("created_to"));
        assert!(check_order([(("created_from", Some(early)), ("created_to", Some(late)))]).is_ok());
        assert!(check_order([(("created_from", Some(late)), ("created_to", Some(late)))]).is_ok());
        assert!(check_order([(("created_from", Some(late)), ("created_to", None))]).is_ok());
    }

    #[test]
    fn an_organization_that_is_not_granted_gives_nothing() {
        let asking = |organization: u128| ListInspectionsQuery {
            organization_id: Some(Uuid::from_u128(organization).to_string()),
            ..query()
        };
        let grants = grants();
        let (narrowed_to, _) = narrowed(&grants, &asking(20)).unwrap();
        assert_eq!(narrowed_to.branches(), [Uuid::from_u128(21)]);
        assert_eq!(narrowed(&grants, &asking(30)), None);
    }

    #[test]
    fn a_malformed_id_matches_nothing() {
        for text in ["", "x", "0197C2A4-6F00-7D33-8E4F-5A6B7C8D9E0F"] {
            let by_organization = ListInspectionsQuery {
                organization_id: Some(text.to_owned()),
                ..query()
            };
            assert_eq!(narrowed(&grants(), &by_organization), None);
            let by_branch = ListInspectionsQuery {
                branch_id: Some(text.to_owned()),
                ..query()
            };
            assert_eq!(narrowed(&grants(), &by_branch), None);
        }
    }

    #[test]
    fn a_cursor_is_bound_to_each_filter_but_not_to_the_limit() {
        let plain = digest(&query());
        assert_eq!(plain, digest(&ListInspectionsQuery { limit: 100, ..query() }));
        let now = Some(Utc::now());
        for other in [
            ListInspectionsQuery {
                organization_id: Some("x".to_owned()),
                ..query()
            },
            ListInspectionsQuery {
                branch_id: Some("x".to_owned()),
                ..query()
            },
            ListInspectionsQuery {
                published_from: now,
                ..query()
            },
            ListInspectionsQuery {
                published_to: now,
                ..query()
            },
            ListInspectionsQuery {
                created_from: now,
                ..query()
            },
            ListInspectionsQuery {
                created_to: now,
                ..query()
            },
            ListInspectionsQuery {
                updated_from: now,
                ..query()
            },
            ListInspectionsQuery {
                updated_to: now,
                ..query()
            },
            ListInspectionsQuery {
                report_number: Some("x".to_owned()),
                ..query()
            },
            ListInspectionsQuery {
                vin: Some("x".to_owned()),
                ..query()
            },
            ListInspectionsQuery {
                status: Some(crate::generated::types::InspectionStatus::Published),
                ..query()
            },
        ] {
            assert_ne!(plain, digest(&other));
        }
    }
}
