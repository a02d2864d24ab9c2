//! Picks sentences and fills in their placeholders.

use crate::catalog::texts::{FIRST_NAMES, PERSONAL, Sentence};
use crate::findings::Findings;
use crate::random::Random;

/// Picks a sentence that is true for a report and in half of the cases appends `service`. With a probability of `personal` percent it
/// also appends a sentence with personal data.
pub fn true_sentence(
    random: &mut Random,
    sentences: &[Sentence],
    service: &str,
    findings: &Findings,
    personal: i64,
) -> String {
    let texts: Vec<&str> = sentences
        .iter()
        .filter(|sentence| (sentence.holds)(findings))
        .map(|sentence| sentence.text)
        .collect();
    let first = sentence(random, &texts, findings.mileage_km, 0);
    let is_alone = !first.is_empty() && random.chance(50);
    let services: &[&str] = if is_alone { &[""] } else { &[service] };
    let second = sentence(random, services, findings.mileage_km, personal);
    [first, second].join(" ").trim().to_owned()
}

/// Picks one of `sentences` and fills in its placeholders. With a probability of `personal` percent it appends a sentence with personal
/// data. The result is empty if `sentences` is empty.
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
            // Services happen about every 15,000 km and are noted in round numbers.
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

/// Formats a number below a million with a dot as the thousands separator: `186.500`.
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
    fn all_placeholders_are_filled_in() {
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
    fn thousands_are_separated() {
        assert_eq!(
            (thousands(500), thousands(1_005), thousands(186_500)),
            ("500".into(), "1.005".into(), "186.500".into())
        );
    }
}
