//! Options that make one choice together: some are needed with others, or cannot be.

use std::path::{Path, PathBuf};

use serde::Serialize;
use url::Url;

use super::{ConfigError, Hidden, Layer, Span};
use crate::storage::S3Settings;
use crate::tls::TlsFiles;
use crate::traces;

/// The standbys that reads go to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReadDatabase {
    /// Where they are.
    pub url: Hidden,
    /// How far they may be behind.
    pub max_lag: Span,
}

/// Where photos and PDFs are kept.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StorageChoice {
    /// In a folder.
    Folder(PathBuf),
    /// In an S3-compatible service.
    S3(S3Settings),
}

pub(super) fn read_database(all: &Layer) -> Result<Option<ReadDatabase>, ConfigError> {
    match (&all.read_database_url, all.read_max_lag) {
        (None, Some(_)) => Err(ConfigError::option("--read-max-lag", "needs --read-database-url")),
        (None, None) => Ok(None),
        (Some(_), _) if all.database_url.is_none() => Err(ConfigError::option(
            "--read-database-url",
            "needs --database-url: the private cluster has no standbys",
        )),
        (Some(url), max_lag) => Ok(Some(ReadDatabase {
            url: url.clone(),
            max_lag: max_lag.unwrap_or(Span::secs(2)),
        })),
    }
}

pub(super) fn traces(all: &Layer) -> Result<Option<traces::Settings>, ConfigError> {
    let endpoint = match (&all.otlp_endpoint, all.trace_share) {
        (None, None) => return Ok(None),
        (None, Some(_)) => return Err(ConfigError::option("--trace-share", "needs --otlp-endpoint")),
        (Some(endpoint), _) => endpoint,
    };
    let is_usable = |url: &Url| {
        let is_bare = url.query().is_none() && url.username().is_empty() && url.password().is_none();
        is_bare && ["http", "https"].contains(&url.scheme())
    };
    if !Url::parse(endpoint).is_ok_and(|url| is_usable(&url)) {
        let reason = "must be the URL of a collector, such as http://127.0.0.1:4318; what it asks for beside goes into \
                      OTEL_EXPORTER_OTLP_HEADERS";
        return Err(ConfigError::option("--otlp-endpoint", reason));
    }
    let share = all.trace_share.unwrap_or(1.0);
    if !(0.0..=1.0).contains(&share) {
        return Err(ConfigError::option("--trace-share", "must be from 0 to 1, such as 0.1"));
    }
    Ok(Some(traces::Settings {
        endpoint: endpoint.clone(),
        share,
    }))
}

pub(super) fn tls(all: &Layer) -> Result<Option<TlsFiles>, ConfigError> {
    match (all.tls_certificate.clone(), all.tls_key.clone()) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        (Some(_), None) => Err(ConfigError::option("--tls-key", "needed with --tls-certificate")),
        (None, Some(_)) => Err(ConfigError::option("--tls-certificate", "needed with --tls-key")),
    }
}

pub(super) fn storage(all: &Layer, data_dir: &Path) -> Result<StorageChoice, ConfigError> {
    let Some(bucket) = &all.s3_bucket else {
        let others = [
            &all.s3_region,
            &all.s3_endpoint,
            &all.s3_public_endpoint,
            &all.s3_access_key_id,
        ];
        if others.iter().any(|option| option.is_some()) || all.s3_secret_access_key.is_some() {
            return Err(ConfigError::option("--s3-bucket", "needed with the other S3 options"));
        }
        return Ok(StorageChoice::Folder(
            all.storage_dir.clone().unwrap_or_else(|| data_dir.join("files")),
        ));
    };
    if all.storage_dir.is_some() {
        return Err(ConfigError::option(
            "--storage-dir",
            "files are kept in a folder or in a bucket (--s3-bucket), not both",
        ));
    }
    if all.s3_access_key_id.is_some() != all.s3_secret_access_key.is_some() {
        let reason = "the id and its secret (PARTNER_API_S3_SECRET_ACCESS_KEY) are given together";
        return Err(ConfigError::option("--s3-access-key-id", reason));
    }
    Ok(StorageChoice::S3(S3Settings {
        bucket: bucket.clone(),
        region: all.s3_region.clone(),
        endpoint: all.s3_endpoint.clone(),
        public_endpoint: all.s3_public_endpoint.clone(),
        access_key_id: all.s3_access_key_id.clone(),
        secret_access_key: all
            .s3_secret_access_key
            .as_ref()
            .map(|secret| secret.expose().to_owned().into()),
        path_style: all.s3_path_style,
        allow_http: all.s3_allow_http.unwrap_or(false),
    }))
}
