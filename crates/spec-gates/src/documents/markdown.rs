//! Extracts inline code, links and code blocks from Markdown.

use std::path::Path;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// The parts of a Markdown document that are checked.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// Its path relative to the project's root, for messages.
    pub name: String,
    /// Inline code.
    pub spans: Vec<String>,
    /// Code blocks without a language: commands, or a tree of folders.
    pub blocks: Vec<String>,
    /// Targets of links and images.
    pub links: Vec<String>,
}

impl Document {
    /// Reads the document `name` below `root`.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn read(root: &Path, name: &str) -> std::io::Result<Self> {
        Ok(Self::parse(name, &std::fs::read_to_string(root.join(name))?))
    }

    /// Parses Markdown, including tables.
    pub fn parse(name: &str, text: &str) -> Self {
        let mut document = Self {
            name: name.to_owned(),
            ..Self::default()
        };
        let mut block: Option<String> = None;
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)) => block = Some(String::new()),
                // Blocks with a language are programs, which other tests run.
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) if language.is_empty() => {
                    block = Some(String::new());
                }
                Event::Text(text) => {
                    if let Some(block) = &mut block {
                        block.push_str(&text);
                    }
                }
                Event::End(TagEnd::CodeBlock) => document.blocks.extend(block.take()),
                Event::Code(code) => document.spans.push(code.into_string()),
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    document.links.push(dest_url.into_string());
                }
                _ => {}
            }
        }
        document
    }
}
