//! Settings that are printed on all reports (REP-20).

use super::DbError;
use super::connection::Connection;
use crate::statement;

statement! {
    /// Sets the address of reports' public pages.
    SET = "UPDATE report_settings SET public_report_url = $1 WHERE public_report_url IS DISTINCT FROM $1";
}

/// Sets or removes the address of reports' public pages, which contains a placeholder for the slug. Returns whether it has
/// changed; all PDFs are then rendered again.
///
/// # Errors
/// If the statement fails.
pub async fn set_public_report_url(client: &Connection, address: Option<&str>) -> Result<bool, DbError> {
    Ok(client.execute(SET, &[&address]).await? == 1)
}
