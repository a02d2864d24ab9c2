//! The data of the benchmark: a private, durable cluster with the sandbox's data and more reports, and partners with practically
//! unlimited keys.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use deadpool_postgres::Pool;
use embedded_postgres::{EmbeddedPostgres, Options};
use partner_api::publishing::{RenderOutcome, Worker};
use partner_api::storage::Storage;
use partner_api_sandbox as sandbox;
use partner_api_signing::{Environment, KEY_ID_RANDOM_BYTES, KeyId, SECRET_RANDOM_BYTES, Secret};
use partner_api_store::migrate::migrate;
use partner_api_store::pool::{PoolSettings, pool};
use partner_api_store::secrets::{MasterKey, purpose};
use tempfile::TempDir;
use tokio_postgres::{Client, Config, NoTls};
use uuid::Uuid;

use crate::error::BenchError;

/// The number of reports beside the sandbox's. [`report`] computes their IDs.
pub const REPORTS: u32 = 20_000;
/// The first reports, this many, have forms and photos.
pub const FULL_REPORTS: u32 = 2_000;
/// The numbers on the plates of the open reports.
pub const OPEN_REPORTS: std::ops::Range<u32> = 100..200;
/// The number on the plate of the open report to which all clients send.
pub const ONE_REPORT: u32 = 200;

/// The master key of the benchmark.
pub const MASTER_KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// The number of partners. Each has a key and grants of all organizations.
const PARTNERS: usize = 16;
/// The number of keys that send each nonce to both replicas.
const CROSSING_KEYS: usize = 4;
/// A limit of requests per minute that is never reached.
const UNLIMITED: i32 = 2_000_000_000;

/// A partner's key.
pub struct Key {
    /// The key ID.
    pub id: KeyId,
    /// The secret.
    pub secret: Secret,
}

/// The data of the benchmark. Dropping it stops the cluster and removes all files.
pub struct Fixture {
    /// The database's URL.
    pub url: String,
    /// The process ID of the cluster's main process.
    pub postgres_pid: u32,
    /// The folder of the cluster's socket.
    pub socket: PathBuf,
    /// A dedicated session.
    pub client: Client,
    /// Keys with a practically unlimited rate.
    pub keys: Vec<Key>,
    /// A key that is limited to one request per minute.
    pub limited: Key,
    /// Keys with the default limit of 60 requests per minute and without permissions.
    pub crossing_keys: Vec<Key>,
    /// All organizations.
    pub organizations: Vec<Uuid>,
    /// The code of the branch with the open reports.
    pub branch_code: String,
    /// Measurement points of that branch's test-line form that have thresholds, at most twelve.
    pub points: Vec<String>,
    /// Reports with a stored PDF.
    pub pdfs: Vec<Uuid>,
    // In this order, so that the cluster stops before its folder is removed.
    postgres: EmbeddedPostgres,
    folder: TempDir,
}

