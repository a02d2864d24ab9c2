//! `partner inspections`: list, get, forms, photos, pdf.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use clap::{Args, Subcommand};
use futures::{StreamExt as _, TryStreamExt as _};
use partner_api_client::{Call as _, Client, ClientInfo as _, Problem, RetryPolicy, inspections, types};
use partner_api_terminal::output::{Output, Row};
use partner_api_terminal::when;
use serde::Serialize;
use serde_json::json;
use types::InspectionStatus;

use crate::failure::Failure;
use crate::file::download;
use crate::profile::Connect;

/// What the help says at its end.
pub const EXAMPLES: &str = "\
Examples:
  partner inspections list --status published --published-from 2026-06-01T00:00:00+03:00
  partner inspections get 0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f
  partner inspections pdf 0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f --output report.pdf
  partner inspections photos 0197c2a4-6f00-7d33-8e4f-5a6b7c8d9e0f --into photos";

/// How long a file may take to come.
const DOWNLOAD: Duration = Duration::from_secs(600);
/// Links that end sooner than this are asked for again.
const LINK_RESERVE: TimeDelta = TimeDelta::seconds(60);

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

/// The arguments of `photos`.
#[derive(Args, Debug)]
pub struct PhotosArgs {
    /// The report's id
    pub id: String,
    /// A folder for the photos, which is made if it does not exist; those that are there already are not fetched again
    #[arg(long, value_name = "FOLDER")]
    pub into: Option<PathBuf>,
}

/// The arguments of `pdf`.
#[derive(Args, Debug)]
pub struct PdfArgs {
    /// The report's id
    pub id: String,
    /// The file; nothing is overwritten [default: ID.pdf]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

pub(crate) async fn run(connect: &Connect, command: &Command) -> Result<Output, Failure> {
    match command {
        Command::List(args) => list(&connect.client()?, args).await,
        Command::Get(args) => get(&connect.client()?, &args.id).await,
        Command::Forms(args) => forms(&connect.client()?, &args.id).await,
        Command::Photos(args) => photos(&connect.client()?, args).await,
        Command::Pdf(args) => {
            let client = connect.account()?.client_with(RetryPolicy {
                attempt: Some(DOWNLOAD),
                total: DOWNLOAD,
                ..RetryPolicy::default()
            })?;
            pdf(&client, args).await
        }
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

#[derive(Serialize)]
struct Photo {
    /// Where it was put.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    #[serde(flatten)]
    photo: types::Photo,
}

impl Row for Photo {
    const COLUMNS: &'static [&'static str] = &["KIND", "POINT", "CAPTION", "BYTES", "WHERE"];

    fn cells(&self) -> Vec<String> {
        let Self { file, photo } = self;
        let place = file.as_ref().map(|path| path.display().to_string());
        vec![
            photo.kind.clone(),
            photo.point_code.clone().unwrap_or_default(),
            photo.caption.clone().unwrap_or_default(),
            photo.size_bytes.to_string(),
            place.unwrap_or_else(|| photo.url.clone()),
        ]
    }
}

async fn photos(client: &Client, args: &PhotosArgs) -> Result<Output, Failure> {
    let mut listed = listed(client, &args.id).await?;
    let mut rows = Vec::new();
    if let Some(folder) = &args.into {
        std::fs::create_dir_all(folder).map_err(Failure::of(folder))?;
        let ids: Vec<_> = listed.iter().map(|photo| photo.id).collect();
        for (index, id) in ids.into_iter().enumerate() {
            if listed.iter().any(|photo| photo.expires_at - Utc::now() < LINK_RESERVE) {
                listed = self::listed(client, &args.id).await?;
            }
            // One that was hidden meanwhile is not shown any more.
            let Some(photo) = listed.iter().find(|photo| photo.id == id).cloned() else {
                continue;
            };
            let file = folder.join(name(index, &photo));
            fetch(client, &photo, &file).await?;
            rows.push(Photo {
                file: Some(file),
                photo,
            });
        }
    } else {
        rows.extend(listed.into_iter().map(|photo| Photo { file: None, photo }));
    }
    Ok(Output::rows(&rows, "The report has no photos."))
}

async fn listed(client: &Client, id: &str) -> Result<Vec<types::Photo>, Problem> {
    Ok(client
        .get_inspection_photos()
        .id(id)
        .send()
        .answer()
        .await?
        .into_inner()
        .photos)
}

/// `01-exterior-<id>.jpg`: in the report's order, and the same every time.
fn name(index: usize, photo: &types::Photo) -> String {
    let kind: String = photo
        .kind
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|character| character.to_ascii_lowercase())
        .collect();
    let extension = match photo.mime_type.as_str() {
        "image/jpeg" => "jpg",
        "image/png" => "png",
        "image/webp" => "webp",
        _ => "bin",
    };
    format!("{:02}-{kind}-{}.{extension}", index + 1, photo.id)
}

/// Fetches a photo by its link, which is not signed; one that is there with the size that it should have is left alone.
async fn fetch(client: &Client, photo: &types::Photo, file: &Path) -> Result<(), Failure> {
    let size = u64::try_from(photo.size_bytes).unwrap_or_default();
    if file.metadata().is_ok_and(|there| there.len() == size) {
        return Ok(());
    }
    let unreached = |source| Problem::Unreached {
        source,
        request_id: None,
    };
    let answer = client
        .client()
        .get(&photo.url)
        .timeout(DOWNLOAD)
        .send()
        .await
        .and_then(reqwest::Response::error_for_status)
        .map_err(unreached)?;
    let stream = answer.bytes_stream().map_err(unreached);
    let written = download(file, &file.display().to_string(), Some(size), stream).await?;
    if written != size {
        return Err(Failure::Failed(format!(
            "{}: {written} bytes came, {size} were announced",
            file.display()
        )));
    }
    Ok(())
}

async fn pdf(client: &Client, args: &PdfArgs) -> Result<Output, Failure> {
    let fits = |character: char| character.is_ascii_alphanumeric() || character == '-';
    let path = match &args.output {
        Some(path) => path.clone(),
        None if args.id.chars().all(fits) => PathBuf::from(format!("{}.pdf", args.id)),
        None => {
            return Err(Failure::Usage(format!(
                "`{}` cannot name a file: say --output FILE",
                args.id
            )));
        }
    };
    // What would be refused at the end is refused before the request.
    if path.symlink_metadata().is_ok() {
        return Err(Failure::Refused(format!(
            "{} is there already; nothing is overwritten",
            path.display()
        )));
    }
    let answer = client.get_inspection_pdf().id(args.id.as_str()).send().answer().await?;
    let (total, request_id) = (answer.content_length(), answer.request_id().map(str::to_owned));
    let stream = answer.into_inner().into_inner().map_err(|source| Problem::Unreached {
        source,
        request_id: request_id.clone(),
    });
    let bytes = download(&path, &path.display().to_string(), total, stream).await?;
    let path = path.display().to_string();
    Ok(Output::said(
        &format!("{path}, {bytes} bytes"),
        &json!({ "file": path, "bytes": bytes }),
    ))
}
