//! Each alert of the group `partner-api`, raised by its cause: a real Prometheus scrapes the service and evaluates the rules of
//! `deploy/observability/alerts.yml`.
//!
//! Only the durations of the rules are shortened ([`shortened`]). A test waits until an alert is inactive, causes the problem, and
//! waits until the alert fires. So the tests take minutes, and `script/check alerts` runs them.
//!
//! The file is long because nothing else needs a Prometheus, or the program with a wrong clock, an unread log or few descriptors.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use partner_api::admission::nonces::BUCKET;
use partner_api_tests::certificate::{Certificate, CertificateFiles};
use partner_api_tests::cluster::{self, Database};
use partner_api_tests::fixture::MASTER_KEY;
use partner_api_tests::measurements::{MEASUREMENTS, package};
use partner_api_tests::port::free_address;
use partner_api_tests::service::try_send;
use partner_api_tests::wait::until;
use partner_api_tests::{ALPHA, BETA, DELTA, Options, Request, Service};
use regex::Regex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio_postgres::{Client, Config};

use super::alerts::{read, rules};

const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// The alerts that no test here raises, and why.
const NOT_RAISED: [(&str, &[&str]); 6] = [
    (
        "needs a second version of the program, and a build has one version",
        &["PartnerApiVersionsDiffer"],
    ),
    (
        "needs the current postgres_exporter; Debian has 0.11, which lacks metrics of these alerts",
        &[
            "PostgresDown",
            "PostgresConnectionsRunOut",
            "PostgresLongTransaction",
            "PostgresArchiveFails",
            "PostgresArchiveStands",
            "PostgresSlotKeepsLog",
            "PostgresLogGrows",
            "PostgresStandbyLags",
            "PostgresDeadRows",
            "PostgresWraparound",
        ],
    ),
    (
        "needs a cluster of Patroni and etcd",
        &[
            "PatroniNoPrimary",
            "PatroniNoSynchronousStandby",
            "PatroniPostgresStopped",
            "PatroniPaused",
            "EtcdNoLeader",
        ],
    ),
    ("needs pgbackrest_exporter, which Debian does not have", &["BackupOld"]),
    (
        "needs a machine with systemd whose disk or clock may be damaged",
        &["FenceDown", "DiskFillsUp", "DiskAlmostFull", "ClockUnsynchronized"],
    ),
    (
        "is about the exporters above; promtool evaluates it without and with them",
        &["ExporterAbsent"],
    ),
];

