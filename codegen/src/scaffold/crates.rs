//! A new crate that serves a document.

use std::path::{Path, PathBuf};

use super::errors;
use super::plan::{Plan, Template};
use crate::emit::{self, Dispatch, Root};
use crate::error::Problem;
use crate::load::Document;
use crate::model::Api;
use crate::output;

/// The source of the `codegen-runtime` dependency.
#[derive(Clone, Debug)]
pub enum Runtime {
    /// A local folder.
    Path(PathBuf),
    /// The registry, in the same version as this generator.
    Published,
}

impl Runtime {
    /// The folder beside this generator's sources if it exists, otherwise the registry.
    pub fn usual() -> Self {
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("runtime");
        match beside.join("Cargo.toml").exists() {
            true => Runtime::Path(beside),
            false => Runtime::Published,
        }
    }

    fn dependency(&self) -> Result<String, Problem> {
        let Runtime::Path(path) = self else {
            return Ok(format!("\"{}\"", env!("CARGO_PKG_VERSION")));
        };
        let whole = std::fs::canonicalize(path).map_err(Problem::io(path))?;
        Ok(format!("{{ path = {:?} }}", whole.display().to_string()))
    }
}

macro_rules! files {
    ($($path:literal => $template:literal,)*) => {
        &[$(($path, include_str!(concat!("../../templates/crate/", $template)))),*]
    };
}

const OF_THE_CRATE: &[(&str, &str)] = files! {
    ".gitignore" => "gitignore.template",
    "Cargo.toml" => "Cargo.toml.template",
    "README.md" => "README.md.template",
    "src/context.rs" => "src/context.rs.template",
    "src/gateway.rs" => "src/gateway.rs.template",
    "src/lib.rs" => "src/lib.rs.template",
    "src/main.rs" => "src/main.rs.template",
    "src/endpoints/mod.rs" => "src/endpoints/mod.rs.template",
    "tests/serving.rs" => "tests/serving.rs.template",
};

const DEFAULT_ERROR: &str = include_str!("../../templates/crate/src/error.rs.template");
const DECLARED_ERROR: &str = include_str!("../../templates/crate/src/error_of_document.rs.template");

const OF_EACH_OPERATION: &[(&str, &str)] = files! {
    "src/endpoints/{tag}/mod.rs.template" => "src/endpoints/{tag}/mod.rs.template",
    "src/endpoints/{tag}/{operation}.rs.template" => "src/endpoints/{tag}/{operation}.rs.template",
    "src/endpoints/mod.rs.lines" => "src/endpoints/mod.rs.lines",
    "src/endpoints/{tag}/mod.rs.lines" => "src/endpoints/{tag}/mod.rs.lines",
};

const RAW_BODY: &str = "
/// The exact bytes of the request body.
///
/// # Errors
/// 501 until this function is implemented.
pub fn raw_body() -> Result<Vec<u8>, ApiError> {
    Err(ApiError::not_implemented(\"gateway::raw_body\"))
}";

/// The templates of an operation's files in a new crate.
pub fn operation_templates() -> Vec<Template> {
    OF_EACH_OPERATION
        .iter()
        .map(|(path, text)| Template {
            path: (*path).to_string(),
            text: (*text).to_string(),
        })
        .collect()
}

/// Writes a crate to `folder`, which must not exist or be empty, and returns the written files. `skip` means that some
/// operations of the document were left out.
///
/// # Errors
/// If the folder is not empty, its name is not a valid crate name, or a file cannot be written.
pub fn init(
    folder: &Path,
    document: &Document,
    api: &Api,
    runtime: &Runtime,
    skip: bool,
) -> Result<Vec<PathBuf>, Problem> {
    let name = folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let fits = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || it == '-' || it == '_');
    if !fits || syn::parse_str::<syn::Ident>(&name.replace('-', "_")).is_err() {
        return Err(Problem::Scaffold(format!(
            "`{name}` is not a valid crate name; use letters, digits, `-` and `_`, and start with a letter"
        )));
    }
    let is_occupied = folder.read_dir().is_ok_and(|mut entries| entries.next().is_some());
    if is_occupied {
        return Err(Problem::Scaffold(format!(
            "{} is not empty; use a new folder",
            folder.display()
        )));
    }
    let is_of_several_files = document.positions.are_of_several_files();
    let spec = match is_of_several_files || document.path.extension().is_some_and(|extension| extension == "json") {
        true => "openapi.json",
        false => "openapi.yaml",
    };
    let text = match is_of_several_files {
        // Merged into one file, so that the others need not be copied.
        true => format!("{:#}\n", document.value),
        false => std::fs::read_to_string(&document.path).map_err(Problem::io(&document.path))?,
    };
    let needs_raw = api
        .operations
        .iter()
        .any(|operation| operation.body.as_ref().is_some_and(|body| body.raw));
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let error = errors::declared(api);
    let about_error = match &error {
        Some(_) => "the error type of all operations, with the body that the document declares",
        None => "the error type of all operations; give it the body that your document declares",
    };
    let mut values = vec![
        ("{{about_error}}", about_error.to_string()),
        ("{{crate}}", name.clone()),
        ("{{module}}", name.replace('-', "_")),
        ("{{spec}}", spec.to_string()),
        ("{{skip}}", if skip { " --skip-unsupported" } else { "" }.to_string()),
        ("{{title}}", one_line(&api.title)),
        ("{{version}}", one_line(&api.version)),
        ("{{runtime}}", runtime.dependency()?),
        (
            "{{raw_body}}\n",
            if needs_raw {
                format!("{RAW_BODY}\n")
            } else {
                String::new()
            },
        ),
    ];
    let error_file = match &error {
        Some(_) => DECLARED_ERROR,
        None => DEFAULT_ERROR,
    };
    let always = match error {
        Some(error) => {
            let code = if error.has_code { "code" } else { "_code" };
            values.push(("{{code}}", code.into()));
            values.push(("{{error}}", error.ty));
            values.push(("{{members}}", error.members));
            error.always
        }
        None => vec!["message".into()],
    };
    values.push(("{{error_members}}", format!("{always:?}")));
    let mut plan = Plan::new(folder, Dispatch::Dropshot);
    plan.file(spec, text)?;
    for (path, template) in OF_THE_CRATE.iter().chain(&[("src/error.rs", error_file)]) {
        let text = values
            .iter()
            .fold((*template).to_string(), |text, (name, value)| text.replace(name, value));
        plan.file(path, text)?;
    }
    let templates = operation_templates();
    for operation in &api.operations {
        plan.operation(&templates, api, operation)?;
    }
    let generated = emit::server(api, &Root::default(), Dispatch::Dropshot)?;
    let mut written: Vec<PathBuf> = plan.write()?.into_iter().map(|(path, _)| path).collect();
    written.extend(output::write(&folder.join("src/generated"), &generated)?);
    Ok(written)
}
