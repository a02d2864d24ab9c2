//! `partner explain`: why a signature does not verify. What a partner's own code signed is laid beside what the service
//! computes; the first line that differs is named, and the mistake that most likely makes this difference.

mod body;
mod lines;
mod signature;

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use partner_api_client::{Code, Secret};
use partner_api_signing::{Canonical, body_sha256, canonical_query};
use partner_api_terminal::output::Output;
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::profile::Connect;
use crate::request::Described;

/// What the help says at its end.
pub const EXAMPLES: &str = "\
Give as much as there is: what your code signed (--canonical), what it sent as signature (--signature), and the service's answer
(--server; the sandbox's has the canonical string that was expected). Without the service's answer, the canonical string that is
expected is computed from the request.

Examples:
  partner explain GET '/api/v1/partner/inspections?limit=2' --canonical mine.txt
  partner explain POST /api/v1/partner/test-line/measurements --body sent.json --canonical mine.txt --server answer.json
  partner explain GET /api/v1/partner/health --timestamp 1780000000 --nonce 0123456789abcdef --signature sha256=...";

/// The arguments of `explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// The request, as it was sent
    #[command(flatten)]
    pub request: Described,
    /// A file with the canonical string that your code signed, or - for standard input
    #[arg(long, value_name = "FILE")]
    pub canonical: Option<PathBuf>,
    /// The signature that your code sent
    #[arg(long, value_name = "TEXT")]
    pub signature: Option<String>,
    /// A file with the service's answer to it, or - for standard input
    #[arg(long, value_name = "FILE")]
    pub server: Option<PathBuf>,
    /// The timestamp that was sent [default: that of the canonical string]
    #[arg(long, value_name = "SECONDS")]
    pub timestamp: Option<String>,
    /// The nonce that was sent [default: that of the canonical string]
    #[arg(long)]
    pub nonce: Option<String>,
}

/// What is known of a request that was refused.
pub(crate) struct Given<'a> {
    /// The canonical string that the service expects.
    pub(crate) expected: &'a str,
    /// What the partner's code signed.
    pub(crate) signed: Option<&'a str>,
    /// What it sent as signature.
    pub(crate) signature: Option<&'a str>,
    /// The body that was sent.
    pub(crate) body: &'a [u8],
    /// The secret, to try what mistakes make of it.
    pub(crate) secret: Option<&'a Secret>,
}

/// A difference, and what makes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// Where: a line of the canonical string, its form as a whole, or the signature.
    pub(crate) place: String,
    /// What the service expects there.
    pub(crate) expected: String,
    /// What was found.
    pub(crate) found: String,
    /// The likely cause, and what to do.
    pub(crate) cause: String,
}

/// The first thing that is wrong, if anything is.
pub(crate) fn explain(given: &Given<'_>) -> Option<Finding> {
    let of_lines = given
        .signed
        .and_then(|signed| lines::compare(given.expected, signed, given.body));
    of_lines.or_else(|| {
        let signature = given.signature?;
        signature::compare(given.expected, signature, given.secret)
    })
}

pub(crate) fn run(connect: &Connect, args: &ExplainArgs) -> Result<Output, Failure> {
    let signed = args.canonical.as_deref().map(read).transpose()?;
    let answer = args
        .server
        .as_deref()
        .map(read)
        .transpose()?
        .map(|text| Answer::read(&text));
    let request = args.request.take()?;
    let line = |number: usize| signed.as_deref().and_then(|signed| signed.split('\n').nth(number));
    let expected = match answer.as_ref().and_then(|answer| answer.canonical.clone()) {
        Some(canonical) => canonical,
        None => {
            let timestamp = args.timestamp.as_deref().or(line(3)).map(str::trim);
            let nonce = args.nonce.as_deref().or(line(4)).map(str::trim);
            let (Some(timestamp), Some(nonce)) = (timestamp, nonce) else {
                return Err(Failure::Usage(
                    "timestamp and nonce of the request are needed: --timestamp and --nonce, or --canonical FILE with what \
                     was signed"
                        .to_owned(),
                ));
            };
            Canonical {
                method: &request.method,
                path: &request.path,
                canonical_query: &canonical_query(request.query.as_bytes())
                    .map_err(|error| Failure::Usage(error.to_string()))?,
                timestamp,
                nonce,
                body_sha256: &body_sha256(&request.body),
            }
            .render()
        }
    };
    let account = connect.account();
    let finding = explain(&Given {
        expected: &expected,
        signed: signed.as_deref(),
        signature: args.signature.as_deref().map(str::trim),
        body: &request.body,
        secret: account.as_ref().ok().map(|account| &account.secret),
    });
    let remedy = answer.as_ref().and_then(Answer::remedy);
    Ok(Output::said(
        &text(finding.as_ref(), &expected, remedy, args),
        &serde_json::json!({ "finding": finding, "expected": expected, "remedy": remedy }),
    ))
}

fn text(finding: Option<&Finding>, expected: &str, remedy: Option<&str>, args: &ExplainArgs) -> String {
    let Some(finding) = finding else {
        if let Some(remedy) = remedy {
            return format!("The service says what is wrong: {remedy}");
        }
        return match (&args.canonical, &args.signature) {
            (None, None) => format!("This is to be signed (six lines, no line feed at the end):\n{expected}"),
            (_, None) => {
                "The canonical string is right. If the signature is refused all the same, give it with --signature."
                    .to_owned()
            }
            _ => "Nothing is wrong with it. A signature is good for 300 seconds, and its nonce for one request."
                .to_owned(),
        };
    };
    format!(
        "{} differs:\n  yours     {}\n  expected  {}\n\n{}",
        finding.place,
        finding.found.escape_debug(),
        finding.expected.escape_debug(),
        finding.cause
    )
}

/// What the service answered.
struct Answer {
    code: Option<Code>,
    canonical: Option<String>,
}

impl Answer {
    /// Of the whole body, or of the message alone.
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
        }
    }

    /// What to do about it, where the code says it all.
    fn remedy(&self) -> Option<&'static str> {
        let code = self.code.as_ref().filter(|code| **code != Code::InvalidSignature)?;
        code.remedy()
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    let bytes = if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes)?;
        bytes
    } else {
        fs::read(path).map_err(Failure::of(path))?
    };
    String::from_utf8(bytes).map_err(|_| Failure::Usage(format!("{} is not UTF-8", path.display())))
}

#[cfg(test)]
mod tests;
