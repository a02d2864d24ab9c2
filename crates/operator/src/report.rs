//! Published PDFs of reports as evidence.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use partner_api_domain::{pdf_key, report_link};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::failure::{Failure, Kind};
use crate::output::Output;
use crate::session::Session;
use crate::when;

partner_api_store::statement! {
    SHOW = "SELECT i.id, i.organization_id, i.report_number, o.slug AS organization, b.code AS branch, i.status, i.created_at, \
              i.published_at, i.public_slug, i.pdf_object_key, nullif(s.public_report_url, '') AS public_report_url, \
              CASE WHEN i.status = 'PUBLISHED' AND i.public_slug IS NOT NULL THEN report_fingerprint(i.id) END AS fingerprint \
            FROM inspections i JOIN organizations o ON o.id = i.organization_id \
              JOIN branches b ON b.id = i.branch_id AND b.organization_id = i.organization_id \
              CROSS JOIN report_settings s \
            WHERE i.report_number = $1 OR i.id = $2";
    PDFS = "SELECT object_key, encode(sha256, 'hex') AS sha256, size_bytes, published_at FROM published_pdfs \
            WHERE inspection_id = $1 AND organization_id = $2 ORDER BY published_at DESC, object_key DESC";
    VERIFY = "SELECT p.inspection_id, i.report_number, i.status, p.object_key, p.size_bytes, p.published_at, \
                i.status = 'PUBLISHED' AND i.pdf_object_key = p.object_key AS is_named, \
                (SELECT min(n.published_at) FROM published_pdfs n \
                 WHERE n.inspection_id = p.inspection_id AND n.organization_id = p.organization_id \
                   AND n.published_at > p.published_at) AS replaced_at \
              FROM published_pdfs p JOIN inspections i ON i.id = p.inspection_id AND i.organization_id = p.organization_id \
              WHERE p.sha256 = $1 \
              ORDER BY p.published_at DESC LIMIT 1";
}

/// The examples in the help of the group.
pub const EXAMPLES: &str = "\
REPORT is the number or ID of a report. The SHA-256, length and time of every published PDF are kept as long as \
the report.

Examples:
  partner-api report show K-2026-001433
  partner-api report verify submitted.pdf       was this file published, and is it still current?";

/// Commands on reports.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show a report's status, its PDF with size and SHA-256, and its verification URL
    Show(ShowArgs),
    /// Find the report of a PDF by its SHA-256, and show whether it is the current one
    Verify(VerifyArgs),
}

/// The arguments of `report show`.
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// The report, by number or ID
    report: String,
}

/// The arguments of `report verify`.
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// The file
    file: PathBuf,
}

/// A published PDF of a report, current or earlier.
#[derive(Debug, Serialize)]
struct Pdf {
    object_key: String,
    sha256: String,
    size_bytes: i64,
    published_at: DateTime<Utc>,
}

/// A report without personal data.
#[derive(Debug, Serialize)]
struct Report {
    id: Uuid,
    report_number: String,
    organization: String,
    branch: String,
    status: String,
    created_at: DateTime<Utc>,
    published_at: Option<DateTime<Utc>>,
    /// The verification URL.
    link: Option<String>,
    /// `none`, `current`, or `stale`, in which case it is rendered again on request or in the background.
    pdf_state: &'static str,
    /// The current PDF.
    pdf: Option<Pdf>,
    /// Earlier PDFs, newest first.
    earlier_pdfs: Vec<Pdf>,
}

/// The result of a verification.
#[derive(Debug, Serialize)]
struct Verified {
    sha256: String,
    id: Uuid,
    report_number: String,
    status: String,
    object_key: String,
    size_bytes: i64,
    published_at: DateTime<Utc>,
    /// Whether it is the report's current PDF.
    is_current: bool,
    replaced_at: Option<DateTime<Utc>>,
}

impl Command {
    pub(crate) async fn run(self, session: &Session) -> Result<Output, Failure> {
        match self {
            Self::Show(args) => show(session, &args.report).await,
            Self::Verify(args) => verify(session, &args).await,
        }
    }
}

fn not_found(kind: Kind, name: &str) -> Failure {
    Failure::NotFound {
        kind,
        name: name.to_owned(),
        suggestions: Vec::new(),
    }
}

