//! `partner explain`: explains why a signature does not verify.
//!
//! With the canonical string that a partner's code signed, the command compares it with the one that the service computes. With only the
//! signature, it searches for a string that the code may have signed. It names each line that differs and the most likely mistake.

mod body;
mod lines;
mod search;
mod signature;

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use partner_api_client::{Code, Secret};
use partner_api_signing::{Canonical, body_sha256, canonical_query};
use partner_api_terminal::output::Output;
use serde::Serialize;
use serde_json::Value;
use url::Url;

use crate::failure::Failure;
use crate::profile::Connect;
use crate::request::{RequestArgs, RequestParts};
use crate::text::{is_utf16, utf8};
use search::Sent;

/// The end of the help text.
pub const EXAMPLES: &str = "\
Pass as much as you have: the signature that your code sent (--signature), the canonical string that it signed (--canonical), and the \
service's response (--server). With the secret, the signature is enough to find the usual mistakes. The sandbox's responses contain \
the expected canonical string. Without the response, it is computed from the request.

The exit code is 0 if the signature or the canonical string is correct, and 1 if it is not.

Examples:
  partner explain GET '/api/v1/partner/inspections?limit=2' \\
      --signature sha256=... --timestamp 1780000000 --nonce 0123456789abcdef
  partner explain GET '/api/v1/partner/inspections?limit=2' --canonical mine.txt
  partner explain POST /api/v1/partner/test-line/measurements \\
      --body sent.json --canonical mine.txt --server response.json";

/// The arguments of `explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// The request as it was sent.
    #[command(flatten)]
    pub request: RequestArgs,
    /// A file with the canonical string that your code signed, or - for standard input
    #[arg(long, value_name = "FILE")]
    pub canonical: Option<PathBuf>,
    /// The signature that your code sent
    #[arg(long, value_name = "TEXT")]
    pub signature: Option<String>,
    /// A file with the service's response, or - for standard input
    #[arg(long, value_name = "FILE")]
    pub server: Option<PathBuf>,
    /// The timestamp that was sent [default: the one in the canonical string]
    #[arg(long, value_name = "SECONDS")]
    pub timestamp: Option<String>,
    /// The nonce that was sent [default: the one in the canonical string]
    #[arg(long)]
    pub nonce: Option<String>,
}

/// The known facts about a rejected request.
pub(crate) struct Evidence<'a> {
    /// The canonical string that the service expects.
    pub(crate) expected: &'a str,
    /// The canonical string that the partner's code signed.
    pub(crate) signed: Option<&'a str>,
    /// The signature that it sent.
    pub(crate) signature: Option<&'a str>,
    /// The rest of the request.
    pub(crate) sent: Sent<'a>,
    /// The secret, with which known mistakes are reproduced.
    pub(crate) secret: Option<&'a Secret>,
}

/// A difference and its likely cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// The place: a line of the canonical string, its overall format, or the signature.
    pub(crate) place: String,
    /// The value that the service expects there.
    pub(crate) expected: String,
    /// The value that was found.
    pub(crate) found: String,
    /// The likely cause and the remedy.
    pub(crate) cause: String,
}

/// Returns the mistakes.
pub(crate) fn explain(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut findings = lines::of_request(evidence.expected);
    let in_lines = evidence
        .signed
        .map(|signed| lines::compare(evidence.expected, signed, evidence.sent.body))
        .unwrap_or_default();
    match evidence.signature {
        Some(signature) if in_lines.is_empty() => findings.extend(signature::compare(evidence, signature)),
        _ => findings.extend(in_lines),
    }
    findings
}

