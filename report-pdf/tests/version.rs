//! A page that is drawn otherwise has another version.
#![allow(clippy::unwrap_used, reason = "tests")]

mod sample;

use lopdf::Document;
use report_pdf::{Renderer, VERSION};
use sha2::{Digest, Sha256};

/// The version, and what the sample's pages then look like.
const DRAWN: (i32, &str) = (3, "3e3424a298fec87ef036d0287a76bbb43054c73838bffb53839197d134bd7c35");

#[test]
fn a_page_that_is_drawn_otherwise_has_another_version() {
    let pdf = Renderer::new().render(&sample::report(160)).unwrap();
    let document = Document::load_mem(&pdf).unwrap();
    let mut pages = Sha256::new();
    for page in document.get_pages().into_values() {
        pages.update(document.get_page_content(page));
    }
    let drawn = format!("{:x}", pages.finalize());
    assert_eq!(
        (VERSION, drawn.as_str()),
        DRAWN,
        "the sample's pages are drawn otherwise: raise VERSION, so that stored PDFs are rendered anew, and note both here"
    );
}
