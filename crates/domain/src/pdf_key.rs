//! The object key of a report's PDF. It contains the fingerprint of the data from which the object was rendered.

use uuid::Uuid;

/// The version of the renderer. It is increased with every change to the rendering, so that PDFs of older versions are stale.
/// `crates/report-pdf/tests/render/document.rs` fails if the pages change under the same version.
pub const RENDERER_VERSION: i32 = 7;

/// Returns a new key, `reports/<report>/<renderer version>-<fingerprint>-<unique>.pdf`. Each rendering has a different key, so
/// that no object is ever overwritten.
#[must_use]
pub fn new_key(report: Uuid, fingerprint: &str) -> String {
    format!(
        "{}{}-{fingerprint}-{}.pdf",
        folder(report),
        RENDERER_VERSION,
        Uuid::now_v7().simple()
    )
}

/// Returns the prefix of the keys of a report's PDFs.
#[must_use]
pub fn folder(report: Uuid) -> String {
    format!("reports/{report}/")
}

/// Returns whether the object with this `key` was rendered from the data with this `fingerprint`, by this version of the
/// renderer or a newer one. During a rolling upgrade, old replicas serve PDFs of new ones.
#[must_use]
pub fn is_current(key: &str, report: Uuid, fingerprint: &str) -> bool {
    let parts = key
        .strip_prefix(folder(report).as_str())
        .and_then(|name| name.split_once('-'))
        .and_then(|(version, rest)| Some((version.parse::<i32>().ok()?, rest.split_once('-')?.0)));
    parts.is_some_and(|(version, rendered)| version >= RENDERER_VERSION && rendered == fingerprint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_current_for_its_report_and_fingerprint_and_this_or_a_newer_renderer() {
        let (report, fingerprint) = (Uuid::now_v7(), "a".repeat(64));
        let key = new_key(report, &fingerprint);
        assert_ne!(key, new_key(report, &fingerprint));
        assert!(is_current(&key, report, &fingerprint));
        assert!(!is_current(&key, Uuid::now_v7(), &fingerprint));
        assert!(!is_current(&key, report, &"b".repeat(64)));
        let of_version = |version: i32| format!("{}{version}-{fingerprint}-1.pdf", folder(report));
        assert!(is_current(&of_version(RENDERER_VERSION + 1), report, &fingerprint));
        assert!(!is_current(&of_version(RENDERER_VERSION - 1), report, &fingerprint));
        for foreign in [format!("reports/{report}.pdf"), folder(report), String::new()] {
            assert!(!is_current(&foreign, report, &fingerprint), "{foreign}");
        }
    }
}
