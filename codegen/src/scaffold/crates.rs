//! A new crate that serves a document, with the error type of the document.

use std::path::{Path, PathBuf};

use syn::ext::IdentExt;

use super::{Plan, templates};
use crate::emit::{self, Dispatch, Root};
use crate::error::Problem;
use crate::load::Document;
use crate::model::{Api, Field, Others, Shape, Struct, Type};
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
}";

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
    let error = declared_error(api);
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
    let [used, unused] = if error.is_some() {
        ERRORS
    } else {
        [ERRORS[1], ERRORS[0]]
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
    for (path, template) in templates(OF_THE_CRATE).into_iter().filter(|(path, _)| path != unused) {
        let path = if path == used { ERRORS[1] } else { &path };
        plan.file(
            path,
            values
                .iter()
                .fold(template, |text, (name, value)| text.replace(name, value)),
        )?;
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

/// An error type that has the body that the document declares for all errors.
pub struct DeclaredError {
    /// The body's Rust type.
    pub ty: String,
    /// The lines that fill its fields from `status`, `message` and `code`.
    pub members: String,
    /// Whether `code` is used.
    pub has_code: bool,
    /// The names of the members that are always sent.
    pub always: Vec<String>,
}

/// The declared error body, if all errors have the same and it can be filled from an error of Dropshot.
fn declared_error(api: &Api) -> Option<DeclaredError> {
    let ident = api
        .operations
        .iter()
        .find_map(|operation| operation.error_type.as_ref())?;
    if api.operations.iter().any(|operation| api.failure(operation).is_some()) {
        return None;
    }
    let definition = api.types.iter().find(|definition| definition.ident == *ident)?;
    let Shape::Struct(Struct { fields, others }) = &definition.shape else {
        return None;
    };
    let mut members = String::new();
    for field in fields {
        members += &format!("            {}: {},\n", field.ident, value(field)?);
    }
    if let Others::Kept(field) = others {
        members += &format!("            {}: Default::default(),\n", field.ident);
    }
    let always = fields.iter().filter(|field| field.required && !field.nullable);
    members.contains("message").then(|| DeclaredError {
        ty: ident.unraw().to_string(),
        has_code: members.contains("code.") || members.contains(": code,"),
        members,
        always: always.map(|field| field.name.clone()).collect(),
    })
}

/// The expression for a field; `None` if a required field cannot be filled.
fn value(field: &Field) -> Option<String> {
    let name = field.name.to_lowercase();
    let is_named = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let is_code = is_named(&["code", "status"]);
    let known = match &field.ty {
        Type::String(rules) if rules.pattern.is_none() && rules.format.is_none() => match is_code {
            true if field.is_option() => return Some("code".into()),
            true => Some("code.unwrap_or_else(|| status.as_u16().to_string())"),
            false if is_named(&["message", "detail", "description", "reason", "error", "title"]) => {
                Some("message.clone()")
            }
            false if field.is_option() => None,
            false => Some("String::new()"),
        },
        Type::Integer { kind, .. } if is_code && kind.range().1 >= u16::MAX.into() => Some("status.as_u16().into()"),
        _ => None,
    };
    match known {
        Some(known) if field.is_option() => Some(format!("Some({known})")),
        Some(known) => Some(known.into()),
        None => field.is_option().then(|| "None".into()),
    }
}
