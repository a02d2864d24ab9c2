//! Reads the sources of the site from the project.

use std::fs;
use std::path::{Path, PathBuf};

use semver::Version;
use serde::Deserialize;

use crate::kits::{Kit, Kits};
use crate::{BuildError, Document, File, PLAIN};

/// The sources of the pages.
pub struct Sources {
    /// The OpenAPI document.
    pub document: Document,
    /// The released versions, oldest first.
    pub released: Vec<Document>,
    /// The file name and the text of each released version.
    released_texts: Vec<(String, String)>,
    /// The signing kits.
    pub kits: Vec<Kit>,
    /// `samples/README.md`.
    pub kits_text: String,
    /// `crates/partner/README.md`.
    pub tool_text: String,
    /// The READMEs of the packages, each with its language.
    pub package_texts: Vec<(&'static str, String)>,
    /// The archives and packages that the site offers, each with its file name.
    pub downloads: Vec<(String, Vec<u8>)>,
    /// `CHANGELOG.md`.
    pub changelog: String,
    /// `docs/contract/service.md`.
    pub service_rules: String,
    /// Responses in the tests' snapshots.
    pub snapshots: Vec<Snapshot>,
    /// Tables of values and messages in the tests' snapshots.
    pub message_tables: Vec<MessageTable>,
    vectors: String,
    postman: String,
    read: Vec<PathBuf>,
}

/// A response in a snapshot of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The description of the snapshot.
    pub description: String,
    /// The first of its operations.
    pub operation: String,
    /// The response's `error.code`; empty for a success.
    pub code: String,
    /// The request.
    pub request: String,
    /// `error.message`; empty for a success.
    pub message: String,
}

/// A snapshot with a table of values that were sent and their error messages.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageTable {
    /// The description of the snapshot.
    pub description: String,
    /// The responses' `error.code`.
    pub code: String,
    /// A description of each value, and the message.
    pub lines: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct Head {
    description: String,
    info: Info,
}

#[derive(Deserialize)]
struct Info {
    operation: Option<String>,
    #[serde(default)]
    operations: Vec<String>,
    code: Option<String>,
}

impl Sources {
    /// Reads the sources from the project's folder.
    ///
    /// # Errors
    /// A source is missing or has the wrong format.
    pub fn read(root: &Path) -> Result<Self, BuildError> {
        let mut reader = Reader {
            root: root.to_owned(),
            read: Vec::new(),
        };
        let document = Document::parse(&reader.text("spec/partner-api.yaml")?)?;
        let (mut released, mut released_texts) = (Vec::new(), Vec::new());
        for path in reader.files("spec/released", "yaml")? {
            let text = reader.text(&path)?;
            let version = Document::parse(&text)?;
            released_texts.push((released_file(version.version()), text));
            released.push(version);
        }
        released.sort_by_key(|document| Version::parse(document.version()).ok());
        let table: Kits =
            toml::from_str(&reader.text("samples/kits.toml")?).map_err(|error| BuildError::Malformed {
                what: "samples/kits.toml",
                reason: error.to_string(),
            })?;
        let mut kits = table.kit;
        for kit in &mut kits {
            kit.text = reader.text(&format!("samples/{}/{}", kit.folder, kit.file))?;
        }
        let (mut snapshots, mut message_tables) = (Vec::new(), Vec::new());
        for folder in reader.folders("snapshots")? {
            for path in reader.files(&folder, "snap")? {
                let text = reader.text(&path)?;
                // The inspectors' API is no part of the site.
                snapshots.extend(Snapshot::parse(&text).filter(|snapshot| !snapshot.request.contains(" /inspector/")));
                message_tables.extend(MessageTable::parse(&text));
            }
        }
        let mut package_texts = Vec::new();
        for (language, path) in PACKAGES {
            package_texts.push((language, reader.text(path)?));
        }
        Ok(Self {
            document,
            released,
            released_texts,
            kits,
            tool_text: reader.text("crates/partner/README.md")?,
            package_texts,
            downloads: Vec::new(),
            kits_text: reader.text("samples/README.md")?,
            changelog: reader.text("CHANGELOG.md")?,
            service_rules: reader.text("docs/contract/service.md")?,
            snapshots,
            message_tables,
            vectors: reader.text("spec/signing-vectors.json")?,
            postman: reader.text(&format!("samples/{POSTMAN}"))?,
            read: reader.read,
        })
    }

