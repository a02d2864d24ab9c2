//! The commands that documents name: scripts, Cargo aliases, npm scripts, and the stages of `script/check`.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::{Document, pattern};

static SCRIPT: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:^|[\s;&|(])(script/[\w-]+)(/?)((?: +[a-z]+)*)"));
static CARGO: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:^|[\s;&|(])cargo ([a-z][\w-]*)"));
static NPM: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:^|[\s;&|(])npm run(?: --?[\w-]+)* ([\w:-]+)"));
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^([a-z_]+)\(\) *\{"));

/// Commands that cargo has itself, and those of the tools that `script/setup` installs.
const CARGO_COMMANDS: [&str; 11] = [
    "build", "check", "clippy", "deny", "doc", "fmt", "install", "machete", "nextest", "run", "test",
];

/// A message for each command that the documents name in code and that the project does not have.
///
/// `script/NAME` must be an executable file, each word after `script/check` one of its stages, `cargo NAME` a command of cargo or
/// an alias in `.cargo/config.toml`, `npm run NAME` a script of `package.json`.
///
/// # Errors
///
/// When `.cargo/config.toml`, `package.json` or `script/check` cannot be read.
pub fn missing_commands(root: &Path, documents: &[Document]) -> std::io::Result<Vec<String>> {
    let text = |name: &str| std::fs::read_to_string(root.join(name));
    let config: toml::Table = text(".cargo/config.toml")?.parse().map_err(std::io::Error::other)?;
    let package: Value = serde_json::from_str(&text("package.json")?)?;
    let stages = functions(&text("script/check")?);

    let mut missing = BTreeSet::new();
    for document in documents {
        let mut objection = |what: String| missing.insert(format!("{}: {what}", document.name));
        for code in document.spans.iter().chain(&document.blocks) {
            for found in SCRIPT.captures_iter(code) {
                // A folder of files that scripts use.
                if !found[2].is_empty() {
                    continue;
                }
                if !is_executable(&root.join(&found[1])) {
                    objection(format!("`{}` is no executable file", &found[1]));
                }
                for stage in found[3].split_whitespace().filter(|_| &found[1] == "script/check") {
                    if !stages.contains(stage) {
                        objection(format!("`{stage}` is no stage of script/check"));
                    }
                }
            }
            for found in CARGO.captures_iter(code) {
                let alias = config.get("alias").and_then(|aliases| aliases.get(&found[1]));
                if alias.is_none() && !CARGO_COMMANDS.contains(&&found[1]) {
                    objection(format!(
                        "`cargo {}` is neither cargo's nor an alias in .cargo/config.toml",
                        &found[1]
                    ));
                }
            }
            for found in NPM.captures_iter(code) {
                if package
                    .pointer("/scripts")
                    .and_then(|scripts| scripts.get(&found[1]))
                    .is_none()
                {
                    objection(format!("`npm run {}` is no script of package.json", &found[1]));
                }
            }
        }
    }
    Ok(missing.into_iter().collect())
}

/// The names of the functions of a shell script.
fn functions(script: &str) -> BTreeSet<String> {
    FUNCTION
        .captures_iter(script)
        .map(|found| found[1].to_owned())
        .collect()
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}
