//! `partner inspections`: list, get, forms, photos, pdf.

mod files;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use futures::{StreamExt as _, TryStreamExt as _};
use partner_api_client::{Call as _, Client, inspections, types};
use partner_api_terminal::output::{Output, Row};
use partner_api_terminal::when;
use serde::Serialize;
use types::InspectionStatus;

use crate::failure::Failure;
use crate::profile::Connect;
use files::{PdfArgs, PhotosArgs};

/// What the help says at its end.
pub const EXAMPLES: &str = "\
Examples:
  partner inspections list --status published --published-from 2026-06-01T00:00:00+03:00
  partner inspections get 0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f
  partner inspections pdf 0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f --output report.pdf
  partner inspections photos 0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f --into photos";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Reports, newest first
    List(ListArgs),
    /// One report
    Get(OneArgs),
    /// The points of a report's forms
    Forms(OneArgs),
    /// The photos of a report; with --into they are fetched
    Photos(PhotosArgs),
    /// The report as a PDF, into a file
    Pdf(PdfArgs),
}

/// Which reports.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Only those of this organization's id
    #[arg(long, value_name = "ID")]
    pub organization: Option<String>,
    /// Only those of this branch's id
    #[arg(long, value_name = "ID")]
    pub branch: Option<String>,
    /// published, archived or cancelled [default: the first two]
    #[arg(long, value_name = "STATUS")]
    pub status: Option<InspectionStatus>,
    /// Only those published at this time or later
    #[arg(long, value_name = "TIME", value_parser = when::moment)]
    pub published_from: Option<DateTime<Utc>>,
    /// Only those published at this time or earlier
    #[arg(long, value_name = "TIME", value_parser = when::moment)]
    pub published_to: Option<DateTime<Utc>>,
    /// Only those begun at this time or later
    #[arg(long, value_name = "TIME", value_parser = when::moment)]
    pub created_from: Option<DateTime<Utc>>,
    /// Only those begun at this time or earlier
    #[arg(long, value_name = "TIME", value_parser = when::moment)]
    pub created_to: Option<DateTime<Utc>>,
    /// How many at most; 0 is all of them
    #[arg(long, value_name = "NUMBER", default_value_t = 25)]
    pub limit: usize,
}

/// One report.
#[derive(Args, Debug)]
pub struct OneArgs {
    /// The report's id
    pub id: String,
}

pub(crate) async fn run(connect: &Connect, command: &Command) -> Result<Output, Failure> {
    match command {
        Command::List(args) => list(&connect.client()?, args).await,
        Command::Get(args) => get(&connect.client()?, &args.id).await,
        Command::Forms(args) => forms(&connect.client()?, &args.id).await,
        Command::Photos(args) => files::photos(&connect.client()?, args).await,
        Command::Pdf(args) => files::pdf(connect, args).await,
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Report(types::InspectionListItem);

impl Row for Report {
    const COLUMNS: &'static [&'static str] = &[
        "NUMBER",
        "STATUS",
        "PUBLISHED",
        "VEHICLE",
        "PLATE",
        "SCORE",
        "PRICE",
        "ID",
    ];

    fn cells(&self) -> Vec<String> {
        let Self(report) = self;
        let vehicle = &report.vehicle;
        vec![
            report.report_number.clone(),
            report.status.to_string(),
            when::at(report.published_at),
            format!("{} {} {}", vehicle.brand, vehicle.model, vehicle.year),
            vehicle.plate_masked.clone(),
            report.overall_score.to_string(),
            report.final_price_try.to_string(),
            report.id.to_string(),
        ]
    }
}

async fn list(client: &Client, args: &ListArgs) -> Result<Output, Failure> {
    let mut list = client.list_inspections();
    // A builder gives another of its own type.
    if let Some(id) = &args.organization {
        list = list.organization_id(id.as_str());
    }
    if let Some(id) = &args.branch {
        list = list.branch_id(id.as_str());
    }
    if let Some(status) = args.status {
        list = list.status(status);
    }
    if let Some(time) = args.published_from {
        list = list.published_from(time);
    }
    if let Some(time) = args.published_to {
        list = list.published_to(time);
    }
    if let Some(time) = args.created_from {
        list = list.created_from(time);
    }
    if let Some(time) = args.created_to {
        list = list.created_to(time);
    }
    let wanted = if args.limit == 0 { usize::MAX } else { args.limit };
    if let Some(page) = std::num::NonZeroU32::new(wanted.min(100) as u32) {
        list = list.limit(page);
    }
    let rows: Vec<_> = inspections(list).take(wanted).map_ok(Report).try_collect().await?;
    Ok(Output::rows(&rows, "There are no such reports."))
}

async fn get(client: &Client, id: &str) -> Result<Output, Failure> {
    let report = client.get_inspection().id(id).send().answer().await?.into_inner();
    let vehicle = &report.vehicle;
    let facts = [
        ("number", report.report_number.clone()),
        ("status", report.status.to_string()),
        ("organization", report.organization.name.clone()),
        ("branch", format!("{}, {}", report.branch.name, report.branch.city)),
        (
            "vehicle",
            format!("{} {} {}", vehicle.brand, vehicle.model, vehicle.year),
        ),
        ("plate", vehicle.plate_masked.clone()),
        ("vin", vehicle.vin_masked.clone()),
        ("mileage", format!("{} km", report.snapshot.mileage_km)),
        ("package", report.package.name.clone()),
        (
            "price",
            format!("{} {}", report.pricing.final_price_try, report.pricing.currency),
        ),
        ("score", report.overall_score.to_string()),
        ("summary", report.summary.clone()),
        ("recommendation", report.recommendation.clone()),
    ];
    Ok(Output::facts(&report, &facts))
}

#[derive(Serialize)]
struct Point {
    form: String,
    #[serde(flatten)]
    point: types::FormPoint,
}

impl Row for Point {
    const COLUMNS: &'static [&'static str] = &["FORM", "POINT", "STATUS", "SEVERITY", "VALUE", "NOTE"];

    fn cells(&self) -> Vec<String> {
        let Self { form, point } = self;
        let value = match (&point.numeric_value, &point.unit) {
            (Some(value), Some(unit)) => format!("{value} {unit}"),
            (Some(value), None) => value.to_string(),
            (None, _) => String::new(),
        };
        vec![
            form.clone(),
            point.name.clone(),
            point.status_label.clone(),
            point.severity.clone(),
            value,
            point.note.clone(),
        ]
    }
}

async fn forms(client: &Client, id: &str) -> Result<Output, Failure> {
    let forms = client
        .get_inspection_forms()
        .id(id)
        .send()
        .answer()
        .await?
        .into_inner()
        .forms;
    let points: Vec<_> = forms
        .into_iter()
        .flat_map(|form| {
            let code = form.code;
            form.points.into_iter().map(move |point| Point {
                form: code.clone(),
                point,
            })
        })
        .collect();
    Ok(Output::rows(&points, "The report has no forms."))
}
