//! The `dropshot-codegen` command: generates a Dropshot server and a progenitor client from an OpenAPI document.

mod project;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::{Parser, Subcommand};
use dropshot_codegen::emit::{self, Dispatch};
use dropshot_codegen::{Problem, explain, load, output, rejections, scaffold};

/// Generates a Dropshot server and a progenitor client from an OpenAPI document.
#[derive(Clone, Parser)]
#[command(after_help = "\
Exit codes: 0 success (check: all files are fresh), 1 the document or a file has an error, 2 check found differences.

Examples:
  Generate a server and a client:
    dropshot-codegen --spec api.yaml --server server/src/generated --client client/src/generated
  Fail in CI if they do not match the document:
    dropshot-codegen check --spec api.yaml --server server/src/generated --client client/src/generated
  Only check the document, and list everything in it that is not supported:
    dropshot-codegen --spec api.yaml --all
  Write a crate that serves the document, which returns 501 until the operations are implemented:
    dropshot-codegen --spec petstore.yaml init pets && cd pets && cargo run
  Explain what is generated for a place in the document, or why it is rejected:
    dropshot-codegen --spec api.yaml explain '#/components/schemas/Pet/properties/name'
  Check several contracts that a file lists:
    dropshot-codegen check --project codegen.toml")]
struct Cli {
    /// A file that lists several contracts (`[[contract]]`), each with its own `spec`, `server`, `client`, `root`,
    /// `dispatch`, `templates` and `media_types`. The command runs for each of them; `new` runs for the one that has the operation
    #[arg(long, global = true, value_name = "FILE", conflicts_with_all = ["spec", "server", "client", "root", "dispatch", "templates", "media_types"])]
    project: Option<PathBuf>,
    /// The OpenAPI document, in YAML or JSON. Several documents with different versions become one server of all
    /// versions
    #[arg(long, global = true, value_name = "FILE", default_value = "openapi.yaml")]
    spec: Vec<PathBuf>,
    /// The folder for the server's generated module. Without it, no server is generated
    #[arg(long, global = true, value_name = "DIR")]
    server: Option<PathBuf>,
    /// The folder for the client's generated module. Without it, no client is generated
    #[arg(long, global = true, value_name = "DIR")]
    client: Option<PathBuf>,
    /// The module that contains what the generated code uses: `context`, `error`, `gateway` and `endpoints` for a
    /// server, `hooks` for a client
    #[arg(long, global = true, value_name = "PATH", default_value = "crate", value_parser = parse_root)]
    root: emit::Root,
    /// How requests reach their operations: through Dropshot's server, or through a table of functions for your own
    /// server
    #[arg(long, global = true, value_enum, default_value_t)]
    dispatch: Dispatch,
    /// The media type to support where a body or a response has several. Repeat it in order of preference
    #[arg(long = "media-type", global = true, value_name = "TYPE")]
    media_types: Vec<String>,
    /// List every error with its place, not only the first with a summary of the others
    #[arg(long, global = true)]
    all: bool,
    /// Print every error as a line of JSON on standard output, with its file, its range, its pointer and the reason
    #[arg(long, global = true, conflicts_with = "all")]
    json: bool,
    /// Leave out the operations that are not supported, list them, and generate the others
    #[arg(long, global = true)]
    skip_unsupported: bool,
    /// For `new`: the file with the templates of an operation's files [default: the templates of a crate made by
    /// `init`]
    #[arg(long, global = true, value_name = "FILE")]
    templates: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Clone, Default, Subcommand)]
enum Command {
    /// Write the generated files (the default)
    #[default]
    Generate,
    /// Write nothing, and fail if a file is stale, missing or orphaned
    Check,
    /// Write the generated files, and again whenever a document changes, until it is interrupted
    Watch,
    /// Write a crate that serves the document. Existing files are never overwritten
    Init {
        /// The crate's folder, which must be new or empty. Its last component is the crate's name
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// The folder of codegen-runtime [default: the one beside the generator's sources, or else the registry]
        #[arg(long, value_name = "DIR")]
        runtime: Option<PathBuf>,
    },
    /// Write the files of an operation and add it to its modules. Existing files are never overwritten
    New {
        /// The `operationId`
        operation: String,
    },
    /// Explain what is generated for a place in the document: the Rust type, the rules that are checked, or why it is
    /// rejected
    Explain {
        /// The JSON pointer of the place, such as `#/paths/~1pets/get`. Write `~1` for a slash in a name
        pointer: String,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let worker = std::thread::Builder::new()
        .stack_size(dropshot_codegen::STACK)
        .spawn(move || match &cli.command {
            Some(Command::Watch) => watch(cli),
            _ => run_all(&cli),
        });
    let outcome = match worker.map(std::thread::JoinHandle::join) {
        Ok(Ok(outcome)) => outcome,
        // The panic hook has already printed the message.
        Ok(Err(_)) => return ExitCode::from(101),
        Err(source) => Err(Problem::io(Path::new("dropshot-codegen"))(source)),
    };
    match outcome {
        Ok(code) => code,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(1)
        }
    }
}

