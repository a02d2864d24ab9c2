//! A request that somebody describes: its method, its target and its body.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;

use clap::Args;
use partner_api_client::signed_path;
use partner_api_signing::split_target;

use crate::failure::Failure;

/// A request: method, target and body.
#[derive(Args, Clone, Debug, Default)]
pub struct Described {
    /// The method, such as GET
    pub method: String,
    /// Path and query as they are sent, such as '/api/v1/partner/inspections?limit=2'; a whole address will do
    pub target: String,
    /// The body: a file, whose bytes are taken as they are, or - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    pub body: Option<PathBuf>,
    /// The body, as text
    #[arg(long, value_name = "TEXT")]
    pub data: Option<String>,
}

/// What is signed of it.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: Vec<u8>,
}

impl Described {
    /// Reads the body, and takes the target apart.
    pub(crate) fn take(&self) -> Result<Taken, Failure> {
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
                "`{path}` is not signed: what is begins with /api/v1/partner"
            )));
        }
        Ok(Taken {
            method: self.method.to_ascii_uppercase(),
            path: path.to_owned(),
            query: query.split('#').next().unwrap_or_default().to_owned(),
            body,
        })
    }
}
