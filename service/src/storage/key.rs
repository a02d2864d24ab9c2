//! Object keys and their content types.

use object_store::path::Path;

use super::StorageError;

/// The maximum length of a key in bytes. The limit of S3 is 1,024.
const MAX_LENGTH: usize = 512;

/// Returns whether a text is a valid object key: segments of `A-Z a-z 0-9 - _ .` that do not start with a dot, joined by single
/// slashes. So no key leaves the folder, names a hidden file, or needs encoding in a URL. A segment has at most 255 bytes, the limit of
/// file systems.
#[must_use]
pub fn is_key(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_valid = |segment: &str| {
        !segment.is_empty() && segment.len() <= 255 && !segment.starts_with('.') && segment.bytes().all(plain)
    };
    text.len() <= MAX_LENGTH && text.split('/').all(is_valid)
}

/// Returns the path of a valid key in the storage.
pub(super) fn check(key: &str) -> Result<Path, StorageError> {
    if !is_key(key) {
        return Err(StorageError::InvalidKey);
    }
    Path::parse(key).map_err(|_| StorageError::InvalidKey)
}

/// Returns the content type of a key, by its file extension. File systems do not store content types, so the extension decides in
/// all stores.
#[must_use]
pub fn content_type(key: &str) -> &'static str {
    match key.rsplit_once('.').map_or("", |(_, extension)| extension) {
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
    fn valid_keys_stay_in_the_folder_and_need_no_encoding() {
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
