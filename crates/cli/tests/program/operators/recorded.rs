//! Runs the sessions of `docs/operating.md` and `docs/onboarding.md` and compares each command's output with the page. `RECORD=1` writes
//! the output to the page instead. Each page runs with each kind of database URL, so that its commands can be copied anywhere.
//!
//! IDs, key IDs, secrets, tokens, times and sizes of PDFs differ from run to run and are ignored in the comparison. A value on the page
//! is replaced by the value of the run in later commands.
//!
//! The file is long because the sessions of both pages share the comparison.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use partner_api_tests::{cluster, port};
use regex::{Captures, Regex};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};
use tokio_postgres::config::Host;

use super::program::Deployment;

/// The address on which the service listens in the pages.
const LISTEN: &str = "127.0.0.1:8080";
/// Ends the output of a command.
const END: &str = "--end-of-command--";

/// The kinds of values that differ from run to run. A value of a named kind refers to the same thing throughout the page.
const KINDS: &str = r"(?x)
    (?P<key>vip_(?:test|live)_[A-Z2-7]{22})
  | (?P<secret>\b[A-Z2-7]{32}\b)
  | (?P<token>insp_[0-9A-HJKMNP-TV-Z]{26})
  | (?:insp_…[0-9A-HJKMNP-TV-Z]{4})
  | (?P<id>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)
  | (?P<check>\b[0-9a-f]{16}\b)
  | (?:\b(?:[0-9a-f]{64}|[0-9a-f]{32})\b)
  | (?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00))
  | (?:\b\d+(?:\.\d+)?\ ms\b)
  # The size of a PDF depends on the port in its QR code.
  | (?:\b\d{5,}\ bytes\b)";
const NAMED: [&str; 5] = ["key", "secret", "token", "id", "check"];

/// A part of a page: text, or a command with its output.
enum Part {
    Text(String),
    Command { line: String, output: String },
}

fn parts(page: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut in_session = false;
    for line in page.lines() {
        if line.starts_with("```") {
            in_session = line == "```console";
            parts.push(Part::Text(format!("{line}\n")));
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| in_session) {
            parts.push(Part::Command {
                line: command.to_owned(),
                output: String::new(),
            });
        } else {
            match parts.last_mut() {
                Some(Part::Command { line: command, output }) if in_session => {
                    match line.strip_prefix("> ").filter(|_| output.is_empty()) {
                        Some(more) => write!(command, "\n{more}").unwrap(),
                        None => writeln!(output, "{line}").unwrap(),
                    }
                }
                _ => parts.push(Part::Text(format!("{line}\n"))),
            }
        }
    }
    parts
}

/// A shell that runs the commands of one session.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<std::process::ChildStdout>,
}

impl Shell {
    fn start(deployment: &Deployment, database_url: Option<&str>) -> Self {
        let mut bash = Command::new("bash");
        deployment
            .prepare(bash.args(["--noprofile", "--norc"]))
            .env_remove("PARTNER_API_DATABASE_URL")
            .envs(database_url.map(|url| ("PARTNER_API_DATABASE_URL", url)))
            .env_remove("PARTNER_API_MASTER_KEY_FILE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = bash.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // The session includes standard error.
        input.write_all(b"exec 2>&1\n").unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }

    fn run(&mut self, command: &str) -> String {
        self.input
            .write_all(format!("{command}\necho {END}\n").as_bytes())
            .unwrap();
        let mut output = String::new();
        loop {
            let mut line = String::new();
            assert!(
                self.output.read_line(&mut line).unwrap() > 0,
                "the shell ended: {output}"
            );
            match line.strip_suffix(&format!("{END}\n")) {
                Some("") => return output,
                Some(rest) => return output + rest + "\n",
                None => output.push_str(&line),
            }
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Ends background jobs, such as a service that a failed test left running.
        let _ = self.input.write_all(b"kill $(jobs -p) 2>/dev/null; wait; exit\n");
        let _ = self.child.wait();
    }
}

/// The values of the page and the corresponding values of this run.
#[derive(Default)]
struct Names {
    to_run: HashMap<String, String>,
    to_page: HashMap<String, String>,
}

impl Names {
    fn add(&mut self, page: &str, run: &str) {
        if !self.to_run.contains_key(page) && !self.to_page.contains_key(run) {
            self.to_run.insert(page.to_owned(), run.to_owned());
            self.to_page.insert(run.to_owned(), page.to_owned());
        }
    }

    fn replaced(text: &str, by: &HashMap<String, String>) -> String {
        let mut longest: Vec<_> = by.iter().collect();
        longest.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        longest
            .into_iter()
            .fold(text.to_owned(), |text, (from, to)| text.replace(from.as_str(), to))
    }
}

fn named(kinds: &Regex, text: &str) -> Vec<(&'static str, String)> {
    let of = |found: &Captures<'_>| {
        NAMED
            .into_iter()
            .find_map(|kind| found.name(kind).map(|value| (kind, value.as_str().to_owned())))
    };
    kinds.captures_iter(text).filter_map(|found| of(&found)).collect()
}

/// Replaces values that differ from run to run, and the white space of tables, whose width depends on the values.
fn normalized(kinds: &Regex, text: &str) -> String {
    let spaces = Regex::new(" {2,}").unwrap();
    let text = kinds.replace_all(text, "~");
    let lines: Vec<_> = text
        .lines()
        .map(|line| spaces.replace_all(line, "  ").trim_end().to_owned())
        .collect();
    lines.join("\n").trim_end().to_owned()
}

/// How a session reaches its database.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Url {
    /// `postgresql:///database?host=FOLDER`
    Socket,
    /// `postgresql://user@host:port/database`
    Tcp,
    /// Not at all: the program runs a private cluster.
    None,
}

