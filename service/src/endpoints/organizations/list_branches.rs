//! `GET /api/v1/partner/organizations/{orgId}/branches`: the granted branches of an organization (REP-10).

use partner_api_domain::id;
use partner_api_store::branches;

use crate::caller::Caller;
use crate::context::Context;
use crate::error::ApiError;
use crate::generated::responses::ListBranchesResponse;
use crate::generated::types::{Branch, BranchList, ListBranchesPath, ListBranchesQuery};

/// Returns the active or the inactive branches of an organization, ordered by code. A restricted grant covers only some of them.
///
/// # Errors
/// `not_found`, always with the same message, for an organization that does not exist or is not granted to the partner;
/// `service_unavailable` if the database is unavailable.
pub async fn handle(
    context: &Context,
    caller: &Caller,
    path: ListBranchesPath,
    query: ListBranchesQuery,
) -> Result<ListBranchesResponse, ApiError> {
    let not_found = || ApiError::not_found("no such organization");
    let organization = id::parse(&path.org_id).ok_or_else(not_found)?;
    let grants = caller.grants().of_organization(organization).ok_or_else(not_found)?;
    let client = context.reader(caller).await?;
    let found = branches::list(&client, &grants, organization, query.active, query.city.as_deref()).await?;
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
