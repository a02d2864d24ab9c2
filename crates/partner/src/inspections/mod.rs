//! `partner inspections`: list, get, forms, photos, pdf.

pub(crate) mod files;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand, ValueEnum};
use futures::{StreamExt as _, TryStreamExt as _};
use partner_api_client::{Call as _, Client, inspections_with_pauses, types};
use partner_api_terminal::output::{Output, Row};
use partner_api_terminal::when;
use serde::Serialize;
use types::InspectionStatus;

use crate::failure::Failure;
use crate::profile::{Connect, print_pause};
use files::{PdfArgs, PhotosArgs};

/// The end of the help text.
pub const EXAMPLES: &str = "\
Examples:
  partner inspections list --updated-from 2026-06-01T00:00:00+03:00
  partner inspections get 0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f
  partner inspections pdf 0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f -o report.pdf
  partner inspections photos 0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f --into photos";

const LIST_EXAMPLES: &str = "\
Examples:
  partner inspections list --status published --limit 0
  partner inspections list --published-from 2026-06-01T00:00:00+03:00
  partner inspections list --updated-from 2026-06-01T00:00:00Z --json
  partner inspections list --report-number ANK-2026-000482";

const GET_EXAMPLES: &str = "\
Examples:
  partner inspections get 0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f
  partner inspections get 0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f --json";

const FORMS_EXAMPLES: &str = "\
Examples:
  partner inspections forms 0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f
  partner inspections forms 0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f --json";

const PHOTOS_EXAMPLES: &str = "\
Examples:
  partner inspections photos 0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f
  partner inspections photos 0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f --into photos";

const PDF_EXAMPLES: &str = "\
Examples:
  partner inspections pdf 0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f
  partner inspections pdf 0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f -o report.pdf";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List reports, newest first; with --updated-from or --updated-to in the order of their changes
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// Show one report
    #[command(after_help = GET_EXAMPLES)]
    Get(OneArgs),
    /// List the points of a report's forms
    #[command(after_help = FORMS_EXAMPLES)]
    Forms(OneArgs),
    /// List the photos of a report; download them with --into
    #[command(after_help = PHOTOS_EXAMPLES)]
    Photos(PhotosArgs),
    /// Download the report as a PDF
    #[command(after_help = PDF_EXAMPLES)]
    Pdf(PdfArgs),
}

/// The filters of `list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Only reports of the organization with this ID
    #[arg(long, value_name = "ID")]
    pub organization: Option<String>,
    /// Only reports of the branch with this ID
    #[arg(long, value_name = "ID")]
    pub branch: Option<String>,
    /// Only reports with this status [default: published and archived]
    #[arg(long, ignore_case = true)]
    pub status: Option<Status>,
    /// Only reports published at or after this time
    #[arg(long, value_name = "TIME", value_parser = when::moment)]
    pub published_from: Option<DateTime<Utc>>,
    /// Only reports published at or before this time
    #[arg(long, value_name = "TIME", value_parser = when::moment)]
    pub published_to: Option<DateTime<Utc>>,
    /// Only reports created at or after this time
    #[arg(long, value_name = "TIME", value_parser = when::moment)]
    pub created_from: Option<DateTime<Utc>>,
    /// Only reports created at or before this time
    #[arg(long, value_name = "TIME", value_parser = when::moment)]
    pub created_to: Option<DateTime<Utc>>,
    /// Only reports that changed at or after this time, including cancelled ones, in the order of their changes
    #[arg(long, value_name = "TIME", value_parser = when::moment)]
    pub updated_from: Option<DateTime<Utc>>,
    /// Only reports that changed at or before this time, including cancelled ones, in the order of their changes
    #[arg(long, value_name = "TIME", value_parser = when::moment)]
    pub updated_to: Option<DateTime<Utc>>,
    /// Only the report with this number
    #[arg(long, value_name = "NUMBER")]
    pub report_number: Option<String>,
    /// Only reports of the vehicle with this identification number, of organizations that show it
    #[arg(long)]
    pub vin: Option<String>,
    /// The maximum number of reports; 0 for all
    #[arg(long, value_name = "NUMBER", default_value_t = 25)]
    pub limit: usize,
}

/// The status of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Status {
    /// Published
    Published,
    /// Archived
    Archived,
    /// Cancelled
    Cancelled,
}

impl From<Status> for InspectionStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Published => Self::Published,
            Status::Archived => Self::Archived,
            Status::Cancelled => Self::Cancelled,
        }
    }
}

/// The arguments of `get` and `forms`.
#[derive(Args, Debug)]
pub struct OneArgs {
    /// The report's ID
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
    if let Some(id) = &args.organization {
        list = list.organization_id(id.as_str());
    }
    if let Some(id) = &args.branch {
        list = list.branch_id(id.as_str());
    }
    if let Some(status) = args.status {
        list = list.status(InspectionStatus::from(status));
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
    if let Some(time) = args.updated_from {
        list = list.updated_from(time);
    }
    if let Some(time) = args.updated_to {
        list = list.updated_to(time);
    }
    if let Some(number) = &args.report_number {
        list = list.report_number(number.as_str());
    }
    if let Some(vin) = &args.vin {
        list = list.vin(vin.as_str());
    }
    let wanted = if args.limit == 0 { usize::MAX } else { args.limit };
    if let Some(page) = std::num::NonZeroU32::new(wanted.min(100) as u32) {
        list = list.limit(page);
    }
    let rows: Vec<_> = inspections_with_pauses(list, 0, print_pause)
        .take(wanted)
        .map_ok(Report)
        .try_collect()
        .await?;
    Ok(Output::rows(&rows, "No reports match."))
}

async fn get(client: &Client, id: &str) -> Result<Output, Failure> {
    let report = client.get_inspection().id(id).send().response().await?.into_inner();
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
        .response()
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
