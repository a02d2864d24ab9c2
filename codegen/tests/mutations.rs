//! The generator handles any document without panicking, overflowing its stack or running forever.
//!
//! Each case changes a fixture, or its text, at random places. There are 400 cases with a fixed seed, which are the same in every
//! run, or as many with another seed in each run as `CODEGEN_MUTATIONS` says. A failure prints the smallest document; if a case aborts the process, its document is in
//! `current_mutation.json` in cargo's temporary folder for tests.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod support;

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use dropshot_codegen::{Problem, emit, load, rejections};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed};
use serde_json::{Value, json};
use support::{defects, negative, positive, round_trips};

/// Far longer than any document takes.
const WITHOUT_END: Duration = Duration::from_secs(120);

/// Keys and strings that have a meaning for the generator, or from which it is hard to derive a name.
const WORDS: &[&str] = &[
    "",
    "a",
    "propertyName",
    "mapping",
    "x-raw-body",
    "x-error-codes",
    "parameters",
    "schema",
    "content",
    "application/json",
    "responses",
    "200",
    "4XX",
    "99999",
    "operationId",
    "tags",
    "object",
    "array",
    "string",
    "integer",
    "number",
    "boolean",
    "uuid",
    "decimal",
    "byte",
    "Self",
    "self",
    "gen",
    "Option",
    "r#type",
    "_",
    "__",
    "1",
    "-",
    "{x}",
    "/",
    "a/b~c",
    "ğü",
    "\u{0}",
    "\u{202e}",
    "#/components/schemas/Pet",
    "#/components/schemas",
    "#",
    "#/paths",
    "^(a+)+$",
    "[",
    "body",
    "new",
    "send",
];

/// The words, and all keywords of schemas.
fn words() -> Vec<&'static str> {
    let all = WORDS.iter().copied().chain(dropshot_codegen::keywords::all());
    all.chain(dropshot_codegen::keywords::ANNOTATIONS).collect()
}

/// A change: its place, its kind, and two numbers that determine the new value.
type Change = (u32, u8, u32, u32);

/// Schemas that contain themselves in every way, with defaults.
const RECURSIVE: &[&str] = &[
    r#"{"p": {"default": null, "anyOf": [{"$ref": "P"}, {"type": "array", "items": {"$ref": "P"}}, {"nullable": true}]}}"#,
    r#"{"p": {"default": {}, "allOf": [{"$ref": "P"}]}, "q": {"default": [{}], "type": "array", "items": {"$ref": "P"}}}"#,
    r#"{"p": {"default": {"p": {}}, "oneOf": [{"$ref": "P"}, {"type": "object", "properties": {"q": {"$ref": "P"}}}]}}"#,
    r#"{"p": {"default": 1, "oneOf": [{"$ref": "Q"}, {"$ref": "Q"}]}, "q": {"allOf": [{"$ref": "P"}, {"$ref": "Q"}]}}"#,
    r#"{"p": {"type": "object", "default": {"a": {}}, "additionalProperties": {"$ref": "P"}, "nullable": true}}"#,
];

fn recursive() -> impl Iterator<Item = Value> {
    RECURSIVE.iter().map(|properties| {
        let properties = properties.replace("\"P\"", "\"#/components/schemas/P\"");
        let properties = properties.replace("\"Q\"", "\"#/components/schemas/Q\"");
        let properties: Value = serde_json::from_str(&properties).unwrap();
        let of = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
        json!({
            "openapi": "3.0.3",
            "info": { "title": "T", "version": "1" },
            "paths": { "/p": { "post": {
                "operationId": "p",
                "parameters": [{ "in": "query", "name": "q", "schema": of("Q") }],
                "requestBody": { "required": true, "content": { "application/json": { "schema": of("P") } } },
                "responses": { "200": { "description": "", "headers": { "X-Q": { "schema": of("Q") } } } },
            } } },
            "components": { "schemas": {
                "P": { "type": "object", "properties": properties, "discriminator": { "propertyName": "p" } },
                "Q": { "oneOf": [of("Q"), of("P"), { "allOf": [of("Q"), of("Q")] }], "default": {} },
            } },
        })
    })
}

