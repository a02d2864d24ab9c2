//! The differences between the canonical string that was signed and the expected one.

use data_encoding::{BASE64, HEXLOWER};
use partner_api_signing::{EMPTY_BODY_SHA256, InvalidNonce, canonical_query, is_valid_nonce};
use percent_encoding::percent_decode_str;

use super::{Finding, body};

/// The lines of the canonical string, in their order.
const NAMES: [&str; 6] = ["METHOD", "PATH", "CANONICAL_QUERY", "TIMESTAMP", "NONCE", "BODY_SHA256"];

/// Returns the differences: mistakes in the format of the whole string, then one for each line.
pub(super) fn compare(expected: &str, signed: &str, sent: &[u8]) -> Vec<Finding> {
    if expected == signed {
        return Vec::new();
    }
    let (lines, causes) = normalized(signed);
    let mut findings: Vec<_> = causes.into_iter().map(|cause| whole(expected, signed, cause)).collect();
    let (ours, theirs): (Vec<_>, Vec<_>) = (expected.split('\n').collect(), lines);
    let in_order = |lines: &[&str]| {
        let mut lines = lines.to_vec();
        lines.sort_unstable();
        lines.join("\n")
    };
    if ours != theirs && in_order(&ours) == in_order(&theirs.iter().map(String::as_str).collect::<Vec<_>>()) {
        findings.push(whole(expected, signed, "its lines are in the wrong order"));
        return findings;
    }
    if theirs.len() != ours.len() || ours.len() != NAMES.len() {
        let cause = match (theirs.len(), theirs.last()) {
            (1, _) => "its lines are not joined with line feeds",
            (5, _) if ours[..5] == theirs[..] => {
                "BODY_SHA256 was left out: without a body it is the SHA-256 of the empty string, e3b0c442..."
            }
            _ => "the canonical string has six lines: METHOD, PATH, CANONICAL_QUERY, TIMESTAMP, NONCE, BODY_SHA256",
        };
        findings.push(whole(expected, signed, cause));
        return findings;
    }
    for (at, (ours, theirs)) in ours
        .into_iter()
        .zip(&theirs)
        .enumerate()
        .filter(|(_, (ours, theirs))| ours != theirs)
    {
        findings.push(Finding {
            place: format!("line {}, {}", at + 1, NAMES[at]),
            expected: ours.to_owned(),
            found: theirs.to_owned(),
            cause: match at {
                0 => method(ours, theirs),
                1 => path(ours, theirs),
                2 => query(ours, theirs),
                3 => timestamp(theirs),
                4 => "the signed nonce differs from the one that was sent: generate it once and use it for both"
                    .to_owned(),
                _ => body::cause(ours, theirs, sent),
            },
        });
    }
    findings
}

fn whole(expected: &str, signed: &str, cause: &str) -> Finding {
    Finding {
        place: "the format of the canonical string".to_owned(),
        expected: expected.to_owned(),
        found: signed.to_owned(),
        cause: cause.to_owned(),
    }
}

/// Returns the lines of a signed string without the mistakes in its format, and these mistakes.
pub(super) fn normalized(signed: &str) -> (Vec<String>, Vec<&'static str>) {
    let mut causes = Vec::new();
    let mut text = signed.to_owned();
    if let Some(rest) = text.strip_prefix('\u{feff}') {
        causes.push("it begins with a byte-order mark: write UTF-8 without one");
        text = rest.to_owned();
    }
    if text.contains("\r\n") {
        causes.push("its lines end in CR LF: join them with a line feed only (\\n, not the system's line separator)");
        text = text.replace("\r\n", "\n");
    }
    if text.contains("\\n") && !text.contains('\n') {
        causes
            .push("it contains a backslash and an n instead of line feeds: in this language, \\n needs double quotes");
        text = text.replace("\\n", "\n");
    }
    if let Some(rest) = text.strip_suffix('\n').filter(|rest| !rest.ends_with('\n')) {
        causes.push(
            "it was signed with a line feed at its end: line feeds separate the lines, and none follows the last one (echo adds \
             one; printf '%s' does not)",
        );
        text = rest.to_owned();
    }
    let mut lines: Vec<_> = text.split('\n').map(str::to_owned).collect();
    let is_digest = |line: &String| line.len() == 64 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
    // METHOD, PATH, TIMESTAMP, NONCE, BODY_SHA256
    if let [_, _, timestamp, _, digest] = lines.as_slice()
        && (is_digest(digest) || is_number(timestamp))
    {
        causes.push("the empty CANONICAL_QUERY was left out: keep its line, empty");
        lines.insert(2, String::new());
    }
    (lines, causes)
}

