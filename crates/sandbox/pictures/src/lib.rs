//! Pictures for the reports: drawn, not photographed, but real JPEGs of what their kind says. All reports share them.
//!
//! What they show stands in `svg/`, in files that any browser opens. A [`Scene`] is one of those files under a style sheet of
//! its own, which gives a car its paint, an odometer its mileage and a panel its scratches.
//!
//! A crate of its own, for unoptimised it takes seconds: the library's encoder is generic, and compiled here.

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

/// The mileages, in km, there is a picture of an odometer with.
pub const ODOMETERS: [i32; 10] = [
    9_412, 24_870, 41_236, 63_508, 87_914, 112_347, 138_062, 164_795, 203_118, 251_640,
];

/// Each file of `svg/`, by its name.
macro_rules! files {
    ($($name:literal),+ $(,)?) => { [$(($name, include_str!(concat!("../svg/", $name)))),+] };
}
static FILES: [(&str, &str); 19] = files![
    "along.svg",
    "archive.svg",
    "damage.svg",
    "desk.svg",
    "engine.svg",
    "front.svg",
    "hall.svg",
    "interior.svg",
    "odometer.svg",
    "plate.svg",
    "rear.svg",
    "registration.svg",
    "side-hatchback.svg",
    "side-pickup.svg",
    "side-sedan.svg",
    "side-suv.svg",
    "side-van.svg",
    "underbody.svg",
    "wheel.svg",
];

/// Paints and their colours.
const PAINTS: [(&str, &str); 5] = [
    ("white", "#d9dde1"),
    ("grey", "#7c858e"),
    ("black", "#2a2e33"),
    ("red", "#a8241f"),
    ("blue", "#24508f"),
];
/// Bodies as seen from their side.
const BODIES: [(&str, &str); 5] = [
    ("sedan", "side-sedan.svg"),
    ("hatchback", "side-hatchback.svg"),
    ("suv", "side-suv.svg"),
    ("van", "side-van.svg"),
    ("pickup", "side-pickup.svg"),
];
/// Upholstery: seats, their seams, trim.
const INTERIORS: [&str; 3] = [
    ".seat{fill:#3b3e42} .seam{stroke:#6f757b} .trim{fill:#54585d}",
    ".seat{fill:#9d8a6f} .seam{stroke:#6d5d47} .trim{fill:#7b6c55}",
    ".seat{fill:#26303f} .seam{stroke:#a63a32} .trim{fill:#394456}",
];
/// Engine bays: the body's paint, the engine's cover, its badge.
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
/// Damaged panels, one in each of the [`PAINTS`]: whether they are dented, and how many of the five groups of scratches.
const DAMAGES: [(bool, usize); 5] = [(true, 1), (false, 2), (true, 3), (false, 4), (true, 5)];
/// The segments of a display that shine for each digit.
const SEGMENTS: [&str; 10] = [
    "abcdef", "bc", "abdeg", "abcdg", "bcfg", "acdfg", "acdefg", "abc", "abcdefg", "abcdfg",
];

/// Why there is no picture.
#[derive(Debug, Error)]
pub enum PictureError {
    /// There is no such file.
    #[error("there is no picture {0}")]
    Missing(String),
    /// A picture without pixels was asked for.
    #[error("a picture has no pixels")]
    Empty,
    /// The file is no picture.
    #[error(transparent)]
    Svg(#[from] usvg::Error),
    /// The picture cannot be encoded.
    #[error(transparent)]
    Jpeg(#[from] ImageError),
}

/// A picture that reports share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scene {
    /// The photo kind it serves.
    pub kind: &'static str,
    /// Its name, part of its object's key.
    pub name: String,
    /// The file that shows it.
    file: &'static str,
    /// What makes this scene of what the file shows.
    style: String,
}

impl Scene {
    /// Key of the picture in the object storage.
    #[must_use]
    pub fn object_key(&self) -> String {
        format!("photos/sandbox/{}.jpg", self.name)
    }

    /// Key of the thumbnail in the object storage.
    #[must_use]
    pub fn thumbnail_key(&self) -> String {
        format!("photos/sandbox/{}-thumb.jpg", self.name)
    }

