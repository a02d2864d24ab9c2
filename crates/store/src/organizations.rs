//! The organizations that a partner may see.

use partner_api_domain::grants::Grants;
use partner_api_domain::privacy::PiiMode;
use uuid::Uuid;

use super::{DbError, column::Text, standby::Reader};
use crate::statement;

statement! {
    /// `$1` all organizations with a grant, `$2` those granted in full, `$3` the branches granted individually.
    ///
    /// Inactive branches count as well: they accept no measurements, but their reports remain visible.
    LIST = "SELECT o.id, o.slug, o.name, o.pii_mode, \
    (SELECT count(*)::integer FROM branches b WHERE b.organization_id = o.id \
        AND (b.organization_id = ANY ($2::uuid[]) OR b.id = ANY ($3::uuid[]))) AS branch_count \
    FROM organizations o WHERE o.id = ANY ($1::uuid[]) ORDER BY o.name, o.id";
}

/// An organization as a partner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Organization {
    /// The ID.
    pub id: Uuid,
    /// The short name.
    pub slug: String,
    /// The name.
    pub name: String,
    /// The privacy mode.
    pub pii_mode: PiiMode,
    /// The number of branches that the partner may see, including inactive ones.
    pub branch_count: i32,
}

/// Returns the organizations with a grant, ordered by name.
///
/// ```compile_fail,E0308
/// async fn without_grants(client: &partner_api_store::connection::Connection, organizations: &[uuid::Uuid]) {
///     let _ = partner_api_store::organizations::list(client, organizations).await;
/// }
/// ```
///
/// # Errors
/// If the query fails.
pub async fn list(client: &Reader, grants: &Grants) -> Result<Vec<Organization>, DbError> {
    let rows = client
        .query(LIST, &[&grants.organizations(), &grants.whole(), &grants.branches()])
        .await?;
    rows.iter()
        .map(|row| {
            let Text(pii_mode) = row.try_get("pii_mode")?;
            Ok(Organization {
                id: row.try_get("id")?,
                slug: row.try_get("slug")?,
                name: row.try_get("name")?,
                pii_mode,
                branch_count: row.try_get("branch_count")?,
            })
        })
        .collect()
}
