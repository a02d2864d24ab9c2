//! `GET /api/v1/partner/inspections`: the reports open to the partner, newest first, in pages (contract 4.1).

use chrono::{DateTime, Utc};

use super::vehicle;
use crate::context::Context;
use crate::db::inspections::{self, ListFilter, ListItem, ListPage, Sources};
use crate::directory::Scope;
use crate::error::ApiError;
use crate::front_door::Caller;
use crate::generated::responses::ListInspectionsResponse;
use crate::generated::types::{InspectionList, InspectionListItem, ListInspectionsQuery, Page};
use crate::rules::cursor::{CursorSealer, FilterDigest, Position};
use crate::rules::id;

/// Lists a page of reports. Filters that name what is not open to the partner give an empty list.
///
/// # Errors
/// `invalid_request` for a range that ends before it begins and for a cursor of another partner, of other filters or of
/// no list at all; `service_unavailable` when the database is out of reach.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    query: ListInspectionsQuery,
) -> Result<ListInspectionsResponse, ApiError> {
    in_order(
        ("published_from", query.published_from),
        ("published_to", query.published_to),
    )?;
    in_order(("created_from", query.created_from), ("created_to", query.created_to))?;
    let partner = caller.scope.partner_id;
    let digest = digest(&query);
    let cursors = CursorSealer::new(&context.cursor_key);
    let after = match &query.cursor {
        None => None,
        Some(cursor) => Some(cursors.open(partner, digest, cursor).map_err(|_| {
            ApiError::invalid_request(
                "cursor: was not issued to this partner for these filters; return page.next_cursor unchanged, with the \
                 same filters, or leave it out to begin with the first page",
            )
        })?),
    };
    let page = match narrowed(&caller.scope, &query) {
        Some((sources, filter)) if !sources.is_empty() => {
            inspections::list(
                &context.db(caller).await?,
                &sources,
                &filter,
                after,
                i64::from(query.limit),
            )
            .await?
        }
        _ => ListPage::default(),
    };
    let next_cursor = page.items.last().filter(|_| page.has_more).map(|last| {
        cursors.seal(
            partner,
            digest,
            Position {
                created_at: last.created_at,
                id: last.id,
            },
        )
    });
    Ok(ListInspectionsResponse::Ok(InspectionList {
        page: Page {
            has_more: next_cursor.is_some(),
            next_cursor,
        },
        data: page.items.into_iter().map(item).collect(),
    }))
}

/// Refuses a range whose end lies before its beginning.
fn in_order(from: (&str, Option<DateTime<Utc>>), to: (&str, Option<DateTime<Utc>>)) -> Result<(), ApiError> {
    match (from.1, to.1) {
        (Some(beginning), Some(end)) if beginning > end => Err(ApiError::invalid_request(format!(
            "{} is later than {}: a range must not end before it begins",
            from.0, to.0
        ))),
        _ => Ok(()),
    }
}

/// The filters that a cursor is bound to: all but the page's size, in one form however they were written.
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
    ])
}

/// The part of the scope and the filter that a request asks for; `None` when an id in it cannot name anything.
fn narrowed(scope: &Scope, query: &ListInspectionsQuery) -> Option<(Sources, ListFilter)> {
    let sources = match &query.organization_id {
        None => Sources::of(scope),
        Some(organization) => Sources::of_organization(scope, id::parse(organization)?),
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
    };
    Some((sources, filter))
}

fn item(row: ListItem) -> InspectionListItem {
    InspectionListItem {
        id: row.id,
        report_number: row.report_number,
        organization_id: row.organization_id,
        branch_id: row.branch_id,
        status: row.status.into(),
        package_name: row.package_name,
        overall_score: row.overall_score,
        final_price_try: row.final_price,
        vehicle: vehicle(row.vehicle, row.pii_mode),
        published_at: row.published_at,
        created_at: row.created_at,
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::directory::Grant;

    fn query() -> ListInspectionsQuery {
        ListInspectionsQuery {
            organization_id: None,
            branch_id: None,
            status: None,
            published_from: None,
            published_to: None,
            created_from: None,
            created_to: None,
            cursor: None,
            limit: 25,
        }
    }

    fn scope() -> Scope {
        Scope {
            partner_id: Uuid::from_u128(1),
            partner_name: "alpha".to_owned(),
            grants: vec![
                Grant {
                    organization_id: Uuid::from_u128(10),
                    branches: None,
                },
                Grant {
                    organization_id: Uuid::from_u128(20),
                    branches: Some(vec![Uuid::from_u128(21)]),
                },
            ],
        }
    }

    fn sources(organization: Uuid) -> Option<Sources> {
        let query = ListInspectionsQuery {
            organization_id: Some(organization.to_string()),
            ..query()
        };
        narrowed(&scope(), &query).map(|(sources, _)| sources)
    }

    #[test]
    fn a_range_that_ends_before_it_begins_is_refused_with_both_names() {
        let (early, late) = (DateTime::UNIX_EPOCH, Utc::now());
        let error = in_order(("created_from", Some(late)), ("created_to", Some(early))).unwrap_err();
        assert!(error.message.contains("created_from") && error.message.contains("created_to"));
        assert!(in_order(("created_from", Some(early)), ("created_to", Some(late))).is_ok());
        assert!(in_order(("created_from", Some(late)), ("created_to", Some(late))).is_ok());
        assert!(in_order(("created_from", Some(late)), ("created_to", None)).is_ok());
    }

    #[test]
    fn an_organization_narrows_the_scope_to_what_is_granted_of_it() {
        let whole = Sources {
            whole: vec![Uuid::from_u128(10)],
            branches: vec![],
        };
        assert_eq!(sources(Uuid::from_u128(10)), Some(whole));
        let restricted = Sources {
            whole: vec![],
            branches: vec![Uuid::from_u128(21)],
        };
        assert_eq!(sources(Uuid::from_u128(20)), Some(restricted));
        assert_eq!(sources(Uuid::from_u128(30)), Some(Sources::default()));
    }

    #[test]
    fn text_that_is_no_id_names_nothing() {
        for text in ["", "x", "0197C2A4-6F00-7D33-8E4F-5A6B7C8D9E0F"] {
            let by_organization = ListInspectionsQuery {
                organization_id: Some(text.to_owned()),
                ..query()
            };
            assert_eq!(narrowed(&scope(), &by_organization), None);
            let by_branch = ListInspectionsQuery {
                branch_id: Some(text.to_owned()),
                ..query()
            };
            assert_eq!(narrowed(&scope(), &by_branch), None);
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
                status: Some(crate::generated::types::InspectionStatus::Published),
                ..query()
            },
        ] {
            assert_ne!(plain, digest(&other));
        }
    }
}
