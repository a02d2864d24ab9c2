//! Branches that are open to a partner.

use partner_api_domain::grants::Grants;
use uuid::Uuid;

use super::{DbError, standby::Reader};
use crate::statement;

statement! {
    /// `$1` the organisation, `$2` organisations granted whole, `$3` branches granted alone, `$4` active or inactive ones,
    /// `$5` the city (null: any).
    LIST = "SELECT b.id, b.code, b.name, b.city, b.district, b.is_active FROM branches b \
    WHERE b.organization_id = $1::uuid AND (b.organization_id = ANY ($2::uuid[]) OR b.id = ANY ($3::uuid[])) \
    AND b.is_active = $4::boolean AND ($5::text IS NULL OR b.city = $5) ORDER BY b.code, b.id";
}

/// A branch as a partner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Its id.
    pub id: Uuid,
    /// Its code, as measurements name it.
    pub code: String,
    /// Its name.
    pub name: String,
    /// The city it is in.
    pub city: String,
    /// The city's district.
    pub district: String,
    /// Whether it is in business.
    pub is_active: bool,
}

/// The organisation's branches that are open to the partner, by code: the active or the inactive ones, of one city or
/// of all. A city is compared exactly.
///
/// # Errors
/// [`DbError`] when the query fails.
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
