//! The public page of a report, to which the QR code of its PDF leads (REP-22).
//!
//! It shows nothing personal, and its script compares a PDF with the digests on the page without sending the file.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, FixedOffset, Utc};
use data_encoding::HEXLOWER;
use deadpool_postgres::Pool;
use dropshot::Body;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use partner_api_domain::etag::ETag;
use partner_api_gateway::pages::{Caching, Page, Pages};
use partner_api_store::connection::Connection;
use partner_api_store::deadline::Deadline;
use partner_api_store::public_reports::{self, PublicPdf, PublicReport};
use percent_encoding::percent_decode_str;
use tokio::sync::Semaphore;

use super::IpLimit;
use crate::error::ApiError;

/// The folder of the pages.
pub const FOLDER: &str = "/r/";
/// The folder of the page's style sheet and script. A slug contains no slash.
const ASSETS: &str = "/r/assets/";
/// Requests for public pages per minute and client address. A person needs a few, and a slug cannot be guessed in any number.
const PER_MINUTE: u32 = 60;
/// The maximum number of the pool's connections that public pages use at a time. The rest stays available to partners.
const MAX_CONNECTIONS: usize = 2;
/// The longest slug that is looked up.
const MAX_SLUG: usize = 200;
/// Turkey's offset from UTC.
const TURKEY: Option<FixedOffset> = FixedOffset::east_opt(3 * 3600);

/// The page's `Content-Security-Policy`.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Serves the public pages of reports.
pub(super) struct ReportPages {
    pool: Pool,
    quota: Arc<Semaphore>,
    limit: IpLimit,
    assets: Pages,
}

impl ReportPages {
    /// Creates the pages over a share of this pool.
    pub fn new(pool: Pool) -> Self {
        let mut assets = Pages::default();
        for (name, content_type, text) in [
            ("verify.css", "text/css; charset=utf-8", include_str!("verify.css")),
            ("verify.js", "text/javascript; charset=utf-8", include_str!("verify.js")),
        ] {
            let page = Page {
                content_type,
                caching: Caching::Revalidate,
                body: Bytes::from_static(text.as_bytes()),
                gzip: None,
            };
            assets.add(&format!("{ASSETS}{name}"), page);
        }
        ReportPages {
            pool,
            quota: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            limit: IpLimit::new(PER_MINUTE),
            assets,
        }
    }

    /// Returns the template of a path of these pages, for the log; `None` for any other path.
    pub fn template(path: &str) -> Option<&'static str> {
        match path.strip_prefix(ASSETS) {
            Some(_) => Some("/r/assets/{file}"),
            None => slug(path).map(|_| "/r/{slug}"),
        }
    }

    /// Responds to a request for a path that has a [`template`](Self::template).
    ///
    /// # Errors
    /// 404 if no report with the slug is published, except for browsers, which get a page with the same status; 405 for methods
    /// other than GET and HEAD; 429 if too many requests came from the address; 503 if the database is unavailable.
    pub async fn respond(&self, address: IpAddr, request: &Parts) -> Result<Response<Body>, ApiError> {
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return Err(ApiError::method_not_allowed(&request.method, "GET, HEAD"));
        }
        let path = request.uri.path();
        let mut response = match (self.assets.respond(path, &request.headers), slug(path)) {
            (Some(asset), _) => asset,
            (None, Some(slug)) => {
                self.limit.check(address)?;
                self.page(&slug, &request.headers).await?
            }
            (None, None) => return Err(not_found()),
        };
        if request.method == Method::HEAD {
            *response.body_mut() = Body::empty();
        }
        Ok(response)
    }

    async fn page(&self, slug: &str, headers: &HeaderMap) -> Result<Response<Body>, ApiError> {
        let client = Connection::take_within_quota(&self.pool, &self.quota, Deadline::begin()).await?;
        let report = public_reports::find(&client, slug).await?;
        drop(client);
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let language = Language::of(text(header::ACCEPT_LANGUAGE));
        match report {
            Some(report) => Ok(html(
                StatusCode::OK,
                language.report(&report),
                text(header::IF_NONE_MATCH),
            )),
            None if text(header::ACCEPT).is_some_and(|accepted| accepted.contains("text/html")) => {
                Ok(html(StatusCode::NOT_FOUND, language.missing(), None))
            }
            None => Err(not_found()),
        }
    }
}

