//! The code generated from the fixtures and from large documents, and the messages of rejected ones.
//!
//! `CODEGEN_UPDATE=1` updates the committed output and the messages.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../examples/large_document.rs"]
mod large_document;
#[allow(dead_code)]
mod support;

use std::collections::BTreeSet;
use std::path::Path;

use dropshot_codegen::emit::{self, Dispatch, Root, client, operation_type, server};
use dropshot_codegen::load::{self, from_text};
use dropshot_codegen::model::{Api, BodyContent, ResponseContent, Shape};
use dropshot_codegen::naming::{OPERATION_TYPES, is_used_by_generated_code};
use dropshot_codegen::{Problem, output, rejections};
use proc_macro2::{TokenStream, TokenTree};
use serde_json::Value;
use support::{negative, path, positive, round_trips};
use syn::ext::IdentExt;

/// The documents of Dropshot's traits with these names.
fn round_trip(names: &[&str]) -> Vec<load::Document> {
    let all = round_trips();
    let find = |name: &&str| all.iter().find(|fixture| fixture.file == Path::new(name)).unwrap();
    let found = names.iter().map(find);
    found
        .map(|fixture| from_text(&fixture.file, &fixture.text).unwrap())
        .collect()
}

/// The generated code of the other documents is compiled by `codegen-fixtures` and not committed.
#[test]
fn the_committed_server_is_up_to_date() {
    let versions = round_trip(&["everything.json", "everything/older/1.0.0.json"]);
    let api = dropshot_codegen::model_of(&versions).unwrap();
    let root = Root::new("crate::round_trip::everything").unwrap();
    let files = server(&api, &root, Dispatch::Dropshot).unwrap();
    let committed = path("round_trip/everything/server");
    if std::env::var_os("CODEGEN_UPDATE").is_some() {
        output::write(&committed, &files).unwrap();
    }
    let found = output::differences(&committed, &files).unwrap();
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(
        found.is_empty(),
        "run again with CODEGEN_UPDATE=1, and look at the change:\n{}",
        found.join("\n")
    );
}

#[test]
fn calls_are_generated_for_every_fixture_without_websockets_and_multipart() {
    let mut rejected = Vec::new();
    for fixture in positive() {
        let document = load::from_text(&fixture.file, &fixture.text).unwrap();
        match dropshot_codegen::model(&document.with(Dispatch::Calls, &[])) {
            Ok(api) => {
                let files = server(&api, &Root::default(), Dispatch::Calls).unwrap();
                assert!(files.iter().any(|file| file.name == "calls.rs"));
            }
            Err(Problem::Rejected { pointer, reason, .. }) => {
                rejected.push(format!(
                    "{}: {pointer}: {reason}",
                    fixture.file.file_stem().unwrap().display()
                ));
            }
            Err(other) => panic!("{other}"),
        }
    }
    let websocket = "websockets require Dropshot's server";
    let parts = "multipart bodies require Dropshot's server";
    let expected = [
        ("parts: #/paths/~1photos/post", parts),
        ("parts_beside_parameters: #/paths/~1a~1{content-type}/post", parts),
        ("names_of_generated_code: #/paths/~1upgrade/get", websocket),
        ("response_kinds: #/paths/~1changes~1{id}/get", websocket),
    ];
    assert_eq!(
        rejected,
        expected.map(|(place, reason)| format!("{place}: {reason}; generate without `--dispatch calls`"))
    );
}

