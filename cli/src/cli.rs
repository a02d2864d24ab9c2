//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use partner_api::config::ServeArgs;
#[cfg(feature = "sandbox")]
use partner_api_sandbox::args::{EXAMPLES as SANDBOX_EXAMPLES, SandboxArgs};
use partner_api_terminal::manual::Shell;

/// The partner API: inspection reports and test-line measurements.
#[derive(Debug, Parser)]
#[command(name = "partner-api", version, after_help = EXAMPLES, after_long_help = long_examples())]
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
    #[command(after_help = MIGRATE_EXAMPLES)]
    Migrate(MigrateArgs),
    /// Start a private database with sandbox data, serve it, run the acceptance scenarios, and go on serving
    #[cfg(feature = "sandbox")]
    #[command(after_help = SANDBOX_EXAMPLES)]
    Sandbox(SandboxArgs),
    /// What operators do.
    #[command(flatten)]
    Operator(partner_api_operator::Command),
    /// Print the completions of a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Write the manual's pages into a folder
    #[command(after_help = "Example:\n  partner-api man /usr/local/share/man/man1 && man partner-api-key-rotate")]
    Man(ManArgs),
    /// Write the published contract into a folder, as the service serves it at /docs
    #[cfg(feature = "site")]
    #[command(after_help = SITE_EXAMPLES)]
    Site(SiteArgs),
}

/// The options of `migrate`.
#[derive(Args, Debug)]
pub struct MigrateArgs {
    /// Print what would be applied, and its SQL; change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print which migrations are applied, and since when; change nothing
    #[arg(long, conflicts_with = "dry_run")]
    pub status: bool,
    /// With --status: JSON instead of a table
    #[arg(long, requires = "status")]
    pub json: bool,
    /// Where the database is.
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// The arguments of `completions`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// The arguments of `man`.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// The folder, which is made if it does not exist
    pub folder: PathBuf,
}

/// The arguments of `site`.
#[cfg(feature = "site")]
#[derive(Args, Debug)]
pub struct SiteArgs {
    /// The folder, which is made if it does not exist
    pub folder: PathBuf,
}

#[cfg(feature = "site")]
const SITE_EXAMPLES: &str = "\
Examples:
  partner-api site public                    then any web server can serve the folder `public`
  partner-api site . && open docs/index.html  it can be read without one";

const MIGRATE_EXAMPLES: &str = "\
Migrations are safe on a live system: replicas of the version before go on serving.

Examples:
  PARTNER_API_DATABASE_URL=postgresql://api@db.internal/partner partner-api migrate
  partner-api migrate --dry-run    what would be applied
  partner-api migrate --status     what is applied, and since when";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  partner-api completions bash > /etc/bash_completion.d/partner-api
  partner-api completions zsh > /usr/local/share/zsh/site-functions/_partner-api";

fn long_examples() -> String {
    format!("{EXAMPLES}\n\n{}", partner_api_operator::failure::EXIT_CODES)
}

#[cfg(feature = "sandbox")]
const EXAMPLES: &str = "\
Examples:
  partner-api sandbox                       everything in one: database, data, service, a check
  partner-api serve --config service.toml   the service as configured
  partner-api serve --help                  every option, with its variable and default
  partner-api partner create 'Acme Devices' the first step of a partner; partner-api partner --help has the next";
#[cfg(not(feature = "sandbox"))]
const EXAMPLES: &str = "\
Examples:
  partner-api serve --config service.toml   the service as configured
  partner-api serve --help                  every option, with its variable and default
  partner-api partner create 'Acme Devices' the first step of a partner; partner-api partner --help has the next";

/// Before the examples of `serve`.
macro_rules! options_from {
    () => {
        "A flag wins over its environment variable, and that over the file. TIME is written as 250ms, 5s or 1m.\n\nExamples:\n"
    };
}

/// The examples of `serve` that any program has.
macro_rules! serve_from_a_file {
    () => {
        "  partner-api serve --config /etc/partner-api.toml --listen 0.0.0.0:8080
      where the file says, for example:
          environment = \"live\"
          public_url = \"https://api.example.org\"
          database_url = \"postgresql://api:password@db.internal/partner?sslmode=require\"
          master_key_file = \"/etc/partner-api.key\"
          trusted_proxies = [\"10.0.0.0/8\"]
          s3_bucket = \"inspection-files\"
          statement_timeout = \"5s\""
    };
}

#[cfg(feature = "embedded-postgres")]
const SERVE_EXAMPLES: &str = concat!(
    options_from!(),
    "  PARTNER_API_MASTER_KEY_FILE=master.key partner-api serve
      on 127.0.0.1:8080, with a private database in ./data (make the key: openssl rand -hex 32 > master.key)\n",
    serve_from_a_file!()
);
#[cfg(not(feature = "embedded-postgres"))]
const SERVE_EXAMPLES: &str = concat!(options_from!(), serve_from_a_file!());

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
