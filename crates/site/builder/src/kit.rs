//! A signing kit, and the code that calls an operation with it.

use serde::Deserialize;

use crate::document::{Document, Operation};

/// `samples/kits.toml`.
#[derive(Deserialize)]
pub struct Kits {
    /// The kits.
    pub kit: Vec<Kit>,
}

/// A signing kit.
#[derive(Clone, Debug, Deserialize)]
pub struct Kit {
    /// Its folder in `samples`.
    pub folder: String,
    /// Its only file.
    pub file: String,
    /// Its name.
    pub name: String,
    /// Its programming language.
    pub language: String,
    /// A description of its requirements.
    pub needs: String,
    /// The command that builds it; empty if it needs none.
    pub build: Vec<String>,
    /// The command that runs it.
    pub run: Vec<String>,
    get: String,
    pages: String,
    file_get: String,
    post: String,
    #[serde(default)]
    body_escape: Vec<(String, String)>,
    /// The file's content.
    #[serde(skip)]
    pub text: String,
}

impl Kit {
    /// Returns the path of its file on the site.
    pub fn path(&self) -> String {
        format!("kits/{}/{}", self.folder, self.file)
    }

    /// Returns code that reads all pages of a list, from the path and query of the first one.
    pub fn sample_of_pages(&self, target: &str) -> String {
        self.pages.trim_matches('\n').replace("{target}", target)
    }

    /// Returns code that calls an operation with the kit.
    pub fn sample(&self, document: &Document, operation: Operation<'_>) -> String {
        let target = document.example_target(operation);
        let body = document.example_body(operation);
        let is_file = operation
            .value
            .pointer("/responses/200/content/application~1json")
            .is_none();
        let template = match (operation.method, is_file) {
            ("GET", true) => &self.file_get,
            ("GET", false) => &self.get,
            _ => &self.post,
        };
        let mut body = serde_json::to_string_pretty(body).unwrap_or_default();
        for (from, to) in &self.body_escape {
            body = body.replace(from, to);
        }
        template
            .trim_matches('\n')
            .replace("{target}", &target)
            .replace("{file}", "report.pdf")
            .replace("{body}", &body)
    }
}