#[test]
fn rejected_documents_have_their_messages() {
    let mut updated = String::new();
    let mut wrong = Vec::new();
    for (document, expected) in negative() {
        let outcome =
            load::from_text(&document.file, &document.text).and_then(|document| dropshot_codegen::model(&document));
        let message = match outcome {
            Ok(_) => panic!("{} was not rejected", document.file.display()),
            Err(problem) => format!("{problem}\n"),
        };
        let (file, text) = (document.file.display(), &document.text);
        let messages = document.file.with_extension("txt");
        updated += &format!("-- {file} --\n{text}-- {} --\n{message}", messages.display());
        if message != expected {
            wrong.push(format!("now: {message}was: {expected}"));
        }
    }
    if std::env::var_os("CODEGEN_UPDATE").is_some() {
        std::fs::write(path("negative.txtar"), updated).unwrap();
        return;
    }
    assert!(
        wrong.is_empty(),
        "run again with CODEGEN_UPDATE=1, and look at the change:\n{}",
        wrong.join("\n")
    );
}

/// Dropshot's router cannot have a literal and a variable in the same place. Other routers can.
#[test]
fn a_literal_beside_a_variable_is_served_through_calls_and_comes_first() {
    let mut all = negative().into_iter();
    let (fixture, _) = all
        .find(|(fixture, _)| fixture.file.ends_with("word_and_variable.yaml"))
        .unwrap();
    let document = load::from_text(&fixture.file, &fixture.text).unwrap();
    let document = document.with(Dispatch::Calls, &[]);
    let api = dropshot_codegen::model(&document).unwrap();
    let files = server(&api, &Root::default(), Dispatch::Calls).unwrap();
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "calls.rs",
            "errors.rs",
            "mod.rs",
            "operations.rs",
            "responses.rs",
            "types.rs"
        ]
    );
    let (_, routes) = files[0].text.split_once("ROUTES").unwrap();
    let order: Vec<usize> = api
        .operations
        .iter()
        .map(|operation| routes.find(&format!("{}(context", operation.ident)).unwrap())
        .collect();
    let is_literal = |index: usize| !api.operations[index].path.contains('{');
    let first = (0..order.len()).min_by_key(|index| order[*index]).unwrap();
    assert!(is_literal(first), "{routes}");
}

#[test]
fn the_chosen_media_type_is_supported_where_there_are_several() {
    let mut all = negative().into_iter();
    let (fixture, _) = all
        .find(|(fixture, _)| fixture.file.ends_with("json_and_xml.yaml"))
        .unwrap();
    let document = load::from_text(&fixture.file, &fixture.text).unwrap();
    let others = ["text/html".to_string(), "APPLICATION/json".to_string()];
    let api = dropshot_codegen::model(&document.with(Dispatch::Dropshot, &others)).unwrap();
    let content = &api.operations[0].successes[0].content;
    assert!(matches!(content, ResponseContent::Json(_, media_type) if media_type == "application/json"));
}

/// A range of media types may contain the chosen one.
#[test]
fn the_chosen_media_type_may_be_in_a_range() {
    let text = "openapi: 3.0.3\ninfo: {title: T, version: '1'}\npaths:\n  /a:\n    put:\n      operationId: a\n      \
                requestBody: {required: true, content: {text/html: {}, 'application/*': {schema: {type: object}}}}\n      \
                responses: {'200': {description: ok, content: {'*/*': {schema: {type: string}}}}}\n";
    let document = load::from_text("a.yaml".as_ref(), text).unwrap();
    let api = dropshot_codegen::model(&document.with(Dispatch::Dropshot, &["application/json".into()])).unwrap();
    let body = &api.operations[0].body.as_ref().unwrap().content;
    assert!(matches!(body, BodyContent::Json(_)), "{body:?}");
    let content = &api.operations[0].successes[0].content;
    assert!(matches!(content, ResponseContent::Bytes(media_type) if media_type == "*/*"));
}

