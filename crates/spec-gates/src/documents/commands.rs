//! Commands in documents: scripts, Cargo aliases, npm scripts, and the stages of `script/check`.

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

/// Cargo's own commands, and those of the tools that `script/setup` installs.
const CARGO_COMMANDS: [&str; 13] = [
    "build", "check", "clippy", "deny", "doc", "fmt", "install", "machete", "mutants", "nextest", "publish", "run",
    "test",
];

/// Returns a message for each command in the documents' code that does not exist.
///
/// - `script/NAME` must be an executable file.
/// - Each word after `script/check` must be one of its stages.
/// - `cargo NAME` must be a command of cargo or an alias in `.cargo/config.toml`.
/// - `npm run NAME` must be a script of `package.json`.
///
/// # Errors
///
/// If `.cargo/config.toml`, `package.json` or `script/check` cannot be read.
pub fn missing_commands(root: &Path, documents: &[Document]) -> std::io::Result<Vec<String>> {
    let text = |name: &str| std::fs::read_to_string(root.join(name));
    let config: toml::Table = text(".cargo/config.toml")?.parse().map_err(std::io::Error::other)?;
    let package: Value = serde_json::from_str(&text("package.json")?)?;
    let stages = functions(&text("script/check")?);

    let mut missing = BTreeSet::new();
    for document in documents {
        let mut violation = |what: String| missing.insert(format!("{}: {what}", document.name));
        for code in document.spans.iter().chain(&document.blocks) {
            for found in SCRIPT.captures_iter(code) {
                // A folder of files that scripts use.
                if !found[2].is_empty() {
                    continue;
                }
                if !is_executable(&root.join(&found[1])) {
                    violation(format!("`{}` is not an executable file", &found[1]));
                }
                for stage in found[3].split_whitespace().filter(|_| &found[1] == "script/check") {
                    if !stages.contains(stage) {
                        violation(format!("`{stage}` is not a stage of script/check"));
                    }
                }
            }
            for found in CARGO.captures_iter(code) {
                let alias = config.get("alias").and_then(|aliases| aliases.get(&found[1]));
                if alias.is_none() && !CARGO_COMMANDS.contains(&&found[1]) {
                    violation(format!(
                        "`cargo {}` is neither a command of cargo nor an alias in .cargo/config.toml",
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
                    violation(format!("`npm run {}` is not a script of package.json", &found[1]));
                }
            }
        }
    }
    Ok(missing.into_iter().collect())
}

/// Returns the names of the functions of a shell script.
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
