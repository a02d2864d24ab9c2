//! Organisations that are open to a partner.

use partner_api_domain::grants::Grants;
use partner_api_domain::privacy::PiiMode;
use uuid::Uuid;

use super::{DbError, column::Text, standby::Reader};
use crate::statement;

statement! {
    /// `$1` the organisations granted in any way, `$2` those granted whole, `$3` the branches granted alone.
    ///
    /// An inactive branch counts too: it takes no measurements, but its reports stay open.
    LIST = "SELECT o.id, o.slug, o.name, o.pii_mode, \
    (SELECT count(*)::integer FROM branches b WHERE b.organization_id = o.id \
        AND (b.organization_id = ANY ($2::uuid[]) OR b.id = ANY ($3::uuid[]))) AS branch_count \
    FROM organizations o WHERE o.id = ANY ($1::uuid[]) ORDER BY o.name, o.id";
}

/// An organisation as a partner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Organization {
    /// Its id.
    pub id: Uuid,
    /// Its short name.
    pub slug: String,
    /// Its name.
    pub name: String,
    /// How it shows personal data.
    pub pii_mode: PiiMode,
    /// How many of its branches are open to the partner, inactive ones included.
    pub branch_count: i32,
}

/// The organisations of which something is granted, by name.
///
/// ```compile_fail,E0308
/// async fn without_grants(client: &partner_api_store::connection::Connection, organizations: &[uuid::Uuid]) {
///     let _ = partner_api_store::organizations::list(client, organizations).await;
/// }
/// ```
///
/// # Errors
/// [`DbError`] when the query fails.
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
