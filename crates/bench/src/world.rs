//! What is measured upon: a private, durable cluster with the sandbox's data and more of it, and partners whose limits no
//! load reaches.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use deadpool_postgres::Pool;
use embedded_postgres::{EmbeddedPostgres, Options};
use partner_api::publishing::{Turn, Worker};
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

/// Reports that have been added to the sandbox's, with ids that [`report`] computes.
pub const REPORTS: u32 = 20_000;
/// How many of them, the first, have forms and photos.
pub const FULL_REPORTS: u32 = 2_000;
/// The numbers on the plates of the reports in their writing phase.
pub const OPEN_REPORTS: std::ops::Range<u32> = 100..200;
/// The number on the plate of the one that all send to.
pub const ONE_REPORT: u32 = 200;

/// The master key of this world, which holds nothing worth one.
pub const MASTER_KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// Partners, each with a key and all organisations.
const PARTNERS: usize = 16;
/// Partners that use their keys against the others.
const CROSSERS: usize = 4;
/// Requests a minute that nobody reaches.
const UNLIMITED: i32 = 2_000_000_000;

/// A key, as a partner knows it.
pub struct Key {
    /// Its id.
    pub id: KeyId,
    /// Its secret.
    pub secret: Secret,
}

/// The world. Dropped, the cluster is stopped and everything is removed.
pub struct World {
    /// The database's URL.
    pub url: String,
    /// The cluster's main process.
    pub postgres_pid: u32,
    /// The folder of the cluster's socket.
    pub socket: PathBuf,
    /// A session of its own.
    pub client: Client,
    /// Keys without a limit that matters.
    pub keys: Vec<Key>,
    /// A key that has one request a minute.
    pub limited: Key,
    /// Keys as everybody has them, without a permission: 60 requests a minute.
    pub crossers: Vec<Key>,
    /// All organisations.
    pub organizations: Vec<Uuid>,
    /// The code of the branch with the reports in their writing phase, as it is sent.
    pub branch_code: String,
    /// Measurement points of that branch's test-line form that have thresholds, at most twelve.
    pub points: Vec<String>,
    /// Reports with a stored PDF.
    pub pdfs: Vec<Uuid>,
    // In this order: the cluster stops before its folder goes.
    postgres: EmbeddedPostgres,
    folder: TempDir,
}

