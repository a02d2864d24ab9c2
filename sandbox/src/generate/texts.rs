//! Fills the sentences' placeholders.

use crate::catalogue::texts::{FIRST_NAMES, PERSONAL};
use crate::random::Random;

/// One of `sentences` with its placeholders filled; sometimes, `personal` times in a hundred, with a sentence that holds
/// personal data behind it.
pub fn sentence(random: &mut Random, sentences: &[&str], personal: i64) -> String {
    let template = *random.pick::<&str>(sentences);
    let mut text = fill(random, template);
    if random.chance(personal) {
        text.push(' ');
        let addition = *random.pick::<&str>(&PERSONAL);
        text.push_str(&fill(random, addition));
    }
    text
}

fn fill(random: &mut Random, template: &str) -> String {
    let mut text = String::with_capacity(template.len() + 16);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        text.push_str(before);
        match name {
            "tc" => text.push_str(&random.national_id()),
            "tel" => text.push_str(&random.telephone()),
            "ad" => text.push_str(random.pick::<&str>(&FIRST_NAMES)),
            "km" => text.push_str(&thousands(random.between(12, 240) * 1_000)),
            _ => text.push_str(&thousands(random.between(6, 90) * 500)),
        }
        rest = after;
    }
    text.push_str(rest);
    text
}

/// A number below a million with a dot between thousands: `186.500`.
fn thousands(number: i64) -> String {
    if number < 1_000 {
        number.to_string()
    } else {
        format!("{}.{:03}", number / 1_000, number % 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_placeholder_is_left() {
        let mut random = Random::new(3);
        for _ in 0..200 {
            let text = sentence(&mut random, &["{km} km, {tl} TL"], 80);
            assert!(!text.contains(['{', '}']), "{text}");
        }
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(
            (thousands(500), thousands(1_005), thousands(186_500)),
            ("500".into(), "1.005".into(), "186.500".into())
        );
    }
}
