//! Tests of the private cluster with real server programs.
#![allow(missing_docs, clippy::unwrap_used)]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use embedded_postgres::{Binaries, EmbeddedPostgres, EmbeddedPostgresError, Options, standard_folders};
use tempfile::TempDir;
use tokio_postgres::{Client, Config, NoTls};

/// Set for the copy of this test program that acts as the killed application.
const KILLED_PROCESS_FOLDER: &str = "EMBEDDED_POSTGRES_TEST_VICTIM";

fn options() -> Options {
    Options {
        durable: false,
        max_connections: 10,
        ..Options::of("test-application")
    }
}

/// A temporary folder that other users can enter, like an ordinary project folder.
fn open_folder() -> TempDir {
    tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir_in("/tmp")
        .unwrap()
}

async fn connect(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn number(config: &Config, sql: &str) -> i32 {
    connect(config).await.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn data_is_kept_across_a_restart() {
    let folder = open_folder();
    let data_dir = folder.path().join("made/by start");
    let postgres = EmbeddedPostgres::start(&data_dir, options()).await.unwrap();
    let client = connect(&postgres.config()).await;
    client
        .batch_execute("CREATE TABLE kept AS SELECT 42 AS answer")
        .await
        .unwrap();
    postgres.stop().await;

    let postgres = EmbeddedPostgres::start(&data_dir, options()).await.unwrap();
    assert_eq!(number(&postgres.config(), "SELECT answer FROM kept").await, 42);
    let from_url: Config = postgres.url().parse().unwrap();
    assert_eq!(number(&from_url, "SELECT answer FROM kept").await, 42);
    postgres.stop().await;
}

/// KEY-2
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_server_does_not_inherit_the_applications_environment() {
    let folder = open_folder();
    let postgres = EmbeddedPostgres::start(folder.path(), options()).await.unwrap();
    // Child processes inherit the environment of the parent, and overwrite their own to show their status.
    let file = fs::read_to_string(postgres.folder().join("data/postmaster.pid")).unwrap();
    let parent = file.lines().next().unwrap();
    let environment = fs::read(format!("/proc/{parent}/environ")).unwrap();
    let names: Vec<String> = environment
        .split(|byte| *byte == 0)
        .filter_map(|entry| Some(String::from_utf8_lossy(entry).split_once('=')?.0.to_owned()))
        .collect();
    assert!(names.contains(&"PATH".to_owned()), "{names:?}");
    // The environment of this test contains many variables from cargo.
    let inherited = |name: &String| name.starts_with("CARGO") || name.contains("SECRET") || name.contains("KEY");
    assert!(!names.iter().any(inherited), "{names:?}");
    postgres.stop().await;
}

#[tokio::test]
async fn the_cluster_uses_utf8_and_listens_only_on_its_socket() {
    let folder = open_folder();
    let postgres = EmbeddedPostgres::start(folder.path(), options()).await.unwrap();
    let client = connect(&postgres.config()).await;
    for (setting, value) in [
        ("listen_addresses", ""),
        ("server_encoding", "UTF8"),
        ("lc_collate", "C"),
        ("TimeZone", "UTC"),
        ("fsync", "off"),
        ("max_connections", "10"),
    ] {
        let shown: String = client.query_one(&format!("SHOW {setting}"), &[]).await.unwrap().get(0);
        assert_eq!(shown, value, "{setting}");
    }
    let private = fs::metadata(postgres.folder()).unwrap().permissions().mode() & 0o777;
    assert_eq!(private, 0o700);
}

#[tokio::test]
async fn a_durable_cluster_uses_fsync_and_further_settings_take_precedence() {
    let folder = open_folder();
    let settings = vec![("work_mem".to_owned(), "7MB".to_owned())];
    let options = Options {
        durable: true,
        settings,
        ..options()
    };
    let postgres = EmbeddedPostgres::start(folder.path(), options).await.unwrap();
    let client = connect(&postgres.config()).await;
    for (setting, value) in [("fsync", "on"), ("synchronous_commit", "on"), ("work_mem", "7MB")] {
        let shown: String = client.query_one(&format!("SHOW {setting}"), &[]).await.unwrap().get(0);
        assert_eq!(shown, value, "{setting}");
    }
}

#[tokio::test]
async fn a_second_start_in_the_same_folder_fails_until_the_first_has_stopped() {
    let folder = open_folder();
    let first = EmbeddedPostgres::start(folder.path(), options()).await.unwrap();
    let error = EmbeddedPostgres::start(folder.path(), options()).await.unwrap_err();
    assert!(matches!(error, EmbeddedPostgresError::InUse { .. }), "{error}");
    assert!(
        error.to_string().contains(&format!("process {}", std::process::id())),
        "{error}"
    );
    drop(first);
    EmbeddedPostgres::start(folder.path(), options())
        .await
        .unwrap()
        .stop()
        .await;
}

#[tokio::test]
async fn without_server_programs_the_error_tells_what_to_install() {
    let folder = open_folder();
    let options = Options {
        search: Some(vec!["/nonexistent/bin".into()]),
        ..options()
    };
    let message = EmbeddedPostgres::start(folder.path(), options)
        .await
        .unwrap_err()
        .to_string();
    for part in [
        "/nonexistent/bin",
        "apt-get install postgresql",
        "brew install postgresql@17",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

#[tokio::test]
async fn the_error_of_a_failed_start_contains_the_end_of_the_log() {
    let folder = open_folder();
    let settings = vec![("shared_buffers".to_owned(), "nonsense".to_owned())];
    let error = EmbeddedPostgres::start(folder.path(), Options { settings, ..options() })
        .await
        .unwrap_err();
    assert!(matches!(error, EmbeddedPostgresError::Start { .. }), "{error}");
    assert!(error.to_string().contains("shared_buffers"), "{error}");
}

#[tokio::test]
async fn a_long_path_uses_a_temporary_socket_folder_that_is_removed() {
    let folder = open_folder();
    let data_dir = folder.path().join("long".repeat(30));
    let postgres = EmbeddedPostgres::start(&data_dir, options()).await.unwrap();
    assert_eq!(number(&postgres.config(), "SELECT 1").await, 1);
    let socket = match &postgres.config().get_hosts()[0] {
        tokio_postgres::config::Host::Unix(path) => path.clone(),
        tokio_postgres::config::Host::Tcp(host) => panic!("listens on {host}"),
    };
    assert!(
        socket.starts_with("/tmp") && socket.to_string_lossy().contains("/test-application-"),
        "{}",
        socket.display()
    );
    postgres.stop().await;
    assert!(!socket.exists());
}

#[tokio::test]
async fn databases_are_created_once_and_can_be_copied() {
    let folder = open_folder();
    let postgres = EmbeddedPostgres::start(folder.path(), options()).await.unwrap();
    let template = postgres.create_database("a \"template\"").await.unwrap();
    {
        let (client, connection) = template.connect(NoTls).await.unwrap();
        let driver = tokio::spawn(connection);
        client
            .batch_execute("CREATE TABLE kept AS SELECT 7 AS answer")
            .await
            .unwrap();
        drop(client);
        driver.await.unwrap().unwrap();
    }
    postgres.create_database("a \"template\"").await.unwrap();
    let copy = postgres.create_database_from("copy", "a \"template\"").await.unwrap();
    assert_eq!(number(&copy, "SELECT answer FROM kept").await, 7);
}

#[tokio::test]
async fn as_root_a_cluster_in_an_inaccessible_folder_is_stored_elsewhere_and_found_again() {
    if !nix::unistd::geteuid().is_root() {
        // The server runs as another user only if the test runs as root.
        return;
    }
    let closed = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir_in("/tmp")
        .unwrap();
    let elsewhere = open_folder();
    let data_dir = closed.path().join("data");
    let options = || Options {
        roots: Some(vec!["/proc/none".into(), elsewhere.path().into()]),
        ..options()
    };

    let postgres = EmbeddedPostgres::start(&data_dir, options()).await.unwrap();
    let home = postgres.folder().to_owned();
    assert!(home.starts_with(elsewhere.path()), "{}", home.display());
    assert!(!data_dir.join("postgres").exists());
    connect(&postgres.config())
        .await
        .batch_execute("CREATE TABLE kept AS SELECT 9 AS answer")
        .await
        .unwrap();
    postgres.stop().await;

    let postgres = EmbeddedPostgres::start(&data_dir, options()).await.unwrap();
    assert_eq!(postgres.folder(), home);
    assert_eq!(number(&postgres.config(), "SELECT answer FROM kept").await, 9);
    postgres.stop().await;

    fs::remove_dir_all(&home).unwrap();
    let error = EmbeddedPostgres::start(&data_dir, options()).await.unwrap_err();
    assert!(matches!(error, EmbeddedPostgresError::LocationGone { .. }), "{error}");

    let no_programs = Options {
        roots: Some(vec![closed.path().join("root")]),
        ..options()
    };
    let error = EmbeddedPostgres::start(&closed.path().join("other"), no_programs)
        .await
        .unwrap_err();
    assert!(matches!(error, EmbeddedPostgresError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn the_server_of_a_killed_process_stops_and_keeps_its_data() {
    let folder = open_folder();
    let mut victim = victim(folder.path());
    let pid_file = folder.path().join("postgres/data/postmaster.pid");
    wait_for("the victim's server", || folder.path().join("ready").exists()).await;
    assert!(pid_file.exists());
    victim.kill().unwrap();
    victim.wait().unwrap();
    wait_for("the guard to stop the server", || !pid_file.exists()).await;
    let postgres = EmbeddedPostgres::start(folder.path(), options()).await.unwrap();
    assert_eq!(number(&postgres.config(), "SELECT answer FROM kept").await, 5);
}

#[tokio::test]
async fn a_leftover_server_is_stopped_by_the_next_start() {
    let folder = open_folder();
    let data = folder.path().join("postgres/data");
    EmbeddedPostgres::start(folder.path(), options())
        .await
        .unwrap()
        .stop()
        .await;
    // Started directly, so that there is no guard process.
    let run = folder.path().join("postgres/run");
    let mut stray = as_owner_of(&data, &server_program());
    stray.arg("-D").arg(&data).args(["-c", "listen_addresses=", "-c"]);
    stray.arg(format!("unix_socket_directories={}", run.display()));
    let mut stray = stray.stderr(Stdio::null()).current_dir("/").spawn().unwrap();
    wait_for("the stray server", || run.join(".s.PGSQL.5432").exists()).await;

    let postgres = EmbeddedPostgres::start(folder.path(), options()).await.unwrap();
    assert!(stray.wait().unwrap().success());
    assert_eq!(number(&postgres.config(), "SELECT 1").await, 1);
}

#[tokio::test]
async fn a_stale_process_id_of_an_unrelated_process_is_ignored() {
    let folder = open_folder();
    EmbeddedPostgres::start(folder.path(), options())
        .await
        .unwrap()
        .stop()
        .await;
    let data = folder.path().join("postgres/data");
    // A process of the same user, which PostgreSQL would take for the server.
    let mut unrelated = as_owner_of(&data, Path::new("/bin/sleep"));
    let mut unrelated = unrelated.arg("600").current_dir("/").spawn().unwrap();
    fs::write(
        data.join("postmaster.pid"),
        format!("{}\n{}\n1\n5432\n\n\n\n", unrelated.id(), data.display()),
    )
    .unwrap();

    let postgres = EmbeddedPostgres::start(folder.path(), options()).await;
    let untouched = unrelated.try_wait().unwrap().is_none();
    unrelated.kill().unwrap();
    unrelated.wait().unwrap();
    assert!(untouched, "the unrelated process was stopped");
    postgres.unwrap().stop().await;
}

/// The body of the killed process, which does nothing as a test.
#[tokio::test]
async fn victim_body() {
    let Ok(folder) = std::env::var(KILLED_PROCESS_FOLDER) else {
        return;
    };
    let folder = PathBuf::from(folder);
    let postgres = EmbeddedPostgres::start(&folder, options()).await.unwrap();
    connect(&postgres.config())
        .await
        .batch_execute("CREATE TABLE kept AS SELECT 5 AS answer")
        .await
        .unwrap();
    fs::write(folder.join("ready"), "").unwrap();
    std::future::pending::<()>().await;
}

fn victim(folder: &Path) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "victim_body"])
        .env(KILLED_PROCESS_FOLDER, folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn server_program() -> PathBuf {
    Binaries::find(&standard_folders(), None).unwrap().program("postgres")
}

fn as_owner_of(path: &Path, program: &Path) -> Command {
    use std::os::unix::{fs::MetadataExt, process::CommandExt};
    let mut command = Command::new(program);
    if nix::unistd::geteuid().is_root() {
        let owner = fs::metadata(path).unwrap();
        command.uid(owner.uid()).gid(owner.gid());
    }
    command
}

async fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "waited too long for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
