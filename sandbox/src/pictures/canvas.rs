//! A picture being drawn: shapes in pixels, colours as `0xRRGGBB`.

use image::RgbImage;
use tiny_skia::{
    Color, FillRule, GradientStop, LineCap, LinearGradient, Paint, Path, PathBuilder, Pixmap, Point, Rect, Shader,
    SpreadMode, Stroke, Transform,
};

use super::SIZE;

/// A step of an outline.
#[derive(Clone, Copy)]
pub enum Step {
    /// Begin here.
    M(f32, f32),
    /// A straight line.
    L(f32, f32),
    /// A curve: its control point and its end.
    Q(f32, f32, f32, f32),
}

/// The picture.
pub struct Canvas {
    pixmap: Option<Pixmap>,
    noise: u32,
}

fn color(rgb: u32, alpha: f32) -> Color {
    let channel = |shift: u32| ((rgb >> shift) & 0xff) as u8;
    let mut color = Color::from_rgba8(channel(16), channel(8), channel(0), 255);
    color.set_alpha(alpha);
    color
}

fn path(steps: &[Step], close: bool) -> Option<Path> {
    let mut builder = PathBuilder::new();
    for step in steps {
        match *step {
            Step::M(x, y) => builder.move_to(x, y),
            Step::L(x, y) => builder.line_to(x, y),
            Step::Q(a, b, x, y) => builder.quad_to(a, b, x, y),
        }
    }
    if close {
        builder.close();
    }
    builder.finish()
}

fn solid(rgb: u32, alpha: f32) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color(color(rgb, alpha));
    paint.anti_alias = true;
    paint
}

impl Canvas {
    /// An empty picture.
    pub fn new() -> Self {
        Self {
            pixmap: Pixmap::new(SIZE.0, SIZE.1),
            noise: 0x9e37_79b9,
        }
    }

    fn fill_path(&mut self, path: Option<Path>, paint: &Paint<'_>) {
        if let (Some(pixmap), Some(path)) = (&mut self.pixmap, path) {
            pixmap.fill_path(&path, paint, FillRule::Winding, Transform::identity(), None);
        }
    }

    /// A closed outline, filled.
    pub fn shape(&mut self, rgb: u32, steps: &[Step]) {
        self.fill_path(path(steps, true), &solid(rgb, 1.0));
    }

    /// A closed outline, filled and seen through.
    pub fn veil(&mut self, rgb: u32, alpha: f32, steps: &[Step]) {
        self.fill_path(path(steps, true), &solid(rgb, alpha));
    }

    /// A closed outline, filled from one colour at height `top` to another at height `bottom`.
    pub fn shaded(&mut self, (top, above): (f32, u32), (bottom, below): (f32, u32), steps: &[Step]) {
        let stops = vec![
            GradientStop::new(0.0, color(above, 1.0)),
            GradientStop::new(1.0, color(below, 1.0)),
        ];
        let (start, end) = (Point::from_xy(0.0, top), Point::from_xy(0.0, bottom));
        let mut paint = solid(above, 1.0);
        if let Some(shader) = LinearGradient::new(start, end, stops, SpreadMode::Pad, Transform::identity()) {
            paint.shader = shader;
        } else {
            paint.shader = Shader::SolidColor(color(above, 1.0));
        }
        self.fill_path(path(steps, true), &paint);
    }

    /// An open line.
    pub fn line(&mut self, rgb: u32, width: f32, steps: &[Step]) {
        let stroke = Stroke {
            width,
            line_cap: LineCap::Round,
            ..Stroke::default()
        };
        if let (Some(pixmap), Some(path)) = (&mut self.pixmap, path(steps, false)) {
            pixmap.stroke_path(&path, &solid(rgb, 1.0), &stroke, Transform::identity(), None);
        }
    }

    /// A rectangle by corner, width and height.
    pub fn rect(&mut self, rgb: u32, x: f32, y: f32, width: f32, height: f32) {
        let rect = Rect::from_xywh(x, y, width, height).map(PathBuilder::from_rect);
        self.fill_path(rect, &solid(rgb, 1.0));
    }

    /// A rectangle with a vertical run of colour.
    pub fn shaded_rect(&mut self, above: u32, below: u32, x: f32, y: f32, width: f32, height: f32) {
        let steps = [
            Step::M(x, y),
            Step::L(x + width, y),
            Step::L(x + width, y + height),
            Step::L(x, y + height),
        ];
        self.shaded((y, above), (y + height, below), &steps);
    }

    /// An ellipse by middle and radii.
    pub fn ellipse(&mut self, rgb: u32, alpha: f32, x: f32, y: f32, rx: f32, ry: f32) {
        let oval = Rect::from_xywh(x - rx, y - ry, rx * 2.0, ry * 2.0).and_then(PathBuilder::from_oval);
        self.fill_path(oval, &solid(rgb, alpha));
    }

    /// A full circle by middle and radius.
    pub fn circle(&mut self, rgb: u32, x: f32, y: f32, radius: f32) {
        self.ellipse(rgb, 1.0, x, y, radius, radius);
    }

    /// A number from 0 to 1, the same ones in each picture: for specks and wear.
    pub fn random(&mut self) -> f32 {
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 17;
        self.noise ^= self.noise << 5;
        (self.noise >> 8) as f32 / 16_777_216.0
    }

    /// The finished picture, with the grain of a camera's sensor and a little darker towards the corners.
    pub fn into_image(mut self) -> RgbImage {
        let mut image = RgbImage::new(SIZE.0, SIZE.1);
        let Some(pixmap) = self.pixmap.take() else { return image };
        let (half_width, half_height) = (SIZE.0 as f32 / 2.0, SIZE.1 as f32 / 2.0);
        for (index, (pixel, out)) in pixmap.data().chunks_exact(4).zip(image.pixels_mut()).enumerate() {
            let x = (index % SIZE.0 as usize) as f32 / half_width - 1.0;
            let y = (index / SIZE.0 as usize) as f32 / half_height - 1.0;
            let light = 1.0 - 0.13 * (x * x + y * y);
            let grain = (self.random() - 0.5) * 9.0;
            for (channel, value) in out.0.iter_mut().zip(pixel) {
                *channel = (f32::from(*value) * light + grain).clamp(0.0, 255.0) as u8;
            }
        }
        image
    }
}