/// Returns the timestamp and the nonce in a signed string, even if its format is wrong.
pub(super) fn timestamp_and_nonce(signed: &str) -> Option<(String, String)> {
    let (lines, _) = normalized(signed);
    match lines.as_slice() {
        [_, _, _, nonce, timestamp, ..] if is_number(timestamp) && !is_number(nonce) => {
            Some((timestamp.clone(), nonce.clone()))
        }
        [_, _, _, timestamp, nonce, ..] => Some((timestamp.trim().to_owned(), nonce.trim().to_owned())),
        _ => None,
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the mistakes in the timestamp and the nonce that were sent, which make the service reject every signature.
pub(super) fn of_request(expected: &str) -> Vec<Finding> {
    let lines: Vec<_> = expected.split('\n').collect();
    let [_, _, _, sent, nonce, _] = lines.as_slice() else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    if !is_number(sent) || sent.len() > 11 {
        findings.push(Finding {
            place: "the timestamp of the request".to_owned(),
            expected: "UNIX seconds, such as 1780000000".to_owned(),
            found: (*sent).to_owned(),
            cause: timestamp(sent),
        });
    }
    if !is_valid_nonce(nonce.as_bytes()) {
        findings.push(Finding {
            place: "the nonce of the request".to_owned(),
            expected: "16 to 128 visible characters".to_owned(),
            found: (*nonce).to_owned(),
            cause: InvalidNonce.to_string(),
        });
    }
    findings
}

fn method(ours: &str, theirs: &str) -> String {
    if theirs.eq_ignore_ascii_case(ours) {
        "the method must be in upper case".to_owned()
    } else {
        "the signed method differs from the one that was sent".to_owned()
    }
}

fn path(ours: &str, theirs: &str) -> String {
    let decoded = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
    // `host.example/api/...`, with or without a scheme.
    let has_host = theirs
        .strip_suffix(ours)
        .is_some_and(|before| !before.is_empty() && !before.starts_with('/'));
    let cause = if theirs.contains("://") || theirs.starts_with("//") || has_host {
        "scheme and host are not signed: the path begins with /api/v1/partner"
    } else if theirs.contains('?') {
        "the query has its own line: the path ends before the `?`"
    } else if theirs.trim_end_matches('/') == ours.trim_end_matches('/') {
        "only one of them has a trailing slash: sign the path exactly as it is sent, and send it without the slash"
    } else if theirs.ends_with(ours) {
        "a path prefix added by a gateway is not signed: the path begins with /api/v1/partner"
    } else if ours.ends_with(theirs) {
        "the whole path must be signed, from /api/v1/partner"
    } else if theirs.eq_ignore_ascii_case(ours) {
        "letter case differs: paths are compared byte for byte"
    } else if decoded(theirs) == decoded(ours) {
        "its encoding differs from the path that was sent: sign the bytes that go over the wire"
    } else {
        "the signed path differs from the one that was sent: a proxy between your code and the service may rewrite it"
    };
    cause.to_owned()
}

fn timestamp(theirs: &str) -> String {
    let digits = theirs.bytes().all(|byte| byte.is_ascii_digit());
    let cause = if digits && theirs.len() == 13 {
        "these are milliseconds: sign and send whole seconds"
    } else if digits && theirs.len() > 13 {
        "these are microseconds or nanoseconds: sign and send whole seconds"
    } else if theirs.contains('T') || theirs.matches('-').count() == 2 {
        "this is a date: sign and send UNIX seconds, digits only"
    } else if theirs.contains(['.', ',']) {
        "it has a fraction: sign and send whole seconds"
    } else if digits {
        "the signed timestamp differs from the one that was sent: read the clock once and use the same text for both"
    } else {
        "it is not a plain integer: use UNIX seconds, digits only"
    };
    cause.to_owned()
}

/// A function that corrects one common encoding mistake in a query, and the description of the mistake.
type Correction = (fn(&str) -> String, &'static str);

/// The corrections, in the order in which they are applied.
const CORRECTIONS: [Correction; 8] = [
    (
        |text| text.trim_start_matches('?').to_owned(),
        "the `?` is not part of the canonical query",
    ),
    (
        |text| text.replace("%25", "%"),
        "it is percent-encoded twice: encode the values once",
    ),
    (
        |text| text.replace('+', "%20"),
        "a space is encoded as `+`, as form encoding does (PHP's urlencode, Java's URLEncoder): the canonical form is %20 (PHP's \
         rawurlencode)",
    ),
    (upper_hex, "its escapes are in lower-case hex: write %C4, not %c4"),
    (
        |text| encoded(text, "!'()*,;:@/$[]\" "),
        "some reserved characters are not escaped: escape all but A-Z a-z 0-9 - . _ ~ (JavaScript's encodeURIComponent does not \
         escape ! ' ( ) *)",
    ),
    (
        |text| {
            text.replace("%7E", "~")
                .replace("%2D", "-")
                .replace("%2E", ".")
                .replace("%5F", "_")
        },
        "unreserved characters are escaped: do not escape - . _ ~",
    ),
    (
        |text| {
            pieces(text, |piece| {
                if piece.contains('=') {
                    piece.to_owned()
                } else {
                    format!("{piece}=")
                }
            })
        },
        "a parameter without a value keeps its `=`",
    ),
    (
        sorted_pairs,
        "its parameters are in the wrong order: sort the encoded pairs by name and then by value, as bytes",
    ),
];

fn query(ours: &str, theirs: &str) -> String {
    if theirs.is_empty() {
        return "the query was not signed: this line must be its canonical form".to_owned();
    }
    if ours.is_empty() {
        return "a query was signed, but none was sent".to_owned();
    }
    // First each correction alone, then several in sequence.
    if let Some((_, mistake)) = CORRECTIONS.iter().find(|(correct, _)| correct(theirs) == ours) {
        return (*mistake).to_owned();
    }
    // The query was sent with a bare plus and signed with the intended %2B.
    if ours.replace("%20", "%2B") == theirs {
        return "a bare `+` was sent, which means a space: send %2B (as in 2026-06-01T00:00:00%2B03:00)".to_owned();
    }
    let mut text = theirs.to_owned();
    let mut mistakes = Vec::new();
    for (correct, mistake) in CORRECTIONS {
        let corrected = correct(&text);
        if corrected != text {
            mistakes.push(mistake);
            text = corrected;
        }
        if text == ours {
            return mistakes.join("; ");
        }
    }
    if canonical_query(theirs.as_bytes()).is_ok_and(|canonical| canonical == ours) {
        return "it is the query as it was sent: convert it to its canonical form".to_owned();
    }
    "the signed parameters differ from those that were sent: sign the query that goes over the wire".to_owned()
}

fn pieces(text: &str, change: impl Fn(&str) -> String) -> String {
    text.split('&').map(change).collect::<Vec<_>>().join("&")
}

fn sorted_pairs(text: &str) -> String {
    let mut pairs: Vec<_> = text
        .split('&')
        .map(|piece| piece.split_once('=').unwrap_or((piece, "")))
        .collect();
    pairs.sort_unstable();
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

fn upper_hex(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut left = 0;
    for character in text.chars() {
        out.push(if left > 0 {
            character.to_ascii_uppercase()
        } else {
            character
        });
        left = if character == '%' {
            2
        } else {
            usize::saturating_sub(left, 1)
        };
    }
    out
}

/// Percent-encodes the given characters and all non-ASCII ones.
fn encoded(text: &str, characters: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if characters.contains(character) || !character.is_ascii() {
            let mut buffer = [0; 4];
            for byte in character.encode_utf8(&mut buffer).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        } else {
            out.push(character);
        }
    }
    out
}

/// Returns the notation of `text` if it is the digest `hex` in another notation.
pub(super) fn notation(hex: &str, text: &str) -> Option<&'static str> {
    let digest = HEXLOWER.decode(hex.as_bytes()).ok()?;
    let base64 = BASE64.encode(&digest);
    if text.eq_ignore_ascii_case(hex) {
        Some("upper-case hex")
    } else if text.trim_end_matches('=') == base64.trim_end_matches('=')
        || text.trim_end_matches('=') == base64.replace('+', "-").replace('/', "_").trim_end_matches('=')
    {
        Some("base64")
    } else {
        None
    }
}

/// Returns whether `hex` is the digest of an empty body.
pub(super) fn is_of_empty_body(hex: &str) -> bool {
    hex.eq_ignore_ascii_case(EMPTY_BODY_SHA256)
}
