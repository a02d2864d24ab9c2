//! The generator handles any document without panicking, overflowing its stack or running forever.
//!
//! Each case changes a fixture at random places. There are 400 cases, which are the same in every run, or as many as
//! `CODEGEN_MUTATIONS` says. If a case aborts the process, its document is in `mutation_in_hand.json` in cargo's
//! temporary folder for tests.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod support;

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use codegen::{Problem, emit, load, refusals};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed};
use serde_json::{Value, json};
use support::documents;

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
    [WORDS, &codegen::read::KEYWORDS, &codegen::read::ANNOTATIONS].concat()
}

/// A change: its place, its kind, and two numbers that determine the new value.
type Change = (u32, u8, u32, u32);

fn every_document() -> Vec<Value> {
    let mut all = Vec::new();
    let kinds = [
        ("positive", "yaml"),
        ("negative", "yaml"),
        ("round_trip", "json"),
        ("defects", "yaml"),
    ];
    for (kind, extension) in kinds {
        for path in documents(kind, extension) {
            all.extend(serde_yaml::from_str::<Value>(&std::fs::read_to_string(path).unwrap()).ok());
        }
    }
    all
}

fn places(value: &Value, pointer: &str, found: &mut Vec<String>) {
    found.push(pointer.to_string());
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                places(value, &format!("{pointer}/{}", codegen::node::escaped(key)), found);
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
fn whole_run(text: &str, with_client: bool) -> Result<(), String> {
    let Ok(document) = load::from_text(Path::new("a.json"), text) else {
        return Ok(());
    };
    let problems = refusals::all(&document);
    drop(refusals::groups(problems));
    let rest = match codegen::model(&document) {
        Ok(_) => document,
        Err(_) => match refusals::skipping(&document) {
            Ok((rest, _)) => rest,
            Err(_) => return Ok(()),
        },
    };
    let api = codegen::model(&rest).map_err(|problem| format!("skipping left a refusal: {problem}"))?;
    let root = emit::Root::default();
    emit::server(&api, &root, emit::Dispatch::Dropshot).map_err(|problem| problem.to_string())?;
    match with_client.then(|| emit::client(&rest, &api, &root)) {
        Some(Err(problem @ Problem::Defect { .. })) => Err(problem.to_string()),
        _ => Ok(()),
    }
}

fn answers(document: &Value, with_client: bool) -> Result<(), String> {
    let text = serde_json::to_string(document).unwrap();
    let in_hand = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("mutation_in_hand.json");
    std::fs::write(in_hand, &text).unwrap();
    let (sender, receiver) = mpsc::channel();
    let worker = std::thread::Builder::new().stack_size(codegen::STACK).spawn(move || {
        let outcome = std::panic::catch_unwind(|| whole_run(&text, with_client));
        // The receiver may have timed out.
        drop(sender.send(outcome.unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<String>().cloned();
            Err(said.unwrap_or_else(|| "a panic".into()))
        })));
    });
    worker.unwrap();
    receiver.recv_timeout(WITHOUT_END).map_err(|_| "no end".to_string())?
}

fn cases() -> u32 {
    std::env::var("CODEGEN_MUTATIONS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(400)
}

#[test]
fn every_mutated_document_is_generated_or_refused() {
    let all = every_document();
    let config = Config {
        cases: cases(),
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        rng_seed: match std::env::var_os("CODEGEN_MUTATIONS") {
            None => RngSeed::Fixed(11),
            Some(_) => RngSeed::Random,
        },
        ..Config::default()
    };
    proptest!(config, |(which in any::<u32>(), changes in prop::collection::vec(any::<Change>(), 1..6))| {
        let mut document = pick(&all, which).clone();
        for one in &changes {
            change(&mut document, *one);
        }
        let outcome = answers(&document, which % 5 == 0);
        prop_assert!(outcome.is_ok(), "{}\n{document}", outcome.unwrap_err());
    });
}
