//! Progress bars on terminals; nothing elsewhere.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The progress of one step.
pub struct Progress(ProgressBar);

impl Progress {
    /// Starts a step with a total in bytes, if known.
    pub fn of_bytes(what: String, total: Option<u64>) -> Self {
        Self::begin(
            what,
            total,
            "{msg} {wide_bar} {bytes}/{total_bytes} {eta}",
            "{msg} {spinner} {bytes}",
        )
    }

    /// Starts a step with a total in lines.
    pub fn of_lines(what: String, total: u64) -> Self {
        Self::begin(
            what,
            Some(total),
            "{msg} {wide_bar} {human_pos}/{human_len} {per_sec} {eta}",
            "",
        )
    }

    /// Starts a step of unknown length.
    pub fn endless(what: String) -> Self {
        Self::begin(what, None, "", "{msg} {spinner} {human_pos}")
    }

    fn begin(what: String, total: Option<u64>, known: &str, unknown: &str) -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let (bar, template) = match total {
            Some(total) => (ProgressBar::with_draw_target(Some(total), target), known),
            None => (ProgressBar::with_draw_target(None, target), unknown),
        };
        // The templates are constants. If one were not valid, the default style would be used.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// Sets the position.
    pub fn at(&self, position: u64) {
        self.0.set_position(position);
    }
}

/// Clears the line for the next output.
impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
