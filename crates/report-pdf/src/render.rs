//! Uses Typst as a library: provides the template's files, compiles it, and exports the PDF.

use std::sync::Arc;

use chrono::{DateTime, Datelike, Timelike, Utc};
use typst::diag::{FileError, FileResult, SourceDiagnostic};
use typst::foundations::{Bytes, Datetime, Duration, Smart};
use typst::syntax::{FileId, RootedPath, Source, VirtualPath, VirtualRoot};
use typst::text::{Font, FontBook};
use typst::utils::LazyHash;
use typst::visualize::{ExchangeFormat, RasterImage};
use typst::{Library, LibraryExt, World, WorldExt};
use typst_layout::PagedDocument;
use typst_pdf::{PdfOptions, PdfStandard, PdfStandards, Timestamp};

use crate::clean::clean_all;
use crate::view::{View, link_target};
use crate::{PhotoFormat, Report};

const TEMPLATE: &str = include_str!("../template/report.typ");
const LOGO: &[u8] = include_bytes!("../template/logo.svg");
/// The creator in the PDF's metadata.
const CREATOR: &str = "Vehicle Inspection Platform";

/// A report could not be rendered. No variant carries text from the report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// The report could not be serialized for the template.
    #[error("failed to serialize the report for the template")]
    Data(#[from] serde_json::Error),
    /// The template does not compile with this report; a defect of the template.
    #[error("the template failed at byte {offset:?} of its source")]
    Template {
        /// The position in `template/report.typ`, if Typst reports one.
        offset: Option<usize>,
    },
    /// The pages could not be exported as a PDF.
    #[error("failed to export the pages as a PDF")]
    Export,
}

/// Renders reports. Holds the parsed fonts and template. Create it once and share it by reference or by cheap clones.
#[derive(Clone)]
pub struct Renderer {
    shared: Arc<Shared>,
}

struct Shared {
    library: LazyHash<Library>,
    book: LazyHash<FontBook>,
    fonts: Vec<Font>,
    template: Source,
    /// The sets of standards that a PDF may declare, the largest first.
    standards: Vec<PdfStandards>,
}

impl Default for Renderer {
    fn default() -> Self {
        Renderer::new()
    }
}

impl Renderer {
    /// Parses the embedded fonts and the template.
    pub fn new() -> Renderer {
        let fonts: Vec<Font> = typst_assets::fonts()
            .flat_map(|data| Font::iter(Bytes::new(data)))
            .collect();
        let shared = Shared {
            library: LazyHash::new(Library::default()),
            book: LazyHash::new(FontBook::from_fonts(&fonts)),
            fonts,
            template: Source::new(file_id("/report.typ"), TEMPLATE.to_owned()),
            standards: [
                &[PdfStandard::A_2a, PdfStandard::Ua_1][..],
                &[PdfStandard::A_2b, PdfStandard::Ua_1],
                &[PdfStandard::Ua_1],
            ]
            .into_iter()
            .filter_map(|standards| PdfStandards::new(standards).ok())
            .collect(),
        };
        Renderer {
            shared: Arc::new(shared),
        }
    }

    /// Renders `report` as a tagged PDF that declares PDF/UA-1 (accessible) and PDF/A-2a (archivable).
    ///
    /// Equal reports give equal bytes. Rendering computes for a few tenths of a second, so call it on a thread that may block. No
    /// input prevents the report: a photo that cannot be decoded is replaced by a placeholder, and a character without a glyph by
    /// U+FFFD. If the document still violates a standard, it is exported tagged but without declaring that standard.
    ///
    /// # Errors
    /// [`RenderError`]. Every variant is a defect of this crate and not of the report.
    pub fn render(&self, report: &Report) -> Result<Vec<u8>, RenderError> {
        let result = self.compile(report);
        // Typst memoizes in a process-wide cache, including decoded photos, which are useless for another report.
        comemo::evict(0);
        result
    }

    fn compile(&self, report: &Report) -> Result<Vec<u8>, RenderError> {
        let mut photos = Vec::with_capacity(report.photos.len());
        let mut paths = Vec::with_capacity(report.photos.len());
        for photo in &report.photos {
            let data = Bytes::new(photo.data.clone());
            let path = photo.format.map(|format| photo_path(photos.len(), format));
            // Typst caches the decoded image for the template's `image` call.
            let is_readable = photo
                .format
                .is_some_and(|format| RasterImage::plain(data.clone(), exchange(format)).is_ok());
            if let Some(path) = &path {
                photos.push((file_id(path), data));
            }
            paths.push(path.filter(|_| is_readable));
        }
        let qr = report
            .verification_url
            .as_deref()
            .and_then(link_target)
            .and_then(|url| qr_code(&url));
        let mut view = serde_json::to_value(View::new(report, &paths, qr.is_some()))?;
        clean_all(&mut view, &|character| self.has_glyph(character));

        let mut files = photos;
        files.push((file_id("/report.json"), Bytes::new(serde_json::to_vec(&view)?)));
        files.push((file_id("/logo.svg"), Bytes::new(LOGO)));
        files.extend(qr.map(|svg| (file_id("/qr.svg"), Bytes::new(svg.into_bytes()))));
        let world = ReportWorld {
            shared: &self.shared,
            files,
        };

        let document = typst::compile::<PagedDocument>(&world)
            .output
            .map_err(|errors| template_error(&world, &errors))?;
        self.export(report, &document)
    }

