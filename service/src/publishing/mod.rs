//! Publishing of reports: PDFs are rendered in the background, stored in the object storage, and streamed from there (REP-8).
//!
//! A PDF's object key contains a fingerprint of the data that it shows (`partner_api_domain::pdf_key`). The statement that finds a
//! PDF for a request computes the fingerprint of the current data (`partner_api_store::inspections::pdf`), so no stale PDF is
//! served. The database holds the queue of reports whose PDFs are missing or stale (`partner_api_store::renderings`). A `Worker` of
//! any replica that was built with the feature `render` renders them.

#[cfg(feature = "render")]
mod background;
#[cfg(feature = "render")]
mod limits;
#[cfg(feature = "render")]
mod printed;
#[cfg(feature = "render")]
mod worker;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

#[cfg(feature = "render")]
pub use background::Renderers;
#[cfg(feature = "render")]
pub use printed::{PHOTOS_MAX, read};
#[cfg(feature = "render")]
pub use worker::{PublishError, RenderOutcome, Worker};

/// The media type of a rendered report.
pub const MIME_TYPE: &str = "application/pdf";

/// The characters to encode in an extended value (RFC 8187).
const EXTENDED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// Returns the `Content-Disposition` of a PDF that is named by its report's number. A browser shows an `inline` file, and saves an
/// `attachment`. A number that is not plain ASCII is also sent as UTF-8
/// (RFC 6266).
#[must_use]
pub fn disposition(kind: &str, report_number: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    let plain: String = report_number
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    if plain == report_number {
        return format!("{kind}; filename=\"{plain}.pdf\"");
    }
    let encoded = utf8_percent_encode(report_number, EXTENDED);
    format!("{kind}; filename=\"{plain}.pdf\"; filename*=UTF-8''{encoded}.pdf")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_by_its_report_number_which_cannot_break_out_of_the_quotes() {
        for (number, header) in [
            ("ANK-2026-000482", "attachment; filename=\"ANK-2026-000482.pdf\""),
            (
                "İZM/2026\"\r\n",
                "attachment; filename=\"_ZM_2026___.pdf\"; filename*=UTF-8''%C4%B0ZM%2F2026%22%0D%0A.pdf",
            ),
        ] {
            assert_eq!(disposition("attachment", number), header);
        }
    }
}