    /// Draws the picture and its thumbnail.
    ///
    /// # Errors
    /// When the picture cannot be drawn or encoded.
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

/// What a file shows under a style sheet, with the other files that it shows as images.
fn tree(file: &str, style: &str) -> Result<Tree, PictureError> {
    let found = FILES.iter().find(|(name, _)| *name == file);
    let (_, svg) = found.ok_or_else(|| PictureError::Missing(file.to_owned()))?;
    let options = Options {
        style_sheet: Some(style.to_owned()),
        // They are drawn at the picture's own scale, pixel upon pixel.
        image_rendering: ImageRendering::OptimizeSpeed,
        image_href_resolver: ImageHrefResolver {
            resolve_data: Box::new(|_, _, _| None),
            resolve_string: Box::new(|href, _| Some(ImageKind::SVG(tree(href, style).ok()?))),
        },
        ..Options::default()
    };
    Ok(Tree::from_str(svg, &options)?)
}

fn drawn(tree: &Tree, (width, height): (u32, u32)) -> Result<Pixmap, PictureError> {
    let mut pixmap = Pixmap::new(width, height).ok_or(PictureError::Empty)?;
    let scale = Transform::from_scale(width as f32 / tree.size().width(), height as f32 / tree.size().height());
    resvg::render(tree, scale, &mut pixmap.as_mut());
    Ok(pixmap)
}

fn encode(tree: &Tree, size: (u32, u32), quality: u8) -> Result<Vec<u8>, PictureError> {
    let pixmap = drawn(tree, size)?;
    // Opaque all over, for a JPEG knows nothing else.
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
    let painted = |color: &str| format!("svg{{color:{color}}}");
    for (paint, color) in PAINTS {
        for (body, file) in BODIES {
            add("EXTERIOR", format!("side-{body}-{paint}"), file, painted(color));
        }
        add("EXTERIOR", format!("front-{paint}"), "front.svg", painted(color));
        add("EXTERIOR", format!("rear-{paint}"), "rear.svg", painted(color));
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
        let style = painted(color) + &damaged(is_dented, scratches);
        add("DAMAGE", format!("damage-{paint}"), "damage.svg", style);
    }
    for km in ODOMETERS {
        add("ODOMETER", format!("odometer-{km}"), "odometer.svg", shining(km));
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

/// What of the file's damage a panel does not have.
fn damaged(is_dented: bool, scratches: usize) -> String {
    let mut style = String::from(if is_dented { "" } else { " #dent{display:none}" });
    for group in scratches + 1..=5 {
        let _ = write!(style, " .s{group}{{display:none}}");
    }
    style
}

/// The display's segments that shine for this mileage.
fn shining(km: i32) -> String {
    let mut style = String::new();
    for (place, digit) in format!("{km:06}").chars().enumerate() {
        let digit = digit.to_digit(10).unwrap_or_default() as usize;
        for segment in SEGMENTS[digit].chars() {
            let _ = write!(style, "#p{} .{segment}{{stroke:#9fe4ff}} ", place + 1);
        }
    }
    style
}

/// Whether photos of a kind are of papers, which have no thumbnail.
#[must_use]
pub fn is_paper(kind: &str) -> bool {
    matches!(kind, "REGISTRATION" | "OTOSICIL_PDF")
}

fn find(name: &str) -> Option<usize> {
    SCENES.iter().position(|scene| scene.name == name)
}

/// The paint that pictures show a colour with.
fn paint(color: &str) -> &'static str {
    match color {
        "Beyaz" => "white",
        "Siyah" => "black",
        "Kırmızı" => "red",
        "Mavi" | "Lacivert" => "blue",
        _ => "grey",
    }
}

/// The pictures around a car of a body type and colour: front, side, rear.
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

/// The picture of a damaged panel of a car of this colour.
#[must_use]
pub fn damage(color: &str) -> Vec<usize> {
    find(&format!("damage-{}", paint(color))).into_iter().collect()
}

/// The picture of an odometer with exactly this mileage.
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
        drawn(&tree, THUMBNAIL_SIZE).expect("pixels")
    }

    #[test]
    fn every_picture_decodes_at_its_size_and_is_not_plain() {
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
                assert!(colors.len() > 12, "{} has {} colours", scene.name, colors.len());
            }
        }
    }

    /// So every style sheet means something to its file.
    #[test]
    fn no_picture_looks_like_another() {
        let mut seen = HashMap::new();
        for scene in SCENES.iter() {
            if let Some(other) = seen.insert(thumbnail(scene).take(), &scene.name) {
                panic!("{} looks like {other}", scene.name);
            }
        }
    }

    #[test]
    fn every_file_is_a_picture_and_every_file_that_it_shows_is_there() {
        let mut shown: HashSet<_> = SCENES.iter().map(|scene| scene.file).collect();
        for (name, svg) in FILES {
            tree(name, "").expect(name);
            for href in svg.split("<image href=\"").skip(1) {
                let href = href.split('"').next().expect("an end");
                shown.insert(FILES.iter().find(|(name, _)| *name == href).expect(href).0);
            }
        }
        let idle: Vec<_> = FILES.iter().filter(|(name, _)| !shown.contains(name)).collect();
        assert!(idle.is_empty(), "{idle:?}");
    }

    /// What nothing covers is black in a JPEG.
    #[test]
    fn every_picture_is_covered_by_what_it_shows() {
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
    fn a_car_has_its_own_body_and_paint_on_its_pictures() {
        let names: Vec<_> = exteriors("VAN", "Kırmızı")
            .into_iter()
            .map(|scene| SCENES[scene].name.clone())
            .collect();
        assert_eq!(names, ["front-red", "side-van-red", "rear-red"]);
    }
}
