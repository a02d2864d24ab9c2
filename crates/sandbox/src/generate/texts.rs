//! Chooses sentences and fills their placeholders.

use super::found::Found;
use crate::catalogue::texts::{FIRST_NAMES, PERSONAL, Sentence};
use crate::random::Random;

/// One of the sentences that are true of a report, half of the times with `service` behind it; sometimes, `personal` times in a
/// hundred, with one that holds personal data.
pub fn true_sentence(
    random: &mut Random,
    sentences: &[Sentence],
    service: &str,
    found: &Found,
    personal: i64,
) -> String {
    let texts: Vec<&str> = sentences
        .iter()
        .filter(|sentence| (sentence.holds)(found))
        .map(|sentence| sentence.text)
        .collect();
    let first = sentence(random, &texts, found.mileage_km, 0);
    let is_alone = !first.is_empty() && random.chance(50);
    let services: &[&str] = if is_alone { &[""] } else { &[service] };
    let second = sentence(random, services, found.mileage_km, personal);
    [first, second].join(" ").trim().to_owned()
}

/// One of `sentences` with its placeholders filled; sometimes, `personal` times in a hundred, with a sentence that holds
/// personal data behind it. None is an empty text.
pub fn sentence(random: &mut Random, sentences: &[&str], mileage_km: i32, personal: i64) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    let template = *random.pick::<&str>(sentences);
    let mut text = fill(random, template, mileage_km);
    if random.chance(personal) {
        text.push(' ');
        let addition = *random.pick::<&str>(&PERSONAL);
        text.push_str(&fill(random, addition, mileage_km));
    }
    text
}

fn fill(random: &mut Random, template: &str, mileage_km: i32) -> String {
    let mileage_km = i64::from(mileage_km);
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
            "km" => text.push_str(&thousands(mileage_km)),
            // Services are every 15,000 km or so, and are written down in round numbers.
            "son_bakim" => {
                let since = random.between(500, 9_000);
                text.push_str(&thousands((mileage_km - since).max(1_000) / 500 * 500));
            }
            "sonraki_bakim" => text.push_str(&thousands((mileage_km / 5_000 + random.between(1, 3)) * 5_000)),
            _ => text.push_str(&thousands(random.between(6, 90) * 500)),
        }
        rest = after;
    }
    text.push_str(rest);
    text
}

/// A number below a million with a dot between thousands: `186.500`.
pub fn thousands(number: i64) -> String {
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
            let text = sentence(
                &mut random,
                &["{km} km, {tl} TL, {son_bakim}, {sonraki_bakim}"],
                186_512,
                80,
            );
            assert!(!text.contains(['{', '}']) && text.starts_with("186.512 km"), "{text}");
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
