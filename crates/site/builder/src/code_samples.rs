//! `x-codeSamples` of the document's operations, made with the signing kits: written between the document's own lines, which stay
//! as they are.

use crate::kits::Kit;
use crate::{BuildError, Document};

/// What stands above the samples of an operation.
const MARK: &str = "      # Written by `cargo code-samples` from samples/kits.toml.";

/// Where an operation's responses begin, which every operation has: the samples stand before them.
const BEFORE: &str = "      responses:";

/// The document's text with the samples of all operations in place of those that it has.
///
/// # Errors
/// When the text is no document, or an operation of it has no `responses` at the usual place.
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
        // A sample ends at the next line of the operation's own depth.
        is_sample &= line.is_empty() || line.starts_with("       ") || line == "      x-codeSamples:";
        if is_sample {
            continue;
        }
        id = line.strip_prefix("      operationId: ").unwrap_or(id);
        if line == BEFORE {
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
    BuildError::Missing("an operation of the document has no `operationId` before its `responses`".to_owned())
}

/// One sample as YAML.
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

/// A word as YAML takes it for text, whatever is in it.
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

    fn kept() -> (String, Sources) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let text = std::fs::read_to_string(root.join("spec/partner-api.yaml")).unwrap();
        (text, Sources::read(&root).unwrap())
    }

    #[test]
    fn the_samples_that_the_document_has_are_those_of_the_kits() {
        let (text, sources) = kept();
        assert!(
            with_code_samples(&text, &sources.kits).unwrap() == text,
            "the document or the kits have changed: write its samples anew with `cargo code-samples`"
        );
    }

    #[test]
    fn every_operation_has_a_sample_in_each_language_and_nothing_else_is_changed() {
        let (text, sources) = kept();
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
        // And back.
        assert!(with_code_samples(&without, &sources.kits).unwrap() == text);
    }
}
