//! Each test makes a mistake as a partner's code would make it, and checks that it is named.

use data_encoding::{BASE32_NOPAD, BASE64, HEXLOWER};
use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};

use super::*;

const SECRET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BODY: &str =
    r#"{"plate":"34 ABC 123","branch_code":"ÇAN-01","url":"a/b","measurements":{"BRAKE_FRONT_LEFT":2.85}}"#;

/// Returns the canonical lines of a request, as the service computes them.
fn lines() -> [String; 6] {
    [
        "POST".to_owned(),
        "/api/v1/partner/test-line/measurements".to_owned(),
        canonical_query(b"city=%C4%B0stanbul+2&a=it's~&from=2026-06-01T00:00:00%2B03:00&flag").unwrap(),
        "1780000000".to_owned(),
        "0123456789abcdef".to_owned(),
        body_sha256(BODY.as_bytes()),
    ]
}

fn expected() -> String {
    lines().join("\n")
}

/// Returns the first mistake in a signed string.
fn found(signed: &str) -> Finding {
    let findings = explain(&Evidence {
        expected: &expected(),
        signed: Some(signed),
        signature: None,
        sent: sent(),
        secret: None,
    });
    let finding = findings.into_iter().next();
    finding.unwrap_or_else(|| panic!("no mistake is found in {signed}"))
}

fn sent() -> Sent<'static> {
    Sent {
        body: BODY.as_bytes(),
        ..Sent::default()
    }
}

/// Asserts the place and the cause that are reported when this line is changed.
#[track_caller]
fn assert_line(number: usize, line: &str, cause: &str) {
    let mut lines = lines();
    line.clone_into(&mut lines[number - 1]);
    let finding = found(&lines.join("\n"));
    assert!(finding.place.starts_with(&format!("line {number}, ")), "{finding:?}");
    assert_eq!(finding.found, line);
    assert!(finding.cause.contains(cause), "{cause:?} is not in {:?}", finding.cause);
}

#[track_caller]
fn assert_form(signed: &str, cause: &str) {
    let finding = found(signed);
    assert_eq!(finding.place, "the format of the canonical string");
    assert!(finding.cause.contains(cause), "{cause:?} is not in {:?}", finding.cause);
}

#[test]
fn a_correct_signature_has_no_finding() {
    let secret: Secret = SECRET.parse().unwrap();
    let signature = partner_api_signing::sign(&secret, &expected());
    let evidence = Evidence {
        expected: &expected(),
        signed: Some(&expected()),
        signature: Some(&signature),
        sent: sent(),
        secret: Some(&secret),
    };
    assert_eq!(explain(&evidence), []);
}

/// SIG-3
#[test]
fn mistakes_of_the_whole_format_are_named() {
    let expected = expected();
    assert_form(&format!("{expected}\n"), "line feed at its end");
    assert_form(&expected.replace('\n', "\r\n"), "CR LF");
    assert_form(&expected.replace('\n', "\\n"), "double quotes");
    assert_form(&format!("\u{feff}{expected}"), "byte-order mark");
    assert_form(&expected.replace('\n', ""), "not joined");
    let [method, path, query, timestamp, nonce, body] = lines();
    assert_form(
        &[&method, &path, &query, &nonce, &timestamp, &body]
            .map(String::as_str)
            .join("\n"),
        "wrong order",
    );
    assert_form(
        &[&method, &path, &query, &timestamp, &nonce]
            .map(String::as_str)
            .join("\n"),
        "BODY_SHA256 was left out",
    );
    assert_form("GET\n/api/v1/partner/health", "six lines");
}

/// SIG-3
#[test]
fn an_empty_query_whose_line_was_left_out_is_named() {
    let expected = "GET\n/api/v1/partner/health\n\n1780000000\n0123456789abcdef\ne3b0";
    let signed = "GET\n/api/v1/partner/health\n1780000000\n0123456789abcdef\ne3b0";
    let finding = lines::compare(expected, signed, b"").remove(0);
    assert!(finding.cause.contains("keep its line, empty"), "{finding:?}");
}

