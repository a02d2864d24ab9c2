//! The header `Range` (RFC 9110, section 14).

use std::ops::RangeInclusive;

/// One range of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteRange {
    /// The bytes from this one to the end.
    From(u64),
    /// The bytes from the first of these to the second, inclusive. The second is not less than the first.
    Within(u64, u64),
    /// This number of bytes at the end.
    Last(u64),
}

impl ByteRange {
    /// Parses a header. Returns `None` if the whole content is to be sent: for another unit, for several ranges, and for an
    /// invalid header.
    pub fn parse(header: &str) -> Option<Self> {
        let (unit, range) = header.trim().split_once('=')?;
        let (first, last) = range.trim().split_once('-')?;
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            // A number too large for a `u64` is past any end.
            true if !text.is_empty() => Some(text.parse().unwrap_or(u64::MAX)),
            _ => None,
        };
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        match (first, last) {
            ("", last) => Some(Self::Last(number(last)?)),
            (first, "") => Some(Self::From(number(first)?)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Self::Within(first, last))
            }
        }
    }

    /// Returns the first and last byte of the range in a content of this size, or `None` if the range is outside of it.
    pub fn of(self, size: u64) -> Option<RangeInclusive<u64>> {
        let end = size.checked_sub(1)?;
        let (first, last) = match self {
            Self::From(first) => (first, end),
            Self::Within(first, last) => (first, last.min(end)),
            Self::Last(0) => return None,
            Self::Last(count) => (size.saturating_sub(count), end),
        };
        (first <= end).then_some(first..=last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_single_range_of_bytes_is_accepted() {
        for (header, range) in [
            ("bytes=0-4", Some(ByteRange::Within(0, 4))),
            ("Bytes= 5-", Some(ByteRange::From(5))),
            ("bytes=-3", Some(ByteRange::Last(3))),
            ("bytes=0-99999999999999999999999", Some(ByteRange::Within(0, u64::MAX))),
            ("bytes=4-3", None),
            ("bytes=0-1,3-4", None),
            ("bytes=-", None),
            ("bytes=a-b", None),
            ("bytes=+1-2", None),
            ("lines=0-4", None),
            ("", None),
        ] {
            assert_eq!(ByteRange::parse(header), range, "{header}");
        }
    }

    #[test]
    fn a_range_is_limited_to_the_content() {
        for (header, size, bytes) in [
            ("bytes=0-4", 10, Some(0..=4)),
            ("bytes=5-", 10, Some(5..=9)),
            ("bytes=8-20", 10, Some(8..=9)),
            ("bytes=-3", 10, Some(7..=9)),
            ("bytes=-30", 10, Some(0..=9)),
            ("bytes=10-", 10, None),
            ("bytes=10-12", 10, None),
            ("bytes=-0", 10, None),
            ("bytes=0-", 0, None),
            ("bytes=-1", 0, None),
        ] {
            assert_eq!(ByteRange::parse(header).unwrap().of(size), bytes, "{header} of {size}");
        }
    }
}
