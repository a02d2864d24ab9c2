//! The program `partner-api`: the service, its migrations, its sandbox and the operator commands.

mod cli;
mod migrate;
#[cfg(feature = "site")]
mod site;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser};
use partner_api::config::{Config, ConfigError, ServeArgs};
use partner_api::logging;
use partner_api::startup::{Extensions, OpenDatabase, StartupError, StopSignals, serve};
use partner_api_gateway::pages::Pages;
use partner_api_store::secrets::MasterKeyError;
use partner_api_terminal::manual;

use cli::{Cli, Command};

/// The C library's allocator retains memory after a burst of bodies (675 MiB instead of 595) and takes a fifth of the CPU time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(args) => run_serve(&args).await,
        Command::Migrate(args) => migrate::run(&args).await,
        #[cfg(feature = "sandbox")]
        Command::Sandbox(args) => run_sandbox(&args).await,
        Command::Operator(command) => return run_operator(command).await,
        Command::Completions(args) => manual::completions(Cli::command(), "partner-api", args.shell)
            .map(|()| ExitCode::SUCCESS)
            .map_err(Failure::from),
        Command::Man(args) => manual::pages(Cli::command(), &args.folder)
            .map(|()| ExitCode::SUCCESS)
            .map_err(Failure::from),
        #[cfg(feature = "site")]
        Command::Site(args) => site::write(&args.folder),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(if is_configuration(&error) { 2 } else { 1 })
        }
    }
}

/// Returns whether the configuration must be corrected. Supervisors do not restart a service that exits with 2.
fn is_configuration(error: &Failure) -> bool {
    let startup = error.downcast_ref::<StartupError>();
    let master_key = error.downcast_ref::<MasterKeyError>();
    error.is::<ConfigError>()
        || error.is::<logging::LoggingError>()
        || startup.is_some_and(StartupError::is_configuration)
        || master_key.is_some_and(MasterKeyError::is_configuration)
}

/// The pages served beside the API.
fn pages() -> Pages {
    #[cfg(feature = "site")]
    return site::pages();
    #[cfg(not(feature = "site"))]
    Pages::default()
}

fn extensions() -> Extensions {
    Extensions {
        pages: Box::new(|_| pages()),
        #[cfg(feature = "inspectors")]
        inspector_routes: Some(partner_api_inspector::serve),
        #[cfg(not(feature = "inspectors"))]
        inspector_routes: None,
    }
}

async fn run_serve(args: &ServeArgs) -> Result<ExitCode, Failure> {
    let config = Config::load(args)?;
    let _log = logging::init(&config.options.log_level, config.options.log_format)?;
    let master_key = config.master_key()?;
    let mut stop = StopSignals::listen_and_survive_hangups()?;
    let database = OpenDatabase::open(&config).await?;
    for migration in &database.applied {
        tracing::info!(migration, "applied a migration");
    }
    let running = match serve(&config, &database, master_key, extensions()).await {
        Ok(running) => running,
        Err(error) => {
            database.close().await;
            return Err(error.into());
        }
    };
    stop.received().await;
    if let Some(drain) = config.options.drain {
        tracing::info!(%drain, "draining: /ready returns 503 and requests are still served");
        running.set_not_ready();
        let _ = tokio::time::timeout(*drain, stop.received()).await;
    }
    tracing::info!("stopping");
    running.stop(*config.options.shutdown_deadline).await;
    database.close().await;
    Ok(ExitCode::SUCCESS)
}

async fn run_operator(command: partner_api_operator::Command) -> ExitCode {
    match command.run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

#[cfg(feature = "sandbox")]
async fn run_sandbox(args: &partner_api_sandbox::args::SandboxArgs) -> Result<ExitCode, Failure> {
    let config = args.config()?;
    let _log = logging::init(&config.options.log_level, config.options.log_format)?;
    if let Some(partner) = &args.reset {
        partner_api_sandbox::reset(&config, partner).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let passed = partner_api_sandbox::run(config, args.check, pages()).await?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