/// The slug that a path names, if it is that of a public page.
fn slug(path: &str) -> Option<String> {
    let name = path.strip_prefix(FOLDER)?;
    let slug = percent_decode_str(name).decode_utf8().ok()?;
    (!name.is_empty() && !name.contains('/') && slug.len() <= MAX_SLUG && !slug.contains('\0'))
        .then(|| slug.into_owned())
}

fn not_found() -> ApiError {
    ApiError::not_found("no published report has this public page; it may be under revision")
}

fn html(status: StatusCode, body: String, if_none_match: Option<&str>) -> Response<Body> {
    let tag = ETag::of_bytes(body.as_bytes());
    let is_known = status == StatusCode::OK && tag.matches(if_none_match);
    let mut response = Response::new(if is_known { Body::empty() } else { Body::from(body) });
    *response.status_mut() = if is_known { StatusCode::NOT_MODIFIED } else { status };
    // A report may be published again at any time, so that it is missing is not cached.
    let caching = if status == StatusCode::OK {
        "public, max-age=60"
    } else {
        "no-store"
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, caching),
        (header::VARY, "accept, accept-language"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(tag) = HeaderValue::from_str(&tag.into_header())
        && status == StatusCode::OK
    {
        headers.insert(header::ETAG, tag);
    }
    response
}

/// The texts of the page in one language.
struct Language {
    code: &'static str,
    title: &'static str,
    number: &'static str,
    plate: &'static str,
    published: &'static str,
    digest: &'static str,
    rendering: &'static str,
    compare: &'static str,
    lead: &'static str,
    file: &'static str,
    same: &'static str,
    outdated: &'static str,
    other: &'static str,
    unreadable: &'static str,
    without_script: &'static str,
    missing: &'static str,
    missing_lead: &'static str,
}

const TURKISH: Language = Language {
    code: "tr",
    title: "Araç ekspertiz raporu",
    number: "Rapor numarası",
    plate: "Plaka",
    published: "Yayım tarihi",
    digest: "Güncel PDF’in SHA-256 özeti",
    rendering: "PDF hazırlanıyor. Birkaç dakika sonra yeniden bakın.",
    compare: "PDF’i karşılaştır",
    lead: "Elinizdeki PDF’in bu rapora ait olup olmadığını kontrol edin. Dosya cihazınızdan çıkmaz.",
    file: "PDF dosyası",
    same: "Bu dosya, raporun güncel PDF’idir.",
    outdated: "Bu dosya, raporun önceki bir PDF’idir. Güncel olanı ekspertiz firmasından isteyin.",
    other: "Bu dosya bu raporun PDF’i değildir ya da değiştirilmiştir.",
    unreadable: "Dosya okunamadı.",
    without_script: "Karşılaştırma için JavaScript gerekir.",
    missing: "Rapor bulunamadı",
    missing_lead: "Bu adreste yayımlanmış bir rapor yok. Rapor şu anda düzeltiliyor olabilir; daha sonra yeniden deneyin.",
};

const ENGLISH: Language = Language {
    code: "en",
    title: "Vehicle inspection report",
    number: "Report number",
    plate: "License plate",
    published: "Published",
    digest: "SHA-256 of the current PDF",
    rendering: "The PDF is being created. Look again in a few minutes.",
    compare: "Compare a PDF",
    lead: "Check whether your PDF is the one of this report. The file does not leave your device.",
    file: "PDF file",
    same: "This file is the current PDF of the report.",
    outdated: "This file is an earlier PDF of the report. Ask the inspection company for the current one.",
    other: "This file is not a PDF of this report, or it has been changed.",
    unreadable: "The file could not be read.",
    without_script: "The comparison requires JavaScript.",
    missing: "Report not found",
    missing_lead: "There is no published report at this address. It may be under revision; try again later.",
};

impl Language {
    /// Turkish, unless the browser prefers English.
    fn of(accepted: Option<&str>) -> &'static Language {
        match accepted.is_some_and(|accepted| accepted.trim_start().starts_with("en")) {
            true => &ENGLISH,
            false => &TURKISH,
        }
    }

    fn document(&self, title: &str, content: &str) -> String {
        format!(
            "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"robots\" content=\"noindex\">\n\
             <title>{title}</title>\n<link rel=\"stylesheet\" href=\"assets/verify.css\">\n</head>\n<body>\n<main>\n{content}</main>\n</body>\n</html>\n",
            self.code
        )
    }

    fn report(&self, report: &PublicReport) -> String {
        let number = escaped(&report.report_number);
        let hex = |pdf: &PublicPdf| HEXLOWER.encode(&pdf.sha256);
        let current = report.pdf.as_ref().map(hex);
        let earlier: Vec<String> = report.earlier_pdfs.iter().map(hex).collect();
        let digest = match &current {
            Some(current) => format!("<code id=\"digest\">{current}</code>"),
            None => self.rendering.to_owned(),
        };
        let facts: String = [
            (self.number, number.clone()),
            (self.plate, escaped(&report.plate)),
            (self.published, day(report.published_at)),
            (self.digest, digest),
        ]
        .iter()
        .map(|(name, value)| format!("<div><dt>{name}</dt><dd>{value}</dd></div>\n"))
        .collect();
        let content = format!(
            "<h1>{}</h1>\n<dl>\n{facts}</dl>\n<section id=\"compare\" hidden data-current=\"{}\" data-earlier=\"{}\" \
             data-same=\"{}\" data-outdated=\"{}\" data-other=\"{}\" data-unreadable=\"{}\">\n<h2>{}</h2>\n<p>{}</p>\n\
             <label for=\"file\">{}</label>\n<input id=\"file\" type=\"file\" accept=\"application/pdf\">\n\
             <p id=\"result\" role=\"status\"></p>\n</section>\n<noscript><p>{}</p></noscript>\n\
             <script type=\"module\" src=\"assets/verify.js\"></script>\n",
            self.title,
            current.unwrap_or_default(),
            earlier.join(" "),
            self.same,
            self.outdated,
            self.other,
            self.unreadable,
            self.compare,
            self.lead,
            self.file,
            self.without_script,
        );
        self.document(&format!("{} {number}", self.title), &content)
    }

    fn missing(&self) -> String {
        let content = format!("<h1>{}</h1>\n<p>{}</p>\n", self.missing, self.missing_lead);
        self.document(self.missing, &content)
    }
}

