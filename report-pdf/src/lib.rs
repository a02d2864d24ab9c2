//! Renders a vehicle inspection report as the PDF that the customer gets: Turkish text, A4, tagged (PDF/UA-1),
//! with the fonts, the template and the logo inside the binary. Nothing is read from disk or network.
//!
//! Fill a [`Report`], keep one [`Renderer`] for the process, and call [`Renderer::render`] on a thread that may block
//! (`tokio::task::spawn_blocking`): rendering is pure computation, some tenths of a second.
//!
//! ```no_run
//! # fn sample() -> report_pdf::Report { unimplemented!() }
//! let renderer = report_pdf::Renderer::new();
//! let pdf: Vec<u8> = renderer.render(&sample())?;
//! # Ok::<(), report_pdf::RenderError>(())
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
mod render;
#[cfg(feature = "render")]
mod report;
#[cfg(feature = "render")]
mod test_line;
mod version;
#[cfg(feature = "render")]
mod view;

#[cfg(feature = "render")]
pub use render::{RenderError, Renderer};
#[cfg(feature = "render")]
pub use report::{Form, Photo, Point, Pricing, Report, Vehicle};
pub use version::VERSION;
