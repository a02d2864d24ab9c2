//! `codegen`: a Dropshot server and a progenitor client from an OpenAPI document.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use codegen::{Problem, emit, load, output};

/// Generates a Dropshot server and a progenitor client from an OpenAPI 3.0 document.
#[derive(Parser)]
#[command(after_help = "\
Exit codes: 0 done (check: all fresh), 1 the document or a file is at fault, 2 check found differences.

Examples:
  Write server and client:
    codegen --spec api.yaml --server server/src/generated --client client/src/generated
  Fail in CI when they are not what the document says:
    codegen check --spec api.yaml --server server/src/generated --client client/src/generated
  Only read the document, and say what in it cannot be generated:
    codegen --spec api.yaml
  A server below a module of the crate:
    codegen --spec pets.yaml --server src/pets/generated --root crate::pets")]
struct Cli {
    /// The OpenAPI document, YAML or JSON.
    #[arg(long, global = true, value_name = "FILE", default_value = "openapi.yaml")]
    spec: PathBuf,
    /// The folder of the server's generated module; left out, no server is generated.
    #[arg(long, global = true, value_name = "DIR")]
    server: Option<PathBuf>,
    /// The folder of the client's generated module; left out, no client is generated.
    #[arg(long, global = true, value_name = "DIR")]
    client: Option<PathBuf>,
    /// The module that holds what generated code uses: `context`, `error`, `front_door` and `endpoints` for the
    /// server, `hooks` for the client.
    #[arg(long, global = true, value_name = "PATH", default_value = "crate", value_parser = parse_root)]
    root: emit::Root,
    /// What brings a request to its operation's file: Dropshot's server, or a server of your own by a table of functions.
    #[arg(long, global = true, value_enum, default_value_t)]
    dispatch: Dispatch,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Dispatch {
    /// `dispatch.rs` implements the API trait, for Dropshot's server.
    #[default]
    Dropshot,
    /// `calls.rs` is a table of the operations, each a function of a `codegen_runtime::call::Request`.
    Calls,
}

#[derive(Clone, Copy, Default, Subcommand)]
enum Command {
    /// Write the files (the default).
    #[default]
    Generate,
    /// Write nothing; fail when a file is stale, missing or orphaned.
    Check,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(code) => code,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(1)
        }
    }
}

fn parse_root(text: &str) -> Result<emit::Root, String> {
    emit::Root::new(text).ok_or_else(|| "must be a path of modules, such as `crate::http`".into())
}

fn run(cli: &Cli) -> Result<ExitCode, Problem> {
    let document = load::from_file(&cli.spec)?;
    let api = codegen::model(&document)?;
    let mut folders = Vec::new();
    if let Some(folder) = &cli.server {
        let dispatch = match cli.dispatch {
            Dispatch::Dropshot => emit::Dispatch::Dropshot,
            Dispatch::Calls => emit::Dispatch::Calls,
        };
        folders.push((folder, emit::server(&api, &cli.root, dispatch)?));
    }
    if let Some(folder) = &cli.client {
        folders.push((folder, emit::client(&document, &api, &cli.root)?));
    }
    output::apart(cli.server.as_deref(), cli.client.as_deref())?;
    for (folder, files) in &folders {
        output::writable(folder, files)?;
    }
    let mut found = Vec::new();
    for (folder, files) in &folders {
        match cli.command.unwrap_or_default() {
            Command::Check => found.extend(output::differences(folder, files)?),
            Command::Generate => {
                for path in output::write(folder, files)? {
                    println!("{}", path.display());
                }
            }
        }
    }
    if found.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    for difference in &found {
        eprintln!("{difference}");
    }
    eprintln!(
        "generated code is not what {} says: generate it anew (the same command without `check`), and commit what \
         changes",
        cli.spec.display()
    );
    Ok(ExitCode::from(2))
}