/// Other routers than Dropshot's can have a variable in a part of a segment.
#[test]
fn a_variable_in_a_part_of_a_segment_is_served_through_calls_after_literals() {
    let mut all = negative().into_iter();
    let (fixture, _) = all
        .find(|(fixture, _)| fixture.file.ends_with("partial_variable.yaml"))
        .unwrap();
    let more = "  /pets/{id}:\n    get:\n      operationId: get_one\n      parameters: [{in: path, name: id, required: true, \
                schema: {type: string}}]\n      responses: {'204': {description: done}}\n  /pets/all.pdf: {get: {operationId: \
                get_all, responses: {'204': {description: done}}}}\n";
    let document = load::from_text(&fixture.file, &format!("{}{more}", fixture.text)).unwrap();
    let api = dropshot_codegen::model(&document.with(Dispatch::Calls, &[])).unwrap();
    let files = server(&api, &Root::default(), Dispatch::Calls).unwrap();
    assert!(files.iter().all(|file| file.name != "api.rs"));
    let (_, routes) = files[0].text.split_once("ROUTES").unwrap();
    let order = ["get_all(context", "get_pet(context", "get_one(context"].map(|name| routes.find(name).unwrap());
    assert!(order.is_sorted(), "{routes}");
}

/// The code depends on nothing but the documents: neither on the run nor on the order in which versions are given.
#[test]
fn the_same_documents_give_the_same_bytes() {
    for names in [
        &["everything.json", "everything/older/1.0.0.json"][..],
        &[
            "versions.json",
            "versions/older/1.0.0.json",
            "versions/older/2.0.0.json",
        ],
        &["odds.json"],
    ] {
        let bytes = |is_reversed: bool| {
            let mut all = round_trip(names);
            let newest = all[0].clone();
            if is_reversed {
                all.reverse();
            }
            let api = dropshot_codegen::model_of(&all).unwrap();
            let mut files = server(&api, &Root::default(), Dispatch::Dropshot).unwrap();
            let api = dropshot_codegen::model(&newest).unwrap();
            files.extend(client(&newest, &api, &Root::default()).unwrap());
            texts(files)
        };
        let first = bytes(false);
        assert!(first == bytes(false), "{names:?}: another run");
        assert!(first == bytes(true), "{names:?}: another order");
    }
}

fn texts(files: Vec<output::File>) -> Vec<(String, String)> {
    files.into_iter().map(|file| (file.name, file.text)).collect()
}

/// The parts in a file, which are referenced by name, may be in any order, and so may the files on disk.
#[test]
fn the_order_of_parts_and_their_files_changes_nothing() {
    let source = path("positive");
    let bytes = |is_reversed: bool| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("files/parts")).unwrap();
        let mut names = [
            "files.yaml",
            "files/parts/pet.yaml",
            "files/parts/pets.yaml",
            "files/parts/shared.json",
        ];
        if is_reversed {
            names.reverse();
        }
        for name in names {
            let mut text = std::fs::read_to_string(source.join(name)).unwrap();
            if is_reversed && name.ends_with("shared.json") {
                let reversed =
                    |all: serde_json::Map<String, Value>| all.into_iter().rev().collect::<serde_json::Map<_, _>>();
                let mut sections: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
                for (_, section) in &mut sections {
                    *section = reversed(section.as_object().unwrap().clone()).into();
                }
                text = Value::Object(reversed(sections)).to_string();
            }
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let document = load::from_file(&folder.path().join("files.yaml")).unwrap();
        let api = dropshot_codegen::model(&document).unwrap();
        let mut files = server(&api, &Root::default(), Dispatch::Dropshot).unwrap();
        files.extend(client(&document, &api, &Root::default()).unwrap());
        texts(files)
    };
    let first = bytes(false);
    assert!(first.iter().any(|(name, _)| name == "api.rs"));
    for ((name, one), (_, other)) in first.iter().zip(bytes(true)) {
        assert!(*one == other, "{name} depends on the order");
    }
}

/// Collects type names that are not part of a path.
fn bare(tokens: TokenStream, found: &mut BTreeSet<String>) {
    let mut colons = 0;
    for tree in tokens {
        let qualified = colons == 2;
        colons = match &tree {
            TokenTree::Punct(punct) if punct.as_char() == ':' => colons + 1,
            _ => 0,
        };
        match tree {
            TokenTree::Ident(ident) if !qualified => drop(found.insert(ident.unraw().to_string())),
            TokenTree::Group(group) => bare(group.stream(), found),
            _ => {}
        }
    }
}

