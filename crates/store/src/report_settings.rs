//! What is the same for all reports, and printed on them (REP-20).

use super::DbError;
use super::connection::Connection;
use crate::statement;

statement! {
    /// Sets the address of reports' public pages.
    SET = "UPDATE report_settings SET public_report_url = $1 WHERE public_report_url IS DISTINCT FROM $1";
}

/// Sets the address of reports' public pages, with its place for the slug; none takes it away. Returns whether it was another
/// one before: all PDFs are then rendered anew.
///
/// # Errors
/// [`DbError`] when the statement fails.
pub async fn set_public_report_url(client: &Connection, address: Option<&str>) -> Result<bool, DbError> {
    Ok(client.execute(SET, &[&address]).await? == 1)
}
