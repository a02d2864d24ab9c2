//! The visibility of reports: the conditions with which a statement about one report begins (`with_visible!`) or ends
//! (`where_visible!`).

use partner_api_domain::privacy::PiiMode;
use uuid::Uuid;

use super::row::Columns;
use crate::DbError;

/// Selects the row of `inspections` (`i`) with the ID `$1` if the partner may see it: its status is visible, and the
/// organization is granted in full (`$2`) or the branch is granted individually (`$3`).
macro_rules! where_visible {
    () => {
        " WHERE i.id = $1::uuid AND i.status IN ('PUBLISHED', 'ARCHIVED', 'CANCELLED') \
         AND (i.organization_id = ANY ($2::uuid[]) OR i.branch_id = ANY ($3::uuid[]))"
    };
}

/// The beginning of a statement about data that belongs to one report. Each of its rows begins with the ID and the privacy mode in
/// `visible`, which also has the owner. It returns no rows if the partner may not see the report, so one statement checks this and
/// reads the data.
macro_rules! with_visible {
    () => {
        concat!(
            "WITH visible AS MATERIALIZED (SELECT i.id, i.organization_id, o.pii_mode FROM inspections i \
             JOIN organizations o ON o.id = i.organization_id",
            $crate::inspections::where_visible!(),
            ")"
        )
    };
}

pub(crate) use {where_visible, with_visible};

/// Proof that a partner may see a report.
///
/// Only a statement that checks the grants constructs it. The same statement returns the forms or photos of the report, so
/// they cannot be read without the check:
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
    /// Reads the ID and the privacy mode in `visible`.
    pub(crate) fn take(columns: &mut Columns<'_>) -> Result<Self, DbError> {
        Ok(Self {
            id: columns.take()?,
            pii_mode: columns.text()?,
        })
    }

    /// Returns the ID of the report.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Returns the privacy mode of the organization.
    pub fn pii_mode(&self) -> PiiMode {
        self.pii_mode
    }
}