#[test]
fn every_alert_is_raised_by_its_cause_or_is_listed_with_the_reason() {
    let calls = Regex::new(r"\.raises\(\s*&\[([^\]]*)\]").unwrap();
    let names = Regex::new(r#""(\w+)""#).unwrap();
    let raised: BTreeSet<String> = calls
        .captures_iter(include_str!("causes.rs"))
        .flat_map(|call| names.captures_iter(call.get(1).unwrap().as_str()))
        .map(|name| name[1].to_owned())
        .collect();
    let listed: BTreeSet<String> = NOT_RAISED
        .iter()
        .flat_map(|(_, alerts)| alerts.iter().map(|alert| (*alert).to_owned()))
        .collect();
    assert_eq!(raised.intersection(&listed).collect::<Vec<_>>(), [""; 0]);
    let all: BTreeSet<String> = rules()
        .iter()
        .map(|rule| rule["alert"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(raised.union(&listed).cloned().collect::<BTreeSet<_>>(), all);
}

/// The factor by which durations are shortened. An hour becomes half a minute.
const FACTOR: u64 = 120;

/// The interval of scrapes and evaluations.
const INTERVAL: &str = "500ms";

/// The shortest duration of a rule, in milliseconds: a rate needs two samples.
const SHORTEST: u64 = 1_500;

/// More than any alert takes. The slowest needs a sample that is 150 s old.
const PATIENCE: Duration = Duration::from_secs(240);

/// Returns the rules with a shorter `for` and shorter ranges, and the number of changed `for`.
fn shortened(rules: &str) -> (String, usize) {
    let mut delays = 0;
    let durations = Regex::new(r"(for: |\[)(\d+)([smhd])\b").unwrap();
    let text = durations.replace_all(rules, |found: &regex::Captures<'_>| {
        delays += usize::from(&found[1] == "for: ");
        let unit = match &found[3] {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            _ => 86_400,
        };
        let milliseconds = found[2].parse::<u64>().unwrap() * unit * 1_000 / FACTOR;
        format!("{}{}ms", &found[1], milliseconds.max(SHORTEST))
    });
    let text = text.into_owned();
    (text, delays)
}

/// A running Prometheus. It ends when this value is dropped.
struct Monitoring {
    api: Api,
    rules: Value,
    _process: Child,
    folder: TempDir,
}

impl Monitoring {
    /// Starts Prometheus with these replicas as targets, and waits until it has scraped them and they have sampled their database.
    async fn of(targets: &[SocketAddr]) -> Self {
        let (text, delays) = shortened(&read("alerts.yml"));
        assert_eq!(delays, rules().len());
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("alerts.yml"), &text).unwrap();
        let configuration = format!(
            "global: {{ scrape_interval: {INTERVAL}, scrape_timeout: {INTERVAL}, evaluation_interval: {INTERVAL} }}\n\
             rule_files: [alerts.yml]\n\
             scrape_configs:\n\
             - {{ job_name: partner-api, file_sd_configs: [{{ files: [targets.json], refresh_interval: 1s }}] }}\n"
        );
        fs::write(path("prometheus.yml"), configuration).unwrap();
        let address = free_address();
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", path("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", path("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=error")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("prometheus must be installed; script/setup --checks installs it");
        let api = Api {
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            address,
        };
        let monitoring = Self {
            api,
            rules: serde_yaml::from_str(&text).unwrap(),
            _process: process,
            folder,
        };
        until(PATIENCE, async || monitoring.api.get("/-/ready").await).await;
        monitoring.watch(targets).await;
        monitoring
    }

    /// Sets the targets, and waits as [`of`](Self::of) does.
    async fn watch(&self, targets: &[SocketAddr]) {
        let (file, new) = (self.folder.path().join("targets.json"), self.folder.path().join("new"));
        let targets: Vec<String> = targets.iter().map(SocketAddr::to_string).collect();
        fs::write(&new, json!([{ "targets": targets }]).to_string()).unwrap();
        fs::rename(new, file).unwrap();
        let sampled = "count(partner_api_replicas and on (instance) up{job=\"partner-api\"} == 1) or vector(0)";
        until(PATIENCE, async || {
            (self.api.value(sampled).await == Some(targets.len() as f64)).then_some(())
        })
        .await;
    }

    /// Waits until these alerts are inactive; then runs the cause, and waits until they fire. What the cause returns is not dropped
    /// before.
    ///
    /// # Panics
    /// If one does not fire.
    async fn raises<T>(&self, alerts: &[&str], cause: impl Future<Output = T>) -> T {
        // A service that has just started has not created its partitions yet, so that an alert can be pending for a moment.
        let now = Utc::now();
        until(PATIENCE, async || {
            let is_new = self.api.evaluated_at().await? > now;
            let active = self.api.active().await;
            (is_new && alerts.iter().all(|alert| !active.contains_key(*alert))).then_some(())
        })
        .await;
        let cause = cause.await;
        let deadline = Instant::now() + PATIENCE;
        for alert in alerts {
            loop {
                let active = self.api.active().await;
                if active.get(*alert).is_some_and(|state| state == "firing") {
                    break;
                }
                assert!(
                    Instant::now() < deadline,
                    "{alert} does not fire; active: {active:?}; {}",
                    self.values(alert).await
                );
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        cause
    }

    /// Returns the current values of an alert's expression and of its metrics.
    async fn values(&self, alert: &str) -> String {
        let groups = self.rules["groups"].as_array().unwrap();
        let mut rules = groups.iter().flat_map(|group| group["rules"].as_array().unwrap());
        let rule = rules.find(|rule| rule["alert"] == alert).expect(alert);
        let expression = rule["expr"].as_str().unwrap();
        let metrics = Regex::new(r"\b(partner_api_|process_|up\b)\w*").unwrap();
        let mut values = Vec::new();
        for part in std::iter::once(expression).chain(metrics.find_iter(expression).map(|found| found.as_str())) {
            values.push(format!("{part}: {:?}", self.api.query(part).await));
        }
        values.join("\n")
    }
}

/// The HTTP API of a Prometheus.
#[derive(Clone)]
struct Api {
    http: reqwest::Client,
    address: SocketAddr,
}

impl Api {
    /// Returns the body of a response with the status 200.
    async fn get(&self, target: &str) -> Option<String> {
        let response = self.http.get(format!("http://{}{target}", self.address)).send().await;
        let response = response.ok()?.error_for_status().ok()?;
        response.text().await.ok()
    }

    async fn data(&self, target: &str) -> Option<Value> {
        let text = self.get(target).await?;
        Some(serde_json::from_str::<Value>(&text).unwrap()["data"].take())
    }

    /// Returns the result of an expression.
    async fn query(&self, expression: &str) -> Option<Value> {
        let query: String = url::form_urlencoded::byte_serialize(expression.as_bytes()).collect();
        Some(self.data(&format!("/api/v1/query?query={query}")).await?["result"].take())
    }

    /// Returns the first value of an expression.
    async fn value(&self, expression: &str) -> Option<f64> {
        let result = self.query(expression).await?;
        result[0]["value"][1].as_str()?.parse().ok()
    }

    /// Waits until the first value of an expression is above this one, and returns it.
    async fn above(&self, least: f64, expression: &str) -> f64 {
        loop {
            match self.value(expression).await {
                Some(value) if value > least => return value,
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// Returns the state of each alert that is pending or firing. One that fires for any labels is firing.
    async fn active(&self) -> BTreeMap<String, String> {
        let data = self.data("/api/v1/alerts").await.expect("Prometheus runs");
        let mut active = BTreeMap::new();
        for alert in data["alerts"].as_array().unwrap() {
            let state = alert["state"].as_str().unwrap();
            let name = alert["labels"]["alertname"].as_str().unwrap().to_owned();
            if state == "firing" || !active.contains_key(&name) {
                active.insert(name, state.to_owned());
            }
        }
        active
    }

    /// Returns the time of the oldest of the last evaluations of all groups.
    async fn evaluated_at(&self) -> Option<DateTime<Utc>> {
        let data = self.data("/api/v1/rules").await?;
        let groups = data["groups"].as_array()?.iter();
        let times = groups.map(|group| group["lastEvaluation"].as_str()?.parse().ok());
        times.collect::<Option<Vec<DateTime<Utc>>>>()?.into_iter().min()
    }
}

/// Sends requests from several clients until the returned value is dropped. Responses with an error are expected.
fn traffic(
    address: SocketAddr,
    clients: usize,
    request: impl Fn() -> Request + Clone + Send + Sync + 'static,
) -> JoinSet<()> {
    let mut sending = JoinSet::new();
    for _ in 0..clients {
        let request = request.clone();
        sending.spawn(async move {
            loop {
                let _ = try_send(address, &request()).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
    }
    sending
}

/// Reads of partners that need the database.
fn reads(service: &Service, clients: usize) -> [JoinSet<()>; 2] {
    let address = service.address(ORGANIZATIONS);
    [ALPHA, BETA].map(|key| traffic(address, clients, move || Request::get(ORGANIZATIONS).signed_by(&key)))
}

/// Locks tables until the returned session is dropped.
async fn lock(service: &Service, tables: &str, mode: &str) -> Client {
    let holder = cluster::connect(&service.database()).await;
    let lock = format!("BEGIN; LOCK TABLE {tables} IN {mode} MODE");
    holder.batch_execute(&lock).await.unwrap();
    holder
}

/// The current bucket of nonces by the database's clock.
async fn bucket(client: &Client) -> i64 {
    let now = format!(
        "SELECT floor(extract(epoch FROM clock_timestamp()) / {})::bigint",
        BUCKET.as_secs()
    );
    client.query_one(&now, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Prometheus; script/check alerts runs it"]
async fn without_its_database_a_replica_is_not_ready_and_requests_fail() {
    let service = Service::start().await;
    let monitoring = Monitoring::of(&[service.internal_address()]).await;
    let _reads = reads(&service, 2);
    monitoring
        .raises(
            &["PartnerApiNotReady", "PartnerApiDirectoryStale", "PartnerApiErrors"],
            service.cut_off_from_database(),
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Prometheus; script/check alerts runs it"]
async fn locks_make_reads_slow_and_then_use_up_the_connections() {
    let service = Service::start().await;
    let monitoring = Monitoring::of(&[service.internal_address()]).await;
    let _reads = reads(&service, 1);
    let (holder, watcher) = (
        cluster::connect(&service.database()).await,
        cluster::connect(&service.database()).await,
    );
    let locked_for_a_second = async move {
        let mut locking = JoinSet::new();
        locking.spawn(async move {
            loop {
                let lock = "BEGIN; LOCK TABLE organizations IN ACCESS EXCLUSIVE MODE";
                holder.batch_execute(lock).await.unwrap();
                // A request waits for the database for at most 1.8 s.
                let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity
                             WHERE datname = current_database() AND usename = 'test_server' AND wait_event_type = 'Lock'
                               AND clock_timestamp() - query_start > interval '1.1 s')";
                while !watcher.query_one(waits, &[]).await.unwrap().get::<_, bool>(0) {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                holder.batch_execute("ROLLBACK").await.unwrap();
            }
        });
        locking
    };
    drop(monitoring.raises(&["PartnerApiSlow"], locked_for_a_second).await);

    let many = reads(&service, 8);
    let locked = lock(&service, "organizations", "ACCESS EXCLUSIVE");
    drop(monitoring.raises(&["PartnerApiPoolExhausted"], locked).await);
    drop(many);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Prometheus; script/check alerts runs it"]
async fn requests_are_not_authenticated_not_logged_and_not_admitted() {
    let service = Service::start().await;
    let monitoring = Monitoring::of(&[service.internal_address()]).await;
    let with_a_wrong_secret = async {
        for _ in 0..21 {
            let forged = Request::get(ORGANIZATIONS)
                .signed_by(&ALPHA)
                .header("x-partner-signature", "sha256=00");
            service.send(forged).await.assert_status(401);
        }
    };
    monitoring
        .raises(&["PartnerApiPartnerUnauthenticated"], with_a_wrong_secret)
        .await;

    let _reads = reads(&service, 2);
    let without_the_privilege = async {
        let revoke = "DO $$ BEGIN
            EXECUTE format('REVOKE INSERT ON request_log FROM %s',
                (SELECT string_agg(roleid::regrole::text, ', ') FROM pg_auth_members WHERE member = 'test_server'::regrole));
        END $$";
        service.db.batch_execute(revoke).await.unwrap();
    };
    monitoring
        .raises(&["PartnerApiRequestLogDrops"], without_the_privilege)
        .await;

    // As after the database's clock was set back by an hour.
    let now = bucket(&service.db).await;
    let clock_set_back = async {
        let used = format!("INSERT INTO used_nonces VALUES ({now} + 4, gen_random_uuid())");
        service.db.execute(&used, &[]).await.unwrap();
    };
    monitoring
        .raises(&["PartnerApiDatabaseClockBehind"], clock_set_back)
        .await;
    let corrected = format!("DELETE FROM used_nonces WHERE bucket = {now} + 4");
    service.db.execute(&corrected, &[]).await.unwrap();

    // As after a standby was started in place of the primary.
    let read_only = async {
        let set = "DO $$ BEGIN
            EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database());
            PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND usename = 'test_server';
        END $$";
        service.db.batch_execute(set).await.unwrap();
    };
    monitoring.raises(&["PartnerApiAdmissionFailing"], read_only).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Prometheus; script/check alerts runs it"]
async fn no_partitions_are_created_while_a_session_holds_a_lock() {
    let service = Service::start().await;
    let monitoring = Monitoring::of(&[service.internal_address()]).await;
    let next = bucket(&service.db).await + 1;
    let used_up = async {
        // Those that the passing time would use up.
        let drop = format!(
            "DO $$ DECLARE future text; BEGIN
                FOR future IN SELECT relname FROM pg_class
                    WHERE relkind = 'r' AND (relname ~ '^used_nonces_' AND substr(relname, 13)::bigint > {next}
                        OR relname ~ '^request_log_2' AND substr(relname, 13) > to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD'))
                LOOP EXECUTE format('DROP TABLE %I', future); END LOOP;
            END $$"
        );
        service.db.batch_execute(&drop).await.unwrap();
        lock(&service, "used_nonces, request_log", "SHARE UPDATE EXCLUSIVE").await
    };
    monitoring
        .raises(
            &["PartnerApiNoncePartitionsMissing", "PartnerApiLogPartitionsMissing"],
            used_up,
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Prometheus; script/check alerts runs it"]
async fn what_waits_in_the_database_and_who_is_missing_is_sampled() {
    let database = Database::create().await;
    let config = database.config();
    let client = cluster::connect(&config).await;
    let verified = "INSERT INTO audit_log (actor, host, command, kind, subject, action)
                    VALUES ('root', 'db1', 'backup verify', 'backup', 'a.dump', 'verified a backup')";
    client.batch_execute(verified).await.unwrap();
    let service = Service::start_on(config.clone()).await;
    service.get(&DELTA, ORGANIZATIONS).await.assert_status(200);
    let monitoring = Monitoring::of(&[service.internal_address()]).await;
    let days_later = async {
        let sent = service.measure(&ALPHA, package("M-1", "06 NEW 001")).await;
        sent.assert_status(201);
        let old = bucket(&client).await - 9;
        let past = format!(
            "UPDATE measurements SET received_at = now() - interval '4 days' WHERE external_id = 'M-1';
             INSERT INTO report_renderings (inspection_id, organization_id, due_at)
                 SELECT id, organization_id, now() - interval '20 minutes' FROM inspections WHERE status = 'PUBLISHED' LIMIT 1;
             UPDATE rate_windows SET started_at = now() - interval '3 days' WHERE key_id = '{}';
             SET session_replication_role = replica;
             UPDATE audit_log SET occurred_at = now() - interval '9 days' WHERE command = 'backup verify';
             SET session_replication_role = origin;
             CREATE TABLE used_nonces_{old} PARTITION OF used_nonces FOR VALUES FROM ({old}) TO ({old} + 1);
             ALTER TABLE used_nonces_{old} OWNER TO {}",
            DELTA.id,
            cluster::OWNER
        );
        client.batch_execute(&past).await.unwrap();
        // A transaction that is never closed, and a replica that is no target.
        let open = cluster::connect(&config).await;
        open.batch_execute(&format!("BEGIN; SELECT FROM used_nonces_{old}"))
            .await
            .unwrap();
        (open, Service::start_on(config.clone()).await)
    };
    monitoring
        .raises(
            &[
                "PartnerApiMeasurementsWait",
                "PartnerApiRenderingBehind",
                "PartnerApiPartnerSilent",
                "BackupUnverified",
                "PartnerApiPartitionsInUse",
                "PartnerApiReplicaUnwatched",
            ],
            days_later,
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Prometheus; script/check alerts runs it"]
async fn a_sample_that_a_lock_prevents_grows_old() {
    let service = Service::start().await;
    let monitoring = Monitoring::of(&[service.internal_address()]).await;
    let locked = lock(&service, "measurements", "ACCESS EXCLUSIVE");
    monitoring.raises(&["PartnerApiSampleOld"], locked).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Prometheus; script/check alerts runs it"]
async fn a_certificate_has_the_wrong_key_and_then_ends_in_days() {
    let files = CertificateFiles::with(&Certificate::generate());
    let service = Service::start_with(Options {
        tls: Some(files.paths.clone()),
        ..Options::default()
    })
    .await;
    let monitoring = Monitoring::of(&[service.internal_address()]).await;
    let another_key = async { files.put_key(&Certificate::generate()) };
    monitoring.raises(&["PartnerApiCertificateRejected"], another_key).await;
    let put = async |certificate: Certificate| {
        files.put_certificate(&certificate);
        files.put_key(&certificate);
    };
    monitoring
        .raises(&["PartnerApiCertificateEndsSoon"], put(Certificate::expiring_in(10)))
        .await;
    monitoring
        .raises(&["PartnerApiCertificateEnds"], put(Certificate::expiring_in(1)))
        .await;
}

/// The program `partner-api serve`, whose log nobody reads. It is killed when this value is dropped.
struct Program {
    process: Child,
    _folder: TempDir,
}

/// The addresses of the program, which it keeps over a restart.
#[derive(Clone, Copy)]
struct Addresses {
    partners: SocketAddr,
    inspectors: SocketAddr,
    internal: SocketAddr,
}

impl Addresses {
    fn new() -> Self {
        Self {
            partners: free_address(),
            inspectors: free_address(),
            internal: free_address(),
        }
    }
}

impl Program {
    /// Starts the program after these commands of a shell.
    async fn start(database: &Config, addresses: Addresses, prepare: &str) -> Self {
        let tests = std::env::current_exe().unwrap();
        let program = tests.ancestors().nth(2).unwrap().join("partner-api");
        let folder = tempfile::tempdir().unwrap();
        let mut process = Command::new("sh")
            .args(["-c", &format!("{prepare}\nexec \"$0\" \"$@\"")])
            .arg(&program)
            .args(["serve", "--ip-limit", "0", "--log-format", "json", "--renderers", "0"])
            .args(["--listen", &addresses.partners.to_string()])
            .args(["--internal-listen", &addresses.internal.to_string()])
            .args(["--inspectors-listen", &addresses.inspectors.to_string()])
            .args(["--database-url", &cluster::url(database)])
            .arg("--data-dir")
            .arg(folder.path())
            .env("PARTNER_API_MASTER_KEY", MASTER_KEY)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        while TcpStream::connect(addresses.internal).await.is_err() {
            if let Some(status) = process.try_wait().unwrap() {
                let output = process.wait_with_output().await.unwrap();
                panic!("{} ended, {status}: {output:?}", program.display());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Self {
            process,
            _folder: folder,
        }
    }

    /// Kills it, and waits for its end.
    async fn kill(mut self) {
        self.process.kill().await.unwrap();
    }
}

/// Sends requests over one connection until it fails; each is logged with one line.
async fn flood(address: SocketAddr) -> std::io::Result<()> {
    let (responses, mut requests) = TcpStream::connect(address).await?.into_split();
    let mut lines = BufReader::new(responses).lines();
    let request = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "nothing-here".repeat(20));
    loop {
        requests.write_all(request.repeat(100).as_bytes()).await?;
        let mut received = 0;
        while received < 100 {
            let line = lines.next_line().await?.ok_or(std::io::ErrorKind::UnexpectedEof)?;
            received += usize::from(line.contains("HTTP/1.1 "));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Prometheus; script/check alerts runs it"]
async fn a_process_is_killed_has_a_wrong_clock_an_unread_log_and_restarts_again_and_again() {
    let database = Database::create().await;
    let (config, addresses) = (database.config(), Addresses::new());
    let program = Program::start(&config, addresses, "").await;
    let monitoring = Monitoring::of(&[addresses.internal]).await;
    monitoring.raises(&["PartnerApiDown"], program.kill()).await;

    let wrong_clock =
        "export LD_PRELOAD=$(echo /usr/lib/*/faketime/libfaketimeMT.so.1) FAKETIME=-3 FAKETIME_DONT_FAKE_MONOTONIC=1";
    let program = Program::start(&config, addresses, wrong_clock);
    let program = monitoring.raises(&["PartnerApiClockDiffers"], program).await;

    let flooded = async {
        let mut flooding = JoinSet::new();
        flooding.spawn(flood(addresses.partners));
        flooding
    };
    drop(monitoring.raises(&["PartnerApiLogDrops"], flooded).await);
    program.kill().await;

    let api = monitoring.api.clone();
    let crashes = async {
        let mut crashing = JoinSet::new();
        crashing.spawn(async move {
            let mut last = 0.0;
            loop {
                let program = Program::start(&config, addresses, "").await;
                last = api.above(last, "process_start_time_seconds").await;
                program.kill().await;
            }
        });
        crashing
    };
    drop(monitoring.raises(&["PartnerApiRestarting"], crashes).await);

    monitoring.raises(&["PartnerApiAbsent"], monitoring.watch(&[])).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Prometheus; script/check alerts runs it"]
async fn clients_use_up_the_connections_of_their_address_and_then_the_descriptors() {
    let database = Database::create().await;
    let addresses = Addresses::new();
    // Half of the descriptors are for connections to a listener, and half of these for one address.
    let _program = Program::start(&database.config(), addresses, "ulimit -n 128").await;
    let monitoring = Monitoring::of(&[addresses.internal]).await;
    let never_finished = |from: &'static str, path: &'static str| {
        let listener = if path == MEASUREMENTS {
            addresses.partners
        } else {
            addresses.inspectors
        };
        traffic(listener, 40, move || {
            let request = Request::post(path, "{").header("content-length", "1000");
            request.stalled().signed_by(&ALPHA).from(from)
        })
    };
    let from_one_address = async { never_finished("127.0.0.1", MEASUREMENTS) };
    let _held = monitoring
        .raises(&["PartnerApiConnectionsRefused"], from_one_address)
        .await;
    let from_more = async {
        let another = never_finished("127.0.0.2", MEASUREMENTS);
        let session = "/inspector/v1/session";
        [
            another,
            never_finished("127.0.0.1", session),
            never_finished("127.0.0.2", session),
        ]
    };
    monitoring.raises(&["PartnerApiDescriptorsRunOut"], from_more).await;
}
