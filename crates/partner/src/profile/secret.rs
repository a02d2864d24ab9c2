//! Where a secret comes from: a file, the environment, or a program such as a keyring's. Never from an argument, which `ps`
//! shows to everyone on the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use partner_api_client::Secret;
use zeroize::Zeroizing;

use crate::failure::Failure;

/// Where a secret comes from.
pub(crate) enum Source {
    /// A file that its owner alone can read.
    File(PathBuf),
    /// A variable of the environment.
    Variable(String),
    /// The standard output of a program: a keyring's, a password manager's.
    Command(Vec<String>),
    /// It is known already.
    Given(Zeroizing<String>),
}

impl Source {
    /// The secret. White space around it, such as the line feed at a file's end, does not belong to it.
    pub(crate) fn open(self) -> Result<Secret, Failure> {
        let (text, from) = match self {
            Self::File(path) => (read_private(&path)?, path.display().to_string()),
            Self::Variable(name) => {
                let value = std::env::var(&name).map_err(|_| {
                    Failure::Usage(format!("the variable {name}, which is to hold the secret, is not set"))
                })?;
                (value.into(), name)
            }
            Self::Command(words) => (output_of(&words)?, words.join(" ")),
            Self::Given(text) => (text, "the secret".to_owned()),
        };
        text.trim()
            .parse()
            .map_err(|error| Failure::Usage(format!("{from}: {error}")))
    }
}

/// Reads a file that holds a secret.
pub(super) fn read_private(path: &Path) -> Result<Zeroizing<String>, Failure> {
    check_private(path)?;
    fs::read_to_string(path).map(Zeroizing::new).map_err(Failure::of(path))
}

/// That nobody else can read a file.
#[cfg(unix)]
pub(super) fn check_private(path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = fs::metadata(path).map_err(Failure::of(path))?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let path = path.display();
    Err(Failure::Refused(format!(
        "{path} holds a secret and can be read by others: chmod 600 {path}"
    )))
}

/// Elsewhere a user's own folder is private by itself.
#[cfg(not(unix))]
pub(super) fn check_private(_: &Path) -> Result<(), Failure> {
    Ok(())
}

fn output_of(words: &[String]) -> Result<Zeroizing<String>, Failure> {
    let [program, arguments @ ..] = words else {
        return Err(Failure::Usage("secret_command names no program".to_owned()));
    };
    // It may ask for a password of its own: the terminal stays its.
    let ran = Command::new(program)
        .args(arguments)
        .stdin(Stdio::inherit())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::Failed(format!("secret_command: {program}: {error}")))?;
    let output = Zeroizing::new(ran.stdout);
    if !ran.status.success() {
        return Err(Failure::Failed(format!("secret_command: {program}: {}", ran.status)));
    }
    std::str::from_utf8(&output)
        .map(|text| Zeroizing::new(text.to_owned()))
        .map_err(|_| Failure::Failed(format!("secret_command: {program}: what it prints is not text")))
}
