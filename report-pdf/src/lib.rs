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
//!
//! Without the feature `render` there is [`VERSION`] alone, and no typst.

#[cfg(feature = "render")]
mod clean;
#[cfg(feature = "render")]
mod format;
#[cfg(feature = "render")]
mod labels;
#[cfg(feature = "render")]
mod layout;
#[cfg(feature = "render")]
mod render;
#[cfg(feature = "render")]
mod report;
#[cfg(feature = "render")]
mod scale;
#[cfg(feature = "render")]
mod test_line;
mod version;
#[cfg(feature = "render")]
mod view;

#[cfg(feature = "render")]
pub use render::{RenderError, Renderer};
#[cfg(feature = "render")]
pub use report::{Branch, Device, Form, Limits, Photo, PhotoFormat, Point, Pricing, Report, Source, Stretch, Vehicle};
pub use version::VERSION;
