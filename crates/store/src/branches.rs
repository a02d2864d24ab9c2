//! The branches that a partner may see.

use partner_api_domain::grants::Grants;
use uuid::Uuid;

use super::{DbError, standby::Reader};
use crate::statement;

statement! {
    /// `$1` organization, `$2` organizations granted in full, `$3` branches granted individually, `$4` whether the
    /// branches are active, `$5` city (null: any).
    LIST = "SELECT b.id, b.code, b.name, b.city, b.district, b.is_active FROM branches b \
    WHERE b.organization_id = $1::uuid AND (b.organization_id = ANY ($2::uuid[]) OR b.id = ANY ($3::uuid[])) \
    AND b.is_active = $4::boolean AND ($5::text IS NULL OR b.city = $5) ORDER BY b.code, b.id";
}

/// A branch as a partner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// The ID.
    pub id: Uuid,
    /// The code that measurements use for it.
    pub code: String,
    /// The name.
    pub name: String,
    /// The city.
    pub city: String,
    /// The district of the city.
    pub district: String,
    /// Whether the branch accepts measurements.
    pub is_active: bool,
}

/// Returns the branches of an organization that the partner may see, ordered by code: either the active or the inactive
/// ones, in one city or in all cities. The city must match exactly.
///
/// # Errors
/// If the query fails.
pub async fn list(
    client: &Reader,
    grants: &Grants,
    organization: Uuid,
    active: bool,
    city: Option<&str>,
) -> Result<Vec<Branch>, DbError> {
    let rows = client
        .query(
            LIST,
            &[&organization, &grants.whole(), &grants.branches(), &active, &city],
        )
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Branch {
                id: row.try_get("id")?,
                code: row.try_get("code")?,
                name: row.try_get("name")?,
                city: row.try_get("city")?,
                district: row.try_get("district")?,
                is_active: row.try_get("is_active")?,
            })
        })
        .collect()
}