/// Forwards the connections of a TCP port to the cluster's socket, and returns the URL.
async fn forwarded(config: &tokio_postgres::Config) -> String {
    let [Host::Unix(folder)] = config.get_hosts() else {
        panic!("the harness connects over a socket");
    };
    let socket = folder.join(".s.PGSQL.5432");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = UnixStream::connect(&socket).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
        }
    });
    let (user, database) = (config.get_user().unwrap(), config.get_dbname().unwrap());
    format!("postgresql://{user}@{address}/{database}")
}

async fn follow(name: &str, url: Url) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let path = root.join(name);
    let page = fs::read_to_string(&path).unwrap();
    let mut deployment = Deployment::new().await;
    // The session migrates and creates databases, as a superuser.
    deployment.user = deployment.config.get_user().unwrap().to_owned();
    // The session begins before the first migration.
    let client = cluster::connect(&deployment.config).await;
    client
        .batch_execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        .await
        .unwrap();
    // A private cluster may run as another user, who must be able to enter.
    fs::set_permissions(deployment.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    symlink(root.join("samples"), deployment.folder.path().join("samples")).unwrap();
    let kinds = Regex::new(KINDS).unwrap();
    let mut names = Names::default();
    names.add(LISTEN, &port::free_address().to_string());
    // The databases of a cluster are shared by the tests.
    let restored = format!("{}_restored", deployment.config.get_dbname().unwrap());
    names.add("partner_restored", &restored);
    let host = nix_name(&["uname", "-n"]);
    let user = nix_name(&["id", "-un"]);

    let database_url = match url {
        Url::Socket => Some(deployment.url_of(&deployment.user)),
        Url::Tcp => Some(forwarded(&deployment.config).await),
        Url::None => None,
    };
    let mut shell = Shell::start(&deployment, database_url.as_deref());
    let mut recorded = String::new();
    let mut differences = Vec::new();
    for part in parts(&page) {
        match part {
            Part::Text(text) => recorded.push_str(&text),
            Part::Command { line, output } => {
                let printed = shell.run(&Names::replaced(&line, &names.to_run));
                // The page has its own user and host names.
                let printed = column(&column(&printed, &user, "ops"), &host, "db");
                for (kind, run) in named(&kinds, &printed) {
                    let known = names.to_page.contains_key(&run);
                    let next = named(&kinds, &output)
                        .into_iter()
                        .find(|(of, page)| *of == kind && !names.to_run.contains_key(page));
                    if let (false, Some((_, page))) = (known, next) {
                        names.add(&page, &run);
                    }
                }
                let shown = Names::replaced(&printed, &names.to_page);
                let (expected, found) = (normalized(&kinds, &output), normalized(&kinds, &shown));
                if expected != found {
                    differences.push(format!(
                        "$ {line}\n--- the page\n{expected}\n--- the program\n{found}\n"
                    ));
                }
                writeln!(recorded, "$ {}\n{}", line.replace('\n', "\n> "), shown.trim_end()).unwrap();
                if shown.trim_end().is_empty() {
                    recorded.pop();
                }
            }
        }
    }
    drop(shell);
    let drop_restored = format!("DROP DATABASE IF EXISTS {restored}");
    client.batch_execute(&drop_restored).await.unwrap();
    if std::env::var_os("RECORD").is_some() {
        if url == Url::Socket {
            fs::write(&path, recorded).unwrap();
        }
    } else {
        assert!(
            differences.is_empty(),
            "{name} is out of date with {url:?}; RECORD=1 updates it\n{}",
            differences.join("\n")
        );
    }
}