/// Names that come from the document.
fn documents_own(api: &Api) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for definition in &api.types {
        all.insert(definition.ident.unraw().to_string());
        match &definition.shape {
            Shape::Enum(of) => all.extend(of.variants.iter().map(|it| it.ident.unraw().to_string())),
            Shape::Union(union) => all.extend(union.alternatives.iter().map(|it| it.ident.unraw().to_string())),
            Shape::Struct(_) | Shape::Joined(_) | Shape::Checked(_) | Shape::Newtype(_) => {}
        }
    }
    for operation in &api.operations {
        for suffix in OPERATION_TYPES {
            all.insert(operation_type(api, operation, suffix).to_string());
        }
    }
    // Outside of their definitions, variants of responses are qualified by their type.
    all.extend(["Ok", "Created", "Accepted", "NoContent", "SwitchingProtocols", "Whole"].map(str::to_string));
    all
}

#[test]
fn all_bare_names_in_generated_code_are_listed() {
    let mut unknown = BTreeSet::new();
    for fixture in positive() {
        let api = dropshot_codegen::model(&from_text(&fixture.file, &fixture.text).unwrap()).unwrap();
        let own = documents_own(&api);
        for file in server(&api, &Root::default(), Dispatch::Dropshot).unwrap() {
            // The other files do not import types of the document.
            if !["types.rs", "api.rs", "dispatch.rs", "responses.rs"].contains(&file.name.as_str()) {
                continue;
            }
            let mut found = BTreeSet::new();
            bare(file.text.parse().unwrap(), &mut found);
            found.retain(|name| {
                let is_type =
                    name.starts_with(|it: char| it.is_ascii_uppercase()) && name.contains(|it: char| it.is_lowercase());
                let is_status = name
                    .strip_prefix("Status")
                    .is_some_and(|rest| rest.parse::<u16>().is_ok());
                is_type && !is_status && !name.contains('_') && name != "Self" && !own.contains(name)
            });
            unknown.extend(found.into_iter().filter(|name| !is_used_by_generated_code(name)));
        }
    }
    assert!(unknown.is_empty(), "not in the list of `naming.rs`: {unknown:?}");
}

#[test]
fn a_large_document_is_generated() {
    let text = large_document::document(100).to_string();
    let document = load::from_text(Path::new("large.json"), &text).unwrap();
    let found: Vec<String> = rejections::all(&document).iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{found:#?}");
    let api = dropshot_codegen::model(&document).unwrap();
    assert_eq!(api.operations.len(), 100);
    let root = emit::Root::default();
    let server = emit::server(&api, &root, emit::Dispatch::Dropshot).unwrap();
    let api_file = server.iter().find(|file| file.name == "api.rs").unwrap();
    assert_eq!(api_file.text.matches("#[endpoint").count(), 100);
    emit::client(&document, &api, &root).unwrap();
}

/// A document with an error in every operation.
#[test]
fn hundreds_of_errors_are_found_at_once() {
    let mut value = large_document::document(100);
    for (_, item) in value["paths"].as_object_mut().unwrap() {
        for (member, operation) in item.as_object_mut().unwrap() {
            if member != "parameters" {
                operation["responses"]["1XX"] = serde_json::json!({ "description": "Anything." });
            }
        }
    }
    let document = load::from_text(Path::new("large.json"), &value.to_string()).unwrap();
    let groups = rejections::groups(rejections::all(&document));
    let counts: Vec<usize> = groups.iter().map(|group| group.problems.len()).collect();
    assert_eq!(counts, [100]);
    let (rest, left) = rejections::skipping(&document).unwrap();
    assert_eq!((left.len(), dropshot_codegen::operations(&rest)), (100, 0));
}