fn every_document() -> Vec<Value> {
    let mut all: Vec<Value> = recursive().collect();
    for fixture in positive()
        .into_iter()
        .chain(negative().into_iter().map(|(fixture, _)| fixture))
        .chain(round_trips())
        .chain(defects())
    {
        all.extend(serde_yaml::from_str::<Value>(&fixture.text).ok());
    }
    all
}

fn places(value: &Value, pointer: &str, found: &mut Vec<String>) {
    found.push(pointer.to_string());
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                places(
                    value,
                    &format!("{pointer}/{}", dropshot_codegen::node::escaped(key)),
                    found,
                );
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                places(value, &format!("{pointer}/{index}"), found);
            }
        }
        _ => {}
    }
}

fn pick<T>(all: &[T], number: u32) -> &T {
    &all[number as usize % all.len()]
}

fn scalar(number: u32) -> Value {
    let numbers = [
        json!(0),
        json!(-1),
        json!(1e300),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(0.5),
        json!(28),
    ];
    match number % 8 {
        0 => Value::Null,
        1 => (number % 16 < 8).into(),
        2 => json!([]),
        3 => json!({}),
        4 | 5 => pick(&numbers, number / 8).clone(),
        _ => (*pick(&words(), number / 8)).into(),
    }
}

fn change(document: &mut Value, (place, how, what, more): Change) {
    let mut all = Vec::new();
    places(document, "", &mut all);
    let pointer = pick(&all, place).clone();
    let other = document
        .pointer(pick::<String>(&all, what))
        .cloned()
        .unwrap_or_default();
    let Some(target) = document.pointer_mut(&pointer) else {
        return;
    };
    match how % 8 {
        0 => *target = scalar(what),
        1 => *target = other,
        2 => *target = json!({ "$ref": format!("#{}", pick(&all, what)) }),
        3 => {
            let old = target.take();
            *target = match what % 6 {
                0 => json!({ "allOf": [old] }),
                1 => json!({ "allOf": [old, other] }),
                2 => json!({ "oneOf": [old, other], "discriminator": { "propertyName": "kind" } }),
                3 => json!({ "type": "array", "items": old }),
                4 => json!({ "type": "object", "properties": { *pick(&words(), more): old } }),
                _ => json!({ "type": "object", "additionalProperties": old }),
            };
        }
        4 => {
            if let Some(members) = target.as_object_mut() {
                members.insert((*pick(&words(), what)).to_string(), scalar(more));
            }
        }
        5 => {
            if let Some(members) = target.as_object_mut() {
                members.insert((*pick(&words(), more)).to_string(), other);
            }
        }
        6 => {
            if let Some(members) = target.as_object_mut()
                && !members.is_empty()
            {
                let key = pick(&members.keys().cloned().collect::<Vec<_>>(), what).clone();
                let value = members.remove(&key).unwrap_or_default();
                members.insert((*pick(&words(), more)).to_string(), value);
            }
        }
        _ => match target {
            Value::Object(members) => {
                let keys: Vec<String> = members.keys().cloned().collect();
                if !keys.is_empty() {
                    members.remove(pick(&keys, what));
                }
            }
            Value::Array(items) => items.push(other),
            _ => *target = scalar(more),
        },
    }
}

/// Runs every step of the command on a document. The error is the message of a panic or of a bug.
fn run_generator(text: &str, with_client: bool) -> Result<(), String> {
    let Ok(document) = load::from_text(Path::new("a.json"), text) else {
        return Ok(());
    };
    let problems = rejections::all(&document);
    drop(rejections::groups(problems));
    let rest = match dropshot_codegen::model(&document) {
        Ok(_) => document,
        Err(_) => match rejections::skipping(&document) {
            Ok((rest, _)) => rest,
            Err(_) => return Ok(()),
        },
    };
    let api = dropshot_codegen::model(&rest).map_err(|problem| format!("skipping left a rejection: {problem}"))?;
    let root = emit::Root::default();
    emit::server(&api, &root, emit::Dispatch::Dropshot).map_err(|problem| problem.to_string())?;
    match with_client.then(|| emit::client(&rest, &api, &root)) {
        Some(Err(problem @ Problem::Defect(_))) => Err(problem.to_string()),
        _ => Ok(()),
    }
}

