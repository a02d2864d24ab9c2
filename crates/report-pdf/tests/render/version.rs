//! A page that is drawn otherwise has another version.

use lopdf::Document;
use partner_api_domain::pdf_key::DRAWING;
use report_pdf::Renderer;
use sha2::{Digest, Sha256};

/// The version, and what the sample's pages then look like.
const DRAWN: (i32, &str) = (3, "3e3424a298fec87ef036d0287a76bbb43054c73838bffb53839197d134bd7c35");

#[test]
fn a_page_that_is_drawn_otherwise_has_another_version() {
    let pdf = Renderer::new().render(&super::sample::report(160)).unwrap();
    let document = Document::load_mem(&pdf).unwrap();
    let mut pages = Sha256::new();
    for page in document.get_pages().into_values() {
        pages.update(document.get_page_content(page));
    }
    let drawn = format!("{:x}", pages.finalize());
    assert_eq!(
        (DRAWING, drawn.as_str()),
        DRAWN,
        "the sample's pages are drawn otherwise: raise DRAWING, so that stored PDFs are rendered anew, and note both here"
    );
}
