//! One layer of options: what the flags, the environment or the file say. What a layer does not say is `None`.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Command, FromArgMatches};
use ipnet::IpNet;
use partner_api_signing::Environment;
use serde::Deserialize;

use super::{ConfigError, Hidden, MaybeListen, PublicReportUrl, Span, Switch};
use crate::{logging::LogFormat, secrets::MASTER_KEY_VARIABLE};

/// What stands before an option's name in the environment.
const PREFIX: &str = "PARTNER_API_";
const S3_SECRET_VARIABLE: &str = "PARTNER_API_S3_SECRET_ACCESS_KEY";

// The help of each option names its variable and its default; a test keeps that true.
/// The options. As flags they are `--pool-size`, in the environment `PARTNER_API_POOL_SIZE`, in the file `pool_size`.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Layer {
    /// Address and port to listen on; port 0 takes a free one [env: PARTNER_API_LISTEN] [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Service")]
    pub listen: Option<SocketAddr>,
    /// Address and port for /live, /ready and /metrics, in plain text and for whoever reaches it: an address that only the
    /// operator's machines do; port 0 takes a free one, off has none [env: PARTNER_API_INTERNAL_LISTEN]
    /// [default: 127.0.0.1:9464]
    #[arg(long, value_name = "ADDRESS:PORT|off", help_heading = "Service")]
    pub internal_listen: Option<MaybeListen>,
    /// URL under which partners reach the service; links to files begin with it [env: PARTNER_API_PUBLIC_URL]
    /// [default: http://, or https:// with --tls-certificate, and the address listened on]
    #[arg(long, value_name = "URL", help_heading = "Service")]
    pub public_url: Option<String>,
    /// Address of a report's public page, with {slug} in it: PDFs have it as a link and as a QR code. It holds for all replicas
    /// until one is started with another; off takes it away [env: PARTNER_API_PUBLIC_REPORT_URL] [default: what was set last]
    #[arg(long, value_name = "URL|off", help_heading = "Service")]
    pub public_report_url: Option<PublicReportUrl>,
    /// File with the certificate for TLS, in PEM, those of its issuers behind it; a new one is taken up within seconds, or
    /// at SIGHUP [env: PARTNER_API_TLS_CERTIFICATE] [default: none, HTTP without TLS]
    #[arg(long, value_name = "FILE", help_heading = "Service")]
    pub tls_certificate: Option<PathBuf>,
    /// File with the certificate's private key, in PEM, readable by its owner alone [env: PARTNER_API_TLS_KEY]
    /// [default: none, needed with --tls-certificate]
    #[arg(long, value_name = "FILE", help_heading = "Service")]
    pub tls_key: Option<PathBuf>,
    /// What this deployment is: test or live. Keys of the other one are refused [env: PARTNER_API_ENVIRONMENT]
    /// [default: test]
    #[arg(long, value_name = "test|live", help_heading = "Service")]
    #[serde(deserialize_with = "environment")]
    pub environment: Option<Environment>,
    /// What new key ids begin with, 1 to 16 of a-z and 0-9 [env: PARTNER_API_KEY_PREFIX] [default: vip]
    #[arg(long, value_name = "PREFIX", help_heading = "Service")]
    pub key_prefix: Option<String>,
    /// File that holds the master key, 64 hex digits, readable by its owner alone; or put the key itself into the
    /// environment as PARTNER_API_MASTER_KEY [env: PARTNER_API_MASTER_KEY_FILE] [default: none, one of the two is needed]
    #[arg(long, value_name = "FILE", help_heading = "Service")]
    pub master_key_file: Option<PathBuf>,

    /// File of a second master key that is accepted, too, while one takes the other's place; nothing is sealed with it
    /// [env: PARTNER_API_OTHER_MASTER_KEY_FILE] [default: none]
    #[arg(long, value_name = "FILE", help_heading = "Service")]
    pub other_master_key_file: Option<PathBuf>,

    /// PostgreSQL to use, postgresql://user:password@host/database?sslmode=require. With a password it belongs into the
    /// environment or the file, for everybody can list flags [env: PARTNER_API_DATABASE_URL]
    #[cfg_attr(
        feature = "embedded-postgres",
        doc = "[default: a private cluster in the data folder]"
    )]
    #[cfg_attr(not(feature = "embedded-postgres"), doc = "[default: none, it is needed]")]
    #[arg(long, value_name = "URL", value_parser = hidden, help_heading = "Database")]
    pub database_url: Option<Hidden>,
    /// Standbys of that PostgreSQL, for reads that may be behind by --read-max-lag; the primary answers what they cannot
    /// [env: PARTNER_API_READ_DATABASE_URL] [default: none, all is read from the primary]
    #[arg(long, value_name = "URL", value_parser = hidden, help_heading = "Database")]
    pub read_database_url: Option<Hidden>,
    /// How far a standby may be behind to be read from, 100ms at least [env: PARTNER_API_READ_MAX_LAG] [default: 2s]
    #[arg(long, value_name = "TIME", help_heading = "Database")]
    pub read_max_lag: Option<Span>,
    #[cfg_attr(feature = "embedded-postgres", doc = "Folder for the private cluster and the files")]
    #[cfg_attr(not(feature = "embedded-postgres"), doc = "Folder for the files")]
    /// [env: PARTNER_API_DATA_DIR] [default: ./data]
    #[arg(long, value_name = "FOLDER", help_heading = "Database")]
    pub data_dir: Option<PathBuf>,
    /// Folder with postgres, initdb and pg_ctl for the private cluster [env: PARTNER_API_POSTGRES_BIN] [default: searched
    /// on the PATH, by pg_config, in Debian's and Homebrew's folders]
    #[arg(long, value_name = "FOLDER", help_heading = "Database")]
    // A file may be shared with programs that have a private cluster.
    #[cfg_attr(not(feature = "embedded-postgres"), arg(hide = true))]
    pub postgres_bin: Option<PathBuf>,
    /// Database connections for requests, 1 to 1000 [env: PARTNER_API_POOL_SIZE] [default: 16]
    #[arg(long, value_name = "NUMBER", help_heading = "Database")]
    pub pool_size: Option<usize>,
    /// How long a request waits for a connection before it is answered 503 [env: PARTNER_API_POOL_WAIT] [default: 250ms]
    #[arg(long, value_name = "TIME", help_heading = "Database")]
    pub pool_wait: Option<Span>,
    /// How long PostgreSQL works on one statement [env: PARTNER_API_STATEMENT_TIMEOUT] [default: 5s]
    #[arg(long, value_name = "TIME", help_heading = "Database")]
    pub statement_timeout: Option<Span>,

    /// Requests per minute and address, counted before authentication; 0 is no limit [env: PARTNER_API_IP_LIMIT]
    /// [default: 1200]
    #[arg(long, value_name = "NUMBER", help_heading = "Limits")]
    pub ip_limit: Option<u32>,
    /// Proxies whose X-Forwarded-For is believed, as CIDR blocks separated by commas [env: PARTNER_API_TRUSTED_PROXIES]
    /// [default: none]
    #[arg(long, value_name = "CIDR,...", value_delimiter = ',', help_heading = "Limits")]
    pub trusted_proxies: Option<Vec<IpNet>>,
    /// Time in which a request's body must have arrived, else 408 [env: PARTNER_API_BODY_TIMEOUT] [default: 30s]
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    pub body_timeout: Option<Span>,
    /// Time in which a request, once read, must be answered, else 503 [env: PARTNER_API_REQUEST_TIMEOUT] [default: 15s]
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    pub request_timeout: Option<Span>,
    /// Time that running requests are given after SIGTERM or Ctrl-C [env: PARTNER_API_SHUTDOWN_DEADLINE] [default: 20s]
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    pub shutdown_deadline: Option<Span>,
    /// Time before that in which /ready is 503 and requests are still answered, for balancers to send theirs elsewhere; a
    /// second signal ends it [env: PARTNER_API_DRAIN] [default: none]
    #[arg(long, value_name = "TIME", help_heading = "Requests")]
    pub drain: Option<Span>,
    #[cfg_attr(
        feature = "render",
        doc = "Reports that this replica renders at the same time; 0 leaves that to other replicas \
               [env: PARTNER_API_RENDERERS] [default: 1]"
    )]
    #[cfg_attr(
        not(feature = "render"),
        doc = "Reports that this replica renders: none, for it was built without rendering, and leaves that to other \
               replicas [env: PARTNER_API_RENDERERS] [default: 0]"
    )]
    #[arg(long, value_name = "NUMBER", help_heading = "Limits")]
    pub renderers: Option<usize>,

    /// Folder for photos and PDFs, whose links the service serves itself [env: PARTNER_API_STORAGE_DIR] [default: files, in
    /// the data folder]
    #[arg(long, value_name = "FOLDER", help_heading = "Storage")]
    pub storage_dir: Option<PathBuf>,
    /// Bucket of an S3-compatible service, in place of a folder [env: PARTNER_API_S3_BUCKET] [default: none]
    #[arg(long, value_name = "NAME", help_heading = "Storage")]
    pub s3_bucket: Option<String>,
    /// The bucket's region [env: PARTNER_API_S3_REGION] [default: AWS_REGION's]
    #[arg(long, value_name = "REGION", help_heading = "Storage")]
    pub s3_region: Option<String>,
    /// URL of the S3-compatible service [env: PARTNER_API_S3_ENDPOINT] [default: AWS's for the region]
    #[arg(long, value_name = "URL", help_heading = "Storage")]
    pub s3_endpoint: Option<String>,
    /// URL under which partners reach that service [env: PARTNER_API_S3_PUBLIC_ENDPOINT] [default: the same]
    #[arg(long, value_name = "URL", help_heading = "Storage")]
    pub s3_public_endpoint: Option<String>,
    /// Access key id; its secret is read from PARTNER_API_S3_SECRET_ACCESS_KEY or the file, never from a flag
    /// [env: PARTNER_API_S3_ACCESS_KEY_ID] [default: AWS_ACCESS_KEY_ID's, or the machine's role]
    #[arg(long, value_name = "ID", help_heading = "Storage")]
    pub s3_access_key_id: Option<String>,
    /// The secret access key: no flag, for everybody can list flags.
    #[arg(skip)]
    pub s3_secret_access_key: Option<Hidden>,
    /// Bucket in the path instead of in the host name, true or false [env: PARTNER_API_S3_PATH_STYLE] [default: true with
    /// an endpoint]
    #[arg(long, value_name = "true|false", help_heading = "Storage")]
    pub s3_path_style: Option<bool>,
    /// Plain HTTP to the endpoint also beyond loopback, true or false [env: PARTNER_API_S3_ALLOW_HTTP] [default: false]
    #[arg(long, value_name = "true|false", help_heading = "Storage")]
    pub s3_allow_http: Option<bool>,

    /// error, warn, info, debug or trace, also per module: info,partner_api=debug [env: PARTNER_API_LOG_LEVEL]
    /// [default: info]
    #[arg(long, value_name = "LEVEL", help_heading = "Log")]
    pub log_level: Option<String>,
    /// auto is text on a terminal and JSON otherwise [env: PARTNER_API_LOG_FORMAT] [default: auto]
    #[arg(long, value_name = "FORMAT", help_heading = "Log")]
    pub log_format: Option<LogFormat>,

    /// Keep a row of each request in the database, on or off [env: PARTNER_API_REQUEST_LOG] [default: on]
    #[arg(long, value_name = "on|off", help_heading = "Log")]
    pub request_log: Option<Switch>,
    /// Days before today that those rows are kept, 1 to 3650 [env: PARTNER_API_REQUEST_LOG_DAYS] [default: 90]
    #[arg(long, value_name = "NUMBER", help_heading = "Log")]
    pub request_log_days: Option<u32>,

    /// OpenTelemetry collector that traces are sent to, OTLP over HTTP: http://127.0.0.1:4318. A trace's id is the request's,
    /// without dashes [env: PARTNER_API_OTLP_ENDPOINT] [default: none, no traces]
    #[arg(long, value_name = "URL", help_heading = "Log")]
    pub otlp_endpoint: Option<String>,
    /// Share of requests that are traced, 0 to 1; those that end in a 5xx are in any case [env: PARTNER_API_TRACE_SHARE]
    /// [default: 1]
    #[arg(long, value_name = "NUMBER", help_heading = "Log")]
    pub trace_share: Option<f64>,

    /// The master key itself, which only the environment gives.
    #[arg(skip)]
    #[serde(skip)]
    pub master_key: Option<Hidden>,
}

