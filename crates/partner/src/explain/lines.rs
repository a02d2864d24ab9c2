//! The canonical string that was signed, beside the one that is expected.

use data_encoding::{BASE64, HEXLOWER};
use partner_api_signing::{EMPTY_BODY_SHA256, canonical_query};
use percent_encoding::percent_decode_str;

use super::{Finding, body};

/// The lines of the canonical string, in their order.
const NAMES: [&str; 6] = ["METHOD", "PATH", "CANONICAL_QUERY", "TIMESTAMP", "NONCE", "BODY_SHA256"];

/// The first difference; `None` when both are the same, byte for byte.
pub(super) fn compare(expected: &str, signed: &str, sent: &[u8]) -> Option<Finding> {
    if expected == signed {
        return None;
    }
    let whole = |cause: &str| {
        Some(Finding {
            place: "the form of the canonical string".to_owned(),
            expected: expected.to_owned(),
            found: signed.to_owned(),
            cause: cause.to_owned(),
        })
    };
    if let Some(cause) = form(expected, signed) {
        return whole(cause);
    }
    let (ours, theirs): (Vec<_>, Vec<_>) = (expected.split('\n').collect(), signed.split('\n').collect());
    let at = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
    let Some(at) = at.filter(|_| theirs.len() == NAMES.len() && ours.len() == NAMES.len()) else {
        return whole(
            "the canonical string has six lines: METHOD, PATH, CANONICAL_QUERY, TIMESTAMP, NONCE, BODY_SHA256",
        );
    };
    let (ours, theirs) = (ours[at], theirs[at]);
    let cause = match at {
        0 => method(ours, theirs),
        1 => path(ours, theirs),
        2 => query(ours, theirs),
        3 => timestamp(theirs),
        4 => "another nonce was signed than was sent: generate it once, and put the same into both".to_owned(),
        _ => body::cause(ours, theirs, sent),
    };
    Some(Finding {
        place: format!("line {}, {}", at + 1, NAMES[at]),
        expected: ours.to_owned(),
        found: theirs.to_owned(),
        cause,
    })
}

/// What is wrong with all of it at once.
fn form(expected: &str, signed: &str) -> Option<&'static str> {
    let without_empty_query = || {
        let lines: Vec<_> = expected.split('\n').collect();
        let rest: Vec<_> = lines.iter().filter(|line| !line.is_empty()).copied().collect();
        (rest.len() < lines.len()).then(|| rest.join("\n"))
    };
    if signed.starts_with('\u{feff}') {
        return Some("it begins with a byte-order mark: write UTF-8 without one");
    }
    if signed.contains("\r\n") {
        return Some("its lines end in CR LF: join them with a line feed alone (\\n, not the system's line separator)");
    }
    if signed.contains("\\n") {
        return Some("it has backslash and n in place of line feeds: in this language that needs double quotes");
    }
    if signed.strip_suffix('\n') == Some(expected) {
        return Some("it has a line feed at its end: the parts are joined with line feeds, none follows the last");
    }
    if without_empty_query().is_some_and(|without| without == signed) {
        return Some("the empty CANONICAL_QUERY was left out: its line stays, empty");
    }
    let (known, others): (Vec<_>, Vec<_>) = (sorted(expected), sorted(signed));
    if known == others {
        return Some("its lines are in another order");
    }
    if expected
        .rsplit_once('\n')
        .is_some_and(|(without_body, _)| without_body == signed.trim_end_matches('\n'))
    {
        return Some("BODY_SHA256 was left out: without a body it is the SHA-256 of nothing, e3b0c442...");
    }
    if !signed.contains('\n') {
        return Some("its parts are not joined with line feeds");
    }
    None
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.split('\n').collect();
    lines.sort_unstable();
    lines
}

fn method(ours: &str, theirs: &str) -> String {
    if theirs.eq_ignore_ascii_case(ours) {
        "the method is signed in upper case".to_owned()
    } else {
        "another method was signed than was sent".to_owned()
    }
}

