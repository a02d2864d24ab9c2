//! Branch codes: how two of them are compared.

use super::fold::fold;

/// The form in which branch codes are compared and which `branches.code_folded` holds (MEA-1).
///
/// Letter case is ignored as Turkish keyboards mean it; everything else counts, spaces included.
pub fn folded(code: &str) -> String {
    fold(code)
}

#[cfg(test)]
mod tests {
    use super::folded;

    /// MEA-1
    #[test]
    fn codes_that_differ_in_case_alone_are_equal() {
        for code in ["izm-01", "IZM-01", "İZM-01", "ızm-01", "Izm-01"] {
            assert_eq!(folded(code), "IZM-01", "{code:?}");
        }
    }

    #[test]
    fn codes_that_differ_otherwise_are_not() {
        for code in ["IZM01", "IZM-1", " IZM-01", "IZM-01 ", "IZM_01", ""] {
            assert_ne!(folded(code), "IZM-01", "{code:?}");
        }
    }
}
