//! `codegen`: a Dropshot server and a progenitor client from an OpenAPI document.

mod project;
mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use codegen::{Problem, emit, explain, load, output, refusals, scaffold};
use report::Progress;

/// Generates a Dropshot server and a progenitor client from an OpenAPI document.
#[derive(Clone, Parser)]
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
  A crate that serves from the first day, each operation answering 501 until it is written:
    codegen --spec petstore.yaml init pets && cd pets && cargo run
  The file of an operation that the document has anew:
    codegen --spec openapi.yaml new list_pets
  What becomes of a place in the document, or why nothing does:
    codegen --spec api.yaml explain '#/components/schemas/Pet/properties/name'
  A server below a module of the crate:
    codegen --spec pets.yaml --server src/pets/generated --root crate::pets
  Several contracts, each with its folders, as a file lists them:
    codegen check --project codegen.toml")]
struct Cli {
    /// A file that lists contracts (`[[contract]]`), each with the options `spec`, `server`, `client`, `root`, `dispatch` and
    /// `templates` of its own; everything is done for each, and `new` for the one that has the operation.
    #[arg(long, global = true, value_name = "FILE", conflicts_with_all = ["spec", "server", "client", "root", "dispatch", "templates"])]
    project: Option<PathBuf>,
    /// The OpenAPI document, YAML or JSON; several, each with a version of its own, become one server of all versions.
    #[arg(long, global = true, value_name = "FILE", default_value = "openapi.yaml")]
    spec: Vec<PathBuf>,
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
    /// `new`: the folder with the templates of an operation's files; left out, those of a crate made by `init`.
    #[arg(long, global = true, value_name = "DIR")]
    templates: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Clone, Copy, Default, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Dispatch {
    /// `dispatch.rs` implements the API trait, for Dropshot's server.
    #[default]
    Dropshot,
    /// `calls.rs` is a table of the operations, each a function of a `codegen_runtime::call::Request`.
    Calls,
}

impl From<Dispatch> for emit::Dispatch {
    fn from(dispatch: Dispatch) -> Self {
        match dispatch {
            Dispatch::Dropshot => emit::Dispatch::Dropshot,
            Dispatch::Calls => emit::Dispatch::Calls,
        }
    }
}

#[derive(Clone, Default, Subcommand)]
enum Command {
    /// Write the files (the default).
    #[default]
    Generate,
    /// Write nothing; fail when a file is stale, missing or orphaned.
    Check,
    /// Write a crate around the generated code, which serves; nothing is overwritten.
    Init {
        /// The crate's folder, new or empty; its last part is the crate's name.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Where codegen-runtime lies; left out, beside codegen's sources, or in the registry where they are not.
        #[arg(long, value_name = "DIR")]
        runtime: Option<PathBuf>,
    },
    /// Write the files of an operation, and name them in their modules; nothing is overwritten.
    New {
        /// The `operationId`.
        operation: String,
    },
    /// Say what is made of a place in the document: the Rust type, the rules that are checked, or why it is refused.
    Explain {
        /// The JSON pointer of the place, `#/paths/~1pets/get`; a slash in a name is written `~1`.
        pointer: String,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let worker = std::thread::Builder::new()
        .stack_size(codegen::STACK)
        .spawn(move || match &cli.project {
            Some(file) => project::run_all(file, &cli),
            None => run(&cli),
        });
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
    let mut documents = Vec::new();
    for spec in &cli.spec {
        progress.step(format!("reading {}", spec.display()));
        let document = load::from_file(spec)?;
        if let Some(Command::Explain { pointer }) = &cli.command {
            let text = explain::explain(&document, pointer)?;
            progress.done();
            println!("{text}");
            return Ok(ExitCode::SUCCESS);
        }
        let Some(document) = supported(cli, document, &progress)? else {
            return Ok(ExitCode::from(1));
        };
        documents.push(document);
    }
    let command = cli.command.as_ref().unwrap_or(&Command::Generate);
    let is_of_one = cli.client.is_some() || matches!(command, Command::Init { .. });
    let document = match documents.as_slice() {
        [first, ..] if documents.len() == 1 || !is_of_one => first,
        _ => {
            return Err(Problem::Scaffold(
                "a client, and a new crate, are of one version: name one `--spec`".into(),
            ));
        }
    };
    match command {
        Command::Generate => generate(cli, &documents, &progress, false),
        Command::Check => generate(cli, &documents, &progress, true),
        Command::Init { folder, runtime } => {
            let runtime = runtime
                .clone()
                .map_or_else(scaffold::Runtime::usual, scaffold::Runtime::Path);
            let api = codegen::model(document)?;
            let written = scaffold::init(folder, document, &api, &runtime, cli.skip_unsupported)?;
            progress.done();
            println!("{} files in {}", written.len(), folder.display());
            match runtime {
                scaffold::Runtime::Path(path) => println!("codegen-runtime is taken from {}", path.display()),
                scaffold::Runtime::Published => println!("codegen-runtime is taken from the registry"),
            }
            println!("next: cd {} && cargo run", folder.display());
            Ok(ExitCode::SUCCESS)
        }
        Command::New { operation } => new(cli, &documents, operation, &progress),
        // Answered before, also of documents that are refused.
        Command::Explain { .. } => Ok(ExitCode::SUCCESS),
    }
}

fn new(cli: &Cli, documents: &[load::Document], id: &str, progress: &Progress) -> Result<ExitCode, Problem> {
    let api = codegen::model_of(documents)?;
    let Some(operation) = api.operations.iter().find(|operation| operation.id == id) else {
        let all: Vec<&str> = api.operations.iter().map(|operation| operation.id.as_str()).collect();
        return Err(Problem::Scaffold(format!(
            "{} has no operation `{id}`; it has {}",
            shown(&cli.spec),
            all.join(", ")
        )));
    };
    let templates = match &cli.templates {
        Some(folder) => scaffold::templates(folder)?,
        None => scaffold::operation_templates(),
    };
    let mut plan = scaffold::Plan::new(Path::new(""), cli.dispatch.into());
    plan.operation(&templates, &api, operation)?;
    progress.done();
    for (path, is_new) in plan.write()? {
        println!("{} {}", if is_new { "written:" } else { "changed:" }, path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The document, or what is left of it; `None` when it is refused, which has been told.
fn supported(cli: &Cli, document: load::Document, progress: &Progress) -> Result<Option<load::Document>, Problem> {
    progress.step("looking at every operation and schema");
    let problems = refusals::all(&document);
    if problems.is_empty() {
        return Ok(Some(document));
    }
    if cli.skip_unsupported {
        progress.step("leaving out what cannot be generated");
        let (document, left) = refusals::skipping(&document)?;
        progress.done();
        report::left_out(&left, codegen::operations(&document));
        return Ok((codegen::operations(&document) > 0).then_some(document));
    }
    progress.done();
    report::refused(problems, &document.path, cli.all);
    Ok(None)
}

fn shown(specs: &[PathBuf]) -> String {
    let all: Vec<String> = specs.iter().map(|spec| spec.display().to_string()).collect();
    all.join(", ")
}

fn generate(cli: &Cli, documents: &[load::Document], progress: &Progress, check: bool) -> Result<ExitCode, Problem> {
    output::apart(cli.server.as_deref(), cli.client.as_deref())?;
    let api = codegen::model_of(documents)?;
    progress.done();
    report::unnamed(&api);
    let mut folders = Vec::new();
    if let Some(folder) = &cli.server {
        progress.step(format!("writing a server of {} operations", api.operations.len()));
        let files = emit::server(&api, &cli.root, cli.dispatch.into());
        let files = files.map_err(|problem| match documents {
            [document] => document.positions.locate(&document.path, problem),
            _ => problem,
        })?;
        folders.push((folder, files));
    }
    if let Some(folder) = &cli.client {
        progress.step(format!("writing a client of {} operations", api.operations.len()));
        for document in documents {
            folders.push((folder, emit::client(document, &api, &cli.root)?));
        }
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
        shown(&cli.spec)
    );
    Ok(ExitCode::from(2))
}
