//! Commands: scripts, aliases of cargo, scripts of npm, stages of `script/test`.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::{Document, pattern};

static SCRIPT: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:^|[\s;&|(])(script/[\w-]+)((?: +[a-z]+)*)"));
static CARGO: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:^|[\s;&|(])cargo ([a-z][\w-]*)"));
static NPM: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:^|[\s;&|(])npm run(?: --?[\w-]+)* ([\w:-]+)"));
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^([a-z_]+)\(\) *\{"));

/// Commands that cargo has itself, and those of the tools that `script/setup` installs.
const CARGO_COMMANDS: [&str; 11] = [
    "build", "check", "clippy", "deny", "doc", "fmt", "install", "machete", "nextest", "run", "test",
];

/// A message for each command that the documents name in code and that the project does not have.
///
/// `script/NAME` must be an executable file, what follows `script/test` a stage of it, `cargo NAME` a command of cargo or
/// an alias in `.cargo/config.toml`, `npm run NAME` a script of `package.json`.
///
/// # Errors
///
/// When `.cargo/config.toml`, `package.json` or `script/test` cannot be read.
pub fn missing_commands(root: &Path, documents: &[Document]) -> std::io::Result<Vec<String>> {
    let text = |name: &str| std::fs::read_to_string(root.join(name));
    let config: toml::Table = text(".cargo/config.toml")?.parse().map_err(std::io::Error::other)?;
    let package: Value = serde_json::from_str(&text("package.json")?)?;
    let stages = functions(&text("script/test")?);

    let mut missing = BTreeSet::new();
    for document in documents {
        let mut objection = |what: String| missing.insert(format!("{}: {what}", document.name));
        for code in document.spans.iter().chain(&document.blocks) {
            for found in SCRIPT.captures_iter(code) {
                if !is_executable(&root.join(&found[1])) {
                    objection(format!("`{}` is no executable file", &found[1]));
                }
                for stage in found[2].split_whitespace().filter(|_| &found[1] == "script/test") {
                    if !stages.contains(stage) {
                        objection(format!("`{stage}` is no stage of script/test"));
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

/// A message for each disagreement in the text of `script/test`: a stage that its usage (`only these stages: A B`) lists
/// or that it runs by default (`stages=(A B)`) must be a function, and both lists are the same.
pub fn stages_of_usage(script: &str) -> Vec<String> {
    let functions = functions(script);
    let words = |before: &str, after: char| -> Option<Vec<String>> {
        let (_, rest) = script.rsplit_once(before)?;
        let list = rest.split(after).next()?;
        Some(list.split_whitespace().map(str::to_owned).collect())
    };
    let (Some(usage), Some(default)) = (words("only these stages:", '\n'), words("stages=(", ')')) else {
        return vec![
            "script/test: the usage (`only these stages: …`) or the default (`stages=(…)`) is gone".to_owned(),
        ];
    };
    let mut objections: Vec<String> = usage
        .iter()
        .chain(&default)
        .filter(|stage| !functions.contains(*stage))
        .map(|stage| format!("script/test: the stage `{stage}` is no function in it"))
        .collect();
    if usage != default {
        objections.push(format!(
            "script/test: the usage lists {usage:?}, and {default:?} run by default"
        ));
    }
    objections.sort();
    objections.dedup();
    objections
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
