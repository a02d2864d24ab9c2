//! Splits records of both formats into fields.

use std::borrow::Cow;
use std::fmt;

use csv_core::{ReadRecordResult, Reader};
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::cell::{Cell, kind_of};
use super::kinds::Field;
use super::report::LineError;
use super::value::{CellError, shown, suggestion};

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// One JSON object per line
    Ndjson,
    /// Comma-separated values with a header line
    Csv,
}

impl Format {
    /// Returns the file extension.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Ndjson => "ndjson",
            Self::Csv => "csv",
        }
    }
}

/// The members of a JSON object as written.
pub(crate) struct Members<'a>(pub Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Members<'a> {
    pub(crate) fn of(text: &'a str) -> Result<Self, CellError> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                    members.push((name, value.get()));
                }
                Ok(Members(members))
            }
        }
        let text = text.trim_matches([' ', '\t']);
        if !text.starts_with('{') {
            return Err(CellError {
                found: Some(kind_of(text).to_owned()),
                expected: Cow::Borrowed("a JSON object, like {\"name\": \"value\"}"),
            });
        }
        let mut json = serde_json::Deserializer::from_str(text);
        let members = json
            .deserialize_map(MembersVisitor)
            .and_then(|members| json.end().map(|()| members));
        // A syntax error names a column and what was expected, but not the content.
        members.map_err(|error| CellError::expected(format!("a JSON object in one line ({error})")))
    }
}

/// A name, borrowed if it has no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Name<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

/// Returns one cell per field from an object's members, and reports unknown members.
pub(crate) fn cells_of_members<'a>(
    members: &Members<'a>,
    fields: &[Field],
    cells: &mut Vec<Cell<'a>>,
    mut reject: impl FnMut(&str, CellError),
) {
    cells.clear();
    cells.resize(fields.len(), Cell::Nothing);
    let mut seen = 0_u64;
    for (at, (name, raw)) in members.0.iter().enumerate() {
        // Members are usually in the order of the fields.
        let same_position = fields.get(at).filter(|field| field.name == name).map(|_| at);
        let Some(index) = same_position.or_else(|| fields.iter().position(|field| field.name == name)) else {
            reject(name, unknown(name, fields));
            continue;
        };
        if seen & (1 << index) != 0 {
            reject(name, CellError::expected("a unique name; this one is repeated"));
        }
        seen |= 1 << index;
        if !matches!(*raw, "null" | "\"\"") {
            cells[index] = Cell::Json(raw);
        }
    }
}

fn unknown(name: &str, fields: &[Field]) -> CellError {
    let names: Vec<_> = fields.iter().map(|field| field.name).collect();
    let more = match suggestion(name, &names) {
        none if none.is_empty() => format!(": {}", names.join(", ")),
        like => like,
    };
    CellError::expected(format!("the name of a field{more}"))
}

/// The cells of CSV.
pub(crate) struct Cells {
    reader: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
    count: usize,
    with_newline: Vec<u8>,
}

impl Cells {
    pub(crate) fn new() -> Self {
        Self {
            reader: Reader::new(),
            text: Vec::new(),
            ends: Vec::new(),
            count: 0,
            with_newline: Vec::new(),
        }
    }

    /// Splits a record into cells and returns their number.
    pub(crate) fn part(&mut self, record: &[u8]) -> Result<usize, CellError> {
        self.with_newline.clear();
        self.with_newline.extend_from_slice(record);
        self.with_newline.push(b'\n');
        // Upper bounds for both.
        self.text.resize(record.len() + 1, 0);
        self.ends
            .resize(record.iter().filter(|byte| **byte == b',').count() + 2, 0);
        self.reader.reset();
        let (result, read, _, ends) = self
            .reader
            .read_record(&self.with_newline, &mut self.text, &mut self.ends);
        self.count = ends;
        // A quote inside an unquoted cell hides the end of the line from the line reader, but not from the CSV parser.
        if result == ReadRecordResult::Record && read == self.with_newline.len() {
            Ok(ends)
        } else {
            Err(CellError::expected(
                "quotes around a cell that contains quotes, with those doubled",
            ))
        }
    }

    /// Returns the bytes of a cell.
    pub(crate) fn cell(&self, index: usize) -> &[u8] {
        let end = |index: usize| self.ends.get(index).copied().unwrap_or_default();
        let start = if index == 0 { 0 } else { end(index - 1) };
        match index < self.count {
            true => self.text.get(start..end(index)).unwrap_or_default(),
            false => &[],
        }
    }
}

