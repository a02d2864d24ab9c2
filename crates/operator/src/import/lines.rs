//! Reads a file record by record, with a length limit, line numbers and a hash of the content.

use std::io::{self, BufRead};

use sha2::{Digest as _, Sha256};

/// The maximum length of a record, in bytes.
pub(crate) const MAX_RECORD_BYTES: usize = 1 << 20;

/// The end of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordEnd {
    /// Every line is a record.
    Line,
    /// A record ends with the line that closes its last quote, since quoted CSV cells can span lines.
    QuotedLine,
}

/// The result of reading a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// A record that starts at this line; its bytes are in [`Records::record`].
    Record(u64),
    /// A record that is too long, starting at this line. It was skipped.
    TooLong(u64),
    /// A record whose last quote is not closed.
    Open(u64),
    End,
}

/// The records of a file.
pub(crate) struct Records<R> {
    input: R,
    end: RecordEnd,
    digest: Sha256,
    bytes: u64,
    line: u64,
    record: Vec<u8>,
}

impl<R: BufRead> Records<R> {
    pub(crate) fn of(input: R, end: RecordEnd) -> Self {
        Self {
            input,
            end,
            digest: Sha256::new(),
            bytes: 0,
            line: 0,
            record: Vec::new(),
        }
    }

    /// Returns the bytes of the last record, without line ending and byte order mark.
    pub(crate) fn record(&self) -> &[u8] {
        let record = self.record.strip_suffix(b"\n").unwrap_or(&self.record);
        let record = record.strip_suffix(b"\r").unwrap_or(record);
        // A byte order mark is possible only before the first line.
        match self.line_of_record_is_first() {
            true => record.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(record),
            false => record,
        }
    }

    fn line_of_record_is_first(&self) -> bool {
        self.bytes == self.record.len() as u64
    }

    /// Returns the position in the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the SHA-256 of the whole file, at its end.
    pub(crate) fn digest(self) -> [u8; 32] {
        self.digest.finalize().into()
    }

    /// Reads the next record.
    pub(crate) fn next(&mut self) -> io::Result<Read> {
        self.record.clear();
        let mut is_open = false;
        let mut first = 0;
        loop {
            let (read, is_long) = self.line()?;
            if read == 0 {
                return Ok(if is_open { Read::Open(first) } else { Read::End });
            }
            self.line += 1;
            if first == 0 {
                first = self.line;
            }
            if is_long {
                return Ok(Read::TooLong(first));
            }
            if self.end == RecordEnd::QuotedLine {
                let line = &self.record[self.record.len() - read..];
                let quotes = line.iter().filter(|byte| **byte == b'"').count();
                is_open ^= quotes % 2 == 1;
            }
            if !is_open {
                return Ok(Read::Record(first));
            }
        }
    }

    /// Appends a line to the record. Returns its length, and whether the record became too long and was skipped.
    fn line(&mut self) -> io::Result<(usize, bool)> {
        let (mut read, mut is_long) = (0, false);
        loop {
            let available = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                available => available?,
            };
            let newline = available.iter().position(|byte| *byte == b'\n');
            let length = newline.map_or(available.len(), |at| at + 1);
            let part = &available[..length];
            self.digest.update(part);
            is_long |= self.record.len() + length > MAX_RECORD_BYTES;
            if is_long {
                self.record.clear();
            } else {
                self.record.extend_from_slice(part);
            }
            self.input.consume(length);
            self.bytes += length as u64;
            read += length;
            if newline.is_some() || length == 0 {
                return Ok((read, is_long));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn all(text: &[u8], end: RecordEnd) -> Vec<(Read, Vec<u8>)> {
        let mut records = Records::of(Cursor::new(text), end);
        let mut all = Vec::new();
        loop {
            let read = records.next().unwrap();
            if read == Read::End {
                assert_eq!(records.bytes(), text.len() as u64);
                assert_eq!(records.digest(), <[u8; 32]>::from(Sha256::digest(text)));
                return all;
            }
            all.push((read, records.record().to_vec()));
        }
    }

    #[test]
    fn lines_are_numbered_with_any_line_ending_and_a_byte_order_mark_is_skipped() {
        let found = all(b"\xEF\xBB\xBFa\r\nb\n\n\xEF\xBB\xBFc", RecordEnd::Line);
        let expected: [(u64, &[u8]); 4] = [(1, b"a"), (2, b"b"), (3, b""), (4, b"\xEF\xBB\xBFc")];
        assert_eq!(found, expected.map(|(line, text)| (Read::Record(line), text.to_vec())));
    }

    #[test]
    fn a_quoted_cell_may_have_several_lines() {
        let found = all(b"a,\"b\r\n\"\"c\"\"\nd\",e\r\nf\n\"g\nh", RecordEnd::QuotedLine);
        assert_eq!(found[0], (Read::Record(1), b"a,\"b\r\n\"\"c\"\"\nd\",e".to_vec()));
        assert_eq!(found[1], (Read::Record(4), b"f".to_vec()));
        assert_eq!(found[2].0, Read::Open(5));
    }

    #[test]
    fn a_line_that_is_too_long_uses_no_memory_and_later_lines_are_read() {
        let mut text = vec![b'x'; 3 * MAX_RECORD_BYTES];
        text.extend_from_slice(b"\nafter\n");
        let mut records = Records::of(io::BufReader::new(Cursor::new(text)), RecordEnd::Line);
        assert_eq!(records.next().unwrap(), Read::TooLong(1));
        assert_eq!(records.next().unwrap(), Read::Record(2));
        assert_eq!(records.record(), b"after");
        assert!(records.record.capacity() <= 2 * MAX_RECORD_BYTES);
    }
}
