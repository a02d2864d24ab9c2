//! A signature over the right canonical string that is none: what was done to make it.

use data_encoding::{BASE32_NOPAD, BASE64, HEXLOWER, HEXUPPER};
use hmac::{Hmac, Mac as _};
use partner_api_client::Secret;
use partner_api_signing::{SIGNATURE_PREFIX, sign};
use sha2::{Digest as _, Sha256};

use super::Finding;

/// What is wrong with a signature; `None` when it is right. Without the secret only its form can be judged.
pub(super) fn compare(canonical: &str, signature: &str, secret: Option<&Secret>) -> Option<Finding> {
    let expected = secret.map(|secret| sign(secret, canonical));
    if expected.as_deref() == Some(signature) {
        return None;
    }
    let cause = match secret.and_then(|secret| mistake(canonical, signature, secret)) {
        Some(cause) => cause,
        None => form(signature).unwrap_or_else(|| {
            let what = "its form is right, and it is the HMAC of something else";
            match secret {
                Some(_) => format!(
                    "{what}: of another secret than this profile's (does it belong to this key id?), or of another canonical \
                     string; give what was signed with --canonical FILE"
                ),
                None => format!("{what}; with a profile, or PARTNER_SECRET, more can be said"),
            }
        }),
    };
    Some(Finding {
        place: "the signature".to_owned(),
        expected: expected.unwrap_or_else(|| format!("{SIGNATURE_PREFIX} and 64 lower-case hex digits")),
        found: signature.to_owned(),
        cause,
    })
}

/// What is wrong with its form.
fn form(signature: &str) -> Option<String> {
    let Some(rest) = signature.strip_prefix(SIGNATURE_PREFIX) else {
        let told = match signature.get(..SIGNATURE_PREFIX.len()) {
            Some(prefix) if prefix.eq_ignore_ascii_case(SIGNATURE_PREFIX) => "the prefix is `sha256=`, in lower case",
            _ => "it begins with `sha256=`",
        };
        return Some(told.to_owned());
    };
    let cause = match rest.len() {
        64 if rest.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            return rest
                .bytes()
                .any(|byte| byte.is_ascii_uppercase())
                .then(|| "its hex is in upper case: write it in lower case".to_owned());
        }
        40 => "40 hex digits are SHA-1's: use HMAC-SHA256",
        128 => "128 hex digits are SHA-512's: use HMAC-SHA256",
        43 | 44 => "it looks like base64: write the digest in lower-case hex",
        _ => "behind `sha256=` there are 64 lower-case hex digits",
    };
    Some(cause.to_owned())
}

/// The mistake that makes this very signature, if it is a known one: a key, what was signed, and how it was written.
fn mistake(canonical: &str, signature: &str, secret: &Secret) -> Option<String> {
    let text = secret.expose();
    let decoded = BASE32_NOPAD.decode(text.as_bytes()).unwrap_or_default();
    let keys: [(Vec<u8>, &str); 6] = [
        (text.as_bytes().to_vec(), ""),
        (
            decoded,
            "the secret was decoded from base32: its 32 characters, as shown, are the key",
        ),
        (text.to_lowercase().into_bytes(), "the secret was put into lower case"),
        (
            format!("{text}\n").into_bytes(),
            "a line feed is part of the secret there: trim what is read from a file",
        ),
        (
            format!("{text}\r\n").into_bytes(),
            "a CR LF is part of the secret there: trim what is read from a file",
        ),
        (
            format!("\"{text}\"").into_bytes(),
            "quotes are part of the secret there",
        ),
    ];
    let messages: [(String, &str); 5] = [
        (canonical.to_owned(), ""),
        (
            format!("{canonical}\n"),
            "a line feed was signed at the end of the canonical string (echo adds one; printf '%s' does not)",
        ),
        (canonical.replace('\n', "\r\n"), "lines were joined with CR LF"),
        (
            canonical.replace('\n', "\\n"),
            "backslash and n were signed in place of line feeds",
        ),
        (
            HEXLOWER.encode(&Sha256::digest(canonical)),
            "the SHA-256 of the canonical string was signed, not the string itself",
        ),
    ];
    let mut digests = Vec::new();
    for (key, of_key) in &keys {
        for (message, of_message) in &messages {
            digests.push((hmac(key, message.as_bytes()), joined(&[of_key, of_message])));
        }
    }
    let swapped = hmac(canonical.as_bytes(), text.as_bytes());
    digests.push((swapped, "key and message are swapped: the secret is the key".to_owned()));
    for (bytes, what) in [
        (
            format!("{text}{canonical}"),
            "secret and canonical string were hashed together",
        ),
        (
            format!("{canonical}{text}"),
            "canonical string and secret were hashed together",
        ),
        (
            canonical.to_owned(),
            "the canonical string was hashed without the secret",
        ),
    ] {
        let what = format!("{what}: it is HMAC-SHA256, keyed with the secret");
        digests.push((Sha256::digest(bytes).to_vec(), what));
    }
    digests.into_iter().find_map(|(digest, what)| {
        let written = notations(&digest)
            .into_iter()
            .find(|(written, _)| written == signature)?;
        Some(joined(&[&what, written.1]))
    })
}

fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    // HMAC takes a key of any length.
    Hmac::<Sha256>::new_from_slice(key)
        .map(|mac| mac.chain_update(message).finalize().into_bytes().to_vec())
        .unwrap_or_default()
}

/// The ways in which a digest is written, and what is wrong with each.
fn notations(digest: &[u8]) -> [(String, &'static str); 6] {
    let (lower, upper, base64) = (HEXLOWER.encode(digest), HEXUPPER.encode(digest), BASE64.encode(digest));
    let no_prefix = "it begins with `sha256=`";
    [
        (format!("{SIGNATURE_PREFIX}{lower}"), ""),
        (lower, no_prefix),
        (
            format!("{SIGNATURE_PREFIX}{upper}"),
            "its hex is in upper case: write it in lower case",
        ),
        (upper, "it begins with `sha256=`, and its hex is in lower case"),
        (
            format!("{SIGNATURE_PREFIX}{base64}"),
            "the digest is in base64: write it in lower-case hex",
        ),
        (
            base64,
            "it begins with `sha256=`, and the digest is in lower-case hex, not base64",
        ),
    ]
}

fn joined(parts: &[&str]) -> String {
    let parts: Vec<_> = parts.iter().filter(|part| !part.is_empty()).copied().collect();
    parts.join("; ")
}