fn nix_name(command: &[&str]) -> String {
    let output = Command::new(command[0]).args(&command[1..]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Replaces a separate word and keeps the width of its column.
fn column(text: &str, word: &str, by: &str) -> String {
    let alone = Regex::new(&format!(r"(?m)(^| ){}( |:|$)", regex::escape(word))).unwrap();
    let in_place = |found: &Captures<'_>| match &found[2] {
        " " => format!("{}{by:width$} ", &found[1], width = word.len()),
        after => format!("{}{by}{after}", &found[1]),
    };
    alone.replace_all(text, in_place).into_owned()
}

/// KEY-1, KEY-11, OPS-1
#[tokio::test]
async fn the_operators_page_shows_the_output_of_the_program() {
    follow("docs/operating.md", Url::Socket).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_page_works_over_tcp() {
    follow("docs/operating.md", Url::Tcp).await;
}

#[tokio::test]
async fn the_operators_page_works_with_a_private_cluster() {
    follow("docs/operating.md", Url::None).await;
}

/// SVC-7, KEY-3
#[tokio::test]
async fn the_onboarding_page_shows_the_output_of_the_program() {
    follow("docs/onboarding.md", Url::Socket).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_onboarding_page_works_over_tcp() {
    follow("docs/onboarding.md", Url::Tcp).await;
}

#[tokio::test]
async fn the_onboarding_page_works_with_a_private_cluster() {
    follow("docs/onboarding.md", Url::None).await;
}

/// Programs of the runbook and of the upgrade that need what a test does not have.
const ELSEWHERE: [(&str, &str); 14] = [
    ("systemctl", "systemd, and the service as a unit"),
    ("journalctl", "systemd, and the service as a unit"),
    ("patronictl", "the cluster of deploy/ha; script/failover runs it"),
    ("etcdctl", "the cluster of deploy/ha; script/failover runs it"),
    ("pgbackrest", "the cluster of deploy/ha; script/recovery runs it"),
    ("deploy/ha/cluster", "the cluster of deploy/ha; script/recovery runs it"),
    ("chronyc", "chrony, which sets the clock of the machine"),
    ("curl", "the internal listener; script/deploy-check asks it"),
    ("rsync", "a second machine"),
    ("du", "a disk that is full"),
    ("SELECT pg_terminate_backend(PID)", "a session to end"),
    (
        "SELECT pg_drop_replication_slot(NAME)",
        "a replication slot; script/failover makes them",
    ),
    (
        "partner-api migrate --roles",
        "a database whose owner is no superuser: the_program_serves_with_a_user_of_the_servers_role",
    ),
    ("CREATE INDEX CONCURRENTLY", "a release that names an index"),
];

/// The commands of the runbook and of the page on upgrades, which are in code spans and indented blocks.
#[tokio::test]
async fn each_command_of_the_runbook_and_of_an_upgrade_works() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut deployment = Deployment::new().await;
    let key = deployment.with_one_of_each();
    deployment.user = deployment.config.get_user().unwrap().to_owned();
    let restored = format!("{}_restored", deployment.config.get_dbname().unwrap());
    let folder = deployment.folder.path().to_owned();
    fs::create_dir_all(folder.join("data/files")).unwrap();
    assert_eq!(deployment.shell("partner-api backup create FILE").code, 0);
    fs::create_dir(folder.join("FOLDER")).unwrap();
    let client = cluster::connect(&deployment.config).await;
    let code = Regex::new("(?m)`([^`]+)`|^    ( *[^ |].*)$").unwrap();
    let sql = Regex::new("^(SELECT|SHOW|VACUUM) ").unwrap();
    let url = Regex::new("'postgresql:[^']*'").unwrap();
    let (mut ran, mut unknown) = (0, Vec::new());
    for page in ["docs/runbook.md", "docs/upgrading.md"] {
        let text = fs::read_to_string(root.join(page)).unwrap();
        for found in code.captures_iter(&text) {
            let line = found.get(1).or(found.get(2)).unwrap().as_str().trim();
            if ELSEWHERE.iter().any(|(start, _)| line.starts_with(start)) {
                continue;
            }
            if sql.is_match(line) {
                let statement = line.replace("NAME", "replicas");
                let done = client.batch_execute(&statement).await;
                done.unwrap_or_else(|error| panic!("{page}: {line}: {error:?}"));
            } else if line.starts_with("partner-api ") {
                let line = line
                    .replace("KEY", &key)
                    .replace("NAME", &restored)
                    .replace("backup create FILE", "backup create SECOND")
                    .replace("URL", "\"$PARTNER_API_DATABASE_URL\"");
                let line = url.replace(&line, "\"$$PARTNER_API_DATABASE_URL\"");
                let done = deployment.shell(&line);
                // The doctor reports that the tests' cluster does not flush its disk.
                let expected = i32::from(line == "partner-api doctor");
                assert_eq!(done.code, expected, "{page}: {line}: {done:?}");
            } else {
                // Code in a sentence may be a name; a block contains commands.
                unknown.extend(found.get(2).map(|block| format!("{page}: {}", block.as_str())));
                continue;
            }
            ran += 1;
        }
    }
    assert!(unknown.is_empty(), "run these, or list why not: {unknown:#?}");
    assert!(ran >= 15, "only {ran} commands were found");
    client
        .batch_execute(&format!("DROP DATABASE IF EXISTS {restored}"))
        .await
        .unwrap();
}
