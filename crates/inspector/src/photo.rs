//! Decodes an uploaded photo and encodes it again in two sizes: upright and without the camera's metadata (INS-9).

use std::io::{Cursor, ErrorKind};

use bytes::Bytes;
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits};
use thiserror::Error;

/// The maximum length of a photo's longer side, in pixels.
pub const MAX_SIDE: u32 = 2_560;
/// The maximum length of a thumbnail's longer side, in pixels.
pub const MAX_THUMBNAIL_SIDE: u32 = 480;
/// The maximum number of pixels of an uploaded image.
const MAX_PIXELS: u64 = 50_000_000;
/// The memory that decoding may use, in bytes.
const MAX_MEMORY: u64 = 256 << 20;

/// A photo in its two sizes, as JPEG.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The photo, with sides of at most [`MAX_SIDE`].
    pub full: Bytes,
    /// The thumbnail, with sides of at most [`MAX_THUMBNAIL_SIDE`].
    pub thumbnail: Bytes,
}

/// Why a file was not accepted as a photo.
#[derive(Debug, Error)]
pub enum PhotoError {
    /// The bytes are neither a JPEG nor a PNG.
    #[error("the file is not a JPEG or PNG; convert a phone's HEIC photos to JPEG first")]
    UnsupportedFormat,
    /// The file has no bytes.
    #[error("the file is empty; take the photo again")]
    Empty,
    /// A JPEG ends before its image does.
    #[error("the file ends before the image does; copy it again, or take the photo again")]
    Truncated,
    /// The bytes start like the named format and cannot be decoded.
    #[error("the file starts like a {0} but cannot be decoded; take the photo again")]
    Undecodable(&'static str),
    /// The image has too many pixels, or needs too much memory; with its width and height.
    #[error("the image is {0}×{1} pixels; the maximum is 50 megapixels, so reduce the resolution")]
    TooLarge(u32, u32),
}

/// Decodes a photo and returns it in its two sizes.
///
/// # Errors
/// The bytes are not a valid JPEG or PNG, or the image has too many pixels.
pub fn read(bytes: &[u8]) -> Result<Picture, PhotoError> {
    if bytes.is_empty() {
        return Err(PhotoError::Empty);
    }
    let (format, name) = match image::guess_format(bytes) {
        Ok(ImageFormat::Jpeg) => (ImageFormat::Jpeg, "JPEG"),
        Ok(ImageFormat::Png) => (ImageFormat::Png, "PNG"),
        _ => return Err(PhotoError::UnsupportedFormat),
    };
    // The decoder fills the missing part of a JPEG with gray.
    if format == ImageFormat::Jpeg && has_image_data(bytes) && !has_jpeg_end(bytes) {
        return Err(PhotoError::Truncated);
    }
    let undecodable = |error: ImageError| match error {
        ImageError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => PhotoError::Truncated,
        _ => PhotoError::Undecodable(name),
    };
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_MEMORY);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(undecodable)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(PhotoError::TooLarge(width, height));
    }
    if decoder.total_bytes() > MAX_MEMORY {
        return Err(PhotoError::TooLarge(width, height));
    }
    let orientation = decoder.orientation().map_err(undecodable)?;
    let image = DynamicImage::from_decoder(decoder).map_err(undecodable)?;
    // Shrunk first, so that the next steps need a fraction of the memory.
    let mut full = DynamicImage::from(shrink(image, MAX_SIDE).into_rgb8());
    full.apply_orientation(orientation);
    let thumbnail = shrink(full.clone(), MAX_THUMBNAIL_SIDE);
    Ok(Picture {
        full: jpeg(&full, 88).map_err(undecodable)?,
        thumbnail: jpeg(&thumbnail, 80).map_err(undecodable)?,
    })
}

/// Marker codes of JPEG segments.
const START_OF_SCAN: u8 = 0xda;
const END_OF_IMAGE: u8 = 0xd9;