async fn show(session: &Session, name: &str) -> Result<Output, Failure> {
    let connection = session.read().await?;
    let id = Uuid::parse_str(name).ok();
    let rows = connection.query(SHOW, &[&name, &id]).await?;
    let row = rows.first().ok_or_else(|| not_found(Kind::Report, name))?;
    let (id, organization_id): (Uuid, Uuid) = (row.try_get("id")?, row.try_get("organization_id")?);
    let mut pdfs = Vec::new();
    for row in connection.query(PDFS, &[&id, &organization_id]).await? {
        pdfs.push(Pdf {
            object_key: row.try_get("object_key")?,
            sha256: row.try_get("sha256")?,
            size_bytes: row.try_get("size_bytes")?,
            published_at: row.try_get("published_at")?,
        });
    }
    let key: Option<String> = row.try_get("pdf_object_key")?;
    let fingerprint: Option<String> = row.try_get("fingerprint")?;
    let (address, slug): (Option<String>, Option<String>) =
        (row.try_get("public_report_url")?, row.try_get("public_slug")?);
    let named = pdfs.iter().position(|pdf| Some(&pdf.object_key) == key.as_ref());
    let report = Report {
        id,
        report_number: row.try_get("report_number")?,
        organization: row.try_get("organization")?,
        branch: row.try_get("branch")?,
        status: row.try_get("status")?,
        created_at: row.try_get("created_at")?,
        published_at: row.try_get("published_at")?,
        link: address
            .zip(slug)
            .map(|(address, slug)| report_link::of(&address, &slug)),
        pdf_state: match (&fingerprint, &key) {
            (None, _) => "none",
            (Some(fingerprint), Some(key)) if pdf_key::is_current(key, id, fingerprint) => "current",
            (Some(_), _) => "stale",
        },
        pdf: named.map(|index| pdfs.remove(index)),
        earlier_pdfs: pdfs,
    };
    let or_none = |text: Option<&str>| text.unwrap_or("-").to_owned();
    let mut facts = vec![
        ("id", report.id.to_string()),
        ("number", report.report_number.clone()),
        ("branch", format!("{}/{}", report.organization, report.branch)),
        ("status", report.status.clone()),
        ("opened", when::at(report.created_at)),
        ("published", when::at_or_none(report.published_at)),
        ("link", or_none(report.link.as_deref())),
        (
            "PDF",
            match (report.pdf_state, &report.pdf) {
                ("none", _) => "none, because the report is not published or has no public slug".to_owned(),
                ("current", Some(_)) => "published".to_owned(),
                _ => "being rendered; the PDF below, if any, is no longer served".to_owned(),
            },
        ),
    ];
    if let Some(pdf) = &report.pdf {
        facts.extend([
            ("key", pdf.object_key.clone()),
            ("size", format!("{} bytes", pdf.size_bytes)),
            ("SHA-256", pdf.sha256.clone()),
            ("since", when::at(pdf.published_at)),
        ]);
    }
    for (index, pdf) in report.earlier_pdfs.iter().enumerate() {
        let line = format!("{}  {}", when::at(pdf.published_at), pdf.sha256);
        facts.push((if index == 0 { "earlier" } else { "" }, line));
    }
    Ok(Output::facts(&report, &facts))
}

async fn verify(session: &Session, args: &VerifyArgs) -> Result<Output, Failure> {
    let name = args.file.display().to_string();
    let mut digest = Sha256::new();
    File::open(&args.file)
        .and_then(|mut file| io::copy(&mut file, &mut digest))
        .map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
    let digest = digest.finalize().to_vec();
    let connection = session.read().await?;
    let rows = connection.query(VERIFY, &[&digest]).await?;
    let row = rows.first().ok_or_else(|| not_found(Kind::PublishedPdf, &name))?;
    let verified = Verified {
        sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        id: row.try_get("inspection_id")?,
        report_number: row.try_get("report_number")?,
        status: row.try_get("status")?,
        object_key: row.try_get("object_key")?,
        size_bytes: row.try_get("size_bytes")?,
        published_at: row.try_get("published_at")?,
        is_current: row.try_get("is_named")?,
        replaced_at: row.try_get("replaced_at")?,
    };
    let now = match (verified.is_current, verified.replaced_at) {
        (true, _) => "yes".to_owned(),
        (false, Some(replaced)) => format!("no, it was replaced at {}", when::at(replaced)),
        (false, None) => format!("no, the report is {}", verified.status),
    };
    let facts = [
        ("report", verified.report_number.clone()),
        ("id", verified.id.to_string()),
        ("published", when::at(verified.published_at)),
        ("current", now),
        ("size", format!("{} bytes", verified.size_bytes)),
        ("SHA-256", verified.sha256.clone()),
    ];
    Ok(Output::facts(&verified, &facts))
}
