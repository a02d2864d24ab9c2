//! Suggestions for mistyped names, and shell quoting.

/// The minimum similarity for a suggestion, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.75;

/// Returns up to three of `known` that are similar to `name`, best first.
pub fn similar(name: &str, known: &[String]) -> Vec<String> {
    let lower = name.to_lowercase();
    let mut similar: Vec<_> = known
        .iter()
        .map(|other| (strsim::jaro_winkler(&lower, &other.to_lowercase()), other))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .collect();
    similar.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(right.1)));
    similar.into_iter().take(3).map(|(_, other)| other.clone()).collect()
}

/// Quotes a text for a shell, if necessary.
pub fn quoted(text: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./:,@+=".contains(character);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_suggested_best_first() {
        let known = ["acme-devices", "acme", "beta", "Acmé Devices"].map(str::to_owned);
        assert_eq!(similar("acme-device", &known)[0], "acme-devices");
        assert_eq!(similar("zzz", &known), [""; 0]);
    }

    /// OPS-2
    #[test]
    fn a_name_is_quoted_for_a_shell() {
        assert_eq!(quoted("acme-devices"), "acme-devices");
        assert_eq!(quoted("Acme Devices"), "'Acme Devices'");
        assert_eq!(quoted("O'Neill $(rm)"), r"'O'\''Neill $(rm)'");
        assert_eq!(quoted(""), "''");
    }
}