    /// Adds the files of a folder as downloads.
    ///
    /// # Errors
    /// The folder or a file cannot be read.
    pub fn with_downloads(mut self, folder: &Path) -> Result<Self, BuildError> {
        let unreadable = |reason| BuildError::Unreadable {
            path: folder.display().to_string(),
            reason,
        };
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            self.downloads
                .push((name.to_owned(), fs::read(&path).map_err(unreadable)?));
            self.read.push(path);
        }
        self.downloads.sort();
        Ok(self)
    }

    /// Returns the committed Postman collection.
    pub fn postman(&self) -> &str {
        &self.postman
    }

    /// Returns the files and folders that were read. The site must be rebuilt when one of them changes.
    pub fn paths(&self) -> &[PathBuf] {
        &self.read
    }

    /// Returns the sources that the site offers unchanged.
    pub(crate) fn published(&self) -> Vec<File> {
        let file = |path: String, content_type, text: &str| File {
            path,
            content_type,
            bytes: text.into(),
            immutable: false,
        };
        let mut files = vec![
            file(VECTORS.to_owned(), "application/json", &self.vectors),
            file(POSTMAN.to_owned(), "application/json", &self.postman),
            file("CHANGELOG.md".to_owned(), PLAIN, &self.changelog),
        ];
        files.extend(self.kits.iter().map(|kit| file(kit.path(), PLAIN, &kit.text)));
        files.extend(
            self.released_texts
                .iter()
                .map(|(path, text)| file(path.clone(), "application/yaml", text)),
        );
        files.extend(self.downloads.iter().map(|(name, bytes)| File {
            path: format!("{DOWNLOADS}/{name}"),
            content_type: "application/octet-stream",
            bytes: bytes.clone(),
            immutable: false,
        }));
        files
    }
}

/// Returns the path of a released version's document on the site.
pub fn released_file(version: &str) -> String {
    format!("released/partner-api-{version}.yaml")
}

/// The folder of the downloads on the site.
pub const DOWNLOADS: &str = "downloads";
/// The READMEs of the packages.
const PACKAGES: [(&str, &str); 3] = [
    ("TypeScript", "client/typescript/README.md"),
    ("Python", "client/python/README.md"),
    ("Rust", "client/README.md"),
];
/// The file name of the signing vectors.
pub const VECTORS: &str = "signing-vectors.json";
/// The path of the Postman collection.
pub const POSTMAN: &str = "postman/partner-api.postman_collection.json";

struct Reader {
    root: PathBuf,
    read: Vec<PathBuf>,
}

impl Reader {
    fn text(&mut self, path: &str) -> Result<String, BuildError> {
        let full = self.root.join(path);
        let text = fs::read_to_string(&full).map_err(|reason| BuildError::Unreadable {
            path: path.to_owned(),
            reason,
        })?;
        self.read.push(full);
        Ok(text)
    }

    fn entries(&mut self, folder: &str) -> Result<Vec<PathBuf>, BuildError> {
        let unreadable = |reason| BuildError::Unreadable {
            path: folder.to_owned(),
            reason,
        };
        let full = self.root.join(folder);
        let mut paths = Vec::new();
        for entry in fs::read_dir(&full).map_err(unreadable)? {
            paths.push(entry.map_err(unreadable)?.path());
        }
        paths.sort();
        self.read.push(full);
        Ok(paths)
    }

    /// Returns the files in a folder with this extension, relative to the root.
    fn files(&mut self, folder: &str, extension: &str) -> Result<Vec<String>, BuildError> {
        let paths = self.entries(folder)?.into_iter();
        Ok(paths
            .filter(|path| path.extension().is_some_and(|found| found == extension))
            .filter_map(|path| Some(format!("{folder}/{}", path.file_name()?.to_str()?)))
            .collect())
    }

