//! Tests of the rendered PDF: its pages, its structure, and its robustness against any input.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod document;
mod extremes;
mod hostile;
mod sample;
mod tables;

use std::sync::LazyLock;

use lopdf::{Document, Object};
use report_pdf::{Renderer, Report};

static RENDERER: LazyLock<Renderer> = LazyLock::new(Renderer::new);
static SAMPLE: LazyLock<Vec<u8>> = LazyLock::new(|| render(&report()));

/// Renders a report. With `PDFS=FOLDER`, saves each PDF under the name of its test, to be looked at.
fn render(report: &Report) -> Vec<u8> {
    let pdf = RENDERER.render(report).expect("the report renders");
    if let Some(folder) = std::env::var_os("PDFS") {
        let test = std::thread::current().name().unwrap_or("main").replace("::", "-");
        let name = format!("{test}-{}.pdf", pdf.len());
        std::fs::write(std::path::Path::new(&folder).join(name), &pdf).expect("the folder is writable");
    }
    pdf
}

/// The sample with small photos.
fn report() -> Report {
    sample::report(160)
}

/// A report without forms and photos, for tests that add their own.
fn small() -> Report {
    Report {
        forms: Vec::new(),
        photos: Vec::new(),
        ..report()
    }
}

/// The text of each page, as [`squeeze`] returns it.
fn pages(pdf: &[u8]) -> Vec<String> {
    let document = Document::load_mem(pdf).expect("a PDF");
    let numbers: Vec<u32> = document.get_pages().into_keys().collect();
    numbers
        .iter()
        .map(|page| squeeze(&document.extract_text(&[*page]).expect("text")))
        .collect()
}

/// All text, as [`squeeze`] returns it.
fn text(pdf: &[u8]) -> String {
    let document = Document::load_mem(pdf).expect("a PDF");
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    squeeze(&document.extract_text(&pages).expect("text"))
}

/// Removes white space and break opportunities, because line breaks depend on the layout.
fn squeeze(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && *c != '\u{200b}')
        .collect()
}

fn metadata(pdf: &[u8]) -> String {
    let document = Document::load_mem(pdf).expect("a PDF");
    let catalog = document.catalog().expect("a catalog");
    let reference = catalog
        .get(b"Metadata")
        .and_then(Object::as_reference)
        .expect("metadata");
    let stream = document
        .get_object(reference)
        .and_then(Object::as_stream)
        .expect("a stream");
    let bytes = stream.decompressed_content().unwrap_or_else(|_| stream.content.clone());
    String::from_utf8(bytes).expect("XMP in UTF-8")
}
