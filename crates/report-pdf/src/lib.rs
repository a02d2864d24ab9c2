//! Renders a vehicle inspection report as the PDF that the customer gets: Turkish text, A4, tagged (PDF/UA-1, PDF/A-2a),
//! with the fonts, the template and the logo inside the binary. Nothing is read from disk or network.
//!
//! Fill a [`Report`], keep one [`Renderer`] for the process, and call [`Renderer::render`] on a thread that may block
//! (`tokio::task::spawn_blocking`): rendering is pure computation, some tenths of a second.
//!
//! ```no_run
//! fn pdf(renderer: &report_pdf::Renderer, report: &report_pdf::Report) -> Result<Vec<u8>, report_pdf::RenderError> {
//!     renderer.render(report)
//! }
//! ```
//!
//! Text from the report reaches the template as data (a JSON file in the template's virtual file system) and is never
//! read as markup, so `#`, `*`, `$` and `\` print as they are. The caller has already filtered personal data: what
//! stands in the [`Report`] is printed.

mod clean;
mod format;
mod labels;
mod layout;
mod render;
mod report;
mod scale;
mod test_line;
mod view;

pub use render::{RenderError, Renderer};
pub use report::{Branch, Device, Form, Limits, Photo, PhotoFormat, Point, Pricing, Report, Source, Stretch, Vehicle};