/// REQ-3, SIG-3
#[test]
fn mistakes_of_method_and_path_are_named() {
    assert_line(1, "post", "upper case");
    assert_line(1, "GET", "the signed method differs");
    assert_line(2, "/api/v1/partner/test-line/measurements/", "trailing slash");
    assert_line(
        2,
        "https://h.example/api/v1/partner/test-line/measurements",
        "host are not signed",
    );
    assert_line(2, "/api/v1/partner/test-line/measurements?a=1", "its own line");
    assert_line(2, "/gateway/api/v1/partner/test-line/measurements", "gateway");
    assert_line(2, "/test-line/measurements", "the whole path");
    assert_line(2, "/api/v1/partner/Test-Line/measurements", "letter case");
    assert_line(2, "/api/v1/partner/test%2Dline/measurements", "its encoding differs");
    assert_line(2, "/api/v1/partner/health", "the signed path differs");
}

/// SIG-4
#[test]
fn mistakes_of_the_query_are_named() {
    let right = lines()[2].clone();
    assert_line(3, "", "was not signed");
    assert_line(3, &format!("?{right}"), "the `?` is not part");
    assert_line(3, &right.replace("%20", "+"), "rawurlencode");
    assert_line(3, &right.replace("%C4%B0", "%c4%b0"), "lower-case hex");
    assert_line(3, &right.replace("%27", "'"), "encodeURIComponent");
    assert_line(3, &right.replace('~', "%7E"), "unreserved");
    assert_line(3, &right.replace("flag=", "flag"), "without a value");
    assert_line(3, &right.replace('%', "%25"), "encoded twice");
    let mut pieces: Vec<_> = right.split('&').collect();
    pieces.reverse();
    assert_line(3, &pieces.join("&"), "wrong order");
    // Two mistakes at once.
    let both = right.replace("%20", "+").replace("%C4%B0", "%c4%b0");
    assert_line(3, &both, "rawurlencode");
    assert_line(3, &both, "lower-case hex");
    assert_line(3, "limit=2", "the signed parameters differ");
}

/// SIG-4: the service reads a bare plus as a space.
#[test]
fn a_bare_plus_in_the_query_that_was_sent_is_named() {
    let expected = "GET\n/p\nfrom=2026-06-01T00%3A00%3A00%2003%3A00\n1\nn\nb";
    let signed = "GET\n/p\nfrom=2026-06-01T00%3A00%3A00%2B03%3A00\n1\nn\nb";
    let finding = lines::compare(expected, signed, b"").remove(0);
    assert!(finding.cause.contains("send %2B"), "{finding:?}");
}

/// SIG-1, SIG-5
#[test]
fn mistakes_of_timestamp_and_nonce_are_named() {
    assert_line(4, "1780000000123", "milliseconds");
    assert_line(4, "1780000000123456", "microseconds or nanoseconds");
    assert_line(4, "1780000000.5", "fraction");
    assert_line(4, "2026-06-15T09:30:00Z", "this is a date");
    assert_line(4, "1780000001", "read the clock once");
    assert_line(5, "fedcba9876543210", "generate it once");
}

/// SIG-3
#[test]
fn mistakes_of_the_bodys_digest_are_named() {
    let right = lines()[5].clone();
    let digest = HEXLOWER.decode(right.as_bytes()).unwrap();
    let of = |text: &str| body_sha256(text.as_bytes());
    assert_line(6, &right.to_uppercase(), "upper-case hex");
    assert_line(6, &BASE64.encode(&digest), "base64");
    assert_line(6, &of(""), "a stream that was already read");
    assert_line(6, BODY, "the body itself");
    assert_line(6, &of(&format!("{BODY}\n")), "line feed at the end");
    assert_line(6, &of(&format!("\u{feff}{BODY}")), "byte-order mark");
    let utf16: Vec<u8> = BODY.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_line(6, &body_sha256(&utf16), "UTF-16");
    assert_line(6, &of(&BODY.replace('/', "\\/")), "slashes escaped");
    assert_line(6, &of(&BODY.replace('Ç', "\\u00c7")), "escaped");
    // Python's default.
    let python = BODY.replace(':', ": ").replace(',', ", ").replace('Ç', "\\u00c7");
    assert_line(6, &of(&python), "json.dumps");
    let value: Value = serde_json::from_str(BODY).unwrap();
    assert_line(
        6,
        &of(&serde_json::to_string_pretty(&value).unwrap()),
        "indented by two",
    );
    let sorted =
        r#"{"branch_code":"ÇAN-01","measurements":{"BRAKE_FRONT_LEFT":2.85},"plate":"34 ABC 123","url":"a/b"}"#;
    assert_line(6, &of(sorted), "members sorted");
    assert_line(6, &of("something else"), "serialized twice");
}

