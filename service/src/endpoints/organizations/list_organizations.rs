//! `GET /api/v1/partner/organizations`: the organizations granted to the partner (REP-2, REP-10).

use partner_api_store::organizations;

use crate::caller::Caller;
use crate::context::Context;
use crate::error::ApiError;
use crate::generated::responses::ListOrganizationsResponse;
use crate::generated::types::{Organization, OrganizationList};

/// Returns the organizations of the partner's grants, ordered by name. A grant may cover all or some of an organization's branches.
///
/// # Errors
/// `service_unavailable` if the database is unavailable.
pub async fn handle(context: &Context, caller: &Caller) -> Result<ListOrganizationsResponse, ApiError> {
    let grants = caller.grants();
    if grants.organizations().is_empty() {
        return Ok(ListOrganizationsResponse::Ok(OrganizationList { data: Vec::new() }));
    }
    let client = context.reader(caller).await?;
    let found = organizations::list(&client, grants).await?;
    let data = found
        .into_iter()
        .map(|organization| Organization {
            id: organization.id,
            slug: organization.slug,
            name: organization.name,
            branch_count: organization.branch_count,
            pii_mode: organization.pii_mode.into(),
        })
        .collect();
    Ok(ListOrganizationsResponse::Ok(OrganizationList { data }))
}
