//! Sources of a secret: a file, the environment, or a program such as a keyring client.
//!
//! Arguments are not a source, because `ps` shows them to everyone on the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use partner_api_client::Secret;
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::platform::check_private;
use crate::text::utf8;

/// The source of a secret.
pub(crate) enum Source {
    /// A file that only its owner can read.
    File(PathBuf),
    /// An environment variable.
    Variable(String),
    /// The standard output of a program, such as a keyring client or a password manager.
    Command(Vec<String>),
    /// The secret itself.
    Given(Zeroizing<String>),
}

impl Source {
    /// Reads the secret and removes white space around it, such as the line feed at the end of a file.
    pub(crate) fn open(self) -> Result<Secret, Failure> {
        let (text, from) = match self {
            Self::File(path) => (read_private(&path)?, path.display().to_string()),
            Self::Variable(name) => {
                let value = std::env::var(&name).map_err(|_| {
                    Failure::Usage(format!(
                        "the environment variable {name} must contain the secret, but is not set"
                    ))
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

/// Reads a file that contains a secret.
pub(super) fn read_private(path: &Path) -> Result<Zeroizing<String>, Failure> {
    check_private(path)?;
    let bytes = Zeroizing::new(fs::read(path).map_err(Failure::of(path))?);
    // Windows editors write a byte-order mark, and PowerShell UTF-16.
    let text = Zeroizing::new(utf8(&bytes).into_owned());
    match std::str::from_utf8(&text) {
        Ok(text) => Ok(Zeroizing::new(text.to_owned())),
        Err(_) => Err(Failure::Usage(format!("{} must contain text", path.display()))),
    }
}

fn output_of(words: &[String]) -> Result<Zeroizing<String>, Failure> {
    let [program, arguments @ ..] = words else {
        return Err(Failure::Usage("secret_command must name a program".to_owned()));
    };
    // The program keeps the terminal, because it may prompt for a password.
    let ran = Command::new(program)
        .args(arguments)
        .stdin(Stdio::inherit())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::Failed(format!("secret_command: failed to run {program}: {error}")))?;
    let output = Zeroizing::new(ran.stdout);
    if !ran.status.success() {
        return Err(Failure::Failed(format!(
            "secret_command: {program} failed: {}",
            ran.status
        )));
    }
    std::str::from_utf8(&output)
        .map(|text| Zeroizing::new(text.to_owned()))
        .map_err(|_| Failure::Failed(format!("secret_command: the output of {program} must be UTF-8 text")))
}