fn generates(document: &Value, with_client: bool) -> Result<(), String> {
    let text = serde_json::to_string(document).unwrap();
    let in_hand = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("current_mutation.json");
    std::fs::write(in_hand, &text).unwrap();
    let (sender, receiver) = mpsc::channel();
    let worker = std::thread::Builder::new()
        .stack_size(dropshot_codegen::STACK)
        .spawn(move || {
            let outcome = std::panic::catch_unwind(|| run_generator(&text, with_client));
            // The receiver may have timed out.
            drop(sender.send(outcome.unwrap_or_else(|panic| {
                let message = panic.downcast_ref::<String>().cloned();
                Err(message.unwrap_or_else(|| "a panic".into()))
            })));
        });
    worker.unwrap();
    receiver.recv_timeout(WITHOUT_END).map_err(|_| "no end".to_string())?
}

fn config() -> Config {
    let asked = std::env::var("CODEGEN_MUTATIONS")
        .ok()
        .and_then(|text| text.parse().ok());
    Config {
        cases: asked.unwrap_or(400),
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        rng_seed: match asked {
            Some(_) => RngSeed::Random,
            None => RngSeed::Fixed(11),
        },
        ..Config::default()
    }
}

#[test]
fn every_recursive_document_is_generated_or_rejected() {
    for document in recursive() {
        assert_eq!(generates(&document, true), Ok(()), "{document}");
    }
}

#[test]
fn every_mutated_document_is_generated_or_rejected() {
    let all = every_document();
    proptest!(config(), |(which in any::<u32>(), changes in prop::collection::vec(any::<Change>(), 1..6))| {
        let mut document = pick(&all, which).clone();
        for one in &changes {
            change(&mut document, *one);
        }
        let outcome = generates(&document, which % 5 == 0);
        prop_assert!(outcome.is_ok(), "{}\n{document}", outcome.unwrap_err());
    });
}

/// Pieces of texts that have a meaning in JSON or YAML.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "'",
    "\\",
    "\n",
    "\r",
    "\t",
    "  ",
    "- ",
    "? ",
    "&a ",
    "*a ",
    "<<: *a",
    "!!str ",
    "! ",
    "|\n",
    ">-\n",
    "---\n",
    "...\n",
    "%YAML 1.2\n",
    "#",
    "\u{feff}",
    "\u{0}",
    "\u{85}",
    "\u{2028}",
    "\\u0000",
    "\\ud800",
    "0x1F",
    "1e999",
    ".nan",
    "~",
    "null",
    "[[[[[[[[",
    "{{{{{{{{",
    "openapi: 3.0.3",
    "$ref",
];

/// Whether a text is loaded or rejected with a position, without a panic and in time.
fn loads(text: String) -> Result<(), String> {
    let (sender, receiver) = mpsc::channel();
    let worker = std::thread::Builder::new()
        .stack_size(dropshot_codegen::STACK)
        .spawn(move || {
            let loaded = std::panic::catch_unwind(|| {
                load::from_text(Path::new("a.yaml"), &text).map_or_else(|e| e.to_string(), |_| String::new())
            });
            // The receiver may have timed out.
            drop(sender.send(loaded.map_err(|_| "a panic".to_owned())));
        });
    worker.unwrap();
    let problem = receiver.recv_timeout(WITHOUT_END).map_err(|_| "no end".to_string())??;
    (problem.is_empty() || problem.starts_with("a.yaml:"))
        .then_some(())
        .ok_or(problem)
}

#[test]
fn every_mutated_text_is_loaded_or_rejected_with_its_position() {
    let all = every_document();
    let edit = (any::<prop::sample::Index>(), 0_usize..4, prop::sample::select(PIECES));
    proptest!(config(), |(which in any::<u32>(), as_yaml in any::<bool>(), edits in prop::collection::vec(edit, 1..6))| {
        let document = pick(&all, which);
        let mut text: Vec<char> = match as_yaml {
            true => serde_yaml::to_string(document).unwrap(),
            false => serde_json::to_string_pretty(document).unwrap(),
        }.chars().collect();
        for (place, removed, piece) in &edits {
            let place = place.index(text.len() + 1);
            let end = (place + removed).min(text.len());
            text.splice(place..end, piece.chars());
        }
        let text = String::from_iter(text);
        let outcome = loads(text.clone());
        prop_assert!(outcome.is_ok(), "{}\n{text}", outcome.unwrap_err());
    });
}
