//! `partner-api sandbox`: a private database, the service and the data in one process.

use std::net::{SocketAddr, TcpListener};
use std::time::Instant;

use partner_api::config::Config;
use partner_api::server::{Addresses, RunningServer};
use partner_api::startup::{CommandDatabase, Extensions, OpenDatabase, StopSignals, serve};
use partner_api_acceptance::{self as acceptance, Outcomes};
use partner_api_gateway::pages::Pages;
use partner_api_store::secrets::{MasterKey, purpose};

use super::manifest::Manifest;
use super::stored::Pictures;
use super::{SandboxError, fill, keep_open, manifest, reset_partner, scenarios, welcome};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs the sandbox: starts a private database with sample data, serves it with `pages` and the welcome page, writes `sandbox.json`,
/// and runs the acceptance scenarios. Then it serves until SIGTERM or Ctrl-C, unless `check` is set. Returns whether the scenarios
/// passed.
///
/// # Errors
/// The sandbox could not be set up. The next start continues from there.
pub async fn run(config: Config, check: bool, pages: Pages) -> Result<bool, Failure> {
    let started_at = Instant::now();
    std::fs::create_dir_all(&config.options.data_dir).map_err(|error| {
        format!(
            "failed to create the data folder {}: {error}",
            config.options.data_dir.display()
        )
    })?;
    reject_used_ports(&config)?;
    let mut stop = StopSignals::listen()?;
    let master_key = config.master_key()?;
    // The storage only writes here, so the base URL of its links does not matter.
    let storage = config.open_storage("http://127.0.0.1", master_key.derive(purpose::LINKS))?;
    // The database is initialized while pictures are drawn.
    let (database, pictures) = tokio::join!(OpenDatabase::open(&config), Pictures::draw_missing(&storage));
    let database = database?;
    // In any case the server is stopped before the private database.
    let started = tokio::select! {
        started = start(&config, &database, pictures, master_key, pages, check) => started,
        () = stop.received() => Err("stopped before it was ready".into()),
    };
    let outcome = match started {
        Ok((running, manifest, outcomes)) => {
            println!("{outcomes}");
            if !check {
                let file = config.options.data_dir.join(super::manifest::FILE_NAME);
                println!(
                    "Serving {url} after {:.1} s. Keys and examples: {url}/ and {}. Documentation: {url}/docs/. Press Ctrl-C to stop.",
                    started_at.elapsed().as_secs_f32(),
                    file.display(),
                    url = running.public_url,
                );
                if let Some(inspector) = manifest.inspectors.first() {
                    println!(
                        "Inspectors' page: {} with the token {} ({}). To try it, submit a measurement for a plate without a report, \
                         then open a report for that plate on the page: {url}/#inspectors",
                        manifest.inspectors_url,
                        inspector.token,
                        inspector.name,
                        url = running.public_url,
                    );
                }
                tokio::select! {
                    () = keep_open(database.pool.clone()) => {}
                    () = stop.received() => eprintln!("Stopping."),
                }
            }
            running.stop(*config.options.shutdown_deadline).await;
            Ok(outcomes.passed())
        }
        Err(error) => Err(error),
    };
    database.close().await;
    outcome
}

/// Resets one partner of a sandbox, which may be running, and prints what was done.
///
/// # Errors
/// There is no sandbox in the data folder, it has no such partner, or a database operation failed.
pub async fn reset(config: &Config, partner: &str) -> Result<(), Failure> {
    // Opening the database of an empty folder would create one.
    let folder = &config.options.data_dir;
    if !folder.join(super::manifest::FILE_NAME).exists() {
        return Err(format!(
            "there is no sandbox in {}; start one with `partner-api sandbox`, or name its folder with --data-dir",
            folder.display()
        )
        .into());
    }
    let database = CommandDatabase::open(config).await?;
    let reset = reset_partner(&database.pool, partner).await;
    database.close().await;
    let reset = reset?;
    println!(
        "The partner {partner} was reset: key {} is valid, and {} measurements were set aside.",
        reset.key_id, reset.measurements
    );
    Ok(())
}

/// Fails before the minutes of preparation if another program listens on one of the ports.
fn reject_used_ports(config: &Config) -> Result<(), Failure> {
    for address in [Some(config.options.listen), config.options.inspectors_listen.address()]
        .into_iter()
        .flatten()
    {
        TcpListener::bind(address).map_err(|error| {
            format!("failed to listen on {address}: {error}; stop the program that uses this port, or choose another one with --port")
        })?;
    }
    Ok(())
}

/// Inserts missing rows, starts the server, writes `sandbox.json` and runs the scenarios.
async fn start(
    config: &Config,
    database: &OpenDatabase,
    pictures: Result<Pictures, SandboxError>,
    master_key: MasterKey,
    mut pages: Pages,
    check: bool,
) -> Result<(RunningServer, Manifest, Outcomes), Failure> {
    fill(&database.pool, &pictures?, &master_key, &config.options.key_prefix).await?;
    // The URLs are known when the listeners are bound.
    let mut manifest = manifest(&database.pool, &master_key, "").await?;
    let without_urls = manifest.clone();
    let make_pages = move |addresses: &Addresses| {
        let manifest = Manifest {
            base_url: addresses.public_url.clone(),
            inspectors_url: inspectors_url(addresses.inspectors),
            ..without_urls
        };
        pages.add("/", welcome::page(&manifest));
        pages
    };
    let extensions = Extensions {
        pages: Box::new(make_pages),
        inspector_routes: Some(partner_api_inspector::serve),
    };
    let running = serve(config, database, master_key, extensions).await?;
    manifest.base_url.clone_from(&running.public_url);
    manifest.inspectors_url = inspectors_url(running.inspectors_address);
    manifest.write(&config.options.data_dir)?;
    let target = manifest.acceptance()?;
    let mut outcomes = acceptance::run(&target).await?;
    // These scenarios leave a report behind, so they run only with `check`.
    if check && let Some(inspector) = manifest.inspectors.first() {
        outcomes
            .0
            .extend(scenarios::run(&target, &manifest.inspectors_url, inspector).await?);
    }
    Ok((running, manifest, outcomes))
}

/// Returns the URL of the inspectors' page.
fn inspectors_url(listener: Option<SocketAddr>) -> String {
    listener.map_or_else(String::new, |address| format!("http://{address}/inspector/"))
}
