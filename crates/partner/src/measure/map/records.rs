//! The records of a CSV or XML file.

use std::collections::BTreeMap;
use std::path::Path;

use encoding_rs::Encoding;
use partner_api_terminal::names::similar;
use roxmltree::{Document, Node};

use super::mapping::Mapping;
use crate::text::utf8;

/// A record: the texts of the columns that the mapping names.
#[derive(Debug)]
pub(super) struct Record {
    /// The place in the file, such as `line 2`.
    pub(super) place: String,
    cells: BTreeMap<String, String>,
}

impl Record {
    /// Returns the text of a column; empty if the record does not have it.
    pub(super) fn cell(&self, column: &str) -> &str {
        self.cells.get(column).map_or("", String::as_str)
    }
}

/// Reads the records of a file. It is XML if its name ends in `.xml`, otherwise CSV with a header row.
pub(super) fn read(bytes: &[u8], path: &Path, mapping: &Mapping) -> Result<Vec<Record>, String> {
    // The CSV reader counts a line too few before CR LF.
    let text = decode(bytes, mapping.encoding.as_deref())?.replace("\r\n", "\n");
    if path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("xml"))
    {
        xml(&text, mapping)
    } else {
        csv(&text, mapping)
    }
}

/// Decodes a file, in the given encoding if it has no byte-order mark.
fn decode(bytes: &[u8], encoding: Option<&str>) -> Result<String, String> {
    if let Some(label) = encoding {
        let encoding = Encoding::for_label(label.as_bytes())
            .ok_or_else(|| format!("the encoding `{label}` is unknown; examples are windows-1254 and iso-8859-9"))?;
        let (text, encoding, is_malformed) = encoding.decode(bytes);
        return match is_malformed {
            true => Err(format!("is not text in {}", encoding.name())),
            false => Ok(text.into_owned()),
        };
    }
    String::from_utf8(utf8(bytes).into_owned()).map_err(|_| {
        "is not UTF-8; name its encoding in the mapping, for example encoding = \"windows-1254\"".to_owned()
    })
}

fn csv(text: &str, mapping: &Mapping) -> Result<Vec<Record>, String> {
    let separator =
        u8::try_from(mapping.separator).map_err(|_| format!("the separator {:?} must be ASCII", mapping.separator))?;
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let header: Vec<String> = reader
        .headers()
        .map_err(|error| error.to_string())?
        .iter()
        .map(str::to_owned)
        .collect();
    for column in mapping.columns() {
        if !header.iter().any(|name| name == column) {
            let meant = similar(column, &header)
                .first()
                .map(|name| format!("; did you mean `{name}`?"));
            return Err(format!(
                "has no column `{column}`{}",
                meant.unwrap_or_else(|| format!("; its columns are {}", header.join(", ")))
            ));
        }
    }
    let mut records = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        let cells = header.iter().cloned().zip(record.iter().map(str::to_owned));
        records.push(Record {
            place: format!("line {line}"),
            cells: cells.collect(),
        });
    }
    Ok(records)
}

fn xml(text: &str, mapping: &Mapping) -> Result<Vec<Record>, String> {
    let name = mapping
        .record
        .as_deref()
        .ok_or("the mapping of an XML file must name the element of a record, for example record = \"Test\"")?;
    let document = Document::parse(text).map_err(|error| format!("is not valid XML: {error}"))?;
    let elements = document.descendants().filter(|node| node.tag_name().name() == name);
    let records: Vec<_> = elements
        .map(|element| Record {
            place: format!("line {}", document.text_pos_at(element.range().start).row),
            cells: mapping
                .columns()
                .into_iter()
                .map(|column| (column.to_owned(), xml_text(element, column)))
                .collect(),
        })
        .collect();
    match records.is_empty() {
        true => Err(format!("has no element `{name}`")),
        false => Ok(records),
    }
}

/// Returns the text at a path such as `Brake/FrontLeft` or `Vehicle/@plate` below an element; empty if there is none.
fn xml_text(element: Node<'_, '_>, path: &str) -> String {
    let mut node = element;
    for step in path.split('/') {
        if let Some(attribute) = step.strip_prefix('@') {
            return node.attribute(attribute).unwrap_or_default().trim().to_owned();
        }
        match node.children().find(|child| child.tag_name().name() == step) {
            Some(child) => node = child,
            None => return String::new(),
        }
    }
    node.text().unwrap_or_default().trim().to_owned()
}
