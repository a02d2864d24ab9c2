//! Generates the `x-codeSamples` of the document's operations from the signing kits. The other lines of the document do not change.

use crate::kits::Kit;
use crate::{BuildError, Document};

/// The comment above the samples of an operation.
const MARK: &str = "      # Written by `cargo code-samples` from samples/kits.toml.";

/// The line before which the samples are inserted. Every operation has responses.
const INSERT_BEFORE: &str = "      responses:";

/// Returns the document's text with new samples for all operations.
///
/// # Errors
/// The text is not a document, or an operation has no `responses` after its `operationId`.
pub fn with_code_samples(text: &str, kits: &[Kit]) -> Result<String, BuildError> {
    let document = Document::parse(text)?;
    let mut left = document.operations();
    let mut id = "";
    let mut out = String::with_capacity(text.len());
    let mut is_sample = false;
    for line in text.lines() {
        if line == MARK {
            is_sample = true;
            continue;
        }
        // Samples end at the next line with the operation's indentation.
        is_sample &= line.is_empty() || line.starts_with("       ") || line == "      x-codeSamples:";
        if is_sample {
            continue;
        }
        id = line.strip_prefix("      operationId: ").unwrap_or(id);
        if line == INSERT_BEFORE {
            let place = left.iter().position(|operation| operation.id == id);
            let operation = left.remove(place.ok_or_else(misplaced)?);
            out.push_str(MARK);
            out.push_str("\n      x-codeSamples:\n");
            for kit in kits {
                sample(&mut out, kit, &kit.sample(&document, operation));
            }
        }
        out.push_str(line);
        out.push('\n');
    }
    match left.is_empty() {
        true => Ok(out),
        false => Err(misplaced()),
    }
}

fn misplaced() -> BuildError {
    BuildError::Missing("every operation of the document must have an `operationId` before its `responses`".to_owned())
}

/// Writes a sample as YAML.
fn sample(out: &mut String, kit: &Kit, source: &str) {
    out.push_str(&format!(
        "        - lang: {}\n          label: {}\n          source: |\n",
        quoted(&kit.language),
        quoted(&kit.name)
    ));
    for line in source.lines() {
        out.push_str(format!("            {line}").trim_end());
        out.push('\n');
    }
}

/// Quotes a word for YAML if necessary.
fn quoted(word: &str) -> String {
    match word.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "''")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::Sources;

    fn committed() -> (String, Sources) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let text = std::fs::read_to_string(root.join("spec/partner-api.yaml")).unwrap();
        (text, Sources::read(&root).unwrap())
    }

    #[test]
    fn the_samples_of_the_document_are_up_to_date() {
        let (text, sources) = committed();
        assert!(
            with_code_samples(&text, &sources.kits).unwrap() == text,
            "the document's samples are out of date; run `cargo code-samples`"
        );
    }

    #[test]
    fn every_operation_has_a_sample_in_each_language_and_nothing_else_changes() {
        let (text, sources) = committed();
        let without: String = {
            let mut kits = sources.kits.clone();
            kits.truncate(1);
            kits[0].name = "C# and Co.".to_owned();
            with_code_samples(&text, &kits).unwrap()
        };
        let one: Value = serde_yaml::from_str(&without).unwrap();
        let all: Value = serde_yaml::from_str(&text).unwrap();
        let samples = |document: &Value| -> Vec<Value> {
            let paths = document["paths"].as_object().unwrap().values();
            let operations = paths.flat_map(|path| path.as_object().unwrap().values());
            operations.map(|operation| operation["x-codeSamples"].clone()).collect()
        };
        let kit = &sources.kits[0];
        for (few, many) in samples(&one).iter().zip(samples(&all)) {
            assert_eq!(many.as_array().unwrap().len(), sources.kits.len());
            assert_eq!(few.as_array().unwrap().len(), 1);
            assert_eq!(few[0]["label"], "C# and Co.");
            assert_eq!(few[0]["source"], many[0]["source"]);
            assert_eq!(many[0]["label"], Value::from(kit.name.clone()));
        }
        // With the original kits, the result is the original text.
        assert!(with_code_samples(&without, &sources.kits).unwrap() == text);
    }
}
