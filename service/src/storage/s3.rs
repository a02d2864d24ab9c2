//! The client of an S3-compatible service.

use std::{net::IpAddr, time::Duration};

use object_store::{
    BackoffConfig, ClientOptions, RetryConfig,
    aws::{AmazonS3, AmazonS3Builder},
};
use serde::Serialize;
use url::{Host, Url};
use zeroize::Zeroizing;

use super::StorageError;

/// The timeout for connecting, and between two reads of a response. There is none for a whole response, because a slow client of
/// the service slows it down.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The time for which a failing request is retried.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// The settings of an S3-compatible service. Absent values come from AWS's environment variables (`AWS_ACCESS_KEY_ID`,
/// `AWS_REGION`, …) or, on AWS, from the machine's role.
#[derive(Clone, Default, Serialize)]
pub struct S3Settings {
    /// The bucket, which must exist.
    pub bucket: String,
    /// The region, for example `eu-central-1`.
    pub region: Option<String>,
    /// The service's URL; `None` means AWS in the region.
    pub endpoint: Option<String>,
    /// The URL under which partners reach the service, if it differs.
    pub public_endpoint: Option<String>,
    /// The access key ID.
    pub access_key_id: Option<String>,
    /// The secret access key. Never shown.
    #[serde(skip)]
    pub secret_access_key: Option<Zeroizing<String>>,
    /// Whether the bucket is in the path (`https://host/bucket/key`) instead of the host name. `None` means in the path if there is
    /// an `endpoint`.
    pub path_style: Option<bool>,
    /// Whether plain HTTP is allowed beyond loopback, for example inside a private network.
    pub allow_http: bool,
}

impl std::fmt::Debug for S3Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("S3Settings")
            .field("bucket", &self.bucket)
            .field("region", &self.region)
            .field("endpoint", &self.endpoint)
            .field("public_endpoint", &self.public_endpoint)
            .field("access_key_id", &self.access_key_id)
            .field(
                "secret_access_key",
                &self.secret_access_key.as_ref().map(|_| "[redacted]"),
            )
            .field("path_style", &self.path_style)
            .field("allow_http", &self.allow_http)
            .finish()
    }
}

impl S3Settings {
    /// Builds a client of the service at `endpoint`, or of AWS.
    pub(super) fn build(&self, endpoint: Option<&str>) -> Result<AmazonS3, StorageError> {
        let mut options = ClientOptions::new()
            .with_timeout_disabled()
            .with_connect_timeout(TIMEOUT)
            .with_read_timeout(TIMEOUT);
        let mut builder = AmazonS3Builder::from_env().with_bucket_name(&self.bucket);
        if let Some(endpoint) = endpoint {
            let url: Url = endpoint
                .parse()
                .map_err(|error| StorageError::Setup(format!("S3 endpoint {endpoint}: {error}")))?;
            match url.scheme() {
                "https" => {}
                "http" if self.allow_http || is_loopback(&url) => options = options.with_allow_http(true),
                "http" => {
                    return Err(StorageError::Setup(format!(
                        "S3 endpoint {endpoint}: plain HTTP is only allowed for loopback addresses; use https, or set \
                         --s3-allow-http"
                    )));
                }
                _ => {
                    return Err(StorageError::Setup(format!(
                        "S3 endpoint {endpoint}: must start with https:// or http://"
                    )));
                }
            }
            builder = builder.with_endpoint(endpoint.trim_end_matches('/'));
        }
        if let Some(region) = &self.region {
            builder = builder.with_region(region);
        }
        if let (Some(id), Some(secret)) = (&self.access_key_id, &self.secret_access_key) {
            builder = builder.with_access_key_id(id).with_secret_access_key(secret.as_str());
        }
        let path_style = self.path_style.unwrap_or(endpoint.is_some());
        let retry = RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: 3,
            retry_timeout: RETRY_TIMEOUT,
        };
        builder
            .with_virtual_hosted_style_request(!path_style)
            .with_client_options(options)
            .with_retry(retry)
            .build()
            .map_err(|error| StorageError::Setup(error.to_string()))
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
        None => false,
    }
}
