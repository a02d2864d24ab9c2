//! Which drawing of the page this is.

/// Rises with every change to how a report is drawn, so that PDFs of an older drawing are told from those of this one.
/// `tests/version.rs` fails for a page that is drawn otherwise under the same number.
pub const VERSION: i32 = 3;