/// Maps the columns of a CSV file to fields, by its first line.
pub(crate) fn header(cells: &Cells, line: u64, fields: &[Field]) -> Result<Vec<usize>, Vec<LineError>> {
    let mut errors = Vec::new();
    let mut columns = Vec::new();
    for index in 0..cells.count {
        let Ok(name) = std::str::from_utf8(cells.cell(index)) else {
            errors.push(LineError::of(line, "the names", CellError::expected("text in UTF-8")));
            return Err(errors);
        };
        if cells.count == 1
            && let Some(separator) = [";", "\t"].into_iter().find(|separator| name.contains(separator))
        {
            let separator = if separator == ";" { "semicolons" } else { "tabs" };
            let expected = format!("commas as separators; found {separator}");
            errors.push(LineError::of(line, "the names", CellError::expected(expected)));
            return Err(errors);
        }
        match fields.iter().position(|field| field.name == name.trim()) {
            Some(field) if columns.contains(&field) => {
                errors.push(LineError::of(
                    line,
                    name,
                    CellError::expected("a unique name; this one is repeated"),
                ));
            }
            Some(field) => columns.push(field),
            None => errors.push(LineError::of(line, &shown(name), unknown(name, fields))),
        }
    }
    for (index, field) in fields.iter().enumerate() {
        if field.is == super::kinds::Presence::Required && !columns.contains(&index) {
            let expected = CellError::expected("a column with this name in the first line; it is required");
            errors.push(LineError::of(line, field.name, expected));
        }
    }
    if errors.is_empty() { Ok(columns) } else { Err(errors) }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::lines::{Read, RecordEnd, Records};
    use super::*;

    /// A cell. Quotes, separators and line ends are frequent.
    fn cell() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![3 => proptest::sample::select(&b"a1\",;\n\r \xC5\x9E"[..]), 1 => any::<u8>()];
        vec(byte, 0..8)
    }

    proptest! {
        #[test]
        fn every_cell_that_a_csv_writer_writes_is_read_again(records in vec(vec(cell(), 2..5), 1..5)) {
            let mut options = csv::WriterBuilder::new();
            let mut writer = options.quote_style(csv::QuoteStyle::Always).flexible(true).from_writer(Vec::new());
            for record in &records {
                writer.write_record(record).unwrap();
            }
            let mut lines = Records::of(Cursor::new(writer.into_inner().unwrap()), RecordEnd::QuotedLine);
            let mut cells = Cells::new();
            for record in &records {
                prop_assert!(matches!(lines.next().unwrap(), Read::Record(_)));
                let count = cells.part(lines.record()).unwrap();
                let found: Vec<Vec<u8>> = (0..count).map(|index| cells.cell(index).to_vec()).collect();
                prop_assert_eq!(&found, record);
            }
            prop_assert_eq!(lines.next().unwrap(), Read::End);
        }

        #[test]
        fn any_line_of_csv_is_split_or_rejected(line in cell().prop_flat_map(|more| (Just(more), cell())), names in ".*") {
            let (mut line, more) = line;
            line.extend(more);
            let mut cells = Cells::new();
            if let Ok(count) = cells.part(&line) {
                prop_assert!(count <= line.iter().filter(|byte| **byte == b',').count() + 1);
                let length: usize = (0..count).map(|index| cells.cell(index).len()).sum();
                prop_assert!(length <= line.len());
            }
            // A header of any names is mapped or rejected.
            if cells.part(names.as_bytes()).is_ok() {
                let _ = header(&cells, 1, super::super::kinds::KINDS[0].fields);
            }
        }

        #[test]
        fn a_line_of_json_has_the_members_that_it_was_written_with(
            members in vec(("[a-z\"\u{0}ş]{0,6}", any::<i64>()), 0..5),
            edit in (any::<proptest::sample::Index>(), any::<char>()),
        ) {
            let members: std::collections::BTreeMap<String, i64> = members.into_iter().collect();
            let text = serde_json::to_string(&members).unwrap();
            let read = Members::of(&text).unwrap();
            let read: std::collections::BTreeMap<String, i64> =
                read.0.iter().map(|(name, raw)| (name.to_string(), raw.parse().unwrap())).collect();
            prop_assert_eq!(read, members);
            // With another character anywhere, it is read or rejected as serde_json does.
            let mut other: Vec<char> = text.chars().collect();
            let at = edit.0.index(other.len());
            other[at] = edit.1;
            let other = String::from_iter(other);
            if Members::of(&other).is_ok() {
                // Syntax only: a number may be outside of the range of `Value`.
                type Syntax = std::collections::BTreeMap<String, serde::de::IgnoredAny>;
                prop_assert!(serde_json::from_str::<Syntax>(&other).is_ok(), "{}", other);
            }
        }
    }

    #[test]
    fn cells_are_unquoted_and_otherwise_unchanged() {
        let mut cells = Cells::new();
        for (record, expected) in [
            ("a,b,c", vec!["a", "b", "c"]),
            (",,", vec!["", "", ""]),
            (
                "\"a,b\",\"say \"\"x\"\"\",\"two\nlines\"",
                vec!["a,b", "say \"x\"", "two\nlines"],
            ),
            ("=1+1,+90,-3,@x, a ", vec!["=1+1", "+90", "-3", "@x", " a "]),
        ] {
            let count = cells.part(record.as_bytes()).unwrap();
            let found: Vec<_> = (0..count)
                .map(|index| String::from_utf8_lossy(cells.cell(index)).into_owned())
                .collect();
            assert_eq!(found, expected, "{record}");
        }
    }

    #[test]
    fn a_quote_inside_a_cell_is_an_error() {
        assert!(Cells::new().part(b"a,5\" screen\nb,6\" screen").is_err());
        assert_eq!(Cells::new().part(b"a,\"5\"\" screen\""), Ok(2));
    }

    #[test]
    fn numbers_of_an_object_are_read_as_written() {
        let members = Members::of(r#" {"a": 2.850, "b\u0063": null, "d": {"e": [1, "}"]}} "#).unwrap();
        let found: Vec<_> = members.0.iter().map(|(name, raw)| (name.as_ref(), *raw)).collect();
        assert_eq!(found, [("a", "2.850"), ("bc", "null"), ("d", r#"{"e": [1, "}"]}"#)]);
    }

    #[test]
    fn an_error_about_a_line_that_is_not_an_object_does_not_repeat_it() {
        for text in [
            "[\"Ayşe\"]",
            "\"Ayşe\"",
            "{\"a\": Ayşe}",
            "{\"a\": \"Ayşe",
            "{\"a\": 1} Ayşe",
            "Ayşe",
        ] {
            let error = Members::of(text).map(|_| ()).unwrap_err();
            let message = format!("{error:?}");
            assert!(
                message.contains("a JSON object") && !message.contains("Ay"),
                "{message}"
            );
        }
    }
}