fn run_all(cli: &Cli) -> Result<ExitCode, Problem> {
    match &cli.project {
        Some(file) => project::run_all(file, cli),
        None => run(cli),
    }
}

fn parse_root(text: &str) -> Result<emit::Root, String> {
    emit::Root::new(text).ok_or_else(|| "must be a path of modules, such as `crate::http`".into())
}

fn run(cli: &Cli) -> Result<ExitCode, Problem> {
    let mut documents = Vec::new();
    for spec in &cli.spec {
        let document = match load::from_file(spec) {
            Err(problem) if cli.json => {
                println!("{}", report::line(&problem));
                return Ok(ExitCode::from(1));
            }
            loaded => loaded?.with(cli.dispatch, &cli.media_types),
        };
        if let Some(Command::Explain { pointer }) = &cli.command {
            println!("{}", explain::explain(&document, pointer)?);
            return Ok(ExitCode::SUCCESS);
        }
        let Some(document) = supported(cli, document)? else {
            return Ok(ExitCode::from(1));
        };
        documents.push(document);
    }
    let command = cli.command.as_ref().unwrap_or(&Command::Generate);
    let is_of_one = cli.client.is_some() || matches!(command, Command::Init { .. });
    let document = match documents.as_slice() {
        [first, ..] if documents.len() == 1 || !is_of_one => first,
        _ => {
            let reason = "a client or a new crate must have exactly one `--spec`";
            return Err(Problem::Refused(reason.into()));
        }
    };
    match command {
        Command::Generate | Command::Watch => generate(cli, &documents, false),
        Command::Check => generate(cli, &documents, true),
        Command::Init { folder, runtime } => {
            let runtime = runtime.clone().map(scaffold::Runtime::Path);
            let runtime = runtime.unwrap_or_else(scaffold::Runtime::usual);
            let api = dropshot_codegen::model(document)?;
            let written = scaffold::init(folder, document, &api, &runtime, cli.skip_unsupported)?;
            println!("{} files in {}", written.len(), folder.display());
            match runtime {
                scaffold::Runtime::Path(path) => println!("using codegen-runtime from {}", path.display()),
                scaffold::Runtime::Published => println!("using codegen-runtime from the registry"),
            }
            println!("next: cd {} && cargo run", folder.display());
            Ok(ExitCode::SUCCESS)
        }
        Command::New { operation } => new(cli, &documents, operation),
        // Handled above, so that rejected documents can be explained too.
        Command::Explain { .. } => Ok(ExitCode::SUCCESS),
    }
}