    fn folders(&mut self, folder: &str) -> Result<Vec<String>, BuildError> {
        let paths = self.entries(folder)?.into_iter();
        Ok(paths
            .filter(|path| path.is_dir())
            .filter_map(|path| Some(format!("{folder}/{}", path.file_name()?.to_str()?)))
            .collect())
    }
}

impl Snapshot {
    /// Parses a snapshot: a head between lines of `---`, the request, a blank line, the status line, headers, and the body. Returns
    /// `None` for other snapshots.
    fn parse(text: &str) -> Option<Self> {
        let (head, rest) = text.strip_prefix("---\n")?.split_once("\n---\n")?;
        let head: Head = serde_yaml::from_str(head).ok()?;
        let is_status = |line: &str| {
            let (status, reason) = line.split_once(' ').unwrap_or((line, ""));
            status.len() == 3 && status.bytes().all(|b| b.is_ascii_digit()) && !reason.is_empty()
        };
        let at = rest
            .match_indices("\n\n")
            .find(|(at, _)| rest[at + 2..].lines().next().is_some_and(is_status))?
            .0;
        let (request, response) = rest.split_at(at);
        let message = response
            .find("\n\n{")
            .and_then(|_| response.trim_start().split_once("\n\n"))
            .and_then(|(_, body)| serde_json::from_str::<serde_json::Value>(body).ok())
            .and_then(|body| Some(body.pointer("/error/message")?.as_str()?.to_owned()));
        Some(Self {
            description: head.description,
            operation: head
                .info
                .operation
                .or(head.info.operations.into_iter().next())
                .unwrap_or_default(),
            code: head.info.code.unwrap_or_default(),
            request: request.trim().to_owned(),
            message: message.unwrap_or_default(),
        })
    }
}

impl MessageTable {
    /// Parses a table: after the head, parts separated by blank lines. Each part has a line that describes the value and a line with
    /// `→` and the message. Returns `None` for other snapshots.
    fn parse(text: &str) -> Option<Self> {
        let (head, rest) = text.strip_prefix("---\n")?.split_once("\n---\n")?;
        let head: Head = serde_yaml::from_str(head).ok()?;
        let part = |part: &str| {
            let (sent, message) = part.trim_start_matches('\n').split_once("\n→ ")?;
            Some((sent.to_owned(), message.lines().next()?.to_owned()))
        };
        let lines: Option<Vec<_>> = rest
            .split("\n\n")
            .filter(|text| !text.trim().is_empty())
            .map(part)
            .collect();
        Some(Self {
            description: head.description,
            code: head.info.code?,
            lines: lines?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{MessageTable, Snapshot};

    #[test]
    fn a_table_of_messages_is_parsed_and_a_response_is_not() {
        let head = "---\ndescription: messages about a plate\ninfo:\n  operation: x\n  status: 400\n  code: invalid_request\n---\n";
        let table = MessageTable::parse(&format!("{head}2,85, quoted\n→ a: no\n  \"/a\" no\n\n34\n→ b: no\n")).unwrap();
        let lines = [("2,85, quoted", "a: no"), ("34", "b: no")];
        assert_eq!(
            table.lines,
            lines.map(|(sent, message)| (sent.to_owned(), message.to_owned()))
        );
        assert_eq!(MessageTable::parse(&format!("{head}GET /a\n\n400 Bad Request\n")), None);
    }

    #[test]
    fn a_snapshot_is_parsed() {
        let text = "---\nsource: x\ndescription: a limit over 100 is rejected\ninfo:\n  operation: list_inspections\n  status: 400\n  \
                    code: invalid_request\n---\nPOST /a\n{\n  \"a\": 1\n}\n\n400 Bad Request\nx-request-id: [uuid]\n\n{\n  \"error\": {\n \
                    \"message\": \"limit: no\"\n  }\n}\n";
        let snapshot = Snapshot::parse(text).unwrap();
        assert_eq!(snapshot.request, "POST /a\n{\n  \"a\": 1\n}");
        assert_eq!(
            (
                snapshot.operation.as_str(),
                snapshot.code.as_str(),
                snapshot.message.as_str()
            ),
            ("list_inspections", "invalid_request", "limit: no")
        );
    }
}
