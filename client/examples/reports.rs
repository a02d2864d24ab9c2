//! The first requests: checks the key, then prints every report of the list.
//!
//! PARTNER_BASE_URL, PARTNER_KEY_ID and PARTNER_SECRET hold the address and the key.

use std::env::var;
use std::error::Error;
use std::pin::pin;

use futures::TryStreamExt as _;
use partner_api_client::{Call as _, connect, inspections};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = connect(
        &var("PARTNER_BASE_URL")?,
        &var("PARTNER_KEY_ID")?,
        &var("PARTNER_SECRET")?,
    )?;

    let health = client.get_health().send().response().await?;
    println!("{} at {}", health.environment, health.server_time);

    let mut reports = pin!(inspections(client.list_inspections()));
    while let Some(report) = reports.try_next().await? {
        println!("{} {} {}", report.report_number, report.status, report.final_price_try);
    }
    Ok(())
}
