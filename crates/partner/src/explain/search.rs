//! Strings that a client may have signed instead of the expected one.
//!
//! A signature alone does not show its string. The search signs what common mistakes produce and compares. `mistakes.js` of the site does
//! the same for the calculator; `cases.json` lists mistakes that both must find.

use std::collections::BTreeSet;

use chrono::{DateTime, SecondsFormat};
use data_encoding::{BASE64, HEXLOWER};
use partner_api_signing::{body_sha256, canonical_query, decode_query};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use super::body;

/// Escapes everything but the unreserved characters.
const CANONICAL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Escapes what JavaScript's encodeURIComponent escapes.
const COMPONENT: &AsciiSet = &CANONICAL
    .remove(b'!')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*');

/// The parts of a request that the expected canonical string does not contain.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sent<'a> {
    /// The query as it was sent.
    pub(crate) query: &'a str,
    /// The body.
    pub(crate) body: &'a [u8],
    /// Names of the host.
    pub(crate) hosts: &'a [String],
}

/// Returns the first string with one or two mistakes for which `is_signed` returns true.
pub(super) fn find(expected: &str, sent: Sent<'_>, is_signed: impl Fn(&str) -> bool) -> Option<String> {
    let lines: Vec<_> = expected.split('\n').map(str::to_owned).collect();
    if let Some(form) = forms(&lines).into_iter().find(|form| is_signed(form)) {
        return Some(form);
    }
    let with = |lines: &[String], at: usize, line: &str| {
        let mut lines = lines.to_vec();
        line.clone_into(&mut lines[at]);
        lines
    };
    let [method, path, query, timestamp, nonce, digest] = lines.as_slice() else {
        return None;
    };
    let mistakes: Vec<(usize, String)> = [
        methods(method),
        paths(path, sent),
        queries(query, sent.query),
        timestamps(timestamp),
        vec![nonce.to_uppercase(), nonce.to_lowercase(), String::new()],
        digests(digest, sent.body),
    ]
    .into_iter()
    .enumerate()
    .flat_map(|(at, values)| {
        let distinct: BTreeSet<_> = values.into_iter().filter(|value| *value != lines[at]).collect();
        distinct.into_iter().map(move |value| (at, value))
    })
    .collect();
    let one = mistakes.iter().map(|(at, line)| with(&lines, *at, line).join("\n"));
    let milliseconds = (1..1000).map(|part| with(&lines, 3, &format!("{timestamp}{part:03}")).join("\n"));
    let two = mistakes.iter().enumerate().flat_map(|(index, (at, line))| {
        let lines = with(&lines, *at, line);
        let others = mistakes.iter().skip(index + 1).filter(move |(other, _)| other != at);
        let pairs: Vec<_> = others.map(|(at, line)| with(&lines, *at, line).join("\n")).collect();
        forms(&lines).into_iter().chain(pairs)
    });
    one.chain(milliseconds).chain(two).find(|text| is_signed(text))
}

/// Returns the strings with these lines in a wrong format.
pub(super) fn forms(lines: &[String]) -> Vec<String> {
    let text = lines.join("\n");
    let mut forms = vec![
        format!("{text}\n"),
        format!("{text}\r\n"),
        lines.join("\r\n"),
        format!("{}\r\n", lines.join("\r\n")),
        lines.join("\\n"),
        format!("\u{feff}{text}"),
        lines.concat(),
        lines[..lines.len().saturating_sub(1)].join("\n"),
    ];
    if lines.get(2).is_some_and(String::is_empty) {
        let rest: Vec<_> = lines.iter().filter(|line| !line.is_empty()).cloned().collect();
        forms.push(rest.join("\n"));
    }
    for at in 1..lines.len() {
        let mut swapped = lines.to_vec();
        swapped.swap(at - 1, at);
        forms.push(swapped.join("\n"));
    }
    forms
}

fn methods(method: &str) -> Vec<String> {
    let lower = method.to_lowercase();
    let capitalized = method.chars().take(1).chain(lower.chars().skip(1)).collect();
    vec![lower, capitalized]
}