fn new(cli: &Cli, documents: &[load::Document], id: &str) -> Result<ExitCode, Problem> {
    let api = dropshot_codegen::model_of(documents)?;
    let Some(operation) = api.operations.iter().find(|operation| operation.id == id) else {
        let all: Vec<&str> = api.operations.iter().map(|operation| operation.id.as_str()).collect();
        let (specs, all) = (shown(&cli.spec), all.join(", "));
        return Err(Problem::Refused(format!(
            "{specs} has no operation `{id}`; it has {all}"
        )));
    };
    let templates = match &cli.templates {
        Some(file) => scaffold::templates(&std::fs::read_to_string(file).map_err(Problem::io(file))?),
        None => scaffold::templates(scaffold::OF_EACH_OPERATION),
    };
    let mut plan = scaffold::Plan::new(Path::new(""), cli.dispatch);
    plan.operation(&templates, &api, operation)?;
    for (path, is_new) in plan.write()? {
        println!("{} {}", if is_new { "written:" } else { "changed:" }, path.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The document, without its unsupported operations if they are to be skipped. `None` if it is rejected, which has been
/// reported.
fn supported(cli: &Cli, document: load::Document) -> Result<Option<load::Document>, Problem> {
    let problems = rejections::all(&document);
    if problems.is_empty() {
        return Ok(Some(document));
    }
    if cli.json {
        problems
            .iter()
            .for_each(|problem| println!("{}", report::line(problem)));
    }
    if cli.skip_unsupported {
        let (document, left) = rejections::skipping(&document)?;
        report::left_out(&left, dropshot_codegen::operations(&document));
        return Ok((dropshot_codegen::operations(&document) > 0).then_some(document));
    }
    if !cli.json {
        report::rejected(problems, &document.path, cli.all);
    }
    Ok(None)
}

fn shown(specs: &[PathBuf]) -> String {
    let all: Vec<String> = specs.iter().map(|spec| spec.display().to_string()).collect();
    all.join(", ")
}

fn generate(cli: &Cli, documents: &[load::Document], check: bool) -> Result<ExitCode, Problem> {
    output::apart(cli.server.as_deref(), cli.client.as_deref())?;
    let api = dropshot_codegen::model_of(documents)?;
    report::unnamed(&api);
    documents.iter().for_each(report::own_requests);
    if cli.dispatch == Dispatch::Calls && cli.server.is_some() {
        report::without_trait(&api);
    }
    let mut folders = Vec::new();
    if let Some(folder) = &cli.server {
        folders.push((folder, emit::server(&api, &cli.root, cli.dispatch)?));
    }
    if let Some(folder) = &cli.client {
        for document in documents {
            folders.push((folder, emit::client(document, &api, &cli.root)?));
        }
    }
    let mut found = Vec::new();
    for (folder, files) in &folders {
        match check {
            true => found.extend(output::differences(folder, files)?),
            false => output::writable(folder, files)?,
        }
    }
    for (folder, files) in folders.iter().filter(|_| !check) {
        for path in output::write(folder, files)? {
            println!("{}", path.display());
        }
    }
    if found.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    for difference in &found {
        eprintln!("{difference}");
    }
    eprintln!(
        "the generated code does not match {}; run the same command without `check` and commit the changes",
        shown(&cli.spec)
    );
    Ok(ExitCode::from(2))
}

/// The interval at which the files are polled.
const PAUSE: Duration = Duration::from_millis(300);

/// When each file was last changed, and its size; `None` for a file that cannot be read.
type State = BTreeMap<PathBuf, Option<(SystemTime, u64)>>;

/// Generates the code now and after every change. Errors are printed; the next change may fix them.
fn watch(cli: Cli) -> Result<ExitCode, Problem> {
    let mut files = Vec::new();
    loop {
        // The state is read first, so that changes made while the code is generated are detected.
        files = sources(&cli, files);
        let before = state(&files);
        if let Err(problem) = run_all(&cli) {
            eprintln!("error: {problem}");
        }
        eprintln!("watching {} files; Ctrl-C ends", before.len());
        while state(&files) == before {
            std::thread::sleep(PAUSE);
        }
    }
}

/// The files from which the code is generated. If a document cannot be read, its parts are unknown, so `earlier` files are
/// kept: one of them may be the reason.
fn sources(cli: &Cli, earlier: Vec<PathBuf>) -> Vec<PathBuf> {
    let listed = cli.project.as_ref().map(|file| project::specs(file));
    let specs = match listed {
        Some(Ok(specs)) => specs,
        Some(Err(_)) => earlier.clone(),
        None => cli.spec.clone(),
    };
    let documents: Vec<_> = specs.iter().map(|spec| load::from_file(spec)).collect();
    let kept = documents.iter().any(Result::is_err).then_some(earlier);
    let documents = documents.iter().flatten();
    let parts = documents.flat_map(|document| document.positions.files().map(Path::to_path_buf));
    let all = cli.project.iter().cloned().chain(specs).chain(parts);
    let all = BTreeSet::from_iter(all.chain(kept.into_iter().flatten()));
    all.into_iter().collect()
}

fn state(files: &[PathBuf]) -> State {
    let state = |file: &Path| {
        let about = std::fs::metadata(file).ok()?;
        Some((about.modified().ok()?, about.len()))
    };
    files.iter().map(|file| (file.clone(), state(file))).collect()
}
