//! A request given as arguments: its method, its target and its body.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;

use clap::Args;
use partner_api_client::signed_path;
use partner_api_signing::split_target;

use crate::failure::Failure;

/// A request: method, target and body.
#[derive(Args, Clone, Debug, Default)]
pub struct RequestArgs {
    /// The method, such as GET
    pub method: String,
    /// Path and query as they are sent, such as '/api/v1/partner/inspections?limit=2', or a complete URL
    pub target: String,
    /// A file with the exact bytes of the body, or - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    pub body: Option<PathBuf>,
    /// The body, as text
    #[arg(long, value_name = "TEXT")]
    pub data: Option<String>,
}

/// The parts of a request that are signed.
#[derive(Debug)]
pub(crate) struct RequestParts {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: Vec<u8>,
}

impl RequestArgs {
    /// Reads the body and splits the target into path and query.
    pub(crate) fn read(&self) -> Result<RequestParts, Failure> {
        let (path, query) = split_target(&self.target);
        let body = match (&self.data, &self.body) {
            (Some(text), _) => text.clone().into_bytes(),
            (None, Some(path)) if path.as_os_str() == "-" => {
                let mut body = Vec::new();
                std::io::stdin().read_to_end(&mut body)?;
                body
            }
            (None, Some(path)) => fs::read(path).map_err(Failure::of(path))?,
            (None, None) => Vec::new(),
        };
        let path = signed_path(path);
        if !path.starts_with("/api/v1/partner") {
            return Err(Failure::Usage(format!(
                "`{path}` is not signed: signed paths begin with /api/v1/partner"
            )));
        }
        Ok(RequestParts {
            method: self.method.to_ascii_uppercase(),
            path: path.to_owned(),
            query: query.split('#').next().unwrap_or_default().to_owned(),
            body,
        })
    }
}
