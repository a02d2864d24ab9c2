//! Suggestions for mistyped names, and shell quoting.

/// The minimum similarity for a suggestion, from 0 to 1.
const ALIKE: f64 = 0.75;

/// Returns up to three of `known` that are similar to `name`, best first.
pub fn alike(name: &str, known: &[String]) -> Vec<String> {
    let lower = name.to_lowercase();
    let mut alike: Vec<_> = known
        .iter()
        .map(|other| (strsim::jaro_winkler(&lower, &other.to_lowercase()), other))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    alike.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(right.1)));
    alike.into_iter().take(3).map(|(_, other)| other.clone()).collect()
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
    fn names_that_look_alike_are_suggested_best_first() {
        let known = ["acme-devices", "acme", "beta", "Acmé Devices"].map(str::to_owned);
        assert_eq!(alike("acme-device", &known)[0], "acme-devices");
        assert_eq!(alike("zzz", &known), [""; 0]);
    }

    /// OPS-2: what is printed can be pasted.
    #[test]
    fn a_name_is_quoted_as_a_shell_takes_it() {
        assert_eq!(quoted("acme-devices"), "acme-devices");
        assert_eq!(quoted("Acme Devices"), "'Acme Devices'");
        assert_eq!(quoted("O'Neill $(rm)"), r"'O'\''Neill $(rm)'");
        assert_eq!(quoted(""), "''");
    }
}
