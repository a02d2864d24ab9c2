//! The operator commands of `partner-api`, so that operators need no SQL.
//!
//! Each group of commands has a module with its arguments, its statements and its code. Commands can change data only within a
//! [`change`](session::Session::change). It writes a row of the audit log in the same transaction, and reports the change and the
//! command that undoes it (OPS-1, OPS-2). Names are accepted wherever IDs are (OPS-3).

pub mod allowlist;
pub mod audit;
pub mod backup;
pub mod branch;
pub mod connect;
pub mod doctor;
pub mod erase;
pub mod export;
pub mod failure;
pub mod grant;
pub mod import;
pub mod inspector;
pub mod key;
pub mod measurement;
mod names;
pub mod organization;
pub mod partner;
pub mod point;
pub mod purge;
pub mod range;
pub mod report;
pub mod request;
pub mod secrets;
pub mod session;
pub mod template;
pub mod threshold;

use clap::{Args, Subcommand};

pub use partner_api_terminal::output;
pub(crate) use partner_api_terminal::{progress, when};

use connect::Connect;
use failure::Failure;
use output::Output;
use session::Session;

/// A group of commands with their common options.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Group<C: Subcommand> {
    /// The command.
    #[command(subcommand)]
    pub command: C,
    /// The database and the output format.
    #[command(flatten)]
    pub connect: Connect,
}

/// The operator commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Manage partners: create, list, show, disable, enable
    #[command(after_help = partner::EXAMPLES)]
    Partner(Group<partner::Command>),
    /// Manage API keys: create, list, rotate, revoke, expire, scope, limit
    #[command(after_help = key::EXAMPLES)]
    Key(Group<key::Command>),
    /// Manage what partners can see: add, remove, list
    #[command(after_help = grant::EXAMPLES)]
    Grant(Group<grant::Command>),
    /// Manage the addresses that may use a key: add, remove, list, mode
    #[command(after_help = allowlist::EXAMPLES)]
    Allowlist(Group<allowlist::Command>),
    /// Manage organizations: create, list, set
    #[command(after_help = organization::EXAMPLES)]
    Organization(Group<organization::Command>),
    /// Manage branches of organizations: create, list, set
    #[command(after_help = branch::EXAMPLES)]
    Branch(Group<branch::Command>),
    /// Manage inspectors and their tokens: create, list, show, revoke
    #[command(after_help = inspector::EXAMPLES)]
    Inspector(Group<inspector::Command>),
    /// Manage thresholds that give device values their status: set, remove, list
    #[command(after_help = threshold::EXAMPLES)]
    Threshold(Group<threshold::Command>),
    /// Manage plausible ranges for device values: set, remove, list
    #[command(after_help = range::EXAMPLES)]
    Range(Group<range::Command>),
    /// Manage form templates: import, list
    #[command(after_help = template::EXAMPLES)]
    Template(Group<template::Command>),
    /// Import organizations, branches, templates, thresholds, ranges, vehicles, reports, forms and photos from files
    #[command(after_help = import::EXAMPLES)]
    Import(import::ImportArgs),
    /// Export data to files
    #[command(after_help = export::EXAMPLES)]
    Export(export::ExportArgs),
    /// Inspect measurements as devices sent them: list, show, raw
    #[command(after_help = measurement::EXAMPLES)]
    Measurement(Group<measurement::Command>),
    /// Inspect and verify published PDFs of reports: show, verify
    #[command(after_help = report::EXAMPLES)]
    Report(Group<report::Command>),
    /// Inspect the audit log: list
    #[command(after_help = audit::EXAMPLES)]
    Audit(Group<audit::Command>),
    /// Re-encrypt the stored secrets: rekey
    #[command(after_help = secrets::EXAMPLES)]
    Secrets(Group<secrets::Command>),
    /// Make, verify and restore backups: create, verify, restore
    #[command(after_help = backup::EXAMPLES)]
    Backup(Group<backup::Command>),
    /// Inspect the request log: show, list, tail
    #[command(after_help = request::EXAMPLES)]
    Request(Group<request::Command>),
    /// Erase personal data on request or by age: a vehicle, a report, old reports
    #[command(after_help = erase::EXAMPLES)]
    Erase(Group<erase::Command>),
    /// Delete data past its retention period
    #[command(after_help = purge::EXAMPLES)]
    Purge(purge::PurgeArgs),
    /// Check the configuration, the database, the storage and the certificate
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::DoctorArgs),
}

impl Command {
    /// Runs the command and prints its result.
    ///
    /// # Errors
    /// If the command fails. Nothing has changed then, unless the error says that the outcome is unknown.
    pub async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Partner(group) => with(&group.connect, async |session| group.command.run(session).await).await,
            Self::Key(group) => with(&group.connect, async |session| group.command.run(session).await).await,
            Self::Grant(group) => with(&group.connect, async |session| group.command.run(session).await).await,
            Self::Allowlist(group) => with(&group.connect, async |session| group.command.run(session).await).await,
            Self::Organization(group) => with(&group.connect, async |session| group.command.run(session).await).await,
            Self::Branch(group) => with(&group.connect, async |session| group.command.run(session).await).await,
            Self::Inspector(group) => with(&group.connect, async |session| group.command.run(session).await).await,
            Self::Threshold(group) => with(&group.connect, async |session| group.command.run(session).await).await,
            Self::Range(group) => with(&group.connect, async |session| group.command.run(session).await).await,
            Self::Template(group) => with(&group.connect, async |session| group.command.run(session).await).await,
            Self::Import(args) => import::run(&args).await,
            Self::Export(args) => export::run(&args).await,
            Self::Measurement(group) => with(&group.connect, async |session| group.command.run(session).await).await,
            Self::Report(group) => with(&group.connect, async |session| group.command.run(session).await).await,
            Self::Audit(group) => with(&group.connect, async |session| group.command.run(session).await).await,
            Self::Secrets(group) => with(&group.connect, async |session| group.command.run(session).await).await,
            Self::Backup(group) => backup::run(group).await,
            Self::Request(group) => {
                let json = group.connect.json;
                with(&group.connect, async |session| group.command.run(session, json).await).await
            }
            Self::Erase(group) => with(&group.connect, async |session| group.command.run(session).await).await,
            Self::Purge(args) => with(&args.connect, async |session| args.run(session).await).await,
            Self::Doctor(args) => args.run().await,
        }
    }
}

/// Opens the database, runs `work`, closes the database and prints the result.
async fn with(connect: &Connect, work: impl AsyncFnOnce(&Session) -> Result<Output, Failure>) -> Result<(), Failure> {
    let session = Session::open(connect).await?;
    let outcome = work(&session).await;
    session.close().await;
    outcome?.print(connect.json).map_err(Failure::Output)
}
