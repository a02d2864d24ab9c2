//! Runs the program `partner` in a temporary folder with a key in its environment.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use partner_api_tests::{Service, TestKey};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

pub struct Program {
    pub folder: tempfile::TempDir,
    base_url: String,
    key: TestKey,
}

/// The exit code and the output of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{}", self.stderr);
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// Asserts that the command failed with this code, printed this text to standard error, and nothing to standard output.
    #[track_caller]
    pub fn failed(&self, code: i32, text: &str) {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "{}", self.stderr);
        assert!(self.stderr.contains(text), "{text:?} is not in {:?}", self.stderr);
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Program {
    pub fn new(service: &Service, key: &TestKey) -> Self {
        Self::at(&service.base_url, key)
    }

    pub fn at(base_url: &str, key: &TestKey) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            base_url: base_url.to_owned(),
            key: *key,
        }
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the program without a key and without this machine's environment.
    pub fn bare(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_partner"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap())
            .env("HOME", self.folder.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Returns the program with the key in its environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.bare(arguments);
        command
            .env("PARTNER_BASE_URL", &self.base_url)
            .env("PARTNER_KEY_ID", self.key.id)
            .env("PARTNER_SECRET", self.key.secret);
        command
    }

    pub async fn run(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().await.unwrap().into()
    }

    pub async fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--json"]].concat()).await.json()
    }

    /// Runs a command with this text on standard input.
    pub async fn fed(&self, command: &mut Command, input: &[u8]) -> Ran {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that rejects its arguments may have ended already.
        if let Err(error) = child.stdin.take().unwrap().write_all(input).await {
            assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe, "{error}");
        }
        child.wait_with_output().await.unwrap().into()
    }
}
