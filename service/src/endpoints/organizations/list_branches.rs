//! `GET /api/v1/partner/organizations/{orgId}/branches`: the branches of an organisation open to the partner
//! (contract 2.4).

use crate::context::Context;
use crate::db::branches;
use crate::db::inspections::Sources;
use crate::error::ApiError;
use crate::front_door::Caller;
use crate::generated::responses::ListBranchesResponse;
use crate::generated::types::{Branch, BranchList, ListBranchesPath, ListBranchesQuery};
use crate::rules::id;

/// Lists the active or the inactive branches of an organisation, by code: all of them, or those of a restricted grant.
///
/// # Errors
/// `not_found`, always with the same message, for an organisation that does not exist or is not open to the partner;
/// `service_unavailable` when the database is out of reach.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: ListBranchesPath,
    query: ListBranchesQuery,
) -> Result<ListBranchesResponse, ApiError> {
    let organization = id::parse(&path.org_id)
        .filter(|organization| caller.scope.grant(*organization).is_some())
        .ok_or_else(|| ApiError::not_found("no such organization"))?;
    let client = context.db(caller).await?;
    let sources = Sources::of_organization(&caller.scope, organization);
    let found = branches::list(&client, &sources, organization, query.active, query.city.as_deref()).await?;
    let data = found
        .into_iter()
        .map(|branch| Branch {
            id: branch.id,
            code: branch.code,
            name: branch.name,
            city: branch.city,
            district: branch.district,
            is_active: branch.is_active,
        })
        .collect();
    Ok(ListBranchesResponse::Ok(BranchList { data }))
}
