//! Verification of the certificate of a partner's program.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use partner_api_signing::{certificate_text, verify};
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::names;
use crate::output::{Output, yes};
use crate::session::Session;

partner_api_store::statement! {
    SECRET = "SELECT secret_nonce, secret_ciphertext FROM api_keys WHERE key_id = $1";
}

/// The arguments of `key verify`.
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// A certificate of `partner certify --listen`: the HTML page or the JSON file
    file: PathBuf,
}

/// A certificate as it is stored in a file.
struct Certificate {
    key_id: String,
    signature: String,
    /// The signed text.
    content: String,
    /// Whether the program passed all checks; `None` for a page, which says so itself.
    passed: Option<bool>,
}

/// The result of a verification.
#[derive(Serialize)]
struct Verified {
    key_id: String,
    partner: String,
    passed: Option<bool>,
}

impl Certificate {
    fn parse(text: &str) -> Option<Self> {
        if !text.starts_with('{') {
            let (content, signed) = text.trim_end().strip_suffix(" -->")?.rsplit_once("\n<!-- ")?;
            let (key_id, signature) = signed.split_once(' ')?;
            return Some(Self {
                key_id: key_id.to_owned(),
                signature: signature.to_owned(),
                content: content.to_owned(),
                passed: None,
            });
        }
        let file: Value = serde_json::from_str(text).ok()?;
        let certificate = file.get("certificate")?;
        Some(Self {
            key_id: certificate.get("key_id")?.as_str()?.to_owned(),
            signature: file.get("signature")?.as_str()?.to_owned(),
            content: certificate.to_string(),
            passed: certificate.get("passed")?.as_bool(),
        })
    }
}

pub(super) async fn certificate(session: &Session, args: &VerifyArgs) -> Result<Output, Failure> {
    let path = args.file.display();
    let text = fs::read_to_string(&args.file).map_err(|error| Failure::Usage(format!("{path}: {error}")))?;
    let Some(certificate) = Certificate::parse(&text) else {
        return Err(Failure::Usage(format!(
            "{path} must be a certificate of `partner certify --listen`, as HTML or JSON"
        )));
    };
    let connection = session.read().await?;
    let key = names::key(&connection, &certificate.key_id).await?;
    let rows = connection.query(SECRET, &[&key.id]).await?;
    let Some(row) = rows.first() else {
        return Err(Failure::Rejected(format!(
            "the key {} was removed in the meantime",
            key.id
        )));
    };
    let (nonce, ciphertext): (Vec<u8>, Vec<u8>) = (row.try_get("secret_nonce")?, row.try_get("secret_ciphertext")?);
    let secret = session.master_key()?.decrypt(&key.id, &nonce, &ciphertext)?;
    if !verify(&secret, &certificate_text(&certificate.content), &certificate.signature) {
        return Err(Failure::Rejected(format!(
            "the signature of {path} is not that of key {}: the file was altered, or signed with another secret; ask the partner for \
             the file that `partner certify` wrote",
            key.id
        )));
    }
    let facts = [
        ("signature", "valid".to_owned()),
        ("key", key.id.clone()),
        ("partner", key.partner.name.clone()),
        (
            "passed",
            certificate.passed.map_or_else(|| "see the page".to_owned(), yes),
        ),
    ];
    let verified = Verified {
        key_id: key.id,
        partner: key.partner.name,
        passed: certificate.passed,
    };
    Ok(Output::facts(&verified, &facts))
}
