//! The configuration file: profiles, each with a service and a key.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use partner_api_client::{Connector, Secret};
use partner_api_terminal::output::{Output, Row};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::PartialAccount;
use super::secret::Source;
use crate::failure::Failure;
use crate::platform::{self, check_private, private};
use crate::text;

/// The content of the file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    default: Option<String>,
    #[serde(default)]
    profiles: BTreeMap<String, Profile>,
}

/// A service and a key. Exactly one of the last three fields names the source of the secret.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    base_url: String,
    key_id: String,
    secret_file: Option<PathBuf>,
    secret_env: Option<String>,
    secret_command: Option<Vec<String>>,
}

/// The configuration; empty if the file does not exist.
pub(crate) struct Config {
    path: PathBuf,
    content: ConfigFile,
}

/// Returns the path of the configuration file.
pub(super) fn path(given: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = given {
        return Ok(path.to_owned());
    }
    if let Some(path) = std::env::var_os("PARTNER_CONFIG").filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    platform::configuration_folder()
        .map(|folder| folder.join("partner").join("config.toml"))
        .ok_or_else(|| {
            Failure::Usage("failed to find the home folder; pass the configuration file with --config FILE".to_owned())
        })
}

impl Config {
    pub(super) fn read(path: PathBuf) -> Result<Self, Failure> {
        let content = match text::read(&path) {
            Ok(text) => {
                toml::from_str(&text).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => ConfigFile::default(),
            Err(error) => return Err(Failure::of(&path)(error)),
        };
        Ok(Self { path, content })
    }

    /// Returns the named profile, or without a name the default or only profile. The result is empty if there is none.
    pub(super) fn profile(&self, name: Option<&str>) -> Result<PartialAccount, Failure> {
        let profiles = &self.content.profiles;
        let only = || (profiles.len() == 1).then(|| profiles.keys().next()).flatten();
        let Some(name) = name
            .or(self.content.default.as_deref())
            .or_else(|| only().map(String::as_str))
        else {
            return Ok(PartialAccount::default());
        };
        let Some(profile) = profiles.get(name) else {
            let known: Vec<_> = profiles.keys().cloned().collect();
            let similar = partner_api_terminal::names::similar(name, &known);
            let hint = match similar.first() {
                Some(other) => format!("did you mean `{other}`?"),
                None => "add it with: partner profile add".to_owned(),
            };
            let path = self.path.display();
            return Err(Failure::NotFound(format!("{path} has no profile `{name}`; {hint}")));
        };
        let secret = match profile {
            Profile {
                secret_file: Some(path),
                secret_env: None,
                secret_command: None,
                ..
            } => Source::File(self.resolve(path)),
            Profile {
                secret_file: None,
                secret_env: Some(name),
                secret_command: None,
                ..
            } => Source::Variable(name.clone()),
            Profile {
                secret_file: None,
                secret_env: None,
                secret_command: Some(words),
                ..
            } => Source::Command(words.clone()),
            _ => {
                return Err(Failure::Usage(format!(
                    "{}: the profile `{name}` must have exactly one of secret_file, secret_env and secret_command",
                    self.path.display()
                )));
            }
        };
        Ok(PartialAccount {
            base_url: Some(profile.base_url.clone()),
            key_id: Some(profile.key_id.clone()),
            secret: Some(secret),
            open_report: None,
        })
    }

    /// Resolves a path relative to the folder of the configuration file.
    fn resolve(&self, path: &Path) -> PathBuf {
        self.path
            .parent()
            .map_or_else(|| path.to_owned(), |folder| folder.join(path))
    }
}

/// The arguments of `profile add`.
#[derive(Args, Debug)]
pub struct NewProfile {
    /// The profile's name, such as sandbox or live
    pub name: String,
    /// An environment variable that will contain the secret
    #[arg(long, value_name = "NAME", group = "source")]
    pub secret_env: Option<String>,
    /// A program that prints the secret, with its arguments, such as a keyring client or a password manager
    #[arg(long, value_name = "WORD", num_args = 1.., group = "source", allow_hyphen_values = true)]
    pub secret_command: Option<Vec<String>>,
}

/// Appends a profile to the file. If no source of the secret is given, prompts for it and writes it to a private file.
pub(crate) fn add(connect: &super::Connect, new: &NewProfile) -> Result<Output, Failure> {
    let path = path(connect.config.as_deref())?;
    let config = Config::read(path.clone())?;
    let name = new.name.as_str();
    let fits = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    if name.is_empty() || !name.chars().all(fits) {
        return Err(Failure::Usage(format!(
            "`{name}` is not a valid profile name; it must consist of letters, digits, - and _"
        )));
    }
    if config.content.profiles.contains_key(name) {
        let path = path.display();
        return Err(Failure::Rejected(format!(
            "{path} already has a profile `{name}`; edit it there"
        )));
    }
    let (Some(base_url), Some(key_id)) = (&connect.base_url, &connect.key_id) else {
        return Err(Failure::Usage(
            "a profile must have --base-url URL and --key-id ID".to_owned(),
        ));
    };
    // Checks the URL and the key ID before they are written. The secret is checked when it is read.
    const DUMMY_SECRET: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    Connector::new(base_url, key_id, DUMMY_SECRET)?;

    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(Failure::of(folder))?;
    let mut section = toml::Table::new();
    section.insert("base_url".to_owned(), base_url.as_str().into());
    section.insert("key_id".to_owned(), key_id.as_str().into());
    let source = match (&connect.secret_file, &new.secret_env, &new.secret_command) {
        (Some(file), _, _) => {
            check_private(file)?;
            let file = std::path::absolute(file).map_err(Failure::of(file))?;
            section.insert("secret_file".to_owned(), file.display().to_string().into());
            format!("the secret is read from {}", file.display())
        }
        (None, Some(variable), _) => {
            section.insert("secret_env".to_owned(), variable.as_str().into());
            format!("the secret is read from the environment variable {variable}")
        }
        (None, None, Some(words)) => {
            section.insert("secret_command".to_owned(), words.clone().into());
            format!("the secret is read from the output of `{}`", words.join(" "))
        }
        (None, None, None) => {
            let file = folder.join(format!("{name}.secret"));
            write_private(&file, read_secret()?.expose())?;
            section.insert("secret_file".to_owned(), format!("{name}.secret").into());
            format!("the secret is stored in {}", file.display())
        }
    };
    let mut text = String::new();
    if config.content.profiles.is_empty() && config.content.default.is_none() && !path.exists() {
        text.push_str(&format!("default = \"{name}\"\n"));
    }
    text.push_str(&format!("\n[profiles.{name}]\n{section}"));
    append_private(&path, &text)?;
    let path = path.display().to_string();
    let message = format!("added to {path}; {source}\n\ntest it: partner --profile {name} health");
    Ok(Output::message(
        &message,
        &serde_json::json!({ "profile": name, "config": path }),
    ))
}

/// Prompts for the secret without echoing it. If standard input is not a terminal, reads it from there.
fn read_secret() -> Result<Secret, Failure> {
    let text = if std::io::stdin().is_terminal() {
        let terminal = console::Term::stderr();
        terminal.write_str("Secret (not echoed): ")?;
        Zeroizing::new(terminal.read_secure_line()?)
    } else {
        let mut text = Zeroizing::new(String::new());
        std::io::stdin().read_to_string(&mut text)?;
        text
    };
    Source::Given(text).open()
}

/// Creates a file that only its owner can read.
fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    private(&mut options)
        .open(path)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.write_all(b"\n")?;
            file.sync_all()
        })
        .map_err(Failure::of(path))
}

fn append_private(path: &Path, text: &str) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    private(&mut options)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(Failure::of(path))
}

/// A row of `profile list`.
#[derive(Serialize)]
struct ProfileRow {
    name: String,
    default: bool,
    base_url: String,
    key_id: String,
}

impl Row for ProfileRow {
    const COLUMNS: &'static [&'static str] = &["PROFILE", "ADDRESS", "KEY", "DEFAULT"];

    fn cells(&self) -> Vec<String> {
        let default = if self.default { "yes" } else { "" };
        vec![
            self.name.clone(),
            self.base_url.clone(),
            self.key_id.clone(),
            default.to_owned(),
        ]
    }
}

/// Lists the profiles.
pub(crate) fn list(config: &Config) -> Output {
    let rows: Vec<_> = config
        .content
        .profiles
        .iter()
        .map(|(name, profile)| ProfileRow {
            name: name.clone(),
            default: config.content.default.as_ref() == Some(name),
            base_url: profile.base_url.clone(),
            key_id: profile.key_id.clone(),
        })
        .collect();
    let path = config.path.display();
    Output::rows(
        &rows,
        &format!("{path} has no profiles; add one with: partner profile add"),
    )
}