impl Fixture {
    /// Starts the cluster and creates the data.
    ///
    /// # Errors
    /// If PostgreSQL is not installed or does not start, or the data cannot be created.
    pub async fn create() -> Result<Self, BenchError> {
        let folder = tempfile::Builder::new()
            .prefix("partner-api-bench-")
            .tempdir()
            .map_err(BenchError::io("create a folder"))?;
        // If this process runs as root, PostgreSQL runs as another user, who must be able to enter the folder.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))
            .map_err(BenchError::io("set the folder's permissions"))?;
        let options = Options {
            max_connections: 200,
            // Durable, but without checkpoints, which would disturb single measurements.
            settings: [
                ("max_wal_size", "16GB"),
                ("checkpoint_timeout", "1h"),
                ("track_wal_io_timing", "off"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
            ..Options::of("partner-api")
        };
        let postgres = EmbeddedPostgres::start(folder.path(), options).await?;
        let config = postgres.config();
        let client = connect(&config).await?;
        fill(&config, &client, &folder.path().join("files")).await?;
        let Partners {
            keys,
            limited,
            crossing_keys,
        } = partners(&client).await?;
        let station = client
            .query_one("SELECT code, code_folded FROM bench.station", &[])
            .await?;
        let points = "SELECT array_agg(point_code) FROM (SELECT t.point_code FROM thresholds t JOIN bench.station s \
                      USING (organization_id) JOIN form_templates f ON f.organization_id = s.organization_id AND f.is_test_line \
                      JOIN form_template_points p ON p.template_id = f.id AND p.code = t.point_code \
                      WHERE t.point_code <> 'DYNO_RATIO' ORDER BY 1 LIMIT 12) first";
        let fixture = Self {
            url: postgres.url(),
            postgres_pid: main_process(postgres.folder())?,
            socket: socket(&config)?,
            keys,
            limited,
            crossing_keys,
            organizations: client
                .query("SELECT id FROM organizations ORDER BY id", &[])
                .await?
                .iter()
                .map(|row| row.get(0))
                .collect(),
            branch_code: station.get(0),
            points: client.query_one(points, &[]).await?.get(0),
            pdfs: client
                .query(
                    "SELECT id FROM inspections WHERE pdf_object_key IS NOT NULL AND status = 'PUBLISHED'",
                    &[],
                )
                .await?
                .iter()
                .map(|row| row.get(0))
                .collect(),
            client,
            postgres,
            folder,
        };
        // So that remaining work of loading the data is not done during a measurement.
        for statement in ["VACUUM (ANALYZE)", "CHECKPOINT"] {
            fixture.client.batch_execute(statement).await?;
        }
        Ok(fixture)
    }

    /// Returns the folder of photos and PDFs.
    pub fn files(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    /// Returns the folder for logs and scripts.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the version of the database server.
    ///
    /// # Errors
    /// If the database does not respond.
    pub async fn postgres_version(&self) -> Result<String, BenchError> {
        Ok(self.client.query_one("SHOW server_version", &[]).await?.get(0))
    }

    /// Stops the cluster and removes all files.
    pub async fn stop(self) {
        drop(self.client);
        self.postgres.stop().await;
    }
}

/// Returns the ID of the report with this number, which must be below [`REPORTS`].
pub fn report(number: u32) -> Uuid {
    Uuid::from_u128((4 << 96) | u128::from(number))
}

/// Returns the ID of the open report with this number on its plate.
pub fn open_report(number: u32) -> Uuid {
    Uuid::from_u128((8 << 96) | u128::from(number))
}

async fn connect(config: &Config) -> Result<Client, BenchError> {
    let (client, driver) = config.connect(NoTls).await?;
    // The client's next statement fails if the connection is lost, so the driver's result is not needed.
    tokio::spawn(driver);
    Ok(client)
}

async fn fill(config: &Config, client: &Client, files: &Path) -> Result<(), BenchError> {
    migrate(config)
        .await
        .map_err(|error| BenchError::Unexpected(format!("failed to migrate the database: {error}")))?;
    let master_key = master_key()?;
    let storage = Storage::folder(files, "http://127.0.0.1", master_key.derive(purpose::LINKS))
        .map_err(|error| BenchError::Unexpected(error.to_string()))?;
    let pool = pool(config.clone(), &PoolSettings::default())?;
    sandbox::seed(&pool, &storage, &master_key, "vip").await?;
    render(&pool, &storage).await?;
    pool.close();
    client.batch_execute(include_str!("fixture.sql")).await?;
    Ok(())
}

/// Renders all due PDFs, so that the service does not render during a measurement.
async fn render(pool: &Pool, storage: &Storage) -> Result<(), BenchError> {
    let worker = Worker::new(pool.clone(), storage.clone(), 1);
    loop {
        match worker.render_next().await {
            Ok(RenderOutcome::Rendered { .. } | RenderOutcome::UpToDate(_)) => {}
            Ok(RenderOutcome::Idle) => return Ok(()),
            other => return Err(BenchError::Unexpected(format!("failed to render a PDF: {other:?}"))),
        }
    }
}

fn master_key() -> Result<MasterKey, BenchError> {
    MasterKey::from_hex(MASTER_KEY, "the benchmark").map_err(|error| BenchError::Unexpected(error.to_string()))
}

struct Partners {
    keys: Vec<Key>,
    limited: Key,
    crossing_keys: Vec<Key>,
}

async fn partners(client: &Client) -> Result<Partners, BenchError> {
    let (mut keys, mut crossing_keys) = (Vec::new(), Vec::new());
    for number in 0..PARTNERS {
        keys.push(partner(client, &format!("bench-{number}"), UNLIMITED).await?);
    }
    for number in 0..CROSSING_KEYS {
        let key = partner(client, &format!("bench-key-{number}"), 60).await?;
        let bare = "UPDATE api_keys SET scopes = '{}' WHERE key_id = $1";
        client.execute(bare, &[&key.id.as_str()]).await?;
        crossing_keys.push(key);
    }
    Ok(Partners {
        keys,
        limited: partner(client, "bench-limited", 1).await?,
        crossing_keys,
    })
}

async fn partner(client: &Client, name: &str, limit: i32) -> Result<Key, BenchError> {
    let unexpected = |error: String| BenchError::Unexpected(error);
    let id = KeyId::generate("vip", Environment::Test, &rand::random::<[u8; KEY_ID_RANDOM_BYTES]>())
        .map_err(|error| unexpected(error.to_string()))?;
    let secret = Secret::generate(&rand::random::<[u8; SECRET_RANDOM_BYTES]>());
    let (nonce, encrypted) = master_key()?
        .encrypt(id.as_str(), &secret)
        .map_err(|error| unexpected(error.to_string()))?;
    let partner = Uuid::now_v7();
    client
        .execute("INSERT INTO partners (id, name) VALUES ($1, $2)", &[&partner, &name])
        .await?;
    client
        .execute(
            "INSERT INTO api_keys (key_id, partner_id, environment, secret_nonce, secret_ciphertext, scopes, rate_limit) \
             VALUES ($1, $2, 'test', $3, $4, '{test-line:write}', $5)",
            &[&id.as_str(), &partner, &nonce.as_slice(), &encrypted, &limit],
        )
        .await?;
    client
        .execute("INSERT INTO grants SELECT $1, id, true FROM organizations", &[&partner])
        .await?;
    Ok(Key { id, secret })
}

fn main_process(folder: &Path) -> Result<u32, BenchError> {
    let path = folder.join("data/postmaster.pid");
    let text = fs::read_to_string(&path).map_err(BenchError::io(format!("read {}", path.display())))?;
    text.lines()
        .next()
        .and_then(|line| line.trim().parse().ok())
        .ok_or_else(|| BenchError::Unexpected(format!("{} contains no process ID", path.display())))
}

fn socket(config: &Config) -> Result<PathBuf, BenchError> {
    match config.get_hosts() {
        [tokio_postgres::config::Host::Unix(folder)] => Ok(folder.clone()),
        hosts => Err(BenchError::Unexpected(format!("the cluster has no socket: {hosts:?}"))),
    }
}
