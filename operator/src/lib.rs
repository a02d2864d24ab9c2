//! What operators do, as commands of the program `partner-api`: nobody needs SQL.
//!
//! A module for each group of commands: its arguments, its statements, and what it does. A command that changes something
//! can do so only within a [`change`](session::Session::change), which ends in a row of the audit log or not at all, and says
//! what was changed and how to undo it (OPS-1, OPS-2). Names are accepted wherever ids are (OPS-3).

pub mod allowlist;
pub mod audit;
pub mod branch;
pub mod connect;
pub mod doctor;
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
pub mod purge;
mod query;
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

/// A group of commands, with the options that all of them take.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Group<C: Subcommand> {
    /// What to do.
    #[command(subcommand)]
    pub command: C,
    /// Where, and how to print it.
    #[command(flatten)]
    pub connect: Connect,
}

/// The commands of operators.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Partners: create, list, show, disable, enable
    #[command(after_help = partner::EXAMPLES)]
    Partner(Group<partner::Command>),
    /// Keys: create, list, rotate, revoke, expire, scope, limit
    #[command(after_help = key::EXAMPLES)]
    Key(Group<key::Command>),
    /// What partners may see: add, remove, list
    #[command(after_help = grant::EXAMPLES)]
    Grant(Group<grant::Command>),
    /// The addresses from which a key may be used: add, remove, list, mode
    #[command(after_help = allowlist::EXAMPLES)]
    Allowlist(Group<allowlist::Command>),
    /// Organisations: create, list, set
    #[command(after_help = organization::EXAMPLES)]
    Organization(Group<organization::Command>),
    /// Branches of organisations: create, list, set
    #[command(after_help = branch::EXAMPLES)]
    Branch(Group<branch::Command>),
    /// Inspectors and their tokens: create, list, show, revoke
    #[command(after_help = inspector::EXAMPLES)]
    Inspector(Group<inspector::Command>),
    /// Bounds that give a device value its status: set, remove, list
    #[command(after_help = threshold::EXAMPLES)]
    Threshold(Group<threshold::Command>),
    /// Which device values can be: set, remove, list
    #[command(after_help = range::EXAMPLES)]
    Range(Group<range::Command>),
    /// Templates of forms: import, list
    #[command(after_help = template::EXAMPLES)]
    Template(Group<template::Command>),
    /// Bring in files of organisations, branches, templates, thresholds, ranges, vehicles, reports, forms and photos
    #[command(after_help = import::EXAMPLES)]
    Import(import::ImportArgs),
    /// Write such files from what stands in the database
    #[command(after_help = export::EXAMPLES)]
    Export(export::ExportArgs),
    /// Measurements as devices sent them: list, show, raw
    #[command(after_help = measurement::EXAMPLES)]
    Measurement(Group<measurement::Command>),
    /// Reports' PDFs as evidence: show, verify
    #[command(after_help = report::EXAMPLES)]
    Report(Group<report::Command>),
    /// Who changed what: list
    #[command(after_help = audit::EXAMPLES)]
    Audit(Group<audit::Command>),
    /// Partners' secrets in the database: rekey
    #[command(after_help = secrets::EXAMPLES)]
    Secrets(Group<secrets::Command>),
    /// What became of each request: show, list, tail
    #[command(after_help = request::EXAMPLES)]
    Request(Group<request::Command>),
    /// Drop what is not kept any more
    #[command(after_help = purge::EXAMPLES)]
    Purge(purge::PurgeArgs),
    /// Check all that the service needs, and say what to do
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::DoctorArgs),
}

impl Command {
    /// Does it, and prints what came of it.
    ///
    /// # Errors
    /// It could not be done. Nothing is changed then, unless the message says that this is not known.
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
            Self::Request(group) => {
                let json = group.connect.json;
                with(&group.connect, async |session| group.command.run(session, json).await).await
            }
            Self::Purge(args) => with(&args.connect, async |session| args.run(session).await).await,
            Self::Doctor(args) => args.run().await,
        }
    }
}

/// Opens the database, does `work`, prints what it gives, and closes the database whatever came of it.
async fn with(connect: &Connect, work: impl AsyncFnOnce(&Session) -> Result<Output, Failure>) -> Result<(), Failure> {
    let session = Session::open(connect).await?;
    let outcome = work(&session).await;
    session.close().await;
    outcome?.print(connect.json).map_err(Failure::Output)
}
