//! Settings that are printed on all reports (REP-20).

use super::DbError;
use super::connection::Connection;
use crate::statement;

statement! {
    /// Sets the address of reports' public pages. An empty one means that the operator wants none.
    SET = "\
UPDATE report_settings SET public_report_url = coalesce($1::text, '')
WHERE public_report_url IS DISTINCT FROM coalesce($1::text, '')";

    /// Sets the address if none was ever set.
    SET_DEFAULT = "UPDATE report_settings SET public_report_url = $1 WHERE public_report_url IS NULL";
}

/// Sets or removes the address of reports' public pages, which contains a placeholder for the slug. Returns whether it has
/// changed; all PDFs are then rendered again.
///
/// # Errors
/// If the statement fails.
pub async fn set_public_report_url(client: &Connection, address: Option<&str>) -> Result<bool, DbError> {
    Ok(client.execute(SET, &[&address]).await? == 1)
}

/// Sets the address of reports' public pages unless one was set before, or removed. Returns whether it was set.
///
/// # Errors
/// If the statement fails.
pub async fn default_public_report_url(client: &Connection, address: &str) -> Result<bool, DbError> {
    Ok(client.execute(SET_DEFAULT, &[&address]).await? == 1)
}
