//! `codegen`: a Dropshot server and a progenitor client from an OpenAPI document.

mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use codegen::{Problem, emit, load, output, refusals};
use report::Progress;

/// Generates a Dropshot server and a progenitor client from an OpenAPI 3.0 document.
#[derive(Parser)]
#[command(after_help = "\
Exit codes: 0 done (check: all fresh), 1 the document or a file is at fault, 2 check found differences.

Examples:
  Write server and client:
    codegen --spec api.yaml --server server/src/generated --client client/src/generated
  Fail in CI when they are not what the document says:
    codegen check --spec api.yaml --server server/src/generated --client client/src/generated
  Only read the document, and list everything in it that cannot be generated:
    codegen --spec api.yaml --all
  Begin with a document of which not everything can be generated yet:
    codegen --spec api.yaml --server src/generated --skip-unsupported
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
    /// Where the document cannot be generated: list every place, not only the first and the causes.
    #[arg(long, global = true)]
    all: bool,
    /// Leave out the operations that cannot be generated, list them, and generate the others.
    #[arg(long, global = true)]
    skip_unsupported: bool,
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

#[derive(Clone, Default, Subcommand)]
enum Command {
    /// Write the files (the default).
    #[default]
    Generate,
    /// Write nothing; fail when a file is stale, missing or orphaned.
    Check,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let worker = std::thread::Builder::new()
        .stack_size(codegen::STACK)
        .spawn(move || run(&cli));
    let outcome = match worker.map(std::thread::JoinHandle::join) {
        Ok(Ok(outcome)) => outcome,
        // The panic has been printed.
        Ok(Err(_)) => return ExitCode::from(101),
        Err(source) => Err(Problem::Io {
            path: "codegen".into(),
            source,
        }),
    };
    match outcome {
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
    let progress = Progress::new();
    progress.step(format!("reading {}", cli.spec.display()));
    let document = load::from_file(&cli.spec)?;
    let Some(document) = supported(cli, document, &progress)? else {
        return Ok(ExitCode::from(1));
    };
    match cli.command.as_ref().unwrap_or(&Command::Generate) {
        Command::Generate => generate(cli, &document, &progress, false),
        Command::Check => generate(cli, &document, &progress, true),
    }
}

/// The document, or what is left of it; `None` when it is refused, which has been told.
fn supported(cli: &Cli, document: load::Document, progress: &Progress) -> Result<Option<load::Document>, Problem> {
    progress.step("looking at every operation and schema");
    let problems = refusals::all(&document, cli.client.is_some());
    if problems.is_empty() {
        return Ok(Some(document));
    }
    if cli.skip_unsupported {
        progress.step("leaving out what cannot be generated");
        let (document, left) = refusals::skipping(&document, cli.client.is_some())?;
        progress.done();
        report::left_out(&left, codegen::operations(&document));
        return Ok((codegen::operations(&document) > 0).then_some(document));
    }
    progress.done();
    report::refused(problems, &cli.spec, cli.all);
    Ok(None)
}

fn generate(cli: &Cli, document: &load::Document, progress: &Progress, check: bool) -> Result<ExitCode, Problem> {
    output::apart(cli.server.as_deref(), cli.client.as_deref())?;
    let api = codegen::model(document)?;
    let mut folders = Vec::new();
    if let Some(folder) = &cli.server {
        let dispatch = match cli.dispatch {
            Dispatch::Dropshot => emit::Dispatch::Dropshot,
            Dispatch::Calls => emit::Dispatch::Calls,
        };
        progress.step(format!("writing a server of {} operations", api.operations.len()));
        folders.push((folder, emit::server(&api, &cli.root, dispatch)?));
    }
    if let Some(folder) = &cli.client {
        progress.step(format!("writing a client of {} operations", api.operations.len()));
        folders.push((folder, emit::client(document, &api, &cli.root)?));
    }
    progress.done();
    let mut found = Vec::new();
    for (folder, files) in &folders {
        match check {
            true => found.extend(output::differences(folder, files)?),
            false => output::writable(folder, files)?,
        }
    }
    if !check {
        for (folder, files) in &folders {
            for path in output::write(folder, files)? {
                println!("{}", path.display());
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
