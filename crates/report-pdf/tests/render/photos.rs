//! Photos: formats, captions and their number.

use report_pdf::{Photo, PhotoFormat};

use crate::{render, report, sample, small, squeeze, text};

/// REP-21
#[test]
fn damage_photos_name_their_point_and_omitted_photos_are_counted() {
    let mut report = report();
    assert!(!text(&render(&report)).contains("basılmıştır"));
    report.photos_in_all = 9;
    let text = text(&render(&report));
    for expected in ["Rapordaki 9 fotoğraftan 6 tanesi basılmıştır", "Hasar · Aks körükleri"] {
        assert!(text.contains(&squeeze(expected)), "{expected} in {text}");
    }
}

#[test]
fn photos_of_all_supported_formats_are_drawn() {
    let encoded = |format: image::ImageFormat| {
        let mut bytes = std::io::Cursor::new(Vec::new());
        image::DynamicImage::new_rgb8(40, 30)
            .write_to(&mut bytes, format)
            .map(|()| bytes.into_inner())
    };
    let mut report = small();
    report.photos = [
        (Some(PhotoFormat::Jpeg), sample::jpeg(1, 40, 30)),
        (Some(PhotoFormat::Png), encoded(image::ImageFormat::Png).unwrap()),
        (Some(PhotoFormat::WebP), encoded(image::ImageFormat::WebP).unwrap()),
        // A format that browsers show but that cannot be printed.
        (None, b"<svg/>".to_vec()),
    ]
    .map(|(format, data)| Photo {
        caption: None,
        kind: "EXTERIOR".to_owned(),
        point: None,
        format,
        data,
    })
    .to_vec();
    let text = text(&render(&report));
    assert_eq!(text.matches(&squeeze("Fotoğraf görüntülenemiyor")).count(), 1, "{text}");
}
