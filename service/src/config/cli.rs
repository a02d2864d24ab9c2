//! The command line.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use clap::{Args, Parser, Subcommand};

use super::Layer;

/// The partner API: inspection reports and test-line measurements.
#[derive(Debug, Parser)]
#[command(
    name = "partner-api",
    version,
    after_help = "Examples:\n  \
        partner-api sandbox                       everything in one: database, data, service, a check\n  \
        partner-api serve --config service.toml   the service as configured\n  \
        partner-api serve --help                  every option, with its variable and default"
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program does.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API, after bringing the database's schema up to date
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Bring the database's schema up to date and stop
    #[command(
        after_help = "Example:\n  PARTNER_API_DATABASE_URL=postgresql://api@db.internal/partner partner-api migrate"
    )]
    Migrate(ServeArgs),
    /// Start a private database with sandbox data, serve it, run the acceptance scenarios, and go on serving
    #[command(after_help = SANDBOX_EXAMPLES)]
    Sandbox(SandboxArgs),
}

const SERVE_EXAMPLES: &str = "\
A flag wins over its environment variable, and that over the file. TIME is written as 250ms, 5s or 1m.

Examples:
  PARTNER_API_MASTER_KEY_FILE=master.key partner-api serve
      on 127.0.0.1:8080, with a private database in ./data (make the key: openssl rand -hex 32 > master.key)
  partner-api serve --config /etc/partner-api.toml --listen 0.0.0.0:8080
      where the file says, for example:
          environment = \"live\"
          public_url = \"https://api.example.org\"
          database_url = \"postgresql://api:password@db.internal/partner?sslmode=require\"
          master_key_file = \"/etc/partner-api.key\"
          trusted_proxies = [\"10.0.0.0/8\"]
          s3_bucket = \"inspection-files\"
          statement_timeout = \"5s\"";

const SANDBOX_EXAMPLES: &str = "\
Examples:
  partner-api sandbox               on 127.0.0.1:8080 until Ctrl-C; keys and ids are in .sandbox/sandbox.json
  partner-api sandbox --port 9000   on another port
  partner-api sandbox --check       run the scenarios and stop; the exit code tells";

/// The options of `serve` and `migrate`.
#[derive(Args, Clone, Debug, Default)]
pub struct ServeArgs {
    /// TOML file with any of the options below, named as their flags with _ for - (pool_size = 16)
    /// [env: PARTNER_API_CONFIG] [default: none]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The options given as flags.
    #[command(flatten)]
    pub flags: Layer,
}

/// The options of `sandbox`.
#[derive(Args, Clone, Debug)]
pub struct SandboxArgs {
    /// Port on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 8080)]
    pub port: u16,
    /// Folder for everything the sandbox keeps
    #[arg(long, value_name = "FOLDER", default_value = ".sandbox")]
    pub data_dir: PathBuf,
    /// Run the acceptance scenarios and stop; the exit code tells how they went
    #[arg(long)]
    pub check: bool,
    /// Requests per minute and address; 0 is no limit
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub ip_limit: u32,
}

impl SandboxArgs {
    /// The address to listen on.
    #[must_use]
    pub fn listen(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }
}
