//! Which reports a partner sees: what every statement about one report begins with (`with_seen!`) or ends with
//! (`where_visible!`).

use partner_api_domain::privacy::PiiMode;
use uuid::Uuid;

use super::row::Columns;
use crate::DbError;

/// The rows of `inspections` (`i`) with the id `$1` that a partner sees: in a visible status, and of an organisation
/// granted whole (`$2`) or a branch granted alone (`$3`).
macro_rules! where_visible {
    () => {
        " WHERE i.id = $1::uuid AND i.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED') \
         AND (i.organization_id = ANY ($2::uuid[]) OR i.branch_id = ANY ($3::uuid[]))"
    };
}

/// The beginning of a statement about what belongs to one report, whose every row begins with the columns of `seen`: no
/// row where the partner does not see the report, so that one statement finds both out.
macro_rules! with_seen {
    () => {
        concat!(
            "WITH seen AS MATERIALIZED (SELECT i.id, o.pii_mode FROM inspections i \
             JOIN organizations o ON o.id = i.organization_id",
            $crate::inspections::where_visible!(),
            ")"
        )
    };
}

pub(crate) use {where_visible, with_seen};

/// Proof that a partner sees a report. Only a statement that asks for the grants makes one, and what belongs to the report
/// comes with it, from the same statement: there is no way to the forms or photos of just any report.
///
/// ```compile_fail,E0451
/// use partner_api_store::inspections::Visible;
/// use partner_api_domain::privacy::PiiMode;
/// let forged = Visible { id: uuid::Uuid::nil(), pii_mode: PiiMode::Full };
/// ```
///
/// ```compile_fail,E0308
/// async fn forms_of_any_report(client: &partner_api_store::connection::Connection) {
///     let _ = partner_api_store::forms::list(client, &uuid::Uuid::nil(), uuid::Uuid::nil()).await;
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visible {
    id: Uuid,
    pii_mode: PiiMode,
}

impl Visible {
    /// From the columns of `seen`.
    pub(crate) fn take(columns: &mut Columns<'_>) -> Result<Self, DbError> {
        Ok(Self {
            id: columns.take()?,
            pii_mode: columns.text()?,
        })
    }

    /// The report's id.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// How its organisation shows personal data.
    pub fn pii_mode(&self) -> PiiMode {
        self.pii_mode
    }
}
