//! Suggestions for misspelled names.

/// Returns the most similar of the `known` names, if there is one. It equals `name` except for case, separators, or a typing
/// error.
pub fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    // A long text is no misspelled name, and comparing it takes time and memory.
    if name.len() > 1_000 {
        return None;
    }
    let plain = plain(name);
    let mut best: Option<(usize, &str)> = None;
    for other in known {
        let distance = strsim::damerau_levenshtein(&plain, &self::plain(other));
        // In a short name, even one letter makes a different name.
        let max_distance = match plain.chars().count() {
            0..=3 => 0,
            4..=7 => 1,
            _ => 2,
        };
        if distance <= max_distance && best.is_none_or(|(shortest, _)| distance < shortest) {
            best = Some((distance, other));
        }
    }
    best.map(|(_, name)| name)
}

/// The letters and digits of a name in lower case, up to a maximum length.
fn plain(name: &str) -> String {
    const MAX_LENGTH: usize = 64;
    let plain = name
        .chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase);
    plain.take(MAX_LENGTH).collect()
}

/// Other spellings of a name: in upper and lower case, with underscores as separators.
pub fn spellings(name: &str) -> Vec<String> {
    let mut words = String::with_capacity(name.len() + 4);
    let mut before = None;
    for character in name.trim().chars() {
        let begins_word = character.is_uppercase() && before.is_some_and(char::is_lowercase);
        if begins_word {
            words.push('_');
        }
        words.push(match character.is_alphanumeric() {
            true => character,
            false => '_',
        });
        before = Some(character);
    }
    vec![
        words.to_uppercase(),
        words.to_lowercase(),
        name.to_ascii_uppercase(),
        name.to_ascii_lowercase(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_names_are_recognized() {
        let known = ["branch_code", "plate", "external_id", "id", "ids"];
        let table = [
            ("branchCode", Some("branch_code")),
            ("BranchCode", Some("branch_code")),
            ("BRANCH-CODE", Some("branch_code")),
            ("branch_kode", Some("branch_code")),
            ("Plate", Some("plate")),
            ("platte", Some("plate")),
            ("palte", Some("plate")),
            ("Id", Some("id")),
            ("idx", None),
            ("color", None),
            ("", None),
        ];
        for (name, meant) in table {
            assert_eq!(nearest(name, known.into_iter()), meant, "{name}");
        }
    }

    #[test]
    fn names_have_other_spellings() {
        assert!(spellings("brake-front left").contains(&"BRAKE_FRONT_LEFT".to_string()));
        assert!(spellings("brakeFrontLeft").contains(&"BRAKE_FRONT_LEFT".to_string()));
        assert!(spellings("brake_front_left").contains(&"BRAKE_FRONT_LEFT".to_string()));
    }
}