/// SIG-3
#[test]
fn a_digest_of_empty_json_where_no_body_was_sent_is_named() {
    let expected = format!("GET\n/p\n\n1\nn\n{}", body_sha256(b""));
    let signed = format!("GET\n/p\n\n1\nn\n{}", body_sha256(b"{}"));
    let finding = lines::compare(&expected, &signed, b"").remove(0);
    assert!(finding.cause.contains("that of `{}`"), "{finding:?}");
}

fn hmac(key: &[u8], message: &str) -> Vec<u8> {
    let mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.chain_update(message).finalize().into_bytes().to_vec()
}

#[track_caller]
fn assert_signature(signature: &str, cause: &str) {
    let secret: Secret = SECRET.parse().unwrap();
    let findings = explain(&Evidence {
        expected: &expected(),
        signed: None,
        signature: Some(signature),
        sent: sent(),
        secret: Some(&secret),
    });
    let causes = causes(&findings);
    assert!(causes.contains(cause), "{cause:?} is not in {causes:?}");
}

fn causes(findings: &[Finding]) -> String {
    let causes: Vec<_> = findings.iter().map(|finding| finding.cause.as_str()).collect();
    causes.join("; ")
}

/// A mistake, the request as it was sent, and words that name the mistake. The signature was made by another program.
#[derive(serde::Deserialize)]
struct Case {
    name: String,
    method: String,
    target: String,
    timestamp: String,
    nonce: String,
    body: String,
    signature: String,
    says: Vec<String>,
}

#[derive(serde::Deserialize)]
struct Cases {
    host: String,
    secret: String,
    cases: Vec<Case>,
}

/// SIG-2, SIG-3, SIG-4. The site's tests check the calculator with the same cases.
#[test]
fn each_mistake_is_named_from_the_signature_alone() {
    let Cases { host, secret, cases } = serde_json::from_str(include_str!("cases.json")).unwrap();
    let secret: Secret = secret.parse().unwrap();
    for case in cases {
        let request = RequestArgs {
            method: case.method,
            target: case.target,
            data: Some(case.body),
            body: None,
        };
        let request = request.read().unwrap();
        let expected = Canonical {
            method: &request.method,
            path: &request.path,
            canonical_query: &canonical_query(request.query.as_bytes()).unwrap(),
            timestamp: &case.timestamp,
            nonce: &case.nonce,
            body_sha256: &body_sha256(&request.body),
        }
        .render();
        let findings = explain(&Evidence {
            expected: &expected,
            signed: None,
            signature: Some(&case.signature),
            sent: Sent {
                query: &request.query,
                body: &request.body,
                hosts: std::slice::from_ref(&host),
            },
            secret: Some(&secret),
        });
        let causes = causes(&findings);
        assert_eq!(findings.is_empty(), case.says.is_empty(), "{}: {causes}", case.name);
        for words in case.says {
            assert!(causes.contains(&words), "{}: {words:?} is not in {causes:?}", case.name);
        }
    }
}

/// SIG-1
#[test]
fn a_timestamp_in_milliseconds_is_named_even_if_it_was_signed_as_it_was_sent() {
    let text = expected().replace("1780000000", "1780000000123");
    let findings = explain(&Evidence {
        expected: &text,
        signed: Some(&text),
        signature: None,
        sent: sent(),
        secret: None,
    });
    assert_eq!(findings.len(), 1);
    assert!(findings[0].cause.contains("milliseconds"), "{findings:?}");
}

