//! Draws the pictures of the sandbox's reports as JPEGs. All reports share them.
//!
//! The drawings are the SVG files of `drawings.txtar`. A [`Scene`] combines one of them with a style sheet, which sets a car's paint, an odometer's
//! mileage or a panel's scratches.
//!
//! This is a separate crate so that it can be optimized in debug builds. The JPEG encoder is generic and compiled here. Without
//! optimization, drawing takes seconds.

use std::fmt::Write as _;
use std::sync::LazyLock;

use image::codecs::jpeg::JpegEncoder;
use image::{ExtendedColorType, ImageEncoder as _, ImageError};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, ImageHrefResolver, ImageKind, ImageRendering, Options, Tree};
use thiserror::Error;

/// Width and height of a picture in pixels.
pub const SIZE: (u32, u32) = (640, 480);
/// Width and height of a thumbnail in pixels.
pub const THUMBNAIL_SIZE: (u32, u32) = (160, 120);
/// Media type of all pictures.
pub const MIME_TYPE: &str = "image/jpeg";

/// The mileages, in km, for which there is a picture of an odometer.
pub const ODOMETERS: [i32; 10] = [
    9_412, 24_870, 41_236, 63_508, 87_914, 112_347, 138_062, 164_795, 203_118, 251_640,
];

/// The drawings by name: the parts of `drawings.txtar`, each of which follows a line `-- NAME --`.
static DRAWINGS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    include_str!("../drawings.txtar")
        .split("\n-- ")
        .skip(1)
        .filter_map(|drawing| drawing.split_once(" --\n"))
        .collect()
});

/// Paints and their colors.
const PAINTS: [(&str, &str); 5] = [
    ("white", "#d9dde1"),
    ("grey", "#7c858e"),
    ("black", "#2a2e33"),
    ("red", "#a8241f"),
    ("blue", "#24508f"),
];
/// Body types and their side views.
const BODIES: [(&str, &str); 5] = [
    ("sedan", "side-sedan.svg"),
    ("hatchback", "side-hatchback.svg"),
    ("suv", "side-suv.svg"),
    ("van", "side-van.svg"),
    ("pickup", "side-pickup.svg"),
];
/// Upholstery: seats, seams and trim.
const INTERIORS: [&str; 3] = [
    ".seat{fill:#3b3e42} .seam{stroke:#6f757b} .trim{fill:#54585d}",
    ".seat{fill:#9d8a6f} .seam{stroke:#6d5d47} .trim{fill:#7b6c55}",
    ".seat{fill:#26303f} .seam{stroke:#a63a32} .trim{fill:#394456}",
];
/// Engine bays: the body's paint, the engine's cover and its badge.
const ENGINES: [&str; 3] = [
    "svg{color:#b9c0c6} .cover{fill:#2b2e32} .badge{fill:#c9ced2}",
    "svg{color:#8c1f1b} .cover{fill:#3d4247} .badge{fill:#b3261f}",
    "svg{color:#24508f} .cover{fill:#23282f} .badge{fill:#3f7fbf}",
];
/// Underbodies: a little rust, a lot of it, an oil leak.
const UNDERBODIES: [&str; 3] = [
    "#more-rust,#leak{display:none}",
    "#leak{display:none}",
    "#more-rust{display:none}",
];
/// Damaged panels, one in each of the [`PAINTS`]: whether the panel is dented, and how many of the five groups of scratches it has.
const DAMAGES: [(bool, usize); 5] = [(true, 1), (false, 2), (true, 3), (false, 4), (true, 5)];
/// The lit segments of a display for each digit.
const SEGMENTS: [&str; 10] = [
    "abcdef", "bc", "abdeg", "abcdg", "bcfg", "acdfg", "acdefg", "abc", "abcdefg", "abcdfg",
];

/// The reason why a picture could not be drawn.
#[derive(Debug, Error)]
pub enum PictureError {
    /// The file does not exist.
    #[error("the picture {0} does not exist")]
    Missing(String),
    /// The requested size is zero.
    #[error("the size of a picture must not be zero")]
    Empty,
    /// The file is not a valid SVG.
    #[error(transparent)]
    Svg(#[from] usvg::Error),
    /// The picture could not be encoded.
    #[error(transparent)]
    Jpeg(#[from] ImageError),
}

/// A picture that reports share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scene {
    /// The kind of photos that it is used for.
    pub kind: &'static str,
    /// Its name, which is part of the object key.
    pub name: String,
    /// The SVG file.
    file: &'static str,
    /// The style sheet.
    style: String,
}

impl Scene {
    /// Returns the key of the picture in the object storage.
    #[must_use]
    pub fn object_key(&self) -> String {
        format!("photos/sandbox/{}.jpg", self.name)
    }

    /// Returns the key of the thumbnail in the object storage.
    #[must_use]
    pub fn thumbnail_key(&self) -> String {
        format!("photos/sandbox/{}-thumb.jpg", self.name)
    }

