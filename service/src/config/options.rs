//! The declaration of every option. The flags, their help, the environment variables, the keys of the file, the defaults and
//! the sample configuration (`deploy/partner-api.toml`) are all derived from it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use ipnet::IpNet;
use partner_api_signing::Environment;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Hidden, MaybeListen, PublicReportUrl, Span, Switch, sources};
use crate::logging::LogFormat;
use partner_api_store::pool::{self, PoolSettings};

/// Generates [`Layer`], [`Options`], and a table of the texts that the help and the sample show for options without a default.
///
/// `default` declares a default value. `none` declares an option without a default, with a text about its behavior when it
/// is unset. `like` declares an example for the sample.
macro_rules! options {
    ($($heading:literal {
        $(
            $(#[$attribute:meta])*
            $name:ident: $kind:ty as $value:literal $([$($clap:tt)+])?, $mode:ident $default:expr $(, like $example:expr)?;
        )+
    })+) => {
        /// The options that one source sets: the flags, the environment or the file. Options that it does not set are
        /// `None`.
        ///
        /// The flag is `--pool-size`, the environment variable `PARTNER_API_POOL_SIZE` and the key in the file `pool_size`.
        #[derive(Args, Clone, Debug, Default, Deserialize)]
        #[command(mut_args(sources::describe))]
        #[serde(deny_unknown_fields, default)]
        pub struct Layer {
            $($(
                $(#[$attribute])*
                #[arg(long, value_name = $value, help_heading = $heading $(, $($clap)+)?)]
                pub $name: Option<$kind>,
            )+)+
            /// The S3 secret access key. It has no flag because other users can list a process's flags.
            #[arg(skip)]
            pub s3_secret_access_key: Option<Hidden>,
            /// The master key itself, which only the environment can set.
            #[arg(skip)]
            #[serde(skip)]
            pub master_key: Option<Hidden>,
        }

        /// The options with their defaults applied.
        #[derive(Clone, Debug, Serialize)]
        pub struct Options {
            $($(
                $(#[$attribute])*
                pub $name: resolved!($mode $kind),
            )+)+
            /// The S3 secret access key.
            pub s3_secret_access_key: Option<Hidden>,
        }

        impl Layer {
            /// Fills the options that this layer does not set from `under`.
            #[must_use]
            pub fn over(self, under: Self) -> Self {
                Self {
                    $($($name: self.$name.or(under.$name),)+)+
                    s3_secret_access_key: self.s3_secret_access_key.or(under.s3_secret_access_key),
                    master_key: self.master_key.or(under.master_key),
                }
            }

            /// Applies the defaults.
            pub(super) fn with_defaults(self) -> Options {
                Options {
                    $($($name: value!($mode self.$name, $default),)+)+
                    s3_secret_access_key: self.s3_secret_access_key,
                }
            }
        }

        /// The behavior of each option without a default while it is unset.
        pub(super) const UNSET: &[(&str, &str)] = &[
            $($(unset!($mode $name, $default)),+),+
        ];

        /// Returns an example for each option without a default value.
        #[cfg(test)]
        pub(super) fn examples() -> toml::Table {
            let mut examples = toml::Table::new();
            $($($(examples.insert(stringify!($name).to_owned(), toml::Value::from($example));)?)+)+
            examples
        }
    };
}

macro_rules! resolved {
    (default $kind:ty) => { $kind };
    (none $kind:ty) => { Option<$kind> };
}

macro_rules! value {
    (default $given:expr, $default:expr) => {
        $given.unwrap_or_else(|| $default)
    };
    (none $given:expr, $unset:expr) => {
        $given
    };
}

macro_rules! unset {
    (default $name:ident, $default:expr) => {
        (stringify!($name), "")
    };
    (none $name:ident, $unset:expr) => {
        (stringify!($name), $unset)
    };
}

options! {
    "Service" {
        /// Address and port to listen on; port 0 picks a free port
        listen: SocketAddr as "ADDRESS:PORT", default (Ipv4Addr::LOCALHOST, 8080).into();
        /// Address and port of the internal listener: /live, /ready and /metrics, without TLS. Choose an address that only
        /// operators can reach. Port 0 picks a free port; off disables the listener
        internal_listen: MaybeListen as "ADDRESS:PORT|off", default MaybeListen::At((Ipv4Addr::LOCALHOST, 9464).into());
        /// Address and port of the listener of the page for inspectors, without TLS. Choose an address that only a proxy with
        /// TLS, or only the operator's own network, can reach. Port 0 picks a free port; off disables the listener
        inspectors_listen: MaybeListen as "ADDRESS:PORT|off", default MaybeListen::At((Ipv4Addr::LOCALHOST, 9466).into());
        /// Base URL under which partners reach the service; links to files start with it
        public_url: String as "URL", none "http://, or https:// with --tls-certificate, and the address of --listen",
            like "https://api.example.org";
        /// URL of a report's public page, with {slug} as placeholder; PDFs show it as a link and a QR code. The value is stored
        /// in the database and applies to all replicas until one starts with another value; off removes it
        public_report_url: PublicReportUrl as "URL|off", none "the value that was set last, at first /r/{slug} of --public-url",
            like "https://reports.example.org/{slug}";
        /// TLS certificate file in PEM, followed by its intermediate certificates; reloaded within seconds of a change, or on
        /// SIGHUP
        tls_certificate: PathBuf as "FILE", none "none, HTTP without TLS", like "/etc/partner-api/tls.crt";
        /// Private key file of the certificate, in PEM, readable only by its owner
        tls_key: PathBuf as "FILE", none "none, required with --tls-certificate", like "/etc/partner-api/tls.key";
        /// Environment of this deployment: test or live. Keys of the other environment are rejected, and so is a database of the
        /// other environment
        #[serde(serialize_with = "sources::environment_to_text", deserialize_with = "sources::environment_from_text")]
        environment: Environment as "test|live", default Environment::Test;
        /// ID of the deployment that the database must belong to; partner-api doctor prints it
        deployment: Uuid as "ID", none "none, any database of the environment", like "01939b97-5c00-74ad-a4d9-83e75accf8ea";
        /// Prefix of new key IDs, 1 to 16 characters of a-z and 0-9
        key_prefix: String as "PREFIX", default "vip".to_owned();
        /// File with the master key, 64 hex digits, readable only by its owner. PARTNER_API_MASTER_KEY can hold the key itself
        /// instead
        master_key_file: PathBuf as "FILE", none "none, one of the two is required", like "/etc/partner-api/master.key";
        /// File with a second master key, for a change of the master key: secrets encrypted with it can be read, new ones are
        /// encrypted with the first key
        other_master_key_file: PathBuf as "FILE", none "none", like "/etc/partner-api/other-master.key";
    }
    "Database" {
        /// PostgreSQL to use, postgresql://user:password@host/database?sslmode=require. Put a URL with a password into the
        /// environment or the file, because other users can list flags
        database_url: Hidden as "URL",
            none if cfg!(feature = "embedded-postgres") { "a private cluster in the data folder" } else { "none, required" },
            like "postgresql://api:password@db.internal/partner?sslmode=require";
        /// Standbys of that PostgreSQL, for reads that may lag by up to --read-max-lag. Reads that they cannot serve go to the
        /// primary
        read_database_url: Hidden as "URL", none "none, the primary serves all reads",
            like "postgresql://api:password@standby.internal/partner?sslmode=require";
        /// Maximum replication lag of a standby that serves reads, at least 100ms
        read_max_lag: Span as "TIME", default Span::secs(2);
        #[cfg_attr(feature = "embedded-postgres", doc = "Folder for the private cluster and the files")]
        #[cfg_attr(not(feature = "embedded-postgres"), doc = "Folder for the files")]
        data_dir: PathBuf as "FOLDER", default "data".into();
        /// Folder with the programs postgres, initdb and pg_ctl, for the private cluster
        // Only hidden, not removed: programs with and without a private cluster may share a file.
        postgres_bin: PathBuf as "FOLDER" [hide = cfg!(not(feature = "embedded-postgres"))],
            none "searched on the PATH, with pg_config and in Debian's and Homebrew's folders", like "/usr/lib/postgresql/17/bin";
        /// Database connections for requests, 1 to 1000
        pool_size: usize as "NUMBER", default PoolSettings::default().size;
        /// Maximum wait of a request for a database connection; after that, the response is 503
        pool_wait: Span as "TIME", default pool::POOL_WAIT.into();
        /// Maximum run time of one statement in PostgreSQL
        statement_timeout: Span as "TIME", default pool::STATEMENT_TIMEOUT.into();
    }
    "Limits" {
        /// Requests per minute and client address, counted before authentication; 0 means no limit
        ip_limit: u32 as "NUMBER", default 1200;
        /// Proxies whose X-Forwarded-For header is trusted, as CIDR blocks separated by commas
        trusted_proxies: Vec<IpNet> as "CIDR,..." [value_delimiter = ','], none "none", like vec!["10.0.0.0/8"];
        /// Time limit for receiving a request's body; after that, the response is 408
        body_timeout: Span as "TIME", default Span::secs(30);
        /// Time limit for processing a request once it has been read; after that, the response is 503
        request_timeout: Span as "TIME", default Span::secs(15);
        /// Time for running requests to finish after SIGTERM or Ctrl-C
        shutdown_deadline: Span as "TIME", default Span::secs(20);
        /// Time before the shutdown in which /ready returns 503 and requests are still served, so that load balancers can
        /// move their traffic; a second signal ends it
        drain: Span as "TIME", none "none", like "10s";
        #[cfg_attr(
            feature = "render",
            doc = "Reports that this replica renders in parallel; 0 leaves rendering to other replicas"
        )]
        #[cfg_attr(
            not(feature = "render"),
            doc = "Reports that this replica renders in parallel; only 0 is possible because this program was built without \
                   rendering"
        )]
        renderers: usize as "NUMBER", default super::RENDERERS;
    }
    "Storage" {
        /// Folder for photos and PDFs; the service serves the links to them itself
        storage_dir: PathBuf as "FOLDER", none "the folder `files` in --data-dir", like "/var/lib/partner-api/files";
        /// Bucket of an S3-compatible service, instead of a folder
        s3_bucket: String as "NAME", none "none", like "inspection-files";
        /// Region of the bucket
        s3_region: String as "REGION", none "the value of AWS_REGION", like "eu-central-1";
        /// URL of the S3-compatible service
        s3_endpoint: String as "URL", none "AWS, by region", like "https://s3.internal";
        /// URL under which partners reach the S3-compatible service
        s3_public_endpoint: String as "URL", none "--s3-endpoint", like "https://files.example.org";
        /// Access key ID. Its secret is read from PARTNER_API_S3_SECRET_ACCESS_KEY or the file, never from a flag
        s3_access_key_id: String as "ID", none "the value of AWS_ACCESS_KEY_ID, or the role of the machine",
            like "AKIAIOSFODNN7EXAMPLE";
        /// Put the bucket into the path instead of the host name: true or false
        s3_path_style: bool as "true|false", none "true with --s3-endpoint", like true;
        /// Allow plain HTTP to endpoints beyond loopback: true or false
        s3_allow_http: bool as "true|false", default false;
    }
    "Retention" {
        /// Years after which `partner-api purge` erases a report with its photos, PDFs and measurements, 1 to 100
        report_years: u32 as "NUMBER", none "none, reports are kept", like 10;
        /// Days after which `partner-api purge` erases a measurement that is in no report, 1 to 3650
        unused_measurement_days: u32 as "NUMBER", none "none, measurements are kept", like 90;
        /// Years after which `partner-api purge` deletes entries of the audit log and of the list of imported files, 1 to 100
        audit_years: u32 as "NUMBER", none "none, they are kept", like 10;
    }
    "Log" {
        /// error, warn, info, debug or trace; per module: info,partner_api=debug
        log_level: String as "LEVEL", default "info".to_owned();
        /// auto logs text to a terminal and JSON otherwise
        log_format: LogFormat as "FORMAT", default LogFormat::default();
        /// Store a row for each request in the database: on or off
        request_log: Switch as "on|off", default Switch::On;
        /// Days to keep those rows, 1 to 3650
        request_log_days: u32 as "NUMBER", default 90;
        /// OpenTelemetry collector to send traces to, OTLP over HTTP. The ID of a trace is the request's ID without dashes
        otlp_endpoint: String as "URL", none "none, no traces", like "http://127.0.0.1:4318";
        /// Share of requests to trace, 0 to 1; requests that end in a 5xx are always traced
        trace_share: f64 as "NUMBER", default 1.0;
    }
}
