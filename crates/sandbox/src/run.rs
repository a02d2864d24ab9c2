//! `partner-api sandbox`: everything in one.

use std::net::SocketAddr;
use std::time::Instant;

use partner_api::config::Config;
use partner_api::server::{Addresses, RunningServer};
use partner_api::startup::{Beside, OpenDatabase, StopSignals, serve};
use partner_api_acceptance::{self as acceptance, Outcomes};
use partner_api_gateway::pages::Pages;
use partner_api_store::secrets::{MasterKey, purpose};

use super::manifest::Manifest;
use super::stored::Pictures;
use super::{SandboxError, fill, keep_open, manifest, scenarios, welcome};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Starts a private database with sandbox data, serves it with these pages and one of its own, writes `sandbox.json`, runs the acceptance scenarios and, unless
/// `check`, goes on serving until SIGTERM or Ctrl-C. Returns whether the scenarios passed.
///
/// # Errors
/// When the sandbox cannot be set up; what was made of it is found by the next start.
pub async fn run(config: Config, check: bool, pages: Pages) -> Result<bool, Failure> {
    let began = Instant::now();
    std::fs::create_dir_all(&config.options.data_dir).map_err(|error| {
        format!(
            "the data folder {} cannot be made: {error}",
            config.options.data_dir.display()
        )
    })?;
    let mut stop = StopSignals::listen()?;
    let master_key = config.master_key()?;
    // Only written to here, so the links' address does not matter yet.
    let storage = config.open_storage("http://127.0.0.1", master_key.derive(purpose::LINKS))?;
    // Neither waits for the other: the database is initialised while pictures are drawn.
    let (database, pictures) = tokio::join!(OpenDatabase::open(&config), Pictures::draw_missing(&storage));
    let database = database?;
    // Whatever becomes of it, the server and the private database are stopped in order.
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
                    "Serving {url} after {:.1} s. Keys and examples: {url}/ and {}. The document: {url}/docs/. Ctrl-C stops.",
                    began.elapsed().as_secs_f32(),
                    file.display(),
                    url = running.public_url,
                );
                if let Some(inspector) = manifest.inspectors.first() {
                    println!(
                        "Inspectors: {} with the token {} ({}). To try it, send a measurement for a plate without a report, open a \
                         report for the plate there, and click: {url}/#inspectors",
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

/// Makes the rows that are missing, starts the server, writes `sandbox.json` and runs the scenarios.
async fn start(
    config: &Config,
    database: &OpenDatabase,
    pictures: Result<Pictures, SandboxError>,
    master_key: MasterKey,
    mut pages: Pages,
    check: bool,
) -> Result<(RunningServer, Manifest, Outcomes), Failure> {
    fill(&database.pool, &pictures?, &master_key, &config.options.key_prefix).await?;
    // Where it will be served is known once it is bound.
    let mut told = manifest(&database.pool, &master_key, "").await?;
    let named = told.clone();
    let make_pages = move |addresses: &Addresses| {
        let manifest = Manifest {
            base_url: addresses.public_url.clone(),
            inspectors_url: inspectors_url(addresses.internal),
            ..named
        };
        pages.add("/", welcome::page(&manifest));
        pages
    };
    let beside = Beside {
        pages: Box::new(make_pages),
        internal_routes: Some(partner_api_inspector::serve),
    };
    let running = serve(config, database, master_key, beside).await?;
    told.base_url.clone_from(&running.public_url);
    told.inspectors_url = inspectors_url(running.internal_address);
    let manifest = told;
    manifest.write(&config.options.data_dir)?;
    let target = manifest.acceptance()?;
    let mut outcomes = acceptance::run(&target).await?;
    // These leave a report behind: whoever only starts the sandbox has it as it was.
    if check && let Some(inspector) = manifest.inspectors.first() {
        outcomes
            .0
            .extend(scenarios::run(&target, &manifest.inspectors_url, inspector).await?);
    }
    Ok((running, manifest, outcomes))
}

/// The page for inspectors on the internal listener.
fn inspectors_url(internal: Option<SocketAddr>) -> String {
    internal.map_or_else(String::new, |address| format!("http://{address}/inspector/"))
}
