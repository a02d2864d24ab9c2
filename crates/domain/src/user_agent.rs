//! The header `User-Agent` as it may be logged: truncated, and without text that may be a secret or personal data.
//!
//! The header may contain anything: a careless client may put its key there, a crawler the address of its owner. If in doubt,
//! text is removed, because a lost version number does less harm than a logged secret.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use regex::{Captures, Regex};

use super::scrub::{REMOVED, scrub};

/// The maximum length of the result in characters.
const MAX_LENGTH: usize = 200;

/// The maximum number of bytes that are examined. It exceeds [`MAX_LENGTH`], so that a word that this limit cuts in the middle is
/// not part of the result.
const MAX_EXAMINED: usize = 512;

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, and every test compiles them"
)]
fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

/// Query strings, email addresses, UUIDs and plates, which are always removed.
static ALWAYS_REMOVED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"\?[^\s)>;,]+",
        r#"[^\s<>();,:"'/]+@[^\s<>();,"']+"#,
        r"\b[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\b",
        r"(?i)\b(?:0[1-9]|[1-7][0-9]|8[01])[ .\-]?[A-Z]{1,3}[ .\-]?[0-9]{2,5}\b",
    ]
    .map(compile)
    .into()
});

/// Sequences of characters that may be keys or tokens, with the minimum length: without separators, and with those of Base64.
static RUN: LazyLock<Regex> = LazyLock::new(|| compile(r"[A-Za-z0-9_+=]{16,}"));
static LONG_RUN: LazyLock<Regex> = LazyLock::new(|| compile(r"[A-Za-z0-9_+/=\-]{32,}"));

/// Returns the part of a header's value that [`redact`] examines. Bytes outside visible ASCII become asterisks.
pub fn truncate(value: &[u8]) -> Option<Arc<str>> {
    let mut text: String = value
        .iter()
        .take(MAX_EXAMINED)
        .map(|byte| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '*',
        })
        .collect();
    if value.len() > MAX_EXAMINED {
        // The beginning of an incomplete word may not be recognized as a secret.
        text.truncate(text.rfind(' ').unwrap_or(0));
    }
    (!text.is_empty()).then(|| text.into())
}

/// Removes text that may be a secret or personal data, and limits the length.
pub fn redact(text: &str) -> String {
    let mut text = Cow::Borrowed(text);
    for pattern in ALWAYS_REMOVED.iter() {
        replace(&mut text, pattern, |_| true);
    }
    replace(&mut text, &LONG_RUN, |run| {
        has_digit(run)
            && run.contains(|c: char| c.is_ascii_uppercase())
            && run.contains(|c: char| c.is_ascii_lowercase())
    });
    replace(&mut text, &RUN, |run| {
        has_digit(run) || !run.contains(|c: char| c.is_ascii_lowercase())
    });
    scrub(&text).chars().take(MAX_LENGTH).collect()
}

fn has_digit(run: &str) -> bool {
    run.contains(|c: char| c.is_ascii_digit())
}

fn replace(text: &mut Cow<'_, str>, pattern: &Regex, is_doubtful: impl Fn(&str) -> bool) {
    let replaced = pattern.replace_all(text, |found: &Captures<'_>| match is_doubtful(&found[0]) {
        true => REMOVED.to_owned(),
        false => found[0].to_owned(),
    });
    if let Cow::Owned(replaced) = replaced {
        *text = Cow::Owned(replaced);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs_are_kept() {
        for agent in [
            "curl/8.5.0",
            "python-requests/2.32.3",
            "Apache-HttpClient/4.5.13 (Java/17.0.9)",
            "okhttp/4.12.0",
            "com-example-inspection-gateway-client/2.10.1",
            "partner-api-client/1.2.0 (+https://example.org/about)",
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36",
            "Mozilla/5.0 (Linux; Android 9; SM-G960F Build/PPR1.180610.011) Version/4.0",
            "Dalvik/2.1.0 (Linux; U; Android 13; SM-A536B)",
            "Go-http-client/2.0",
            "InspectionGatewayClient/2.1",
        ] {
            assert_eq!(redact(agent), agent);
        }
    }

    #[test]
    fn possible_secrets_and_personal_data_are_removed() {
        for (agent, hidden) in [
            ("gateway/1 ALPHAALPHAALPHAALPHAALPHAALPHA22", "ALPHAALPHA"),
            ("gateway/1 ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF", "ABCDEF"),
            (
                "gateway/1 sha256=00b8332449583da2c92d54fa0ee432290c99864df6d9226fca919be2d027f8d7",
                "00b8332",
            ),
            ("gateway/1 token=Zm9v/YmFy+MTIz-NDU2Nzg5/QUJDREVGR0g", "YmFy"),
            ("gateway/1 (+https://example.org/hook?plate=1&key=x)", "key=x"),
            ("gateway/1 (ayse.yilmaz@example.org)", "yilmaz"),
            ("gateway/1 0532 123 45 67", "123 45"),
            ("gateway/1 tckn 12345678901", "12345678901"),
            ("gateway/1 34 ABC 123", "ABC"),
            ("gateway/1 34abc123", "abc"),
            ("gateway/1 5YJ3E7EB9KF000301", "5YJ3E7"),
            ("gateway/1 9f8b3c1e-2d4a-4e6f-8a1b-0c2d4e6f8a1b", "9f8b3c1e"),
        ] {
            let redacted = redact(agent);
            assert!(!redacted.contains(hidden) && redacted.contains(REMOVED), "{redacted}");
            assert!(redacted.starts_with("gateway/1 "), "{redacted}");
        }
    }

    #[test]
    fn a_header_is_truncated_and_its_invisible_bytes_are_replaced() {
        assert_eq!(truncate(b""), None);
        assert_eq!(truncate(b"a\tb\xc5\x9f").as_deref(), Some("a*b**"));
        let long = "x. ".repeat(400);
        let truncated = truncate(long.as_bytes()).unwrap();
        assert!(truncated.len() <= MAX_EXAMINED);
        assert_eq!(redact(&truncated).len(), MAX_LENGTH);
        let one_word = "x".repeat(MAX_EXAMINED + 1);
        assert_eq!(truncate(one_word.as_bytes()), None);
        assert_eq!(truncate(&one_word.as_bytes()[1..]).as_deref(), Some(&one_word[1..]));
    }
}
