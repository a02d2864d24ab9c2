//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use partner_api::config::ServeArgs;
#[cfg(feature = "sandbox")]
use partner_api_sandbox::args::{EXAMPLES as SANDBOX_EXAMPLES, SandboxArgs};
use partner_api_terminal::manual::Shell;

/// The partner API: inspection reports and test-line measurements.
#[derive(Debug, Parser)]
// Wide enough for the examples, which would otherwise be wrapped.
#[command(name = "partner-api", version, max_term_width = HELP_WIDTH, after_help = EXAMPLES, after_long_help = long_examples())]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The maximum width of help texts.
const HELP_WIDTH: usize = 120;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Migrate the database and serve the API
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Migrate the database and exit
    #[command(after_help = MIGRATE_EXAMPLES)]
    Migrate(MigrateArgs),
    /// Serve a private database with sandbox data, after running the acceptance scenarios
    #[cfg(feature = "sandbox")]
    #[command(after_help = SANDBOX_EXAMPLES)]
    Sandbox(SandboxArgs),
    /// The operator commands.
    #[command(flatten)]
    Operator(partner_api_operator::Command),
    /// Print shell completions
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Write man pages into a folder
    #[command(after_help = "Example:\n  partner-api man /usr/local/share/man/man1 && man partner-api-key-rotate")]
    Man(ManArgs),
    /// Write the documentation site of the API into a folder, as served at /docs
    #[cfg(feature = "site")]
    #[command(after_help = SITE_EXAMPLES)]
    Site(SiteArgs),
}

/// The options of `migrate`.
#[derive(Args, Debug)]
pub struct MigrateArgs {
    /// Print the pending migrations and their SQL without applying them
    #[arg(long)]
    pub dry_run: bool,
    /// List the migrations and when they were applied
    #[arg(long, conflicts_with = "dry_run")]
    pub status: bool,
    /// Also create the database roles of the owner, the service and the operators, and give each exactly its privileges
    #[arg(long, conflicts_with_all = ["dry_run", "status"])]
    pub roles: bool,
    /// With --status: print JSON instead of a table
    #[arg(long, requires = "status")]
    pub json: bool,
    /// The configuration.
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
    /// The folder, created if missing
    pub folder: PathBuf,
}

/// The arguments of `site`.
#[cfg(feature = "site")]
#[derive(Args, Debug)]
pub struct SiteArgs {
    /// The folder, created if missing
    pub folder: PathBuf,
}

#[cfg(feature = "site")]
const SITE_EXAMPLES: &str = "\
Examples:
  partner-api site public                     any web server can serve the folder `public`
  partner-api site . && open docs/index.html  works without a web server";

const MIGRATE_EXAMPLES: &str = "\
Migrations are safe on a live system: replicas of the previous version continue to serve.

Examples:
  PARTNER_API_DATABASE_URL=postgresql://api@db.internal/partner partner-api migrate
  partner-api migrate --dry-run    print the pending migrations
  partner-api migrate --status     list the migrations
  partner-api migrate --roles      as a superuser: create the database roles of the service and the operators";

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
  partner-api sandbox                        start everything: database, data, service and a check
  partner-api serve --config service.toml    serve with a configuration file
  partner-api serve --help                   list every option, with its variable and default
  partner-api partner create 'Acme Devices'  create a partner; partner-api partner --help has the next steps";
#[cfg(not(feature = "sandbox"))]
const EXAMPLES: &str = "\
Examples:
  partner-api serve --config service.toml    serve with a configuration file
  partner-api serve --help                   list every option, with its variable and default
  partner-api partner create 'Acme Devices'  create a partner; partner-api partner --help has the next steps";

/// The text before the examples of `serve`.
macro_rules! options_from {
    () => {
        "A flag overrides its environment variable, which overrides the file. TIME is written as 250ms, 5s or 1m.\n\nExamples:\n"
    };
}

/// The examples of `serve` that do not depend on features.
macro_rules! serve_from_a_file {
    () => {
        "  partner-api serve --config /etc/partner-api.toml --listen 0.0.0.0:8080
      with a file such as this (deploy/partner-api.toml lists every option):
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
      serves 127.0.0.1:8080 with a private database in ./data (create the key: openssl rand -hex 32 > master.key)\n",
    serve_from_a_file!()
);
#[cfg(not(feature = "embedded-postgres"))]
const SERVE_EXAMPLES: &str = concat!(options_from!(), serve_from_a_file!());

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn examples_are_not_wrapped() {
        fn check(command: &clap::Command) {
            for text in [command.get_after_help(), command.get_after_long_help()]
                .into_iter()
                .flatten()
            {
                for line in text.to_string().lines().filter(|line| line.starts_with(' ')) {
                    assert!(line.chars().count() <= HELP_WIDTH, "{}: {line}", command.get_name());
                }
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }

    /// `script/sandbox --help` prints the file, so that help does not wait for a build.
    #[cfg(feature = "sandbox")]
    #[test]
    fn the_sandbox_help_of_the_script_equals_that_of_the_program() {
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
            "crates/cli/src/sandbox-help.txt is out of date; it must be:\n{help}"
        );
    }
}
