//! Photos as they are kept: read once by the program, upright, of a bounded size, without what the camera wrote beside the picture
//! (INS-9).

use std::io::Cursor;

use bytes::Bytes;
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits};
use thiserror::Error;

/// Pixels of the longer side, at most.
pub const WHOLE: u32 = 2_560;
/// Pixels of the longer side of the small version, at most.
pub const SMALL: u32 = 480;
/// Pixels that a picture may have.
const MOST_PIXELS: u64 = 50_000_000;
/// Bytes that reading it may take.
const MOST_BYTES: u64 = 256 << 20;

/// A photo in its two sizes, as JPEG.
#[derive(Clone, Debug)]
pub struct Picture {
    /// At most [`WHOLE`].
    pub whole: Bytes,
    /// At most [`SMALL`].
    pub small: Bytes,
}

/// Why bytes are no photo.
#[derive(Debug, Error)]
pub enum PhotoError {
    /// They begin like neither.
    #[error("this is no JPEG and no PNG; a telephone's HEIC must be saved as JPEG first")]
    Kind,
    /// They do, and cannot be read.
    #[error("this begins like a {0} and cannot be read as one; take the photo again")]
    Broken(&'static str),
    /// There are too many pixels.
    #[error("this has {0} by {1} pixels, and 50,000,000 are the most; take it with less resolution")]
    TooLarge(u32, u32),
}

/// Reads a photo and makes its two sizes.
///
/// # Errors
/// The bytes are no JPEG or PNG, or have too many pixels.
pub fn read(bytes: &[u8]) -> Result<Picture, PhotoError> {
    let (format, name) = match image::guess_format(bytes) {
        Ok(ImageFormat::Jpeg) => (ImageFormat::Jpeg, "JPEG"),
        Ok(ImageFormat::Png) => (ImageFormat::Png, "PNG"),
        _ => return Err(PhotoError::Kind),
    };
    let broken = |_: ImageError| PhotoError::Broken(name);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_BYTES);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(broken)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MOST_PIXELS {
        return Err(PhotoError::TooLarge(width, height));
    }
    if decoder.total_bytes() > MOST_BYTES {
        return Err(PhotoError::TooLarge(width, height));
    }
    let orientation = decoder.orientation().map_err(broken)?;
    let image = DynamicImage::from_decoder(decoder).map_err(broken)?;
    // Made small first: what follows takes a fraction of the memory.
    let mut whole = DynamicImage::from(shrunk(image, WHOLE).into_rgb8());
    whole.apply_orientation(orientation);
    let small = shrunk(whole.clone(), SMALL);
    Ok(Picture {
        whole: jpeg(&whole, 88).map_err(broken)?,
        small: jpeg(&small, 80).map_err(broken)?,
    })
}

/// The picture with a longer side of so many pixels at most.
fn shrunk(image: DynamicImage, most: u32) -> DynamicImage {
    match image.width().max(image.height()) > most {
        true => image.thumbnail(most, most),
        false => image,
    }
}

fn jpeg(image: &DynamicImage, quality: u8) -> Result<Bytes, ImageError> {
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, quality).encode_image(image)?;
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage};

    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        let picture = RgbImage::from_pixel(width, height, Rgb([200, 30, 30]));
        picture.write_to(&mut bytes, ImageFormat::Png).unwrap();
        bytes.into_inner()
    }

    fn size(jpeg: &[u8]) -> (u32, u32) {
        let image = image::load_from_memory_with_format(jpeg, ImageFormat::Jpeg).unwrap();
        (image.width(), image.height())
    }

    /// INS-9
    #[test]
    fn a_picture_is_kept_as_a_jpeg_in_two_bounded_sizes() {
        let picture = read(&png(3000, 1500)).unwrap();
        assert_eq!((size(&picture.whole), size(&picture.small)), ((2560, 1280), (480, 240)));
        let little = read(&png(40, 20)).unwrap();
        assert_eq!((size(&little.whole), size(&little.small)), ((40, 20), (40, 20)));
    }

    /// INS-9
    #[test]
    fn what_the_camera_wrote_is_gone_and_the_picture_stands_upright() {
        let mut bytes = Vec::new();
        let mut encoder = JpegEncoder::new(&mut bytes);
        // Little-endian TIFF with one entry: orientation 6, a quarter turn; then a text such as a place.
        let mut exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0".to_vec();
        exif.extend_from_slice(b"41.0082N 28.9784E");
        image::ImageEncoder::set_exif_metadata(&mut encoder, exif).unwrap();
        encoder.encode_image(&RgbImage::new(60, 20)).unwrap();
        assert!(
            bytes.windows(8).any(|window| window == b"41.0082N"),
            "the test's own picture has it"
        );
        let picture = read(&bytes).unwrap();
        assert_eq!(size(&picture.whole), (20, 60));
        assert!(!picture.whole.windows(8).any(|window| window == b"41.0082N"));
    }

    #[test]
    fn what_is_no_picture_is_told_what_it_is() {
        let said = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        assert!(said(b"%PDF-1.7").contains("no JPEG and no PNG"));
        assert!(said(b"").contains("no JPEG and no PNG"));
        assert!(said(&png(9, 9)[..40]).contains("cannot be read"));
        assert!(said(b"\xff\xd8\xff\xe0 and nothing").contains("begins like a JPEG"));
        // A head that claims more than a program should believe.
        let mut bomb = png(9, 9);
        bomb[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
        let said = said(&bomb);
        assert!(said.contains("pixels") || said.contains("cannot be read"), "{said}");
    }
}
