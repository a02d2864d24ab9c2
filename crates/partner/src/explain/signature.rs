//! Finds the mistake in a signature: in its notation, its key, or the string that was signed.

use data_encoding::{BASE32_NOPAD, BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER, HEXLOWER_PERMISSIVE};
use hmac::{Hmac, Mac as _};
use partner_api_client::Secret;
use partner_api_signing::{SIGNATURE_PREFIX, sign};
use sha2::{Digest as _, Sha256};

use super::search::{find, forms};
use super::{Evidence, Finding, lines};

/// Returns the mistakes in a signature; none if it is correct. Without the secret only its notation is checked.
pub(super) fn compare(evidence: &Evidence<'_>, signature: &str) -> Vec<Finding> {
    let canonical = evidence.expected;
    let expected = evidence.secret.map(|secret| sign(secret, canonical));
    if expected.as_deref() == Some(signature) {
        return Vec::new();
    }
    let in_signature = |causes: &[&str]| {
        let causes: Vec<_> = causes.iter().filter(|cause| !cause.is_empty()).copied().collect();
        (!causes.is_empty()).then(|| Finding {
            place: "the signature".to_owned(),
            expected: expected
                .clone()
                .unwrap_or_else(|| format!("{SIGNATURE_PREFIX} followed by 64 lower-case hex digits")),
            found: signature.to_owned(),
            cause: causes.join("; "),
        })
    };
    let (digest, notation) = read(signature);
    let (Some(digest), Some(secret)) = (&digest, evidence.secret) else {
        let unchecked = "it could not be compared: select a profile or set PARTNER_SECRET";
        let cause = if notation.is_empty() { unchecked } else { &notation };
        return in_signature(&[cause]).into_iter().collect();
    };
    if let Some(cause) = in_key(canonical, digest, secret) {
        return in_signature(&[&cause, &notation]).into_iter().collect();
    }
    let keys = keys(secret);
    let canonical_lines: Vec<_> = canonical.split('\n').map(str::to_owned).collect();
    let with_form = keys.iter().find_map(|(key, cause)| {
        let form = forms(&canonical_lines)
            .into_iter()
            .find(|form| hmac(key, form.as_bytes()) == *digest)?;
        Some((form, *cause))
    });
    let signed = with_form.or_else(|| {
        let key = secret.expose().as_bytes();
        let signed = find(canonical, evidence.sent, |text| hmac(key, text.as_bytes()) == *digest)?;
        Some((signed, ""))
    });
    match signed {
        Some((signed, cause)) => {
            let mut findings = lines::compare(canonical, &signed, evidence.sent.body);
            findings.extend(in_signature(&[cause, &notation]));
            findings
        }
        None => {
            let other = "it was made with another secret than this profile's (does the secret belong to this key ID?), or from \
                         another string than this request's; pass the string that was signed with --canonical FILE";
            in_signature(&[&notation, other]).into_iter().collect()
        }
    }
}

/// Returns the digest in a signature, if it has one, and the mistakes in its notation.
fn read(signature: &str) -> (Option<Vec<u8>>, String) {
    let is_prefixed = signature
        .get(..SIGNATURE_PREFIX.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(SIGNATURE_PREFIX));
    let rest = if is_prefixed {
        &signature[SIGNATURE_PREFIX.len()..]
    } else {
        signature
    };
    let prefix = match (signature.starts_with(SIGNATURE_PREFIX), is_prefixed) {
        (true, _) => "",
        (false, true) => "the prefix must be `sha256=`, in lower case",
        (false, false) => "it must begin with `sha256=`",
    };
    let (digest, notation) = if rest.len() == 64
        && let Ok(digest) = HEXLOWER_PERMISSIVE.decode(rest.as_bytes())
    {
        let is_lower = HEXLOWER.encode(&digest) == rest;
        let upper = "its hex is in upper case: write it in lower case";
        (Some(digest), if is_lower { "" } else { upper })
    } else if let bytes = rest.trim_end_matches('=').as_bytes()
        && bytes.len() == 43
        && let Ok(digest) = BASE64_NOPAD.decode(bytes).or_else(|_| BASE64URL_NOPAD.decode(bytes))
    {
        (Some(digest), "the digest is in base64: write it in lower-case hex")
    } else {
        let cause = match rest.len() {
            40 => "40 hex digits are the length of SHA-1: use HMAC-SHA256",
            128 => "128 hex digits are the length of SHA-512: use HMAC-SHA256",
            _ => "`sha256=` must be followed by 64 lower-case hex digits",
        };
        (None, cause)
    };
    let causes: Vec<_> = [prefix, notation]
        .into_iter()
        .filter(|cause| !cause.is_empty())
        .collect();
    (digest, causes.join("; "))
}

/// Returns the keys that may have been used, each with its mistake; the correct one has none.
fn keys(secret: &Secret) -> [(Vec<u8>, &'static str); 6] {
    let text = secret.expose();
    [
        (text.as_bytes().to_vec(), ""),
        (
            BASE32_NOPAD.decode(text.as_bytes()).unwrap_or_default(),
            "the secret was decoded from base32: use its 32 characters as the key, as they are",
        ),
        (
            text.to_lowercase().into_bytes(),
            "the secret was converted to lower case",
        ),
        (
            format!("{text}\n").into_bytes(),
            "the secret was used with a line feed at its end: trim a secret that is read from a file",
        ),
        (
            format!("{text}\r\n").into_bytes(),
            "the secret was used with a CR LF at its end: trim a secret that is read from a file",
        ),
        (
            format!("\"{text}\"").into_bytes(),
            "the secret was used with quotes around it",
        ),
    ]
}

/// Returns the mistake if the correct string was signed in a wrong way; empty if only the notation is wrong.
fn in_key(canonical: &str, digest: &[u8], secret: &Secret) -> Option<String> {
    let text = secret.expose();
    let mut digests: Vec<_> = keys(secret)
        .into_iter()
        .map(|(key, cause)| (hmac(&key, canonical.as_bytes()), cause.to_owned()))
        .collect();
    let of_digest = HEXLOWER.encode(&Sha256::digest(canonical));
    digests.push((
        hmac(text.as_bytes(), of_digest.as_bytes()),
        "the SHA-256 of the canonical string was signed, not the string itself".to_owned(),
    ));
    digests.push((
        hmac(canonical.as_bytes(), text.as_bytes()),
        "key and message are swapped: the secret is the key".to_owned(),
    ));
    for (bytes, cause) in [
        (
            format!("{text}{canonical}"),
            "the secret and the canonical string were concatenated and hashed",
        ),
        (
            format!("{canonical}{text}"),
            "the canonical string and the secret were concatenated and hashed",
        ),
        (
            canonical.to_owned(),
            "the canonical string was hashed without the secret",
        ),
    ] {
        let cause = format!("{cause}: use HMAC-SHA256 with the secret as its key");
        digests.push((Sha256::digest(bytes).to_vec(), cause));
    }
    digests
        .into_iter()
        .find_map(|(other, cause)| (other == digest).then_some(cause))
}

fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    // HMAC takes a key of any length.
    Hmac::<Sha256>::new_from_slice(key)
        .map(|mac| mac.chain_update(message).finalize().into_bytes().to_vec())
        .unwrap_or_default()
}
