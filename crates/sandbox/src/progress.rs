//! Progress of data generation: bars on a terminal, plain lines elsewhere.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A step with a known number of items.
pub struct Step {
    bar: ProgressBar,
    what: &'static str,
    total: u64,
    is_plain: bool,
}

impl Step {
    /// Starts a step.
    #[must_use]
    pub fn begin(what: &'static str, total: usize) -> Self {
        let is_plain = !std::io::stderr().is_terminal();
        let total = total as u64;
        let target = if is_plain {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        // If the template were invalid, the default style would be used.
        if let Ok(style) = ProgressStyle::with_template("{msg:32} {wide_bar} {pos}/{len} {eta}") {
            bar.set_style(style);
        }
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        if is_plain {
            eprintln!("sandbox: {what} (0/{total})");
        }
        Self {
            bar,
            what,
            total,
            is_plain,
        }
    }

    /// Counts one finished item.
    pub fn advance(&self) {
        self.bar.inc(1);
        let done = self.bar.position();
        // Without a terminal, one line is printed per quarter.
        let quarter = |count: u64| count * 4 / self.total.max(1);
        if self.is_plain && quarter(done) > quarter(done - 1) {
            eprintln!("sandbox: {} ({done}/{})", self.what, self.total);
        }
    }

    /// Ends the step.
    pub fn finish(self) {
        self.bar.finish();
    }
}