    fn export(&self, report: &Report, document: &PagedDocument) -> Result<Vec<u8>, RenderError> {
        let options = |standards| PdfOptions {
            ident: Smart::Custom(format!("inspection-report/{}", report.report_number)),
            creator: Smart::Custom(Some(CREATOR.to_owned())),
            timestamp: timestamp(report.published_at),
            standards,
            ..PdfOptions::default()
        };
        // A single odd character may violate a standard; a tagged PDF that does not declare it is still useful.
        let mut written = self
            .shared
            .standards
            .iter()
            .filter_map(|standards| typst_pdf::pdf(document, &options(standards.clone())).ok());
        if let Some(pdf) = written.next() {
            return Ok(pdf);
        }
        typst_pdf::pdf(document, &options(PdfStandards::default())).map_err(|_| RenderError::Export)
    }

    fn has_glyph(&self, character: char) -> bool {
        self.shared
            .fonts
            .iter()
            .any(|font| font.info().coverage.contains(character.into()))
    }
}

/// The environment of the template: these files, and no disk, packages or clock.
struct ReportWorld<'a> {
    shared: &'a Shared,
    files: Vec<(FileId, Bytes)>,
}

impl World for ReportWorld<'_> {
    fn library(&self) -> &LazyHash<Library> {
        &self.shared.library
    }

    fn book(&self) -> &LazyHash<FontBook> {
        &self.shared.book
    }

    fn main(&self) -> FileId {
        self.shared.template.id()
    }

    fn source(&self, id: FileId) -> FileResult<Source> {
        if id == self.shared.template.id() {
            Ok(self.shared.template.clone())
        } else {
            Err(missing(id))
        }
    }

    fn file(&self, id: FileId) -> FileResult<Bytes> {
        let file = self.files.iter().find(|(known, _)| *known == id);
        file.map(|(_, data)| data.clone()).ok_or_else(|| missing(id))
    }

    fn font(&self, index: usize) -> Option<Font> {
        self.shared.fonts.get(index).cloned()
    }

    fn today(&self, _offset: Option<Duration>) -> Option<Datetime> {
        None
    }
}

fn missing(id: FileId) -> FileError {
    FileError::NotFound(id.get().vpath().get_without_slash().into())
}

fn photo_path(index: usize, format: PhotoFormat) -> String {
    let ending = match format {
        PhotoFormat::Jpeg => "jpg",
        PhotoFormat::Png => "png",
        PhotoFormat::WebP => "webp",
    };
    format!("/photo-{index}.{ending}")
}

fn exchange(format: PhotoFormat) -> ExchangeFormat {
    match format {
        PhotoFormat::Jpeg => ExchangeFormat::Jpg,
        PhotoFormat::Png => ExchangeFormat::Png,
        PhotoFormat::WebP => ExchangeFormat::Webp,
    }
}

/// The ID of an embedded file. Typst interns paths and never frees them, so the names come from a small set.
#[expect(
    clippy::expect_used,
    reason = "only a path outside of its root is rejected, and these paths are fixed"
)]
fn file_id(path: &str) -> FileId {
    let path = VirtualPath::new(path).expect("a path below the root");
    RootedPath::new(VirtualRoot::Project, path).intern()
}

/// Keeps only the position, because Typst's messages may quote values of the report.
fn template_error(world: &ReportWorld<'_>, errors: &[SourceDiagnostic]) -> RenderError {
    let offset = errors
        .iter()
        .find_map(|error| world.range(error.span))
        .map(|range| range.start);
    RenderError::Template { offset }
}

fn timestamp(time: DateTime<Utc>) -> Option<Timestamp> {
    let part = |value: u32| u8::try_from(value).ok();
    let datetime = Datetime::from_ymd_hms(
        time.year(),
        part(time.month())?,
        part(time.day())?,
        part(time.hour())?,
        part(time.minute())?,
        part(time.second())?,
    )?;
    Some(Timestamp::new_utc(datetime))
}

/// The address as a QR code with its quiet zone, as SVG; `None` if it is too long.
fn qr_code(url: &str) -> Option<String> {
    let code = qrcode::QrCode::with_error_correction_level(url, qrcode::EcLevel::M).ok()?;
    let mut svg = code.render::<qrcode::render::svg::Color<'_>>();
    svg.min_dimensions(200, 200);
    Some(svg.dark_color(qrcode::render::svg::Color("#16324f")).build())
}
