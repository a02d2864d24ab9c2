//! Comparison of branch codes.

use super::fold::fold;

/// Returns the form in which branch codes are compared and stored in `branches.code_folded` (MEA-1).
///
/// The comparison ignores letter case, with the variants of `i` on Turkish keyboards. Everything else counts, including spaces.
pub fn folded(code: &str) -> String {
    fold(code)
}

#[cfg(test)]
mod tests {
    use super::folded;

    /// MEA-1
    #[test]
    fn codes_that_differ_only_in_case_are_equal() {
        for code in ["izm-01", "IZM-01", "İZM-01", "ızm-01", "Izm-01"] {
            assert_eq!(folded(code), "IZM-01", "{code:?}");
        }
    }

    #[test]
    fn codes_that_differ_otherwise_are_not_equal() {
        for code in ["IZM01", "IZM-1", " IZM-01", "IZM-01 ", "IZM_01", ""] {
            assert_ne!(folded(code), "IZM-01", "{code:?}");
        }
    }
}
