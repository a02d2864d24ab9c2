//! Renders an inspection report as a PDF for the customer: in Turkish, on A4, tagged (PDF/UA-1, PDF/A-2a). The fonts, the template
//! and the logo are embedded in the binary; nothing is read from disk or network.
//!
//! Create one [`Renderer`] for the process, fill a [`Report`], and call [`Renderer::render`] on a thread that may block
//! (`tokio::task::spawn_blocking`). Rendering is pure computation and takes a few tenths of a second.
//!
//! ```no_run
//! fn pdf(renderer: &report_pdf::Renderer, report: &report_pdf::Report) -> Result<Vec<u8>, report_pdf::RenderError> {
//!     renderer.render(report)
//! }
//! ```
//!
//! Text from the report reaches the template as data, in a JSON file of the template's virtual file system. It is never parsed as
//! markup, so `#`, `*`, `$` and `\` print literally. The caller must filter personal data: everything in the [`Report`] is printed.

mod clean;
mod format;
mod labels;
mod layout;
mod render;
mod report;
mod scale;
mod status;
mod test_line;
mod view;

pub use render::{RenderError, Renderer};
pub use report::{
    Branch, Device, Form, Limits, Photo, PhotoFormat, Point, Pricing, Report, Source, StatusRange, Vehicle,
};
