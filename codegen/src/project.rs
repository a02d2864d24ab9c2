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
    let contracts = read(file)?;
    let mut clis = Vec::new();
    for contract in contracts {
        clis.push(contract.options(file, cli)?);
    }
    if let Some(Command::New { operation }) = &cli.command {
        return match one_with(operation, &clis)? {
            Some(one) => run(one),
            None => Err(Problem::Scaffold(format!(
                "no contract of {} has an operation `{operation}`",
                file.display()
            ))),
        };
    }
    if let Some(Command::Init { .. } | Command::Explain { .. }) = &cli.command {
        return Err(Problem::Scaffold(
            "this command requires a single document; use `--spec` instead of `--project`".into(),
        ));
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
    let project: Project = toml::from_str(&text)
        .map_err(|error| Problem::Scaffold(format!("{}: {}", file.display(), error.to_string().trim_end())))?;
    match project.contract.is_empty() {
        true => Err(Problem::Scaffold(format!(
            "{} must list at least one [[contract]]",
            file.display()
        ))),
        false => Ok(project.contract),
    }
}

impl Contract {
    fn options(self, file: &Path, cli: &Cli) -> Result<Cli, Problem> {
        let root = match &self.root {
            Some(root) => {
                parse_root(root).map_err(|problem| Problem::Scaffold(format!("{}: root {problem}", file.display())))?
            }
            None => cli.root.clone(),
        };
        Ok(Cli {
            project: None,
            spec: vec![self.spec],
            server: self.server,
            client: self.client,
            root,
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
        let mut documents = Vec::new();
        for spec in &cli.spec {
            documents.push(load::from_file(spec)?.with(cli.dispatch, &cli.media_types));
        }
        let api = dropshot_codegen::model_of(&documents)?;
        if api.operations.iter().any(|known| known.id == operation) {
            return Ok(Some(cli));
        }
    }
    Ok(None)
}
