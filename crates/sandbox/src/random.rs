//! The seeded random generator of the sandbox's data, with generators of plates, VINs, national IDs and telephone numbers.

use chrono::{DateTime, Utc};
use rand::{Rng as _, RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use uuid::Uuid;

/// A random generator. The same seed gives the same values on every machine.
pub struct Random(ChaCha8Rng);

impl Random {
    /// Creates a generator from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Returns a number from `low` to `high`, both included, or `low` if the range is empty.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        if low >= high {
            low
        } else {
            self.0.random_range(low..=high)
        }
    }

    /// Returns an index below `length`, or 0 if `length` is 0.
    pub fn index(&mut self, length: usize) -> usize {
        if length == 0 {
            0
        } else {
            self.0.random_range(0..length as u64) as usize
        }
    }

    /// Returns true with a probability of `percent`.
    pub fn chance(&mut self, percent: i64) -> bool {
        self.between(1, 100) <= percent
    }

    /// Returns one of `items`, which must not be empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// Returns one of `items` by weight. The weights must not all be 0.
    pub fn weighted<T: Copy>(&mut self, items: &[(T, u32)]) -> T {
        let total: i64 = items.iter().map(|(_, weight)| i64::from(*weight)).sum();
        let mut left = self.between(1, total);
        for (item, weight) in items {
            left -= i64::from(*weight);
            if left <= 0 {
                return *item;
            }
        }
        items[items.len() - 1].0
    }

    /// Shuffles `items`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.index(last + 1);
            items.swap(last, other);
        }
    }

    /// Returns a UUIDv7 of the given time.
    pub fn id(&mut self, time: DateTime<Utc>) -> Uuid {
        let mut random = [0; 10];
        self.0.fill_bytes(&mut random);
        let milliseconds = u64::try_from(time.timestamp_millis()).unwrap_or(0);
        uuid::Builder::from_unix_timestamp_millis(milliseconds, &random).into_uuid()
    }

    /// Returns a normalized plate of the province as the registry issues them: plates with more letters have fewer digits,
    /// and none has the letters Q, W and X.
    pub fn plate(&mut self, province: u8) -> String {
        const LETTERS: &[u8] = b"ABCDEFGHJKLMNPRSTUVYZ";
        let letters = self.weighted(&[(1_usize, 10_u32), (2, 40), (3, 50)]);
        let (low, high) = match letters {
            1 => (1_000, 9_999),
            2 => (100, 9_999),
            _ => (10, 999),
        };
        let letters: String = (0..letters).map(|_| char::from(*self.pick(LETTERS))).collect();
        format!("{province:02}{letters}{}", self.between(low, high))
    }

    /// Returns a VIN: the maker, a descriptor, the check digit, the model year, a plant and a serial number.
    pub fn vin(&mut self, wmi: &str, year: i32) -> String {
        const CHARACTERS: &[u8] = b"ABCDEFGHJKLMNPRSTUVWXYZ0123456789";
        // The codes of model years repeat every thirty years, without I, O, Q, U, Z and 0.
        const YEARS: &[u8] = b"ABCDEFGHJKLMNPRSTVWXY123456789";
        let descriptor: String = (0..5).map(|_| char::from(*self.pick(CHARACTERS))).collect();
        let year = char::from(YEARS[(year - 1980).rem_euclid(30) as usize]);
        let plant = char::from(*self.pick(b"ABCDEFGHJKLMNPRSTUV"));
        let serial = self.between(1, 999_999);
        let open = format!("{wmi}{descriptor}0{year}{plant}{serial:06}");
        let check = vin_check_digit(&open).unwrap_or('0');
        format!("{}{check}{}", &open[..8], &open[9..])
    }

    /// Returns a Turkish national ID with valid check digits, in one of the common spellings.
    pub fn national_id(&mut self) -> String {
        let mut digits = [0_u8; 11];
        digits[0] = self.between(1, 9) as u8;
        for digit in &mut digits[1..9] {
            *digit = self.between(0, 9) as u8;
        }
        (digits[9], digits[10]) = national_id_check_digits(&digits);
        let plain: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        match self.index(5) {
            0 => format!("{} {} {} {}", &plain[..3], &plain[3..6], &plain[6..9], &plain[9..]),
            1 => format!("{}-{}-{}-{}", &plain[..3], &plain[3..6], &plain[6..9], &plain[9..]),
            2 => format!("{}.{}.{}.{}", &plain[..3], &plain[3..6], &plain[6..9], &plain[9..]),
            _ => plain,
        }
    }

    /// Returns a Turkish mobile number in one of the common spellings.
    pub fn telephone(&mut self) -> String {
        let operator = *self.pick(&["505", "532", "533", "535", "541", "542", "544", "551", "553", "555"]);
        let (a, b, c) = (self.between(200, 999), self.between(10, 99), self.between(10, 99));
        match self.index(8) {
            0 => format!("+90 {operator} {a} {b} {c}"),
            1 => format!("+90{operator}{a}{b}{c}"),
            2 => format!("0{operator}{a}{b}{c}"),
            3 => format!("0({operator}) {a} {b} {c}"),
            4 => format!("0 {operator} {a}-{b}-{c}"),
            5 => format!("{operator}.{a}.{b}.{c}"),
            6 => format!("({operator}) {a} {b} {c}"),
            _ => format!("{operator}{a}{b}{c}"),
        }
    }
}

