//! The object key of a report's PDF, which says what the object was rendered from: as key and object cannot come apart,
//! neither can the object and what it shows.

use uuid::Uuid;

/// Rises with every change to how a report is drawn, so that PDFs of an older drawing are told from those of this one.
/// `tests/version.rs` of the crate report-pdf fails for a page that is drawn otherwise under the same number.
pub const DRAWING: i32 = 3;

/// `reports/<report>/<renderer's version>-<fingerprint>-<unique>.pdf`: a new key for each rendering of `report` from what
/// has this `fingerprint`, so that no object is ever overwritten.
#[must_use]
pub fn fresh(report: Uuid, fingerprint: &str) -> String {
    format!(
        "{}{}-{fingerprint}-{}.pdf",
        folder(report),
        DRAWING,
        Uuid::now_v7().simple()
    )
}

/// What the keys of a report's own PDFs begin with.
#[must_use]
pub fn folder(report: Uuid) -> String {
    format!("reports/{report}/")
}

/// Whether the object under `key` was rendered from what `report` holds now. A drawing newer than ours is as good: while
/// replicas are replaced one by one, the old ones serve what the new ones render.
#[must_use]
pub fn is_current(key: &str, report: Uuid, fingerprint: &str) -> bool {
    let parts = key
        .strip_prefix(folder(report).as_str())
        .and_then(|name| name.split_once('-'))
        .and_then(|(version, rest)| Some((version.parse::<i32>().ok()?, rest.split_once('-')?.0)));
    parts.is_some_and(|(version, of)| version >= DRAWING && of == fingerprint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_current_for_its_report_its_content_and_drawings_no_older_than_ours() {
        let (report, fingerprint) = (Uuid::now_v7(), "a".repeat(64));
        let key = fresh(report, &fingerprint);
        assert_ne!(key, fresh(report, &fingerprint));
        assert!(is_current(&key, report, &fingerprint));
        assert!(!is_current(&key, Uuid::now_v7(), &fingerprint));
        assert!(!is_current(&key, report, &"b".repeat(64)));
        let of_version = |version: i32| format!("{}{version}-{fingerprint}-1.pdf", folder(report));
        assert!(is_current(&of_version(DRAWING + 1), report, &fingerprint));
        assert!(!is_current(&of_version(DRAWING - 1), report, &fingerprint));
        for foreign in [format!("reports/{report}.pdf"), folder(report), String::new()] {
            assert!(!is_current(&foreign, report, &fingerprint), "{foreign}");
        }
    }
}
