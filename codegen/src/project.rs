//! Project files, which list several contracts.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use dropshot_codegen::emit::Dispatch;
use dropshot_codegen::{Problem, load};
use serde::Deserialize;

use crate::{Cli, Command, parse_root, run};

/// The content of a project file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Project {
    contract: Vec<Contract>,
}

/// A contract, with the options of the command line under the same names. Paths are relative to the current folder.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contract {
    spec: PathBuf,
    server: Option<PathBuf>,
    client: Option<PathBuf>,
    root: Option<String>,
    #[serde(default)]
    dispatch: Dispatch,
    templates: Option<PathBuf>,
    #[serde(default)]
    media_types: Vec<String>,
}

/// Runs the command for each contract of a project file, in order. Stops at the first error; otherwise returns the
/// worst exit code.
pub fn run_all(file: &Path, cli: &Cli) -> Result<ExitCode, Problem> {
    let contracts = read(file)?.into_iter();
    let clis: Vec<Cli> = contracts
        .map(|contract| contract.options(file, cli))
        .collect::<Result<_, _>>()?;
    if let Some(Command::New { operation }) = &cli.command {
        return match one_with(operation, &clis)? {
            Some(one) => run(one),
            None => {
                let file = file.display();
                Err(Problem::Refused(format!(
                    "no contract of {file} has an operation `{operation}`"
                )))
            }
        };
    }
    if let Some(Command::Init { .. } | Command::Explain { .. }) = &cli.command {
        let reason = "this command requires a single document; use `--spec` instead of `--project`";
        return Err(Problem::Refused(reason.into()));
    }
    let mut worst = ExitCode::SUCCESS;
    for one in &clis {
        let outcome = run(one)?;
        if outcome != ExitCode::SUCCESS {
            worst = outcome;
        }
    }
    Ok(worst)
}

fn read(file: &Path) -> Result<Vec<Contract>, Problem> {
    let text = std::fs::read_to_string(file).map_err(Problem::io(file))?;
    let file = file.display();
    let invalid = |error: toml::de::Error| Problem::Refused(format!("{file}: {}", error.to_string().trim_end()));
    let project: Project = toml::from_str(&text).map_err(invalid)?;
    match project.contract.is_empty() {
        true => Err(Problem::Refused(format!("{file} must list at least one [[contract]]"))),
        false => Ok(project.contract),
    }
}

impl Contract {
    fn options(self, file: &Path, cli: &Cli) -> Result<Cli, Problem> {
        let invalid = |problem| Problem::Refused(format!("{}: root {problem}", file.display()));
        let root = self.root.map(|root| parse_root(&root).map_err(invalid)).transpose()?;
        Ok(Cli {
            project: None,
            spec: vec![self.spec],
            server: self.server,
            client: self.client,
            root: root.unwrap_or_else(|| cli.root.clone()),
            dispatch: self.dispatch,
            templates: self.templates,
            media_types: self.media_types,
            ..cli.clone()
        })
    }
}

/// The documents of a project file.
pub fn specs(file: &Path) -> Result<Vec<PathBuf>, Problem> {
    Ok(read(file)?.into_iter().map(|contract| contract.spec).collect())
}

/// The contract that has an operation.
fn one_with<'c>(operation: &str, clis: &'c [Cli]) -> Result<Option<&'c Cli>, Problem> {
    for cli in clis {
        let documents = cli.spec.iter().map(|spec| load::from_file(spec));
        let documents = documents.map(|document| Ok(document?.with(cli.dispatch, &cli.media_types)));
        let api = dropshot_codegen::model_of(&documents.collect::<Result<Vec<_>, Problem>>()?)?;
        if api.operations.iter().any(|known| known.id == operation) {
            return Ok(Some(cli));
        }
    }
    Ok(None)
}
