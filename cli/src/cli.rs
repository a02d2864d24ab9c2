//! The command line.

use clap::{Parser, Subcommand};
use partner_api::config::ServeArgs;
#[cfg(feature = "sandbox")]
use partner_api_sandbox::args::{EXAMPLES as SANDBOX_EXAMPLES, SandboxArgs};

/// The partner API: inspection reports and test-line measurements.
#[derive(Debug, Parser)]
#[command(name = "partner-api", version, after_help = EXAMPLES)]
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
    #[cfg(feature = "sandbox")]
    #[command(after_help = SANDBOX_EXAMPLES)]
    Sandbox(SandboxArgs),
}

#[cfg(feature = "sandbox")]
const EXAMPLES: &str = "\
Examples:
  partner-api sandbox                       everything in one: database, data, service, a check
  partner-api serve --config service.toml   the service as configured
  partner-api serve --help                  every option, with its variable and default";
#[cfg(not(feature = "sandbox"))]
const EXAMPLES: &str = "\
Examples:
  partner-api serve --config service.toml   the service as configured
  partner-api serve --help                  every option, with its variable and default";

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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        Cli::command().debug_assert();
    }

    /// `script/sandbox --help` prints the file, for help must not wait for a build.
    #[cfg(feature = "sandbox")]
    #[test]
    fn the_scripts_help_of_the_sandbox_is_the_programs() {
        let mut program = Cli::command().term_width(100);
        program.build();
        let help = program
            .find_subcommand_mut("sandbox")
            .expect("a command")
            .render_help()
            .to_string();
        assert_eq!(
            include_str!("sandbox-help.txt"),
            help,
            "cli/src/sandbox-help.txt is to be:\n{help}"
        );
    }
}
