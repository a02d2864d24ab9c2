//! Line charts side by side as an SVG image. Its colors are readable on light and dark backgrounds, and it has none of its own.

use std::fmt::Write;

/// Text, axes and grid: a gray with the same contrast to white and to a dark page.
const GRAY: &str = "#797979";
/// The colors of the lines.
const COLORS: [&str; 4] = ["#2a7de1", "#d0661a", "#1a9850", "#a65fb5"];
/// The size of the plot area of a panel, and the distances around it.
const PLOT: (f64, f64) = (300.0, 220.0);
const LEFT: f64 = 60.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 50.0;
const GAP: f64 = 70.0;

/// The scale of an axis.
#[derive(Clone, Copy)]
pub enum Scale {
    /// From 0 to this number.
    Linear(f64),
    /// Between these powers of ten.
    Log(i32, i32),
}

impl Scale {
    /// Returns the place of a value on the axis, from 0 to 1. Values beyond the ends are drawn at the ends.
    fn place(self, value: f64) -> f64 {
        let place = match self {
            Scale::Linear(end) => value / end,
            Scale::Log(from, to) => (value.log10() - f64::from(from)) / f64::from(to - from),
        };
        place.clamp(0.0, 1.0)
    }

    fn ticks(self) -> Vec<f64> {
        match self {
            Scale::Linear(end) => (0..=4).map(|tick| end * f64::from(tick) / 4.0).collect(),
            Scale::Log(from, to) => (from..=to).map(|power| 10_f64.powi(power)).collect(),
        }
    }
}

/// Returns a number without the rounding errors of its last digits.
fn label(value: f64) -> String {
    ((value * 1e6).round() / 1e6).to_string()
}

/// The points of a line.
pub type Points = Vec<(f64, f64)>;

/// A chart.
pub struct Panel {
    /// The description of the vertical axis.
    pub title: &'static str,
    /// The vertical axis.
    pub scale: Scale,
    /// The points of each line, by their names in the legend.
    pub lines: Vec<(&'static str, Points)>,
    /// The points of a dashed line for comparison, and its name.
    pub comparison: Option<(&'static str, Points)>,
}

/// Draws the panels over the same horizontal axis.
pub fn svg(title: &str, x_title: &str, x: Scale, panels: &[Panel]) -> String {
    let width = LEFT + (PLOT.0 + GAP) * panels.len() as f64;
    let height = TOP + PLOT.1 + BOTTOM;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" font-family=\"sans-serif\" font-size=\"12\" fill=\"{GRAY}\">\n<title>{title}</title>\n"
    );
    let text = |x: f64, y: f64, anchor: &str, text: &str| {
        format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n")
    };
    let stroke = |points: &[(f64, f64)], color: &str, more: &str| {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" {more}/>\n",
            points.join(" ")
        )
    };
    for (number, panel) in panels.iter().enumerate() {
        let left = LEFT + (PLOT.0 + GAP) * number as f64;
        let (right, bottom) = (left + PLOT.0, TOP + PLOT.1);
        let at = |(horizontal, vertical): &(f64, f64)| {
            let (x, y) = (x.place(*horizontal), panel.scale.place(*vertical));
            (left + x * PLOT.0, bottom - y * PLOT.1)
        };
        for tick in panel.scale.ticks() {
            let (_, y) = at(&(0.0, tick));
            svg += &stroke(&[(left, y), (right, y)], GRAY, "stroke-opacity=\"0.3\"");
            svg += &text(left - 6.0, y + 4.0, "end", &label(tick));
        }
        for tick in x.ticks() {
            let (x, _) = at(&(tick, 0.0));
            svg += &stroke(&[(x, bottom), (x, bottom + 4.0)], GRAY, "");
            svg += &text(x, bottom + 18.0, "middle", &label(tick));
        }
        svg += &stroke(&[(left, TOP), (left, bottom), (right, bottom)], GRAY, "");
        svg += &text(left, TOP - 36.0, "start", panel.title);
        svg += &text(left + PLOT.0 / 2.0, bottom + 38.0, "middle", x_title);
        let compared = panel
            .comparison
            .iter()
            .map(|line| (line, GRAY, "stroke-dasharray=\"5 4\""));
        let colored = panel
            .lines
            .iter()
            .zip(COLORS)
            .map(|(line, color)| (line, color, "stroke-width=\"2\""));
        let mut legend = left;
        for ((name, points), color, more) in compared.chain(colored) {
            let points: Points = points.iter().map(at).collect();
            svg += &stroke(&points, color, more);
            for (x, y) in points.iter().filter(|_| color != GRAY) {
                // Writing into a String cannot fail.
                let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>");
            }
            svg += &stroke(&[(legend, TOP - 18.0), (legend + 20.0, TOP - 18.0)], color, more);
            svg += &text(legend + 25.0, TOP - 14.0, "start", name);
            legend += 40.0 + 7.0 * name.len() as f64;
        }
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_drawn_at_its_place_on_both_axes() {
        let panel = Panel {
            title: "p99",
            scale: Scale::Log(0, 2),
            lines: vec![("detail", vec![(0.0, 1.0), (1.0, 10.0), (2.0, 1_000.0)])],
            comparison: None,
        };
        let drawn = svg("Latency", "rate", Scale::Linear(2.0), &[panel]);
        // The last one is beyond the end of its axis.
        assert!(
            drawn.contains("points=\"60.0,280.0 210.0,170.0 360.0,60.0\""),
            "{drawn}"
        );
    }
}