/// A day in Turkish time, `05.05.2026`.
fn day(time: DateTime<Utc>) -> String {
    match TURKEY {
        Some(turkey) => time.with_timezone(&turkey).format("%d.%m.%Y").to_string(),
        None => time.format("%d.%m.%Y").to_string(),
    }
}

/// Text for HTML.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// REP-22
    #[test]
    fn a_path_names_a_slug_without_a_slash() {
        for (path, expected) in [
            ("/r/7f3kq2m9", Some("7f3kq2m9")),
            ("/r/a%2Fb", Some("a/b")),
            ("/r/%C3%A9", Some("é")),
            ("/r/", None),
            ("/r", None),
            ("/r/a/b", None),
            ("/r/%00", None),
            ("/r/%FF", None),
        ] {
            assert_eq!(slug(path).as_deref(), expected, "{path}");
        }
    }

    /// REP-22
    #[test]
    fn a_report_number_cannot_add_markup() {
        let report = PublicReport {
            report_number: "<script>\"&".to_owned(),
            published_at: DateTime::from_timestamp(1_777_935_600, 0).unwrap_or_default(), // 2026-05-04T23:00:00Z
            plate: "34***23".to_owned(),
            pdf: None,
            earlier_pdfs: Vec::new(),
        };
        let page = TURKISH.report(&report);
        assert!(
            page.contains("&lt;script&gt;&quot;&amp;") && !page.contains("<script>\""),
            "{page}"
        );
        assert!(
            page.contains("05.05.2026") && page.contains(TURKISH.rendering),
            "{page}"
        );
    }
}
