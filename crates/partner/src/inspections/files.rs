//! Downloads of a report's photos and its PDF.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use clap::Args;
use futures::TryStreamExt as _;
use partner_api_client::{Call as _, Client, ClientInfo as _, Problem, RetryPolicy, types};
use partner_api_terminal::output::{Output, Row};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::failure::Failure;
use crate::file::{already_exists, download};
use crate::profile::Connect;

/// Timeout of a download.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(600);

/// Returns the retry policy of a client that downloads files.
pub(crate) fn download_policy() -> RetryPolicy {
    RetryPolicy {
        attempt: Some(DOWNLOAD_TIMEOUT),
        total: DOWNLOAD_TIMEOUT,
        ..RetryPolicy::default()
    }
}

/// Photo links that expire sooner than this are requested again.
const LINK_RESERVE: TimeDelta = TimeDelta::seconds(60);

/// The arguments of `photos`.
#[derive(Args, Debug)]
pub struct PhotosArgs {
    /// The report's ID
    pub id: String,
    /// Download the photos to this folder, which is created if necessary; existing photos are not downloaded again
    #[arg(long, value_name = "FOLDER")]
    pub into: Option<PathBuf>,
}

/// The arguments of `pdf`.
#[derive(Args, Debug)]
pub struct PdfArgs {
    /// The report's ID
    pub id: String,
    /// The output file, which must not exist [default: ID.pdf]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// A photo of a report.
#[derive(Serialize)]
pub(crate) struct Photo {
    /// The file to which it was downloaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<PathBuf>,
    #[serde(flatten)]
    pub(crate) photo: types::Photo,
}

impl Row for Photo {
    const COLUMNS: &'static [&'static str] = &["KIND", "POINT", "CAPTION", "BYTES", "LOCATION"];

    fn cells(&self) -> Vec<String> {
        let Self { file, photo } = self;
        let path = file.as_ref().map(|path| path.display().to_string());
        vec![
            photo.kind.clone(),
            photo.point_code.clone().unwrap_or_default(),
            photo.caption.clone().unwrap_or_default(),
            photo.size_bytes.to_string(),
            path.unwrap_or_else(|| photo.url.clone()),
        ]
    }
}

pub(super) async fn photos(client: &Client, args: &PhotosArgs) -> Result<Output, Failure> {
    let listed = listed(client, &args.id).await?;
    let rows = match &args.into {
        Some(folder) => download_photos(client, &args.id, listed, folder).await?,
        None => listed.into_iter().map(|photo| Photo { file: None, photo }).collect(),
    };
    Ok(Output::rows(&rows, "The report has no photos."))
}

/// Downloads the photos of a report to a folder, which is created if necessary. Photos that exist with the expected size are not
/// downloaded again.
pub(crate) async fn download_photos(
    client: &Client,
    report: &str,
    mut listed: Vec<types::Photo>,
    folder: &Path,
) -> Result<Vec<Photo>, Failure> {
    std::fs::create_dir_all(folder).map_err(Failure::of(folder))?;
    let mut photos = Vec::new();
    let ids: Vec<_> = listed.iter().map(|photo| photo.id).collect();
    for id in ids {
        if listed.iter().any(|photo| photo.expires_at - Utc::now() < LINK_RESERVE) {
            listed = self::listed(client, report).await?;
        }
        // Skip a photo that was hidden since the list was fetched.
        let Some(photo) = listed.iter().find(|photo| photo.id == id).cloned() else {
            continue;
        };
        let file = folder.join(file_name(&photo));
        fetch(client, &photo, &file).await?;
        photos.push(Photo {
            file: Some(file),
            photo,
        });
    }
    Ok(photos)
}

async fn listed(client: &Client, id: &str) -> Result<Vec<types::Photo>, Problem> {
    Ok(client
        .get_inspection_photos()
        .id(id)
        .send()
        .response()
        .await?
        .into_inner()
        .photos)
}

/// Removes the photos of earlier downloads that are not `listed`, because they were deleted or hidden. Other files remain.
pub(crate) fn remove_unlisted_photos(folder: &Path, listed: &[types::Photo]) -> Result<(), Failure> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(Failure::of(folder))?,
    };
    for entry in entries {
        let path = entry.map_err(Failure::of(folder))?.path();
        let name = path.file_stem().and_then(|name| name.to_str());
        let id = name.and_then(|name| Uuid::parse_str(name).ok());
        if id.is_some_and(|id| listed.iter().all(|photo| photo.id != id)) {
            std::fs::remove_file(&path).map_err(Failure::of(&path))?;
        }
    }
    Ok(())
}

/// Returns a name such as `<id>.jpg`. It remains the same if the photo is moved or gets another kind.
fn file_name(photo: &types::Photo) -> String {
    let extension = match photo.mime_type.as_str() {
        "image/jpeg" => "jpg",
        "image/png" => "png",
        "image/webp" => "webp",
        _ => "bin",
    };
    format!("{}.{extension}", photo.id)
}

/// Downloads a photo by its link, which needs no signature, unless the file exists with the expected size.
async fn fetch(client: &Client, photo: &types::Photo, file: &Path) -> Result<(), Failure> {
    let size = u64::try_from(photo.size_bytes).unwrap_or_default();
    if file.metadata().is_ok_and(|existing| existing.len() == size) {
        return Ok(());
    }
    let failed = |source| Problem::Transport {
        source,
        request_id: None,
    };
    let answer = client
        .client()
        .get(&photo.url)
        .timeout(DOWNLOAD_TIMEOUT)
        .send()
        .await
        .and_then(reqwest::Response::error_for_status)
        .map_err(failed)?;
    let stream = answer.bytes_stream().map_err(failed);
    let written = download(file, &file.display().to_string(), Some(size), stream).await?;
    if written != size {
        return Err(Failure::Failed(format!(
            "{}: received {written} bytes, expected {size}",
            file.display()
        )));
    }
    Ok(())
}

pub(super) async fn pdf(connect: &Connect, args: &PdfArgs) -> Result<Output, Failure> {
    let client = connect.account()?.client_with(download_policy())?;
    let fits = |character: char| character.is_ascii_alphanumeric() || character == '-';
    let path = match &args.output {
        Some(path) => path.clone(),
        None if args.id.chars().all(fits) => PathBuf::from(format!("{}.pdf", args.id)),
        None => {
            return Err(Failure::Usage(format!(
                "`{}` cannot be used as a file name; pass --output FILE",
                args.id
            )));
        }
    };
    // Checked before the request, not only after the download.
    if path.symlink_metadata().is_ok() {
        return Err(already_exists(&path));
    }
    let answer = client
        .get_inspection_pdf()
        .id(args.id.as_str())
        .send()
        .response()
        .await?;
    let (total, request_id) = (answer.content_length(), answer.request_id().map(str::to_owned));
    let stream = answer.into_inner().into_inner().map_err(|source| Problem::Transport {
        source,
        request_id: request_id.clone(),
    });
    let bytes = download(&path, &path.display().to_string(), total, stream).await?;
    let path = path.display().to_string();
    Ok(Output::message(
        &format!("{path}, {bytes} bytes"),
        &json!({ "file": path, "bytes": bytes }),
    ))
}