fn paths(path: &str, sent: Sent<'_>) -> Vec<String> {
    let mut paths: Vec<_> = sent
        .hosts
        .iter()
        .flat_map(|host| ["https://", "http://", "//", ""].map(|start| format!("{start}{host}{path}")))
        .collect();
    paths.extend([
        format!("{path}/"),
        path.trim_end_matches('/').to_owned(),
        format!("{path}?{}", sent.query),
        path.replacen("/api/v1/partner", "", 1),
        path.replacen("/api/v1", "", 1),
        path.to_lowercase(),
        percent_decode_str(path).decode_utf8_lossy().into_owned(),
    ]);
    paths
}

/// Writes a name or a value of a query.
type Encoder = fn(&[u8]) -> String;

fn queries(canonical: &str, sent: &str) -> Vec<String> {
    if canonical.is_empty() {
        return Vec::new();
    }
    let encoders: [Encoder; 7] = [
        |bytes| percent_encode(bytes, CANONICAL).to_string(),
        |bytes| percent_encode(bytes, CANONICAL).to_string().replace("%20", "+"),
        |bytes| lower_escapes(&percent_encode(bytes, CANONICAL).to_string()),
        |bytes| percent_encode(bytes, COMPONENT).to_string(),
        |bytes| percent_encode(bytes, CANONICAL).to_string().replace('~', "%7E"),
        |bytes| percent_encode(bytes, CANONICAL).to_string().replace('%', "%25"),
        |bytes| String::from_utf8_lossy(bytes).into_owned(),
    ];
    let pairs = decode_query(sent.as_bytes()).unwrap_or_default();
    let mut sorted = pairs.clone();
    sorted.sort_unstable();
    let mut queries = Vec::new();
    for encode in encoders {
        for pairs in [&sorted, &pairs] {
            let written = pairs
                .iter()
                .map(|(name, value)| format!("{}={}", encode(name), encode(value)));
            queries.push(written.collect::<Vec<_>>().join("&"));
        }
    }
    let mut pieces: Vec<_> = sent.split('&').collect();
    pieces.sort_unstable();
    let without_equals: Vec<_> = canonical.split('&').map(|pair| pair.trim_end_matches('=')).collect();
    // A plus that was sent as it is, and meant as a plus.
    let meant = sent.replace('+', "%2B");
    queries.extend([
        String::new(),
        sent.to_owned(),
        pieces.join("&"),
        without_equals.join("&"),
        format!("?{canonical}"),
        format!("?{sent}"),
        canonical_query(meant.as_bytes()).unwrap_or_default(),
        meant,
    ]);
    queries
}

fn lower_escapes(text: &str) -> String {
    let mut pieces = text.split('%');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |written, piece| {
        let (digits, rest) = piece.split_at_checked(2).unwrap_or((piece, ""));
        format!("{written}%{}{rest}", digits.to_lowercase())
    })
}

fn timestamps(timestamp: &str) -> Vec<String> {
    let mut timestamps: Vec<_> = ["000", "000000", "000000000"]
        .iter()
        .map(|zeros| format!("{timestamp}{zeros}"))
        .collect();
    if timestamp.len() == 13 {
        timestamps.extend(timestamp.get(..10).map(str::to_owned));
    }
    if let Ok(seconds) = timestamp.parse::<i64>() {
        timestamps.extend((-5..=5).filter_map(|drift| Some(seconds.checked_add(drift)?.to_string())));
        if let Some(date) = DateTime::from_timestamp(seconds, 0) {
            timestamps.push(date.to_rfc3339_opts(SecondsFormat::Secs, true));
            timestamps.push(date.to_rfc3339_opts(SecondsFormat::Millis, true));
        }
    }
    timestamps
}

fn digests(digest: &str, sent: &[u8]) -> Vec<String> {
    let bytes = HEXLOWER.decode(digest.as_bytes()).unwrap_or_default();
    let mut digests = vec![
        digest.to_uppercase(),
        BASE64.encode(&bytes),
        String::new(),
        String::from_utf8_lossy(sent).into_owned(),
    ];
    digests.extend(body::hashed_instead(sent).iter().map(|body| body_sha256(body)));
    digests
}
