//! Which object keys and content types there are.

use object_store::path::Path;

use super::StorageError;

/// The longest key, in bytes: S3's own limit is 1,024, and file systems end a name at 255.
const LONGEST: usize = 512;

/// Checks a key: segments of `A-Z a-z 0-9 - _ .` that begin with none of the dots, joined by single slashes. So no key
/// leaves the folder, names a hidden file, or needs encoding in a URL.
pub(super) fn check(key: &str) -> Result<Path, StorageError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let good = |segment: &str| {
        !segment.is_empty() && segment.len() <= 255 && !segment.starts_with('.') && segment.bytes().all(plain)
    };
    if key.len() > LONGEST || !key.split('/').all(good) {
        return Err(StorageError::InvalidKey);
    }
    Path::parse(key).map_err(|_| StorageError::InvalidKey)
}

/// Whether a text can be the name of an object.
#[must_use]
pub fn is_key(text: &str) -> bool {
    check(text).is_ok()
}

/// The content type that belongs to a key, by the ending of its name. A file system keeps no content type beside a file,
/// and no object should mean one thing in one store and another in the next: so this decides for every store.
#[must_use]
pub fn content_type(key: &str) -> &'static str {
    match key.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "jpg" | "jpeg" => "image/jpeg",
        "png" => "image/png",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "pdf" => "application/pdf",
        "json" => "application/json",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_in_their_folder_and_need_no_encoding() {
        for key in ["a", "photos/0192/full.jpg", "reports/A_b-c.2.pdf"] {
            assert_eq!(check(key).unwrap().as_ref(), key);
        }
        let long = "a/".repeat(300) + "a";
        for key in [
            "", "/a", "a/", "a//b", "..", "a/../b", ".hidden", "a/.b", "a b", "a%2e", "a\\b", "a\0", "ç.jpg", &long,
        ] {
            assert!(matches!(check(key), Err(StorageError::InvalidKey)), "{key:?}");
        }
    }
}
