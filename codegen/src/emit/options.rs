//! Choices of the caller: where the generated code finds its context, and how requests are dispatched.

use proc_macro2::TokenStream;

/// The module that contains what the generated code uses: `context`, `error`, `gateway` and `endpoints` for a
/// server, `hooks` for a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Root(String);

impl Root {
    /// Parses a module path such as `crate::http`; `None` if it is invalid.
    pub fn new(text: &str) -> Option<Self> {
        let path: syn::Path = syn::parse_str(text).ok()?;
        let plain = path.segments.iter().all(|part| part.arguments.is_empty());
        plain.then(|| Root(text.to_string()))
    }

    pub(super) fn tokens(&self) -> TokenStream {
        // `new` has parsed the text.
        self.0.parse().unwrap_or_default()
    }
}

impl Default for Root {
    /// `crate`
    fn default() -> Self {
        Root("crate".into())
    }
}

/// How requests reach their operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Dispatch {
    /// Generate `dispatch.rs`, which implements the API trait, for Dropshot's server
    #[default]
    Dropshot,
    /// Generate `calls.rs`, a table of functions that each take a `codegen_runtime::call::Request`, and a `dispatch.rs` that
    /// implements the API trait with a gateway
    Calls,
}