/// Returns the markers of a JPEG after its first one, without those in the data of segments, such as a thumbnail's.
fn jpeg_markers(bytes: &[u8]) -> impl Iterator<Item = u8> {
    let mut at = 2;
    std::iter::from_fn(move || {
        // Compressed data may precede a marker. There, a zero byte follows each 0xff, or the number of a restart marker.
        while !matches!(bytes.get(at..at + 2)?, [0xff, code] if !matches!(code, 0x00 | 0xd0..=0xd7 | 0xff)) {
            at += 1;
        }
        let marker = bytes[at + 1];
        let length = bytes
            .get(at + 2..at + 4)
            .map(|length| u16::from_be_bytes([length[0], length[1]]));
        at += 2 + length.map_or(0, usize::from);
        Some(marker)
    })
}

fn has_image_data(jpeg: &[u8]) -> bool {
    jpeg_markers(jpeg).any(|marker| marker == START_OF_SCAN)
}

fn has_jpeg_end(jpeg: &[u8]) -> bool {
    jpeg_markers(jpeg).any(|marker| marker == END_OF_IMAGE)
}

/// Shrinks the image until its longer side has at most `max` pixels.
fn shrink(image: DynamicImage, max: u32) -> DynamicImage {
    match image.width().max(image.height()) > max {
        true => image.thumbnail(max, max),
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
    fn a_photo_is_stored_as_a_jpeg_in_two_limited_sizes() {
        let picture = read(&png(3000, 1500)).unwrap();
        assert_eq!(
            (size(&picture.full), size(&picture.thumbnail)),
            ((2560, 1280), (480, 240))
        );
        let little = read(&png(40, 20)).unwrap();
        assert_eq!((size(&little.full), size(&little.thumbnail)), ((40, 20), (40, 20)));
    }

    /// INS-9
    #[test]
    fn metadata_is_removed_and_the_photo_is_turned_upright() {
        let mut bytes = Vec::new();
        let mut encoder = JpegEncoder::new(&mut bytes);
        // Little-endian TIFF with one entry: orientation 6, a quarter turn; then a text, such as a location.
        let mut exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0".to_vec();
        exif.extend_from_slice(b"41.0082N 28.9784E");
        image::ImageEncoder::set_exif_metadata(&mut encoder, exif).unwrap();
        encoder.encode_image(&RgbImage::new(60, 20)).unwrap();
        assert!(
            bytes.windows(8).any(|window| window == b"41.0082N"),
            "the original image has the location"
        );
        let picture = read(&bytes).unwrap();
        assert_eq!(size(&picture.full), (20, 60));
        assert!(!picture.full.windows(8).any(|window| window == b"41.0082N"));
    }

    #[test]
    fn an_invalid_file_is_rejected_with_the_reason() {
        let message = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        assert!(message(b"%PDF-1.7").contains("not a JPEG or PNG"));
        assert!(message(b"").contains("is empty"));
        assert!(message(&png(9, 9)[..40]).contains("ends before the image does"));
        assert!(message(b"\xff\xd8\xff\xe0 and nothing").contains("starts like a JPEG"));
        // A header that claims a huge image.
        let mut bomb = png(9, 9);
        bomb[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
        let message = message(&bomb);
        assert!(
            message.contains("pixels") || message.contains("cannot be decoded"),
            "{message}"
        );
    }

    /// INS-9
    #[test]
    fn a_truncated_jpeg_is_rejected_even_if_it_has_a_whole_thumbnail() {
        let mut bytes = Vec::new();
        let mut encoder = JpegEncoder::new(&mut bytes);
        // A thumbnail in the metadata ends with an end marker of its own.
        let exif = [&b"II*\0\x08\0\0\0\0\0"[..], &[0xff, 0xd8, 0xff, 0xd9]].concat();
        image::ImageEncoder::set_exif_metadata(&mut encoder, exif).unwrap();
        let noise = |x: u32, y: u32| Rgb([(x * 7919 + y * 104_729) as u8, (x * y) as u8, (x ^ y) as u8]);
        encoder.encode_image(&RgbImage::from_fn(200, 150, noise)).unwrap();
        assert!(read(&bytes).is_ok());
        for length in [bytes.len() / 5, bytes.len() / 2, bytes.len() - 2] {
            assert!(matches!(read(&bytes[..length]), Err(PhotoError::Truncated)), "{length}");
        }
        // Some cameras append data of their own.
        bytes.extend_from_slice(b"trailer");
        assert!(read(&bytes).is_ok());
    }
}
