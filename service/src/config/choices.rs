//! Options that belong together: some require others, and some exclude others.

use std::path::PathBuf;

use bounded_listener::tls::TlsFiles;
use url::Url;

use super::{ConfigError, Hidden, Layer, Options, Span};
use crate::storage::S3Settings;
use crate::traces;

/// The standbys that serve reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadDatabase {
    /// Their URL.
    pub url: Hidden,
    /// The maximum replication lag.
    pub max_lag: Span,
}

/// The object store for photos and PDFs.
#[derive(Clone, Debug)]
pub enum StorageChoice {
    /// In a folder.
    Folder(PathBuf),
    /// In an S3-compatible service.
    S3(S3Settings),
}

pub(super) fn read_database(given: &Layer, options: &Options) -> Result<Option<ReadDatabase>, ConfigError> {
    match &options.read_database_url {
        None if given.read_max_lag.is_some() => {
            Err(ConfigError::option("--read-max-lag", "requires --read-database-url"))
        }
        None => Ok(None),
        Some(_) if options.database_url.is_none() => Err(ConfigError::option(
            "--read-database-url",
            "requires --database-url, because the private cluster has no standbys",
        )),
        Some(url) => Ok(Some(ReadDatabase {
            url: url.clone(),
            max_lag: options.read_max_lag,
        })),
    }
}

pub(super) fn traces(given: &Layer, options: &Options) -> Result<Option<traces::Settings>, ConfigError> {
    let Some(endpoint) = &options.otlp_endpoint else {
        return match given.trace_share {
            Some(_) => Err(ConfigError::option("--trace-share", "requires --otlp-endpoint")),
            None => Ok(None),
        };
    };
    let is_usable = |url: &Url| {
        let is_bare = url.query().is_none() && url.username().is_empty() && url.password().is_none();
        is_bare && ["http", "https"].contains(&url.scheme())
    };
    if !Url::parse(endpoint).is_ok_and(|url| is_usable(&url)) {
        let reason = "must be the URL of a collector, such as http://127.0.0.1:4318; put credentials into \
                      OTEL_EXPORTER_OTLP_HEADERS";
        return Err(ConfigError::option("--otlp-endpoint", reason));
    }
    if !(0.0..=1.0).contains(&options.trace_share) {
        return Err(ConfigError::option("--trace-share", "must be from 0 to 1, such as 0.1"));
    }
    Ok(Some(traces::Settings {
        endpoint: endpoint.clone(),
        share: options.trace_share,
    }))
}

pub(super) fn tls(options: &Options) -> Result<Option<TlsFiles>, ConfigError> {
    match (options.tls_certificate.clone(), options.tls_key.clone()) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        (Some(_), None) => Err(ConfigError::option("--tls-key", "required with --tls-certificate")),
        (None, Some(_)) => Err(ConfigError::option("--tls-certificate", "required with --tls-key")),
    }
}

pub(super) fn storage(options: &Options) -> Result<StorageChoice, ConfigError> {
    let Some(bucket) = &options.s3_bucket else {
        let others = [
            &options.s3_region,
            &options.s3_endpoint,
            &options.s3_public_endpoint,
            &options.s3_access_key_id,
        ];
        if others.iter().any(|option| option.is_some()) || options.s3_secret_access_key.is_some() {
            return Err(ConfigError::option("--s3-bucket", "required with the other S3 options"));
        }
        let folder = options.storage_dir.clone();
        return Ok(StorageChoice::Folder(
            folder.unwrap_or_else(|| options.data_dir.join("files")),
        ));
    };
    if options.storage_dir.is_some() {
        return Err(ConfigError::option(
            "--storage-dir",
            "files are stored in a folder or in a bucket (--s3-bucket), not both",
        ));
    }
    if options.s3_access_key_id.is_some() != options.s3_secret_access_key.is_some() {
        let reason = "set the ID and its secret (PARTNER_API_S3_SECRET_ACCESS_KEY) together";
        return Err(ConfigError::option("--s3-access-key-id", reason));
    }
    Ok(StorageChoice::S3(S3Settings {
        bucket: bucket.clone(),
        region: options.s3_region.clone(),
        endpoint: options.s3_endpoint.clone(),
        public_endpoint: options.s3_public_endpoint.clone(),
        access_key_id: options.s3_access_key_id.clone(),
        secret_access_key: options
            .s3_secret_access_key
            .as_ref()
            .map(|secret| secret.expose().to_owned().into()),
        path_style: options.s3_path_style,
        allow_http: options.s3_allow_http,
    }))
}
