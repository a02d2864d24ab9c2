//! The text of a generated file.

use proc_macro2::{TokenStream, TokenTree};

use crate::error::Problem;
use crate::output::{File, GENERATED};

pub(super) fn file(name: &str, about: &str, tokens: TokenStream) -> Result<File, Problem> {
    let mut code = String::new();
    // Items are formatted one by one, because the syntax tree of a large client takes several times the memory of its
    // text.
    for item in items(tokens) {
        let parsed = syn::parse2(item).map_err(|error| Problem::Defect {
            file: name.to_string(),
            detail: error.to_string(),
        })?;
        code += &prettyplease::unparse(&parsed);
    }
    let allow = if name == "mod.rs" {
        "#![allow(clippy::all, clippy::unwrap_used, clippy::expect_used, missing_docs, non_camel_case_types)]\n\n"
    } else {
        ""
    };
    let text = format!("//! {about}\n//!\n{GENERATED}\n\n{allow}{code}");
    Ok(File {
        name: name.to_string(),
        text,
    })
}

/// The items of a file, in order.
pub(super) fn items(tokens: TokenStream) -> impl Iterator<Item = TokenStream> {
    let mut rest = tokens.into_iter();
    std::iter::from_fn(move || {
        let mut item = TokenStream::new();
        let mut words = Vec::new();
        for tree in rest.by_ref() {
            if let TokenTree::Ident(word) = &tree
                && words.len() < 3
                && *word != "pub"
            {
                words.push(word.to_string());
            }
            let begins = |word: &str| words.first().is_some_and(|first| first == word);
            let is_function = words
                .get(1)
                .is_some_and(|second| ["fn", "unsafe", "async", "extern"].contains(&second.as_str()));
            let ends = match &tree {
                TokenTree::Punct(punct) => punct.as_char() == ';',
                // Braces are part of these items.
                TokenTree::Group(group) if group.delimiter() == proc_macro2::Delimiter::Brace => {
                    !(["use", "static", "type"].into_iter().any(begins) || begins("const") && !is_function)
                }
                _ => false,
            };
            item.extend([tree]);
            if ends {
                break;
            }
        }
        (!item.is_empty()).then_some(item)
    })
}