impl World {
    /// Makes it.
    ///
    /// # Errors
    /// PostgreSQL is not installed or does not start, or the data cannot be made.
    pub async fn make() -> Result<Self, BenchError> {
        let folder = tempfile::Builder::new()
            .prefix("partner-api-bench-")
            .tempdir()
            .map_err(BenchError::io("make a folder"))?;
        // As root, PostgreSQL runs as another user, who must be able to enter.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).map_err(BenchError::io("open it"))?;
        let options = Options {
            max_connections: 200,
            // Durable; but no checkpoint in the middle of one measurement and not of another.
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
            crossers,
        } = partners(&client).await?;
        let station = client
            .query_one("SELECT code, code_folded FROM bench.station", &[])
            .await?;
        let points = "SELECT array_agg(point_code) FROM (SELECT t.point_code FROM thresholds t JOIN bench.station s \
                      USING (organization_id) JOIN form_templates f ON f.organization_id = s.organization_id AND f.is_test_line \
                      JOIN form_template_points p ON p.template_id = f.id AND p.code = t.point_code \
                      WHERE t.point_code <> 'DYNO_RATIO' ORDER BY 1 LIMIT 12) first";
        let world = Self {
            url: postgres.url(),
            postgres_pid: main_process(postgres.folder())?,
            socket: socket(&config)?,
            keys,
            limited,
            crossers,
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
        // What filling left to write must not be written while something is measured.
        for statement in ["VACUUM (ANALYZE)", "CHECKPOINT"] {
            world.client.batch_execute(statement).await?;
        }
        Ok(world)
    }

    /// Photos and PDFs.
    pub fn files(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    /// For what is kept beside, logs and scripts.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The server's version.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn postgres_version(&self) -> Result<String, BenchError> {
        Ok(self.client.query_one("SHOW server_version", &[]).await?.get(0))
    }

    /// Stops the cluster and removes everything.
    pub async fn stop(self) {
        drop(self.client);
        self.postgres.stop().await;
    }
}

/// The id of the report with this number, below [`REPORTS`].
pub fn report(number: u32) -> Uuid {
    Uuid::from_u128((4 << 96) | u128::from(number))
}

/// The id of the report in its writing phase with this number on its plate.
pub fn open_report(number: u32) -> Uuid {
    Uuid::from_u128((8 << 96) | u128::from(number))
}

async fn connect(config: &Config) -> Result<Client, BenchError> {
    let (client, driver) = config.connect(NoTls).await?;
    // A connection's end is seen by its client's next statement; its driver has nothing to add.
    tokio::spawn(driver);
    Ok(client)
}

async fn fill(config: &Config, client: &Client, files: &Path) -> Result<(), BenchError> {
    migrate(config)
        .await
        .map_err(|error| BenchError::Unexpected(format!("the schema: {error}")))?;
    let master_key = master_key()?;
    let storage = Storage::folder(files, "http://127.0.0.1", master_key.derive(purpose::LINKS))
        .map_err(|error| BenchError::Unexpected(error.to_string()))?;
    let pool = pool(config.clone(), &PoolSettings::default())?;
    sandbox::seed(&pool, &storage, &master_key, "vip").await?;
    render(&pool, &storage).await?;
    pool.close();
    client.batch_execute(include_str!("world.sql")).await?;
    Ok(())
}

/// Draws the PDFs that are waited for, so that no service does while it is measured.
async fn render(pool: &Pool, storage: &Storage) -> Result<(), BenchError> {
    let worker = Worker::new(pool.clone(), storage.clone(), 1);
    loop {
        match worker.turn().await {
            Ok(Turn::Rendered { .. } | Turn::Settled(_)) => {}
            Ok(Turn::Idle) => return Ok(()),
            other => return Err(BenchError::Unexpected(format!("a PDF: {other:?}"))),
        }
    }
}

fn master_key() -> Result<MasterKey, BenchError> {
    MasterKey::from_hex(MASTER_KEY, "the benchmark").map_err(|error| BenchError::Unexpected(error.to_string()))
}

struct Partners {
    keys: Vec<Key>,
    limited: Key,
    crossers: Vec<Key>,
}

async fn partners(client: &Client) -> Result<Partners, BenchError> {
    let (mut keys, mut crossers) = (Vec::new(), Vec::new());
    for number in 0..PARTNERS {
        keys.push(partner(client, &format!("bench-{number}"), UNLIMITED).await?);
    }
    for number in 0..CROSSERS {
        let crosser = partner(client, &format!("bench-crosser-{number}"), 60).await?;
        let bare = "UPDATE api_keys SET scopes = '{}' WHERE key_id = $1";
        client.execute(bare, &[&crosser.id.as_str()]).await?;
        crossers.push(crosser);
    }
    Ok(Partners {
        keys,
        limited: partner(client, "bench-limited", 1).await?,
        crossers,
    })
}

async fn partner(client: &Client, name: &str, limit: i32) -> Result<Key, BenchError> {
    let unexpected = |error: String| BenchError::Unexpected(error);
    let id = KeyId::generate("vip", Environment::Test, &rand::random::<[u8; KEY_ID_RANDOM_BYTES]>())
        .map_err(|error| unexpected(error.to_string()))?;
    let secret = Secret::generate(&rand::random::<[u8; SECRET_RANDOM_BYTES]>());
    let (nonce, sealed) = master_key()?
        .seal(id.as_str(), &secret)
        .map_err(|error| unexpected(error.to_string()))?;
    let partner = Uuid::now_v7();
    client
        .execute("INSERT INTO partners (id, name) VALUES ($1, $2)", &[&partner, &name])
        .await?;
    client
        .execute(
            "INSERT INTO api_keys (key_id, partner_id, environment, secret_nonce, secret_ciphertext, scopes, rate_limit) \
             VALUES ($1, $2, 'test', $3, $4, '{test-line:write}', $5)",
            &[&id.as_str(), &partner, &nonce.as_slice(), &sealed, &limit],
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
        .ok_or_else(|| BenchError::Unexpected(format!("{} names no process", path.display())))
}

fn socket(config: &Config) -> Result<PathBuf, BenchError> {
    match config.get_hosts() {
        [tokio_postgres::config::Host::Unix(folder)] => Ok(folder.clone()),
        hosts => Err(BenchError::Unexpected(format!("a cluster without a socket: {hosts:?}"))),
    }
}
