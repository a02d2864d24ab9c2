//! Pictures for the reports: drawn, not photographed, but real JPEGs of what their kind says. All reports share them.

mod canvas;
mod car;
mod close_up;
mod paper;
mod workshop;

use std::sync::LazyLock;

use image::codecs::jpeg::JpegEncoder;
use image::{ExtendedColorType, ImageEncoder as _, ImageError, RgbImage, imageops};

use canvas::Canvas;

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

/// A body as seen from its side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// With a boot.
    Sedan,
    /// With a tailgate.
    Hatchback,
    /// High and square.
    Suv,
    /// Higher, with a straight back.
    Van,
    /// With an open bed.
    Pickup,
}

/// A car's paint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// White.
    White,
    /// Grey.
    Grey,
    /// Black.
    Black,
    /// Red.
    Red,
    /// Blue.
    Blue,
}

/// What a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A car from its left side.
    Side(Body, Paint),
    /// A car from the front.
    Front(Paint),
    /// A car from behind.
    Rear(Paint),
    /// Seats and dashboard, one of three.
    Interior(u8),
    /// The engine bay, one of three.
    Engine(u8),
    /// The underbody on the lift, one of three.
    Underbody(u8),
    /// A dent or scratch close up, one of five.
    Damage(u8),
    /// The instrument cluster with this mileage in km.
    Odometer(i32),
    /// The vehicle's registration document.
    Registration,
    /// A page of a third party's archive.
    Archive,
}

/// A picture that reports share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scene {
    /// The photo kind it serves.
    pub kind: &'static str,
    /// What it shows.
    pub subject: Subject,
    /// Its name, part of its object's key.
    pub name: String,
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
    /// When a picture cannot be encoded.
    pub fn draw(&self) -> Result<Picture, ImageError> {
        let mut canvas = Canvas::new();
        match self.subject {
            Subject::Side(body, paint) => car::side(&mut canvas, body, paint),
            Subject::Front(paint) => car::front(&mut canvas, paint),
            Subject::Rear(paint) => car::rear(&mut canvas, paint),
            Subject::Interior(variant) => close_up::interior(&mut canvas, variant),
            Subject::Engine(variant) => workshop::engine(&mut canvas, variant),
            Subject::Underbody(variant) => workshop::underbody(&mut canvas, variant),
            Subject::Damage(variant) => close_up::damage(&mut canvas, variant),
            Subject::Odometer(km) => close_up::odometer(&mut canvas, km),
            Subject::Registration => paper::registration(&mut canvas),
            Subject::Archive => paper::archive(&mut canvas),
        }
        let image = canvas.into_image();
        let small = imageops::thumbnail(&image, THUMBNAIL_SIZE.0, THUMBNAIL_SIZE.1);
        Ok(Picture {
            full: encode(&image, 82)?,
            thumbnail: encode(&small, 76)?,
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

fn encode(image: &RgbImage, quality: u8) -> Result<Vec<u8>, ImageError> {
    let mut jpeg = Vec::new();
    JpegEncoder::new_with_quality(&mut jpeg, quality).write_image(
        image.as_raw(),
        image.width(),
        image.height(),
        ExtendedColorType::Rgb8,
    )?;
    Ok(jpeg)
}

const BODIES: [(Body, &str); 5] = [
    (Body::Sedan, "sedan"),
    (Body::Hatchback, "hatchback"),
    (Body::Suv, "suv"),
    (Body::Van, "van"),
    (Body::Pickup, "pickup"),
];
const PAINTS: [(Paint, &str); 5] = [
    (Paint::White, "white"),
    (Paint::Grey, "grey"),
    (Paint::Black, "black"),
    (Paint::Red, "red"),
    (Paint::Blue, "blue"),
];

/// All scenes.
pub static SCENES: LazyLock<Vec<Scene>> = LazyLock::new(|| {
    let mut scenes = Vec::new();
    let mut add = |kind, name: String, subject| scenes.push(Scene { kind, subject, name });
    for (paint, color) in PAINTS {
        for (body, shape) in BODIES {
            add("EXTERIOR", format!("side-{shape}-{color}"), Subject::Side(body, paint));
        }
        add("EXTERIOR", format!("front-{color}"), Subject::Front(paint));
        add("EXTERIOR", format!("rear-{color}"), Subject::Rear(paint));
    }
    for variant in 0..3 {
        add("INTERIOR", format!("interior-{variant}"), Subject::Interior(variant));
        add("ENGINE", format!("engine-{variant}"), Subject::Engine(variant));
        add("UNDERBODY", format!("underbody-{variant}"), Subject::Underbody(variant));
    }
    for variant in 0..5 {
        add("DAMAGE", format!("damage-{variant}"), Subject::Damage(variant));
    }
    for km in ODOMETERS {
        add("ODOMETER", format!("odometer-{km}"), Subject::Odometer(km));
    }
    add("REGISTRATION", "registration".to_owned(), Subject::Registration);
    add("OTOSICIL_PDF", "archive".to_owned(), Subject::Archive);
    scenes
});

/// Whether photos of a kind are of papers, which have no thumbnail.
#[must_use]
pub fn is_paper(kind: &str) -> bool {
    matches!(kind, "REGISTRATION" | "OTOSICIL_PDF")
}

fn find(subject: Subject) -> Option<usize> {
    SCENES.iter().position(|scene| scene.subject == subject)
}

/// The paint that pictures show a colour with.
fn paint(color: &str) -> Paint {
    match color {
        "Beyaz" => Paint::White,
        "Siyah" => Paint::Black,
        "Kırmızı" => Paint::Red,
        "Mavi" | "Lacivert" => Paint::Blue,
        _ => Paint::Grey,
    }
}

/// The pictures around a car of a body type and colour: front, side, rear.
#[must_use]
pub fn exteriors(body: &str, color: &str) -> Vec<usize> {
    let body = match body {
        "HATCHBACK" => Body::Hatchback,
        "SUV" => Body::Suv,
        "VAN" => Body::Van,
        "PICKUP" => Body::Pickup,
        _ => Body::Sedan,
    };
    let paint = paint(color);
    [Subject::Front(paint), Subject::Side(body, paint), Subject::Rear(paint)]
        .into_iter()
        .filter_map(find)
        .collect()
}

/// The picture of a damaged panel of a car of this colour.
#[must_use]
pub fn damage(color: &str) -> Vec<usize> {
    let variant = match paint(color) {
        Paint::White => 0,
        Paint::Grey => 1,
        Paint::Red => 2,
        Paint::Black => 3,
        Paint::Blue => 4,
    };
    find(Subject::Damage(variant)).into_iter().collect()
}

/// The picture of an odometer with exactly this mileage.
#[must_use]
pub fn odometer(mileage_km: i32) -> Option<usize> {
    find(Subject::Odometer(mileage_km))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

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
