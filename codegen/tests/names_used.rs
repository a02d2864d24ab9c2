//! The list of the bare names that generated code uses is complete. A missing name would conflict with a schema of that
//! name.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod support;

use std::collections::BTreeSet;

use dropshot_codegen::emit::{Dispatch, Root, operation_type, server};
use dropshot_codegen::load::from_text;
use dropshot_codegen::model::{Api, Shape};
use dropshot_codegen::naming::is_used_by_generated_code;
use proc_macro2::{TokenStream, TokenTree};
use support::positive;
use syn::ext::IdentExt;

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
        for suffix in ["Path", "Query", "Headers", "Form", "Response"] {
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
