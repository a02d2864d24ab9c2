//! The OpenAPI document, as far as the pages need it.

use serde_json::Value;

use crate::BuildError;

/// An OpenAPI document.
pub struct Document {
    root: Value,
}

/// A chapter of a description: the text under a second-level heading.
#[derive(Clone, Debug)]
pub struct Chapter {
    /// Its heading; empty for the text before the first heading.
    pub title: String,
    /// Its text, without the heading.
    pub markdown: String,
}

/// An operation.
#[derive(Clone, Copy)]
pub struct Operation<'a> {
    /// Its `operationId`.
    pub id: &'a str,
    /// Its method in upper case.
    pub method: &'static str,
    /// The template of its path.
    pub path: &'a str,
    /// Everything else.
    pub value: &'a Value,
}

/// The methods that operations have.
const METHODS: [(&str, &str); 5] = [
    ("get", "GET"),
    ("post", "POST"),
    ("put", "PUT"),
    ("patch", "PATCH"),
    ("delete", "DELETE"),
];

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    /// The text is not valid YAML.
    pub fn parse(yaml: &str) -> Result<Self, BuildError> {
        let root = serde_yaml::from_str(yaml).map_err(|error| BuildError::Malformed {
            what: "the document",
            reason: error.to_string(),
        })?;
        Ok(Self { root })
    }

    /// Returns the whole document.
    pub fn root(&self) -> &Value {
        &self.root
    }

    /// Follows the `$ref` of a value, if it has one.
    pub fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        let target = value
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| self.root.pointer(reference.strip_prefix('#')?));
        target.map_or(value, |target| self.resolve(target))
    }

    /// Returns `info.version`.
    pub fn version(&self) -> &str {
        text(self.root.pointer("/info/version"))
    }

    /// Returns `info.title`.
    pub fn title(&self) -> &str {
        text(self.root.pointer("/info/title"))
    }

    /// Returns all operations in the document's order.
    pub fn operations(&self) -> Vec<Operation<'_>> {
        let paths = self.root.get("paths").and_then(Value::as_object);
        let mut operations = Vec::new();
        for (path, item) in paths.into_iter().flatten() {
            for (name, method) in METHODS {
                if let Some(value) = item.get(name) {
                    let id = text(value.get("operationId"));
                    operations.push(Operation {
                        id,
                        method,
                        path,
                        value,
                    });
                }
            }
        }
        operations
    }

    /// Returns the tags, each with its name, description and operations.
    pub fn tags(&self) -> Vec<(&str, &str, Vec<Operation<'_>>)> {
        let operations = self.operations();
        let tags = self.root.get("tags").and_then(Value::as_array);
        tags.into_iter()
            .flatten()
            .map(|tag| {
                let name = text(tag.get("name"));
                let of_tag = operations
                    .iter()
                    .filter(|operation| operation.tags().any(|tag| tag == name));
                (name, text(tag.get("description")), of_tag.copied().collect())
            })
            .collect()
    }

    /// Returns the examples of a content, each with its title.
    pub fn examples<'a>(&'a self, content: &'a Value) -> Vec<(String, &'a Value)> {
        let one = content.get("example").map(|value| ("Example".to_owned(), value));
        let many = content
            .get("examples")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(name, example)| {
                let example = self.resolve(example);
                let summary = match text(example.get("summary")) {
                    "" => name.as_str(),
                    summary => summary,
                };
                Some((format!("Example: {summary}"), example.get("value")?))
            });
        one.into_iter().chain(many).collect()
    }

    /// Returns an example of an operation's target: its path with example values.
    pub fn example_target(&self, operation: Operation<'_>) -> String {
        let mut target = operation.path.to_owned();
        for parameter in self.parameters(operation) {
            if text(parameter.get("in")) == "path" {
                let name = format!("{{{}}}", text(parameter.get("name")));
                target = target.replace(&name, text(parameter.get("example")));
            }
        }
        target
    }

    /// Returns an example of an operation's body, or null if it has none.
    pub fn example_body<'a>(&'a self, operation: Operation<'a>) -> &'a Value {
        let content = operation
            .value
            .get("requestBody")
            .and_then(|body| self.resolve(body).pointer("/content/application~1json"));
        content
            .and_then(|content| self.examples(content).into_iter().next())
            .map_or(&Value::Null, |(_, example)| example)
    }

    /// Returns the chapters of the document's description, and the tags without operations as further chapters.
    pub fn chapters(&self) -> Vec<Chapter> {
        let mut chapters = chapters(text(self.root.pointer("/info/description")));
        for (name, description, operations) in self.tags() {
            if operations.is_empty() {
                chapters.push(Chapter {
                    title: name.to_owned(),
                    markdown: description.to_owned(),
                });
            }
        }
        chapters
    }

    /// Returns the security schemes, each with the header's name and its description.
    pub fn security_schemes(&self) -> Vec<(&str, &str)> {
        let schemes = self
            .root
            .pointer("/components/securitySchemes")
            .and_then(Value::as_object);
        schemes
            .into_iter()
            .flatten()
            .map(|(_, scheme)| (text(scheme.get("name")), text(scheme.get("description"))))
            .collect()
    }

    /// Returns every error code with its statuses, sorted by status.
    pub fn error_codes(&self) -> Vec<(String, Vec<String>)> {
        let mut codes: Vec<(String, Vec<String>)> = Vec::new();
        for operation in self.operations() {
            for (status, response) in self.responses(operation) {
                for code in strings(response.get("x-error-codes")) {
                    match codes.iter_mut().find(|(known, _)| *known == code) {
                        Some((_, statuses)) if statuses.iter().any(|known| known == status) => {}
                        Some((_, statuses)) => statuses.push(status.to_owned()),
                        None => codes.push((code.to_owned(), vec![status.to_owned()])),
                    }
                }
            }
        }
        codes.sort_by(|(_, left), (_, right)| left.cmp(right));
        codes
    }

    /// Returns the responses of an operation, each with its status.
    pub fn responses<'a>(&'a self, operation: Operation<'a>) -> Vec<(&'a str, &'a Value)> {
        let responses = operation.value.get("responses").and_then(Value::as_object);
        responses
            .into_iter()
            .flatten()
            .map(|(status, response)| (status.as_str(), self.resolve(response)))
            .collect()
    }

    /// Returns the parameters of an operation.
    pub fn parameters<'a>(&'a self, operation: Operation<'a>) -> Vec<&'a Value> {
        let parameters = operation.value.get("parameters").and_then(Value::as_array);
        parameters
            .into_iter()
            .flatten()
            .map(|parameter| self.resolve(parameter))
            .collect()
    }
}

