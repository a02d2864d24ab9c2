//! Text files as Windows programs write them: with a byte-order mark, or in UTF-16.

use std::borrow::Cow;
use std::path::Path;
use std::{fs, io};

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns the bytes of a text in UTF-8 and without a byte-order mark. UTF-16 is recognized by its mark. Other bytes are returned as they
/// are.
pub(crate) fn utf8(bytes: &[u8]) -> Cow<'_, [u8]> {
    let converted = match bytes {
        [0xff, 0xfe, rest @ ..] => from_utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => from_utf16(rest, u16::from_be_bytes),
        _ => return Cow::Borrowed(bytes.strip_prefix(UTF8_MARK).unwrap_or(bytes)),
    };
    converted.map_or(Cow::Borrowed(bytes), |text| Cow::Owned(text.into_bytes()))
}

/// Reads a text file.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let bytes = fs::read(path)?;
    String::from_utf8(utf8(&bytes).into_owned()).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Returns whether the bytes are UTF-16 with a byte-order mark.
pub(crate) fn is_utf16(bytes: &[u8]) -> bool {
    matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..])
}

/// Drops a single byte at the end, because the rest of its character has not been written yet.
fn from_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let units: Vec<_> = bytes.as_chunks().0.iter().map(|pair| unit(*pair)).collect();
    String::from_utf16(&units).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf16_and_marked_utf8_become_plain_utf8_and_other_bytes_are_kept() {
        let text = "{\"plate\":\"34 ÇĞ 123\"}";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [
            text.as_bytes().to_vec(),
            [UTF8_MARK, text.as_bytes()].concat(),
            [b"\xff\xfe", little.as_slice()].concat(),
            [b"\xfe\xff", big.as_slice()].concat(),
        ] {
            assert_eq!(utf8(&bytes), text.as_bytes(), "{bytes:?}");
        }
        for bytes in [&b"\xff\xfe\x00\xd8"[..], b"\xc7\x00", b""] {
            assert_eq!(utf8(bytes), bytes);
        }
    }
}