/// Computes the check digit of a VIN, its ninth character: `0`-`9` or `X`. The current ninth character is ignored. Returns `None`
/// if the text is not 17 characters of the VIN's alphabet.
#[must_use]
pub fn vin_check_digit(vin: &str) -> Option<char> {
    const WEIGHTS: [u32; 17] = [8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2];
    if vin.len() != WEIGHTS.len() {
        return None;
    }
    let mut sum = 0;
    for (character, weight) in vin.bytes().zip(WEIGHTS) {
        let value = match character {
            b'0'..=b'9' => character - b'0',
            b'A'..=b'H' => character - b'A' + 1,
            b'J'..=b'N' => character - b'J' + 1,
            b'P' => 7,
            b'R' => 9,
            b'S'..=b'Z' => character - b'S' + 2,
            _ => return None,
        };
        sum += u32::from(value) * weight;
    }
    match sum % 11 {
        10 => Some('X'),
        digit => char::from_digit(digit, 10),
    }
}

/// Computes the tenth and eleventh digits of a national ID from its first nine.
fn national_id_check_digits(digits: &[u8; 11]) -> (u8, u8) {
    let sum = |from: usize| {
        digits[..9]
            .iter()
            .skip(from)
            .step_by(2)
            .map(|digit| i32::from(*digit))
            .sum::<i32>()
    };
    let (odd, even) = (sum(0), sum(1));
    let tenth = (odd * 7 - even).rem_euclid(10);
    let eleventh = (odd + even + tenth) % 10;
    (tenth as u8, eleventh as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_digits_of_known_vins_are_correct() {
        assert_eq!(
            vin_check_digit("1M8GDM9A_KP042788".replace('_', "X").as_str()),
            Some('X')
        );
        assert_eq!(vin_check_digit("11111111111111111"), Some('1'));
        assert_eq!(vin_check_digit("IIIIIIIIIIIIIIIII"), None);
        assert_eq!(vin_check_digit("SHORT"), None);
    }

    #[test]
    fn the_check_digits_of_a_known_national_id_are_correct() {
        let mut digits = [1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0];
        (digits[9], digits[10]) = national_id_check_digits(&digits);
        assert_eq!(digits, [1, 0, 0, 0, 0, 0, 0, 0, 1, 4, 6]);
    }

    #[test]
    fn the_same_seed_draws_the_same_values() {
        let draw = || {
            let mut random = Random::new(7);
            (
                random.plate(34),
                random.vin("VF1", 2018),
                random.national_id(),
                random.telephone(),
            )
        };
        assert_eq!(draw(), draw());
    }
}
