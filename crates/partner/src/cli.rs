//! The command line: its commands and their help.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use partner_api_terminal::manual::{self, Shell};

use crate::certify::{self, CertifyArgs};
use crate::explain::{self, ExplainArgs};
use crate::failure::{EXIT_CODES, Failure};
use crate::inspections;
use crate::measure::{self, MeasureArgs};
use crate::profile::{self, Connect, NewProfile};
use crate::proxy::{self, ProxyArgs};
use crate::read;
use crate::sign::{self, SignArgs};
use crate::sync::{self, SyncArgs};

/// A client for the partner API: read inspection reports, submit measurements, sign requests, explain signatures
#[derive(Debug, Parser)]
#[command(name = "partner", version, after_help = EXAMPLES, after_long_help = long_examples())]
pub struct Cli {
    /// The service, the key, and the output format.
    #[command(flatten)]
    pub connect: Connect,
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check the address, the key and the clock
    #[command(after_help = read::HEALTH_EXAMPLES)]
    Health,
    /// List the organizations that you can access
    #[command(after_help = read::ORGS_EXAMPLES)]
    Orgs,
    /// List the branches of an organization
    #[command(after_help = read::BRANCHES_EXAMPLES)]
    Branches(read::BranchesArgs),
    /// Read reports: list, get, forms, photos, pdf
    #[command(after_help = inspections::EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
    Inspections(Group<inspections::Command>),
    /// Submit a measurement, or each file that appears in a folder
    #[command(after_help = measure::EXAMPLES)]
    Measure(MeasureArgs),
    /// Keep a copy of all reports up to date, in SQLite, NDJSON or CSV
    #[command(after_help = sync::EXAMPLES)]
    Sync(SyncArgs),
    /// Run the acceptance scenarios, or grade your program (--listen), and write a report
    #[command(after_help = certify::EXAMPLES)]
    Certify(CertifyArgs),
    /// Show each step of a signature and a curl command
    #[command(after_help = sign::EXAMPLES)]
    Sign(SignArgs),
    /// Explain why a signature does not verify
    #[command(after_help = explain::EXAMPLES)]
    Explain(ExplainArgs),
    /// Run a local proxy that signs requests from curl, Postman and browsers
    #[command(after_help = proxy::EXAMPLES)]
    Proxy(ProxyArgs),
    /// Manage profiles, each a service and a key: add, list
    #[command(after_help = PROFILE_EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
    Profile(Group<ProfileCommand>),
    /// Print shell completions
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages to a folder
    #[command(after_help = "Examples:\n  partner man /usr/local/share/man/man1 && man partner-measure")]
    Man {
        /// The folder; it is created if it does not exist
        folder: PathBuf,
    },
}

/// A group of commands.
#[derive(Args, Debug)]
pub struct Group<C: Subcommand> {
    /// The command to run.
    #[command(subcommand)]
    pub command: C,
}

/// The commands of `profile`.
#[derive(Debug, Subcommand)]
pub enum ProfileCommand {
    /// Add a profile; prompts for the secret unless an option names its source
    #[command(after_help = ADD_EXAMPLES)]
    Add(NewProfile),
    /// List the profiles
    #[command(after_help = PROFILES_EXAMPLES)]
    List,
}

const EXAMPLES: &str = "\
Examples:
  partner --sandbox .sandbox/sandbox.json health     against a local sandbox
  partner profile add live --base-url https://api.example.org \\
      --key-id vip_live_...
  partner --profile live inspections list --status published
  partner measure --watch /var/spool/test-line       submit each file exactly once
  partner explain GET /api/v1/partner/health --canonical mine.txt";

const PROFILE_EXAMPLES: &str = "\
The configuration file is ~/.config/partner/config.toml, or the file that PARTNER_CONFIG names. It contains no secrets, and no \
argument takes one. A profile names the source of its secret: a file, an environment variable, or a program such as a keyring client.

Examples:
  partner profile add test --base-url https://sandbox.example.org \\
      --key-id vip_test_...                        prompts for the secret
  partner profile list";

const ADD_EXAMPLES: &str = "\
Examples:
  partner profile add test --base-url https://sandbox.example.org \\
      --key-id vip_test_...                        prompts for the secret
  partner profile add live --base-url https://api.example.org \\
      --key-id vip_live_... --secret-file /etc/partner.secret
  partner profile add live --base-url https://api.example.org \\
      --key-id vip_live_... --secret-command secret-tool lookup service partner";

const PROFILES_EXAMPLES: &str = "\
Examples:
  partner profile list
  partner profile list --json";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  partner completions bash > /etc/bash_completion.d/partner
  partner completions zsh > /usr/local/share/zsh/site-functions/_partner";

fn long_examples() -> String {
    format!("{EXAMPLES}\n\n{EXIT_CODES}")
}

impl Cli {
    /// Runs the command and prints its result.
    ///
    /// # Errors
    /// The command failed.
    pub async fn run(self) -> Result<ExitCode, Failure> {
        let connect = &self.connect;
        let output = match self.command {
            Command::Health => read::health(connect).await?,
            Command::Orgs => read::organizations(connect).await?,
            Command::Branches(args) => read::branches(connect, &args).await?,
            Command::Inspections(group) => inspections::run(connect, &group.command).await?,
            Command::Measure(args) => return measure::run(connect, &args).await,
            Command::Sync(args) => sync::run(connect, &args).await?,
            Command::Certify(args) => return certify::run(connect, &args).await,
            Command::Sign(args) => sign::run(connect, &args)?,
            Command::Explain(args) => return explain::run(connect, &args),
            Command::Proxy(args) => return proxy::run(connect, &args).await,
            Command::Profile(group) => match group.command {
                ProfileCommand::Add(new) => profile::add(connect, &new)?,
                ProfileCommand::List => profile::list(&connect.config()?),
            },
            Command::Completions { shell } => {
                manual::completions(Self::command(), "partner", shell)?;
                return Ok(ExitCode::SUCCESS);
            }
            Command::Man { folder } => {
                manual::pages(Self::command(), &folder).map_err(Failure::Failed)?;
                return Ok(ExitCode::SUCCESS);
            }
        };
        output.print(connect.json)?;
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Everyone on the machine can read the arguments of a process.
    #[test]
    fn no_argument_takes_a_secret_itself() {
        fn check(command: &clap::Command) {
            for argument in command.get_arguments() {
                let name = argument.get_id().as_str();
                let is_secret =
                    name.contains("secret") && !["secret_file", "secret_env", "secret_command"].contains(&name);
                assert!(!is_secret, "{} {name}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }
}
