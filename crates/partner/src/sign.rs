//! `partner sign`: shows each step of a signature and a curl command that is ready to run.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use partner_api_signing::{
    Canonical, Headers, InvalidNonce, UnsignedRequest, body_sha256, canonical_query, is_valid_nonce, nonce_from,
    parse_timestamp,
};
use partner_api_terminal::names::quoted;
use partner_api_terminal::output::Output;
use serde::Serialize;

use crate::failure::Failure;
use crate::profile::Connect;
use crate::request::RequestArgs;

/// The end of the help text.
pub const EXAMPLES: &str = "\
Examples:
  partner sign GET '/api/v1/partner/inspections?limit=2'
  partner sign POST /api/v1/partner/test-line/measurements --body package.json
  partner sign GET /api/v1/partner/health \\
      --timestamp 1780000000 --nonce 0123456789abcdef";

/// The arguments of `sign`.
#[derive(Args, Debug)]
pub struct SignArgs {
    /// The request
    #[command(flatten)]
    pub request: RequestArgs,
    /// UNIX seconds [default: now]
    #[arg(long, value_name = "SECONDS")]
    pub timestamp: Option<String>,
    /// 16 to 128 visible characters, never used before [default: random]
    #[arg(long)]
    pub nonce: Option<String>,
}

/// The intermediate values of a signature.
#[derive(Serialize)]
struct Signed {
    canonical_query: String,
    body_sha256: String,
    canonical: String,
    headers: Vec<(&'static str, String)>,
    curl: String,
}

pub(crate) fn run(connect: &Connect, args: &SignArgs) -> Result<Output, Failure> {
    let account = connect.account()?;
    let request = args.request.read()?;
    let timestamp = match &args.timestamp {
        Some(text) => timestamp(text)?,
        None => now(),
    };
    let nonce = args.nonce.clone().unwrap_or_else(|| nonce_from(&rand::random()));
    if !is_valid_nonce(nonce.as_bytes()) {
        return Err(Failure::Usage(InvalidNonce.to_string()));
    }
    let unsigned = UnsignedRequest {
        method: &request.method,
        path: &request.path,
        raw_query: request.query.as_bytes(),
        body: &request.body,
    };
    let headers = Headers::sign(&account.key_id, &account.secret, unsigned, timestamp, &nonce)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let canonical_query =
        canonical_query(request.query.as_bytes()).map_err(|error| Failure::Usage(error.to_string()))?;
    let body_sha256 = body_sha256(&request.body);
    let canonical = Canonical {
        method: &request.method,
        path: &request.path,
        canonical_query: &canonical_query,
        timestamp: &headers.timestamp,
        nonce: &nonce,
        body_sha256: &body_sha256,
    }
    .render();
    let signed = Signed {
        canonical_query,
        body_sha256,
        canonical,
        curl: curl(&account.base_url, &request.path, &request.query, &headers, args),
        headers: headers.iter().map(|(name, value)| (name, value.to_owned())).collect(),
    };
    Ok(Output::message(&text(&signed), &signed))
}

/// Returns the current time in UNIX seconds.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

fn timestamp(text: &str) -> Result<u64, Failure> {
    parse_timestamp(text)
        .and_then(|seconds| seconds.try_into().ok())
        .ok_or_else(|| {
            Failure::Usage(format!(
                "`{text}` is not a timestamp: it must be UNIX seconds, digits only"
            ))
        })
}

fn text(signed: &Signed) -> String {
    let headers: Vec<_> = signed
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    format!(
        "Canonical string (six lines, no line feed at the end):\n{}\n\nHeaders (valid for 300 seconds and one request):\n{}\n\n{}",
        signed.canonical,
        headers.join("\n"),
        signed.curl
    )
}

/// Returns a curl command that sends exactly the signed bytes: `--path-as-is` and `--data-binary` keep path and body unchanged.
fn curl(base_url: &str, path: &str, query: &str, headers: &Headers, args: &SignArgs) -> String {
    let query = if query.is_empty() {
        String::new()
    } else {
        format!("?{query}")
    };
    let mut words = vec![
        "curl --path-as-is".to_owned(),
        format!("-X {}", args.request.method.to_ascii_uppercase()),
        quoted(&format!("{base_url}{path}{query}")),
    ];
    words.extend(headers.iter().map(|(name, value)| format!("-H '{name}: {value}'")));
    let body = match (&args.request.data, &args.request.body) {
        (Some(text), _) => Some(quoted(text)),
        (None, Some(path)) => Some(quoted(&format!("@{}", path.display()))),
        (None, None) => None,
    };
    if let Some(body) = body {
        words.push("-H 'content-type: application/json'".to_owned());
        words.push(format!("--data-binary {body}"));
    }
    words.join(" \\\n  ")
}