    /// Draws the picture and its thumbnail.
    ///
    /// # Errors
    /// The picture could not be drawn or encoded.
    pub fn draw(&self) -> Result<Picture, PictureError> {
        let tree = tree(self.file, &self.style)?;
        Ok(Picture {
            full: encode(&tree, SIZE, 82)?,
            thumbnail: encode(&tree, THUMBNAIL_SIZE, 76)?,
        })
    }
}

/// A drawn scene as two JPEGs.
pub struct Picture {
    /// 640 by 480 pixels.
    pub full: Vec<u8>,
    /// 160 by 120 pixels.
    pub thumbnail: Vec<u8>,
}

/// Parses a file with a style sheet, which also applies to the files that it includes as images.
fn tree(file: &str, style: &str) -> Result<Tree, PictureError> {
    let found = DRAWINGS.iter().find(|(name, _)| *name == file);
    let (_, svg) = found.ok_or_else(|| PictureError::Missing(file.to_owned()))?;
    let options = Options {
        style_sheet: Some(style.to_owned()),
        // Images are drawn at their original scale, so smooth scaling is not needed.
        image_rendering: ImageRendering::OptimizeSpeed,
        image_href_resolver: ImageHrefResolver {
            resolve_data: Box::new(|_, _, _| None),
            resolve_string: Box::new(|href, _| Some(ImageKind::SVG(tree(href, style).ok()?))),
        },
        ..Options::default()
    };
    Ok(Tree::from_str(svg, &options)?)
}

fn render(tree: &Tree, (width, height): (u32, u32)) -> Result<Pixmap, PictureError> {
    let mut pixmap = Pixmap::new(width, height).ok_or(PictureError::Empty)?;
    let scale = Transform::from_scale(width as f32 / tree.size().width(), height as f32 / tree.size().height());
    resvg::render(tree, scale, &mut pixmap.as_mut());
    Ok(pixmap)
}

fn encode(tree: &Tree, size: (u32, u32), quality: u8) -> Result<Vec<u8>, PictureError> {
    let pixmap = render(tree, size)?;
    // JPEG has no alpha channel, and all pixels are opaque.
    let rgb: Vec<u8> = pixmap
        .pixels()
        .iter()
        .flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()])
        .collect();
    let mut jpeg = Vec::new();
    JpegEncoder::new_with_quality(&mut jpeg, quality).write_image(&rgb, size.0, size.1, ExtendedColorType::Rgb8)?;
    Ok(jpeg)
}

/// All scenes.
pub static SCENES: LazyLock<Vec<Scene>> = LazyLock::new(|| {
    let mut scenes = Vec::new();
    let mut add = |kind, name: String, file, style: String| {
        scenes.push(Scene {
            kind,
            name,
            file,
            style,
        });
    };
    let paint_style = |color: &str| format!("svg{{color:{color}}}");
    for (paint, color) in PAINTS {
        for (body, file) in BODIES {
            add("EXTERIOR", format!("side-{body}-{paint}"), file, paint_style(color));
        }
        add("EXTERIOR", format!("front-{paint}"), "front.svg", paint_style(color));
        add("EXTERIOR", format!("rear-{paint}"), "rear.svg", paint_style(color));
    }
    for (kind, name, file, styles) in [
        ("INTERIOR", "interior", "interior.svg", INTERIORS),
        ("ENGINE", "engine", "engine.svg", ENGINES),
        ("UNDERBODY", "underbody", "underbody.svg", UNDERBODIES),
    ] {
        for (variant, style) in styles.into_iter().enumerate() {
            add(kind, format!("{name}-{variant}"), file, style.to_owned());
        }
    }
    for ((paint, color), (is_dented, scratches)) in PAINTS.into_iter().zip(DAMAGES) {
        let style = paint_style(color) + &damage_style(is_dented, scratches);
        add("DAMAGE", format!("damage-{paint}"), "damage.svg", style);
    }
    for km in ODOMETERS {
        add("ODOMETER", format!("odometer-{km}"), "odometer.svg", display_style(km));
    }
    add(
        "REGISTRATION",
        "registration".to_owned(),
        "registration.svg",
        String::new(),
    );
    add("OTOSICIL_PDF", "archive".to_owned(), "archive.svg", String::new());
    scenes
});

/// Returns the style that hides the damage a panel does not have.
fn damage_style(is_dented: bool, scratches: usize) -> String {
    let mut style = String::from(if is_dented { "" } else { " #dent{display:none}" });
    for group in scratches + 1..=5 {
        let _ = write!(style, " .s{group}{{display:none}}");
    }
    style
}

