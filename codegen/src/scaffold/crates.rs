//! A new crate that serves a document, with the error type of the document.

use std::path::{Path, PathBuf};

use super::error_body::ErrorBody;
use super::{Plan, templates};
use crate::emit::{self, Dispatch, Root};
use crate::error::Problem;
use crate::load::Document;
use crate::model::{Api, Operation, RequestIdStep, Type};
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

const OF_THE_CRATE: &str = include_str!("../../templates/crate.txtar");
/// The templates of an operation's files in a new crate.
pub const OF_EACH_OPERATION: &str = include_str!("../../templates/operation.txtar");
/// The templates of the error type: one that has the body that the document declares, and one with its own body.
const ERRORS: [&str; 2] = ["src/error_of_document.rs", "src/error.rs"];

const RAW_BODY: &str = "
/// The exact bytes of the request body.
///
/// # Errors
/// 501 until this function is implemented.
pub fn raw_body() -> Result<Vec<u8>, ApiError> {
    Err(ApiError::not_implemented(\"gateway::raw_body\"))
}
";

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
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let module = name.replace('-', "_");
    let is_part = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
    let fits = name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.chars().all(is_part);
    if !fits || syn::parse_str::<syn::Ident>(&module).is_err() {
        return Err(Problem::Refused(format!(
            "`{name}` is not a valid crate name; use letters, digits, `-` and `_`, and start with a letter"
        )));
    }
    if folder.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        let reason = format!("{} is not empty; use a new folder", folder.display());
        return Err(Problem::Refused(reason));
    }
    let is_of_several_files = document.positions.files().next().is_some();
    let spec = match is_of_several_files || document.path.extension().is_some_and(|extension| extension == "json") {
        true => "openapi.json",
        false => "openapi.yaml",
    };
    let text = match is_of_several_files {
        // Merged into one file, so that the others need not be copied.
        true => format!("{:#}\n", document.value),
        false => std::fs::read_to_string(&document.path).map_err(Problem::io(&document.path))?,
    };
    let needs_raw = api.operations.iter().any(Operation::has_raw_body);
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let error = declared_error(api);
    let checked = match api.error_body() {
        Some(ident) if error.is_some() => format!("generated::types::{ident}"),
        _ => "error::ApiError".into(),
    };
    let about_error = match &error {
        Some(_) => "the error type of all operations, with the body that the document declares",
        None => "the error type of all operations; give it the body that your document declares",
    };
    let mut values = vec![
        ("{{about_error}}", about_error.to_string()),
        ("{{crate}}", name.clone()),
        ("{{module}}", module),
        ("{{spec}}", spec.to_string()),
        ("{{skip}}", if skip { " --skip-unsupported" } else { "" }.to_string()),
        ("{{title}}", one_line(&api.title)),
        ("{{version}}", one_line(&api.version)),
        ("{{runtime}}", runtime.dependency()?),
        ("{{raw_body}}\n", if needs_raw { RAW_BODY } else { "" }.to_string()),
        ("{{checked_error}}", checked),
    ];
    let unused = ERRORS[usize::from(error.is_some())];
    values.extend(error.into_iter().flatten());
    let mut plan = Plan::new(folder, Dispatch::Dropshot);
    plan.file(spec, text)?;
    for (path, template) in templates(OF_THE_CRATE).into_iter().filter(|(path, _)| path != unused) {
        let path = if path == ERRORS[0] { ERRORS[1] } else { &path };
        let values = values.iter();
        let text = values.fold(template, |text, (name, value)| text.replace(name, value));
        plan.file(path, text)?;
    }
    let templates = templates(OF_EACH_OPERATION);
    for operation in &api.operations {
        plan.operation(&templates, api, operation)?;
    }
    let generated = emit::server(api, &Root::default(), Dispatch::Dropshot)?;
    let mut written: Vec<PathBuf> = plan.write()?.into_iter().map(|(path, _)| path).collect();
    written.extend(output::write(&folder.join("src/generated"), &generated)?);
    Ok(written)
}

/// The values of the template of an error type with the body that the document declares; `None` if errors have several
/// bodies, or nothing that the server knows is a value of it.
fn declared_error(api: &Api) -> Option<Vec<(&'static str, String)>> {
    let ident = api.error_body()?;
    let ty = Type::Named(ident.clone());
    let mut body = ErrorBody::new(api);
    let value = body.value(&ty, "", 2)?;
    let name = |name: &str, is_used: bool| if is_used { name.into() } else { format!("_{name}") };
    let [has_message, has_code] = body.uses;
    let ids = api.request_ids();
    let identified = match ids.is_empty() {
        true => "ApiError::with_code(error.status_code, error.external_message, error.error_code)",
        false => IDENTIFIED,
    };
    Some(vec![
        ("{{error}}", ident.to_string()),
        ("{{value}}", value),
        ("{{message}}", name("message", has_message)),
        ("{{code}}", name("code", has_code)),
        ("{{request_id}}", request_id(&ids)),
        ("{{identified}}", identified.into()),
    ])
}

const IDENTIFIED: &str = "let id = codegen_runtime::extractors::request_id(&error).map(str::to_string);
        let error = ApiError::with_code(error.status_code, error.external_message, error.error_code);
        match id {
            Some(id) => error.of_request(&id),
            None => error,
        }";

/// The method that sets the members with the request's ID; empty if there are none.
fn request_id(ids: &[Vec<RequestIdStep<'_>>]) -> String {
    let statements = ids.iter().map(|steps| {
        let (mut place, mut end) = ("self.body".to_string(), String::new());
        let mut start = String::new();
        for (index, (ident, ty, is_option, _)) in steps.iter().enumerate() {
            place = format!("{place}.{ident}");
            if index + 1 == steps.len() {
                let id = match ty {
                    Type::Uuid => "id.parse().unwrap_or_default()",
                    _ => "id.to_string()",
                };
                start += &match is_option {
                    true => format!("        {place} = Some({id});\n"),
                    false => format!("        {place} = {id};\n"),
                };
            } else if *is_option {
                start += &format!("        if let Some({ident}) = &mut {place} {{\n");
                place = ident.to_string();
                end += "        }\n";
            }
        }
        start + &end
    });
    let statements = String::from_iter(statements);
    if statements.is_empty() {
        return String::new();
    }
    format!(
        "
    /// Sets the ID of the request, which the body contains. Generated code calls this method for all errors of operations.
    #[must_use]
    pub fn of_request(mut self, id: &str) -> Self {{
{statements}        self
    }}
"
    )
}