fn path(ours: &str, theirs: &str) -> String {
    let decoded = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
    let cause = if theirs.contains("://") {
        "scheme and host are not signed: the path begins at /api/v1/partner"
    } else if theirs.contains('?') {
        "the query has a line of its own: the path ends before the `?`"
    } else if theirs.trim_end_matches('/') == ours.trim_end_matches('/') {
        "one has a trailing slash and the other has not: sign the path exactly as it is sent, and send it without the slash"
    } else if theirs.ends_with(ours) {
        "what a gateway has in front of /api/v1/partner is not signed"
    } else if ours.ends_with(theirs) {
        "the whole path is signed, from /api/v1/partner"
    } else if theirs.eq_ignore_ascii_case(ours) {
        "letter case differs: paths are compared byte for byte"
    } else if decoded(theirs) == decoded(ours) {
        "it is encoded in another way than it was sent: sign the bytes of the path that go over the wire"
    } else {
        "another path was signed than was sent: something between your code and the service may rewrite it"
    };
    cause.to_owned()
}

fn timestamp(theirs: &str) -> String {
    let digits = theirs.bytes().all(|byte| byte.is_ascii_digit());
    let cause = if digits && theirs.len() == 13 {
        "these are milliseconds: sign, and send, whole seconds"
    } else if digits && theirs.len() > 13 {
        "these are micro- or nanoseconds: sign, and send, whole seconds"
    } else if theirs.contains('T') || theirs.matches('-').count() == 2 {
        "this is a date: sign, and send, UNIX seconds, digits alone"
    } else if theirs.contains(['.', ',']) {
        "it has a fraction: sign, and send, whole seconds"
    } else if digits {
        "another timestamp was signed than was sent: read the clock once, and put the same text into both"
    } else {
        "it is no plain integer: UNIX seconds, digits alone"
    };
    cause.to_owned()
}

/// What a query would be with one habit of a library undone, and what that habit is.
type Habit = (fn(&str) -> String, &'static str);

/// In the order in which they are undone.
const HABITS: [Habit; 8] = [
    (
        |text| text.trim_start_matches('?').to_owned(),
        "the `?` does not belong to it",
    ),
    (
        |text| text.replace("%25", "%"),
        "it is percent-encoded twice: encode the values once",
    ),
    (
        |text| text.replace('+', "%20"),
        "a space is `+` there: in the canonical form it is %20 (form encoding, as of PHP's urlencode and Java's URLEncoder, is \
         not what is meant; PHP has rawurlencode)",
    ),
    (upper_hex, "its escapes are in lower-case hex: write %C4, not %c4"),
    (
        |text| encoded(text, "!'()*,;:@/$[]\" "),
        "some characters were left as they are: only A-Z a-z 0-9 - . _ ~ stay (JavaScript's encodeURIComponent leaves ! ' ( ) * \
         alone)",
    ),
    (
        |text| {
            text.replace("%7E", "~")
                .replace("%2D", "-")
                .replace("%2E", ".")
                .replace("%5F", "_")
        },
        "unreserved characters are escaped: - . _ ~ stay as they are",
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
        "a parameter without a value has its `=` all the same",
    ),
    (
        sorted_pairs,
        "its parameters are in another order: sort the encoded pairs by name and then by value, as bytes",
    ),
];

fn query(ours: &str, theirs: &str) -> String {
    if theirs.is_empty() {
        return "the query was not signed: this line is its canonical form".to_owned();
    }
    if ours.is_empty() {
        return "a query was signed and none was sent".to_owned();
    }
    // One habit explains it, or some in a row do.
    if let Some((_, what)) = HABITS.iter().find(|(undo, _)| undo(theirs) == ours) {
        return (*what).to_owned();
    }
    // What was sent had a bare plus; what was signed was meant.
    if ours.replace("%20", "%2B") == theirs {
        return "a `+` was sent as it is, which is a space: send %2B (as in 2026-06-01T00:00:00%2B03:00)".to_owned();
    }
    let mut text = theirs.to_owned();
    let mut whats = Vec::new();
    for (undo, what) in HABITS {
        let undone = undo(&text);
        if undone != text {
            whats.push(what);
            text = undone;
        }
        if text == ours {
            return whats.join("; ");
        }
    }
    if canonical_query(theirs.as_bytes()).is_ok_and(|canonical| canonical == ours) {
        return "it is the query as it was sent: bring it into its canonical form".to_owned();
    }
    "other parameters were signed than were sent: sign the query that goes over the wire".to_owned()
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

/// Percent-encodes these characters, and all that are not ASCII.
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

/// Whether a text is this hex digest in another notation; what notation.
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

/// Whether it is the digest of nothing.
pub(super) fn is_of_nothing(hex: &str) -> bool {
    hex.eq_ignore_ascii_case(EMPTY_BODY_SHA256)
}