pub(crate) fn run(connect: &Connect, args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let signed = args.canonical.as_deref().map(read).transpose()?;
    let response = args
        .server
        .as_deref()
        .map(read)
        .transpose()?
        .map(|text| ServerResponse::read(&text));
    let request = args.request.read()?;
    let remedy = response.as_ref().and_then(ServerResponse::remedy);
    let expected = match response.as_ref().and_then(|response| response.canonical.clone()) {
        Some(canonical) => Some(canonical),
        None => expected(&request, signed.as_deref(), args)?,
    };
    let Some(expected) = expected else {
        let Some(remedy) = remedy else {
            return Err(Failure::Usage(
                "the request's timestamp and nonce are required: pass --timestamp and --nonce, or --canonical FILE"
                    .to_owned(),
            ));
        };
        Output::message(
            &of_code(&remedy),
            &serde_json::json!({ "findings": [], "expected": null, "remedy": remedy }),
        )
        .print(connect.json)?;
        return Ok(ExitCode::FAILURE);
    };
    let account = connect.account();
    let base_url = account.as_ref().ok().map(|account| account.base_url.as_str());
    let findings = explain(&Evidence {
        expected: &expected,
        signed: signed.as_deref(),
        signature: args.signature.as_deref().map(str::trim),
        sent: Sent {
            query: &request.query,
            body: &request.body,
            hosts: &hosts([Some(args.request.target.as_str()), base_url]),
        },
        secret: account.as_ref().ok().map(|account| &account.secret),
    });
    Output::message(
        &text(&findings, &expected, remedy.as_deref(), args),
        &serde_json::json!({ "findings": findings, "expected": expected, "remedy": remedy }),
    )
    .print(connect.json)?;
    Ok(if findings.is_empty() && remedy.is_none() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Computes the canonical string of a request, if its timestamp and nonce are known.
fn expected(request: &RequestParts, signed: Option<&str>, args: &ExplainArgs) -> Result<Option<String>, Failure> {
    let (signed_timestamp, signed_nonce) = signed.and_then(lines::timestamp_and_nonce).unzip();
    let timestamp = args.timestamp.clone().or(signed_timestamp);
    let nonce = args.nonce.clone().or(signed_nonce);
    let (Some(timestamp), Some(nonce)) = (timestamp, nonce) else {
        return Ok(None);
    };
    let canonical = Canonical {
        method: &request.method,
        path: &request.path,
        canonical_query: &canonical_query(request.query.as_bytes())
            .map_err(|error| Failure::Usage(error.to_string()))?,
        timestamp: timestamp.trim(),
        nonce: nonce.trim(),
        body_sha256: &body_sha256(&request.body),
    };
    Ok(Some(canonical.render()))
}

/// Returns the hosts in these URLs, with and without their ports.
fn hosts(urls: [Option<&str>; 2]) -> Vec<String> {
    let urls = urls.into_iter().flatten().filter_map(|url| Url::parse(url).ok());
    urls.flat_map(|url| {
        let host = url.host_str().map(str::to_owned);
        let with_port = host
            .as_ref()
            .zip(url.port())
            .map(|(host, port)| format!("{host}:{port}"));
        [host, with_port]
    })
    .flatten()
    .collect()
}

fn of_code(remedy: &str) -> String {
    format!("The error code of the response explains it: {remedy}")
}

fn text(findings: &[Finding], expected: &str, remedy: Option<&str>, args: &ExplainArgs) -> String {
    if findings.is_empty() {
        if let Some(remedy) = remedy {
            return of_code(remedy);
        }
        return match (&args.canonical, &args.signature) {
            (None, None) => format!("The string to sign (six lines, no line feed at the end):\n{expected}"),
            (_, None) => {
                "The canonical string is correct. If the signature is still rejected, pass it with --signature."
                    .to_owned()
            }
            _ => "The signature is correct. It is valid for 300 seconds, and its nonce for one request.".to_owned(),
        };
    }
    let findings: Vec<_> = findings
        .iter()
        .map(|finding| {
            format!(
                "{} differs:\n  yours     {}\n  expected  {}\n\n{}",
                finding.place,
                finding.found.escape_debug(),
                finding.expected.escape_debug(),
                finding.cause
            )
        })
        .collect();
    findings.join("\n\n")
}

/// The service's response.
struct ServerResponse {
    code: Option<Code>,
    message: String,
    canonical: Option<String>,
}

impl ServerResponse {
    /// Reads a complete body, or only its message.
    fn read(text: &str) -> Self {
        let body: Option<Value> = serde_json::from_str(text).ok();
        let error = body.as_ref().map(|body| &body["error"]);
        let message = error.and_then(|error| error["message"].as_str()).unwrap_or(text);
        let between = || {
            let (_, rest) = message.split_once("\n---\n")?;
            let (canonical, _) = rest.rsplit_once("\n---")?;
            Some(canonical.to_owned())
        };
        Self {
            code: error.and_then(|error| Some(error["code"].as_str()?.to_owned().into())),
            canonical: between(),
            message: message.to_owned(),
        }
    }

    /// Returns the service's message with the remedy, if the error code alone determines it.
    fn remedy(&self) -> Option<String> {
        let code = self.code.as_ref().filter(|code| **code != Code::InvalidSignature)?;
        Some(match code.remedy() {
            Some(remedy) => format!("{code}: {}. {remedy}", self.message.trim_end_matches('.')),
            None => format!("{code}: {}", self.message),
        })
    }
}

/// Reads a text. In UTF-16, which PowerShell's `>` writes with a line break at the end, this line break is not part of it.
fn read(path: &Path) -> Result<String, Failure> {
    let bytes = if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes)?;
        bytes
    } else {
        fs::read(path).map_err(Failure::of(path))?
    };
    // A byte-order mark in UTF-8 may have been signed, so it is kept.
    let text = if is_utf16(&bytes) {
        utf8(&bytes).into_owned()
    } else {
        bytes.clone()
    };
    let text = String::from_utf8(text)
        .map_err(|_| Failure::Usage(format!("{} must be UTF-8 or UTF-16 text", path.display())))?;
    Ok(match text.strip_suffix("\r\n") {
        Some(rest) if is_utf16(&bytes) => rest.to_owned(),
        _ => text,
    })
}

#[cfg(test)]
mod tests;