/// SIG-3
#[test]
fn timestamp_and_nonce_are_found_in_a_string_of_a_wrong_format() {
    for signed in [
        "GET\n/api/v1/partner/health\n1780000000\n0123456789abcdef\ne3b0",
        "GET\r\n/api/v1/partner/health\r\n\r\n1780000000\r\n0123456789abcdef\r\ne3b0\r\n",
        "GET\n/api/v1/partner/health\n\n0123456789abcdef\n1780000000\ne3b0",
    ] {
        let found = lines::timestamp_and_nonce(signed);
        assert_eq!(
            found,
            Some(("1780000000".to_owned(), "0123456789abcdef".to_owned())),
            "{signed}"
        );
    }
    assert_eq!(lines::timestamp_and_nonce("GET\n/api/v1/partner/health"), None);
}

/// SIG-2
#[test]
fn mistakes_of_the_signature_are_named() {
    let text = expected();
    let prefixed = |digest: &[u8]| format!("sha256={}", HEXLOWER.encode(digest));
    let right = hmac(SECRET.as_bytes(), &text);
    assert_signature(&HEXLOWER.encode(&right), "must begin with `sha256=`");
    assert_signature(
        &format!("sha256={}", HEXLOWER.encode(&right).to_uppercase()),
        "upper case",
    );
    assert_signature(&format!("SHA256={}", HEXLOWER.encode(&right)), "in lower case");
    assert_signature(&format!("sha256={}", BASE64.encode(&right)), "base64");
    let decoded = BASE32_NOPAD.decode(SECRET.as_bytes()).unwrap();
    assert_signature(&prefixed(&hmac(&decoded, &text)), "decoded from base32");
    assert_signature(&prefixed(&hmac(SECRET.to_lowercase().as_bytes(), &text)), "lower case");
    assert_signature(
        &prefixed(&hmac(format!("{SECRET}\n").as_bytes(), &text)),
        "trim a secret",
    );
    assert_signature(&prefixed(&hmac(SECRET.as_bytes(), &format!("{text}\n"))), "printf");
    assert_signature(&prefixed(&hmac(text.as_bytes(), SECRET)), "swapped");
    assert_signature(
        &prefixed(&Sha256::digest(format!("{SECRET}{text}"))),
        "concatenated and hashed",
    );
    let of_digest = HEXLOWER.encode(&Sha256::digest(&text));
    assert_signature(&prefixed(&hmac(SECRET.as_bytes(), &of_digest)), "not the string itself");
    // Two at once.
    assert_signature(
        &HEXLOWER.encode(&hmac(&decoded, &text)),
        "as they are; it must begin with `sha256=`",
    );
    assert_signature(&format!("sha256={}", "0".repeat(40)), "SHA-1");
    assert_signature(&format!("sha256={}", "0".repeat(128)), "SHA-512");
    assert_signature(&format!("sha256={}", "0".repeat(64)), "with another secret");
}

/// ERR-4, ERR-5
#[test]
fn a_response_contains_the_canonical_string_or_a_code_with_a_remedy() {
    let message = format!(
        "the signature does not verify; between the lines:\n---\n{}\n---",
        expected()
    );
    let body = serde_json::json!({ "error": { "code": "invalid_signature", "message": message, "request_id": "r" } });
    let response = ServerResponse::read(&body.to_string());
    assert_eq!(response.canonical.as_deref(), Some(expected().as_str()));
    assert_eq!(response.remedy(), None);
    let response = ServerResponse::read(&message);
    assert_eq!(response.canonical.as_deref(), Some(expected().as_str()));
    let expired = r#"{"error":{"code":"expired_timestamp","message":"it is 09:30","request_id":"r"}}"#;
    let remedy = ServerResponse::read(expired).remedy().unwrap();
    assert!(
        remedy.contains("it is 09:30. ") && remedy.contains("synchronize"),
        "{remedy}"
    );
}