impl Layer {
    /// The environment's layer; `variable` looks one up.
    ///
    /// # Errors
    /// A variable's value cannot be used; its name is told, its value is not.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        // Each variable is given to the flag's own parser, so that both accept the same.
        let mut command = Self::augment_args(Command::new("environment").disable_help_flag(true).no_binary_name(true));
        command.build();
        let mut layer = Self::default();
        for argument in command.clone().get_arguments() {
            let id = argument.get_id().as_str();
            let name = variable_name(id);
            // An empty variable is one that is not set.
            let Some(value) = variable(&name).filter(|value| !value.is_empty()) else {
                continue;
            };
            let flag = format!("--{}={value}", id.replace('_', "-"));
            command
                .clone()
                .try_get_matches_from([flag])
                .and_then(|matches| layer.update_from_arg_matches(&matches))
                .map_err(|error| ConfigError::Variable {
                    name,
                    reason: reason(&error),
                })?;
        }
        let hidden = |name| variable(name).filter(|value| !value.is_empty()).map(Hidden::from);
        layer.s3_secret_access_key = hidden(S3_SECRET_VARIABLE);
        layer.master_key = hidden(MASTER_KEY_VARIABLE);
        Ok(layer)
    }

    /// The file's layer, from its text.
    ///
    /// # Errors
    /// The line, and what is wrong there: for an unknown key its name and the known ones.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| {
            // Not the error's own display: that shows the line, which may hold a secret.
            let before = &text.as_bytes()[..error.span().map_or(0, |span| span.start.min(text.len()))];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            format!("line {line}: {}", error.message())
        })
    }

    /// This layer over another one.
    #[must_use]
    pub fn over(self, under: Self) -> Self {
        Self {
            listen: self.listen.or(under.listen),
            internal_listen: self.internal_listen.or(under.internal_listen),
            public_url: self.public_url.or(under.public_url),
            public_report_url: self.public_report_url.or(under.public_report_url),
            tls_certificate: self.tls_certificate.or(under.tls_certificate),
            tls_key: self.tls_key.or(under.tls_key),
            environment: self.environment.or(under.environment),
            key_prefix: self.key_prefix.or(under.key_prefix),
            master_key_file: self.master_key_file.or(under.master_key_file),
            other_master_key_file: self.other_master_key_file.or(under.other_master_key_file),
            database_url: self.database_url.or(under.database_url),
            read_database_url: self.read_database_url.or(under.read_database_url),
            read_max_lag: self.read_max_lag.or(under.read_max_lag),
            data_dir: self.data_dir.or(under.data_dir),
            postgres_bin: self.postgres_bin.or(under.postgres_bin),
            pool_size: self.pool_size.or(under.pool_size),
            pool_wait: self.pool_wait.or(under.pool_wait),
            statement_timeout: self.statement_timeout.or(under.statement_timeout),
            ip_limit: self.ip_limit.or(under.ip_limit),
            trusted_proxies: self.trusted_proxies.or(under.trusted_proxies),
            body_timeout: self.body_timeout.or(under.body_timeout),
            request_timeout: self.request_timeout.or(under.request_timeout),
            shutdown_deadline: self.shutdown_deadline.or(under.shutdown_deadline),
            drain: self.drain.or(under.drain),
            renderers: self.renderers.or(under.renderers),
            storage_dir: self.storage_dir.or(under.storage_dir),
            s3_bucket: self.s3_bucket.or(under.s3_bucket),
            s3_region: self.s3_region.or(under.s3_region),
            s3_endpoint: self.s3_endpoint.or(under.s3_endpoint),
            s3_public_endpoint: self.s3_public_endpoint.or(under.s3_public_endpoint),
            s3_access_key_id: self.s3_access_key_id.or(under.s3_access_key_id),
            s3_secret_access_key: self.s3_secret_access_key.or(under.s3_secret_access_key),
            s3_path_style: self.s3_path_style.or(under.s3_path_style),
            s3_allow_http: self.s3_allow_http.or(under.s3_allow_http),
            log_level: self.log_level.or(under.log_level),
            log_format: self.log_format.or(under.log_format),
            request_log: self.request_log.or(under.request_log),
            request_log_days: self.request_log_days.or(under.request_log_days),
            otlp_endpoint: self.otlp_endpoint.or(under.otlp_endpoint),
            trace_share: self.trace_share.or(under.trace_share),
            master_key: self.master_key.or(under.master_key),
        }
    }
}

/// `PARTNER_API_POOL_SIZE` of `pool_size`.
pub(super) fn variable_name(option: &str) -> String {
    format!("{PREFIX}{}", option.to_ascii_uppercase())
}

/// What is wrong with a value, without the value.
fn reason(error: &clap::Error) -> String {
    use clap::error::{ContextKind, ContextValue};
    if let Some(cause) = std::error::Error::source(error) {
        return cause.to_string();
    }
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) if !values.is_empty() => format!("expected one of {}", values.join(", ")),
        _ => "the value cannot be used".to_owned(),
    }
}

#[allow(clippy::unnecessary_wraps, reason = "the signature of a value parser")]
fn hidden(text: &str) -> Result<Hidden, String> {
    Ok(Hidden::from(text.to_owned()))
}

fn environment<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Environment>, D::Error> {
    String::deserialize(deserializer)?
        .parse()
        .map(Some)
        .map_err(serde::de::Error::custom)
}