/// Returns the style that lights the segments of the display for this mileage.
fn display_style(km: i32) -> String {
    let mut style = String::new();
    for (position, digit) in format!("{km:06}").chars().enumerate() {
        let digit = digit.to_digit(10).unwrap_or_default() as usize;
        for segment in SEGMENTS[digit].chars() {
            let _ = write!(style, "#p{} .{segment}{{stroke:#9fe4ff}} ", position + 1);
        }
    }
    style
}

/// Returns whether photos of a kind show papers, which have no thumbnail.
#[must_use]
pub fn is_paper(kind: &str) -> bool {
    matches!(kind, "REGISTRATION" | "OTOSICIL_PDF")
}

fn find(name: &str) -> Option<usize> {
    SCENES.iter().position(|scene| scene.name == name)
}

/// Returns the paint with which a color is shown.
fn paint(color: &str) -> &'static str {
    match color {
        "Beyaz" => "white",
        "Siyah" => "black",
        "Kırmızı" => "red",
        "Mavi" | "Lacivert" => "blue",
        _ => "grey",
    }
}

/// Returns the exterior scenes for a body type and color: front, side, rear.
#[must_use]
pub fn exteriors(body: &str, color: &str) -> Vec<usize> {
    let body = match body {
        "HATCHBACK" => "hatchback",
        "SUV" => "suv",
        "VAN" => "van",
        "PICKUP" => "pickup",
        _ => "sedan",
    };
    let paint = paint(color);
    [
        format!("front-{paint}"),
        format!("side-{body}-{paint}"),
        format!("rear-{paint}"),
    ]
    .iter()
    .filter_map(|name| find(name))
    .collect()
}

/// Returns the scene of a damaged panel in this color.
#[must_use]
pub fn damage(color: &str) -> Vec<usize> {
    find(&format!("damage-{}", paint(color))).into_iter().collect()
}

/// Returns the scene of an odometer with exactly this mileage, if there is one.
#[must_use]
pub fn odometer(mileage_km: i32) -> Option<usize> {
    find(&format!("odometer-{mileage_km}"))
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    fn thumbnail(scene: &Scene) -> Pixmap {
        let tree = tree(scene.file, &scene.style).expect("a picture");
        render(&tree, THUMBNAIL_SIZE).expect("pixels")
    }

    #[test]
    fn every_picture_decodes_at_its_size_and_has_many_colors() {
        for scene in SCENES.iter().step_by(7).chain(SCENES.iter().rev().take(3)) {
            let picture = scene.draw().expect("drawn");
            for (jpeg, size) in [(&picture.full, SIZE), (&picture.thumbnail, THUMBNAIL_SIZE)] {
                let image = image::load_from_memory_with_format(jpeg, image::ImageFormat::Jpeg)
                    .expect("a JPEG")
                    .to_rgb8();
                assert_eq!(image.dimensions(), size, "{}", scene.name);
                let colors: HashSet<_> = image
                    .pixels()
                    .map(|pixel| pixel.0.map(|channel| channel / 16))
                    .collect();
                assert!(colors.len() > 12, "{} has {} colors", scene.name, colors.len());
            }
        }
    }

    /// This shows that every style sheet has an effect on its file.
    #[test]
    fn all_pictures_differ() {
        let mut seen = HashMap::new();
        for scene in SCENES.iter() {
            if let Some(other) = seen.insert(thumbnail(scene).take(), &scene.name) {
                panic!("{} looks like {other}", scene.name);
            }
        }
    }

    #[test]
    fn every_file_is_valid_and_used() {
        let mut used: HashSet<_> = SCENES.iter().map(|scene| scene.file).collect();
        for (name, svg) in DRAWINGS.iter() {
            tree(name, "").expect(name);
            for href in svg.split("<image href=\"").skip(1) {
                let href = href.split('"').next().expect("an end");
                used.insert(DRAWINGS.iter().find(|(name, _)| *name == href).expect(href).0);
            }
        }
        let unused: Vec<_> = DRAWINGS.iter().filter(|(name, _)| !used.contains(name)).collect();
        assert!(unused.is_empty(), "{unused:?}");
    }

    /// Transparent pixels would be black in a JPEG.
    #[test]
    fn every_picture_is_opaque() {
        for scene in SCENES.iter() {
            let is_covered = thumbnail(scene).pixels().iter().all(|pixel| pixel.alpha() == 255);
            assert!(is_covered, "{}", scene.name);
        }
    }

    #[test]
    fn object_keys_are_unique() {
        let keys: HashSet<_> = SCENES
            .iter()
            .flat_map(|scene| [scene.object_key(), scene.thumbnail_key()])
            .collect();
        assert_eq!(keys.len(), SCENES.len() * 2);
    }

    #[test]
    fn pictures_show_the_body_and_paint_of_the_car() {
        let names: Vec<_> = exteriors("VAN", "Kırmızı")
            .into_iter()
            .map(|scene| SCENES[scene].name.clone())
            .collect();
        assert_eq!(names, ["front-red", "side-van-red", "rear-red"]);
    }
}
