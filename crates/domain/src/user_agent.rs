//! What a client says sent its requests, as the log may keep it: cut, and without what looks like a secret or a person's.
//!
//! Nobody promises what is in a `User-Agent`: a careless client may put its key there, a crawler its owner's address, a
//! scanner anything. What is doubtful is removed: a lost version number harms less than a kept secret.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use regex::{Captures, Regex};

use super::scrub::{REMOVED, scrub};

/// The most characters that are kept.
const KEPT: usize = 200;

/// The most bytes that are looked at: more than are kept, so that what is cut in the middle by this end is not among those.
const LOOKED_AT: usize = 512;

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, and every test compiles them"
)]
fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

/// Queries of addresses, mail addresses, UUIDs and plates.
static SURELY: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"\?[^\s)>;,]+",
        r#"[^\s<>();,:"'/]+@[^\s<>();,"']+"#,
        r"\b[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\b",
        r"(?i)\b(?:0[1-9]|[1-7][0-9]|8[01])[ .\-]?[A-Z]{1,3}[ .\-]?[0-9]{2,5}\b",
    ]
    .map(compile)
    .into()
});

/// What keys and tokens are written in, as long as they are at least: without separators, and with those of Base64.
static RUN: LazyLock<Regex> = LazyLock::new(|| compile(r"[A-Za-z0-9_+=]{16,}"));
static LONG_RUN: LazyLock<Regex> = LazyLock::new(|| compile(r"[A-Za-z0-9_+/=\-]{32,}"));

/// As much of a header's value as [`kept`] looks at. Bytes that are no visible ASCII become stars.
pub fn looked_at(value: &[u8]) -> Option<Arc<str>> {
    let mut text: String = value
        .iter()
        .take(LOOKED_AT)
        .map(|byte| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '*',
        })
        .collect();
    if value.len() > LOOKED_AT {
        // The beginning of a word that goes on is not known for what it is.
        text.truncate(text.rfind(' ').unwrap_or(0));
    }
    (!text.is_empty()).then(|| text.into())
}

/// What is kept of it.
pub fn kept(text: &str) -> String {
    let mut text = Cow::Borrowed(text);
    for pattern in SURELY.iter() {
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
    scrub(&text).chars().take(KEPT).collect()
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
    fn what_programs_call_themselves_is_kept() {
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
        ] {
            assert_eq!(kept(agent), agent);
        }
    }

    #[test]
    fn what_may_be_a_secret_or_a_persons_is_not() {
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
            let kept = kept(agent);
            assert!(!kept.contains(hidden) && kept.contains(REMOVED), "{kept}");
            assert!(kept.starts_with("gateway/1 "), "{kept}");
        }
    }

    #[test]
    fn it_is_cut_and_made_visible() {
        assert_eq!(looked_at(b""), None);
        assert_eq!(looked_at(b"a\tb\xc5\x9f").as_deref(), Some("a*b**"));
        let long = "x. ".repeat(400);
        let looked_at = looked_at(long.as_bytes()).unwrap();
        assert!(looked_at.len() <= LOOKED_AT);
        assert_eq!(kept(&looked_at).len(), KEPT);
        let one_word = "x".repeat(LOOKED_AT + 1);
        assert_eq!(super::looked_at(one_word.as_bytes()), None);
    }
}