impl<'a> Operation<'a> {
    /// Returns the names of its tags.
    pub fn tags(&self) -> impl Iterator<Item = &'a str> {
        strings(self.value.get("tags"))
    }

    /// Returns its summary, which is one line.
    pub fn summary(&self) -> &'a str {
        text(self.value.get("summary"))
    }

    /// Returns the file name of its page.
    pub fn page(&self) -> String {
        format!("{}.html", self.id)
    }
}

/// Returns the text of a value, or an empty text.
pub fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

/// Returns the texts in an array.
pub fn strings(value: Option<&Value>) -> impl Iterator<Item = &str> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Splits a text at its second-level headings.
pub fn chapters(markdown: &str) -> Vec<Chapter> {
    let mut chapters = vec![Chapter {
        title: String::new(),
        markdown: String::new(),
    }];
    let mut in_code = false;
    for line in markdown.lines() {
        in_code ^= line.trim_start().starts_with("```");
        match line.strip_prefix("## ").filter(|_| !in_code) {
            Some(title) => chapters.push(Chapter {
                title: title.trim().to_owned(),
                markdown: String::new(),
            }),
            None => {
                if let Some(chapter) = chapters.last_mut() {
                    chapter.markdown.push_str(line);
                    chapter.markdown.push('\n');
                }
            }
        }
    }
    chapters
}

#[cfg(test)]
mod tests {
    use super::chapters;

    #[test]
    fn a_text_is_split_at_its_headings_but_not_in_code() {
        let found = chapters("before\n\n## One\n\n```sh\n## a comment\n```\n### In it\n## Two\nlast");
        let titles: Vec<_> = found.iter().map(|chapter| chapter.title.as_str()).collect();
        assert_eq!(titles, ["", "One", "Two"]);
        assert_eq!(found[1].markdown, "\n```sh\n## a comment\n```\n### In it\n");
    }
}
