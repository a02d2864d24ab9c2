//! The command line.

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

/// The partner API: read inspection reports, send measurements, sign, explain, certify.
#[derive(Debug, Parser)]
#[command(name = "partner", version, after_help = EXAMPLES, after_long_help = long_examples())]
pub struct Cli {
    /// Which service, with which key, and how to print.
    #[command(flatten)]
    pub connect: Connect,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program does.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Is everything in order: address, key, clock?
    #[command(after_help = read::HEALTH_EXAMPLES)]
    Health,
    /// The organizations that are open to you
    #[command(after_help = read::ORGS_EXAMPLES)]
    Orgs,
    /// The branches of an organization
    #[command(after_help = read::BRANCHES_EXAMPLES)]
    Branches(read::BranchesArgs),
    /// Reports: list, get, forms, photos, pdf
    #[command(after_help = inspections::EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
    Inspections(Group<inspections::Command>),
    /// Send a measurement, or each file that appears in a folder
    #[command(after_help = measure::EXAMPLES)]
    Measure(MeasureArgs),
    /// Keep a copy of all reports up to date, in SQLite, NDJSON or CSV
    #[command(after_help = sync::EXAMPLES)]
    Sync(SyncArgs),
    /// Run the acceptance scenarios, and write their report
    #[command(after_help = certify::EXAMPLES)]
    Certify(CertifyArgs),
    /// Show each step of a signature, and a curl command
    #[command(after_help = sign::EXAMPLES)]
    Sign(SignArgs),
    /// Why a signature does not verify
    #[command(after_help = explain::EXAMPLES)]
    Explain(ExplainArgs),
    /// Sign for curl, Postman, browsers: a proxy on this machine
    #[command(after_help = proxy::EXAMPLES)]
    Proxy(ProxyArgs),
    /// Profiles, each a service with a key: add, list
    #[command(after_help = PROFILE_EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
    Profile(Group<ProfileCommand>),
    /// Print the completions of a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual's pages into a folder
    #[command(after_help = "Example:\n  partner man /usr/local/share/man/man1 && man partner-measure")]
    Man {
        /// The folder, which is made if it does not exist
        folder: PathBuf,
    },
}

/// A group of commands.
#[derive(Args, Debug)]
pub struct Group<C: Subcommand> {
    /// What to do.
    #[command(subcommand)]
    pub command: C,
}

/// The commands of `profile`.
#[derive(Debug, Subcommand)]
pub enum ProfileCommand {
    /// Add a profile; the secret is asked for, unless an option says where it is
    Add(NewProfile),
    /// The profiles there are
    List,
}

const EXAMPLES: &str = "\
Examples:
  partner --sandbox .sandbox/sandbox.json health         against a sandbox on this machine
  partner profile add live --base-url https://api.example.org --key-id vip_live_...
  partner --profile live inspections list --status published
  partner measure --watch /var/spool/test-line           each file is sent once, whatever happens
  partner explain GET /api/v1/partner/health --canonical mine.txt --server answer.json";

const PROFILE_EXAMPLES: &str = "\
The configuration is ~/.config/partner/config.toml (or PARTNER_CONFIG). No secret stands in it, or in any argument: it is in a file
of its own, in a variable of the environment, or printed by a program, such as a keyring's.

Examples:
  partner profile add sandbox --base-url https://sandbox.example.org --key-id vip_test_...     asks for the secret
  partner profile add live --base-url https://api.example.org --key-id vip_live_... --secret-file /etc/partner.secret
  partner profile add live --base-url https://api.example.org --key-id vip_live_... --secret-command secret-tool lookup service partner
  partner profile add live --base-url https://api.example.org --key-id vip_live_... --secret-command security find-generic-password -s partner -w";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  partner completions bash > /etc/bash_completion.d/partner
  partner completions zsh > /usr/local/share/zsh/site-functions/_partner";

fn long_examples() -> String {
    format!("{EXAMPLES}\n\n{EXIT_CODES}")
}

impl Cli {
    /// Does it, and prints what came of it.
    ///
    /// # Errors
    /// It could not be done.
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
            Command::Explain(args) => explain::run(connect, &args)?,
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
    fn the_command_line_contradicts_itself_nowhere() {
        Cli::command().debug_assert();
    }

    /// What an argument holds, everyone on the machine can read.
    #[test]
    fn no_argument_takes_a_secret_itself() {
        fn look(command: &clap::Command) {
            for argument in command.get_arguments() {
                let name = argument.get_id().as_str();
                let is_secret =
                    name.contains("secret") && !["secret_file", "secret_env", "secret_command"].contains(&name);
                assert!(!is_secret, "{} {name}", command.get_name());
            }
            command.get_subcommands().for_each(look);
        }
        look(&Cli::command());
    }
}
