//! The peers: servers in other frameworks that do the service's job on some operations, and the check that they do.
//!
//! Each verifies the signature, consumes a durable nonce, executes the service's own statement, and returns the same JSON. The
//! statements, keys and settings are passed to them in a file, so that all servers work with the same ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use partner_api::admission::nonces;
use partner_api_store::secrets::{MasterKey, purpose};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio_postgres::config::Host;
use uuid::Uuid;

use crate::baselines;
use crate::connection::{Connection, ExchangeError};
use crate::draft::{Draft, Signing};
use crate::error::BenchError;
use crate::fixture::{self, Fixture};
use crate::operations::Operation;
use crate::servers::Server;
use crate::statement_costs::StatementCost;

/// The operations that the peers serve.
pub const OPERATIONS: [&str; 5] = ["health", "organizations", "list", "detail", "pending"];

/// The names of the peers and their programs: an interpreter, if there is one, and a file. `script/bench --peers` installs and builds
/// them, and starts the benchmark in the folder of the repository.
const PEERS: [(&str, &[&str]); 4] = [
    ("fastify", &["node", "crates/bench/peers/fastify_pg.mjs"]),
    (
        "fastapi",
        &[".venv/bin/python", "crates/bench/peers/fastapi_asyncpg.py"],
    ),
    ("go", &["target/peers/net_http_pgx"]),
    ("axum", &["target/peers/release/axum_sqlx"]),
];

/// The number of reports whose bodies are compared. The reports are copies of fewer than these (`fixture.sql`).
const COMPARED: usize = 400;
/// How often, and with which pause, a nonce that is recorded after its response is looked up.
const LOOKUPS: (usize, Duration) = (100, Duration::from_millis(20));

/// A peer.
pub struct Peer {
    /// Its name.
    pub name: &'static str,
    /// The process.
    pub server: Server,
}

/// Returns the name of an operation on a peer, for the table and for `--only`.
pub fn name_of(operation: &str, peer: &str) -> String {
    format!("{operation}-{peer}")
}

/// Returns the names of all operations on all peers.
pub fn names() -> impl Iterator<Item = String> {
    OPERATIONS
        .iter()
        .flat_map(|operation| PEERS.iter().map(|(peer, _)| name_of(operation, peer)))
}

/// Returns the names of the peers.
pub fn peers() -> impl Iterator<Item = &'static str> {
    PEERS.iter().map(|(name, _)| *name)
}

/// Starts all peers. They serve the statements that the service was recorded to send, `service` is the service's address.
///
/// # Errors
/// If a peer does not start, or the service sent more than one statement.
pub async fn start(
    fixture: &Fixture,
    service: &Server,
    costs: &BTreeMap<&'static str, StatementCost>,
) -> Result<Vec<Peer>, BenchError> {
    let file = fixture.folder().join("peers.json");
    let config = config(fixture, service, costs).await?;
    std::fs::write(&file, config.to_string()).map_err(BenchError::io("write the peers' settings"))?;
    let mut peers = Vec::new();
    for (name, program) in PEERS {
        let log = fixture.folder().join(format!("{name}.log"));
        peers.push(Peer {
            name,
            server: Server::peer(command(program), &file, &log).await?,
        });
    }
    Ok(peers)
}

fn command(program: &[&str]) -> Command {
    let (first, arguments) = program.split_first().unwrap_or((&"", &[]));
    // A path is relative to the current folder, a name is found on the PATH.
    let first = match Path::new(first).components().count() {
        1 => PathBuf::from(first),
        _ => std::env::current_dir().unwrap_or_default().join(first),
    };
    let mut command = Command::new(first);
    command.args(arguments);
    command
}

/// Returns the peers' settings: the database and the settings of its sessions, which equal the service's; the keys; the statements.
async fn config(
    fixture: &Fixture,
    service: &Server,
    costs: &BTreeMap<&'static str, StatementCost>,
) -> Result<Value, BenchError> {
    let database: tokio_postgres::Config = fixture.url.parse()?;
    let host = match database.get_hosts() {
        [Host::Unix(folder)] => folder.display().to_string(),
        hosts => return Err(BenchError::Unexpected(format!("the cluster has no socket: {hosts:?}"))),
    };
    let mut statements = BTreeMap::from([("admit", admit()?)]);
    for operation in OPERATIONS.into_iter().filter(|name| *name != "health") {
        let named = costs.get(operation).map(|cost| cost.named.as_slice());
        let Some([(module, name)]) = named else {
            return Err(BenchError::Unexpected(format!(
                "the peers serve {operation} with one statement, but the service sends {named:?}"
            )));
        };
        statements.insert(operation, baselines::statement(module, name)?.to_owned());
    }
    let mut keys = BTreeMap::new();
    for key in &fixture.keys {
        let partner = "SELECT partner_id FROM api_keys WHERE key_id = $1";
        let partner: Uuid = fixture.client.query_one(partner, &[&key.id.as_str()]).await?.get(0);
        let value = json!({
            "secret": key.secret.expose(), "partner": partner, "organizations": fixture.organizations,
        });
        keys.insert(key.id.as_str(), value);
    }
    let master_key = MasterKey::from_hex(fixture::MASTER_KEY, "the benchmark")
        .map_err(|error| BenchError::Unexpected(error.to_string()))?;
    let cursors = master_key.derive(purpose::CURSORS);
    let cursor_key: String = cursors.signing().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(json!({
        "host": host,
        "user": database.get_user(),
        "database": database.get_dbname(),
        "session": { "synchronous_commit": "on", "plan_cache_mode": "force_generic_plan", "timezone": "UTC" },
        "public_url": format!("http://{}", service.address),
        "cursor_key": cursor_key,
        "keys": keys,
        "statements": statements,
        "nonces": [nonces::BUCKET.as_secs(), nonces::MARGIN.as_secs(), nonces::LATER_BUCKETS],
    }))
}

/// Returns the service's statement `ADMIT` without the rate-limit windows: it inserts the nonces in the same way, and returns the number
/// of new ones. A window is a row of its key, for which the single requests of a peer would wait until the commit of the previous one.
fn admit() -> Result<String, BenchError> {
    const WINDOWS: &str = "), counted AS (";
    let whole = baselines::statement("admission::batch", "ADMIT")?;
    let nonces = whole
        .split_once(WINDOWS)
        .map(|(nonces, _)| nonces)
        .ok_or_else(|| BenchError::Unexpected(format!("ADMIT has no `{WINDOWS}`; update crates/bench/src/peers.rs")))?;
    // The windows have the parameters $5 and $6.
    Ok(nonces.replace("$7", "$5") + ") SELECT count(*)::integer FROM admitted")
}

/// A request as sent to a server, and the response.
struct Exchange {
    status: u16,
    body: Value,
    nonce: String,
}

/// Checks that the peers do the service's job: the same JSON for the same request, and the same measurement recorded; a nonce is
/// durable before the response, except for `health`; a wrong signature, an old timestamp and a used nonce are rejected; the signature
/// covers the canonical query.
///
/// # Errors
/// If a peer responds differently.
pub async fn check<'w>(
    fixture: &'w Fixture,
    service: &Server,
    peers: &[Peer],
    operations: &[Operation<'w>],
) -> Result<(), BenchError> {
    for operation in operations
        .iter()
        .filter(|operation| OPERATIONS.contains(&operation.name))
    {
        let requests = if operation.name == "detail" {
            COMPARED
        } else {
            fixture.keys.len()
        };
        for number in 0..requests {
            let key = &fixture.keys[number % fixture.keys.len()];
            let mut draft = Draft::new(key, service.address);
            operation.write(&mut draft);
            let expected = exchange(service, &mut draft, operation).await?;
            for peer in peers {
                let found = exchange(&peer.server, &mut draft, operation).await?;
                compare(fixture, operation, peer, &draft, (&expected, &found)).await?;
            }
        }
        for peer in peers {
            rejections(fixture, operation, peer).await?;
        }
    }
    Ok(())
}

/// Sends the request of `draft` with a new nonce, and a measurement with a new external ID.
async fn exchange(server: &Server, draft: &mut Draft<'_>, operation: &Operation<'_>) -> Result<Exchange, BenchError> {
    if operation.records() {
        let body = String::from_utf8_lossy(&draft.body).into_owned();
        let document: Value = parse(&draft.body)?;
        let old = document["external_id"].as_str().unwrap_or_default();
        draft.body = body.replace(old, &Uuid::new_v4().simple().to_string()).into_bytes();
    }
    let nonce = Uuid::new_v4().simple().to_string();
    draft.nonce = Some(nonce.clone());
    let (status, body) = send(server, draft.finish()).await?;
    Ok(Exchange { status, body, nonce })
}

/// Sends a request on a new connection, which another process of the server may accept.
async fn send(server: &Server, request: &[u8]) -> Result<(u16, Value), BenchError> {
    send_on(&mut open(server).await?, request).await
}

async fn open(server: &Server) -> Result<Connection, BenchError> {
    Connection::open(server.address).await.map_err(failed)
}

async fn send_on(connection: &mut Connection, request: &[u8]) -> Result<(u16, Value), BenchError> {
    let response = connection.exchange(request).await.map_err(failed)?;
    Ok((response.status, parse(response.body)?))
}

fn failed(error: ExchangeError) -> BenchError {
    BenchError::Unexpected(format!("a request failed: {error}"))
}

fn parse(text: &[u8]) -> Result<Value, BenchError> {
    serde_json::from_slice(text)
        .map_err(|error| BenchError::Unexpected(format!("{error} in {}", String::from_utf8_lossy(text))))
}

/// Compares the response of a peer with the service's, and their effects in the database.
async fn compare(
    fixture: &Fixture,
    operation: &Operation<'_>,
    peer: &Peer,
    draft: &Draft<'_>,
    (expected, found): (&Exchange, &Exchange),
) -> Result<(), BenchError> {
    let wrong = |problem: &str| {
        Err(BenchError::Unexpected(format!(
            "{} {}: {problem}",
            peer.name, draft.path
        )))
    };
    if (expected.status, found.status) != (operation.expected, operation.expected) {
        return wrong(&format!(
            "status {} instead of {}: {}",
            found.status, expected.status, found.body
        ));
    }
    let (mut of_service, mut of_peer) = (expected.body.clone(), found.body.clone());
    let mut ids = Vec::new();
    for body in [&mut of_service, &mut of_peer] {
        if let Some(time) = body.pointer_mut("/server_time") {
            let is_time = time
                .as_str()
                .is_some_and(|text| text.ends_with('Z') && text.len() >= 20);
            *time = Value::Bool(is_time);
        }
        if let Some(id) = body.pointer_mut("/data/measurement_id") {
            ids.extend(id.as_str().and_then(|id| Uuid::parse_str(id).ok()));
            *id = Value::Null;
        }
    }
    if let Some(difference) = difference(&of_service, &of_peer, "") {
        return wrong(&difference);
    }
    if operation.records() && !is_same_measurement(fixture, &ids).await? {
        return wrong("another measurement was recorded");
    }
    if !is_recorded(fixture, draft, &found.nonce, operation.name == "health").await? {
        return wrong("the nonce is not in the database");
    }
    Ok(())
}

/// Describes the first difference between two documents.
fn difference(expected: &Value, found: &Value, at: &str) -> Option<String> {
    match (expected, found) {
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() && a.keys().all(|name| b.contains_key(name)) => a
            .iter()
            .find_map(|(name, value)| difference(value, &b[name], &format!("{at}/{name}"))),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .find_map(|(index, (a, b))| difference(a, b, &format!("{at}/{index}"))),
        _ => (expected != found).then(|| format!("{at} is {found} instead of {expected}")),
    }
}

/// Returns whether two measurements differ only in what each request has of its own.
async fn is_same_measurement(fixture: &Fixture, ids: &[Uuid]) -> Result<bool, BenchError> {
    // A number's trailing zeros may be lost.
    const SAME: &str = "\
SELECT count(*) = 2 AND count(DISTINCT (partner_id, key_id, organization_id, branch_id, plate, device_serial, status, inspection_id,
                                        point_codes, point_texts::numeric[], length(raw))) = 1
       AND bool_and(raw_sha256 = sha256(raw) AND external_id IS NOT NULL AND measured_at > now() - interval '1 minute')
FROM measurements WHERE id = ANY ($1)";
    Ok(fixture.client.query_one(SAME, &[&ids]).await?.get(0))
}

/// Returns whether the nonce of a request is in the database; `later` waits for it.
async fn is_recorded(fixture: &Fixture, draft: &Draft<'_>, nonce: &str, later: bool) -> Result<bool, BenchError> {
    const FIND: &str = "\
SELECT EXISTS (SELECT FROM used_nonces
               WHERE digest = encode(substr(sha256(convert_to($1, 'UTF8') || '\\x00' || convert_to($2, 'UTF8')), 1, 16), 'hex')::uuid)";
    for _ in 0..LOOKUPS.0 {
        let row = fixture.client.query_one(FIND, &[&draft.key_id(), &nonce]).await?;
        if row.get(0) {
            return Ok(true);
        }
        if !later {
            return Ok(false);
        }
        tokio::time::sleep(LOOKUPS.1).await;
    }
    Ok(false)
}

/// Checks that a peer rejects what the service rejects.
async fn rejections<'w>(fixture: &'w Fixture, operation: &Operation<'w>, peer: &Peer) -> Result<(), BenchError> {
    let expect = |what: &str, (status, body): (u16, Value), code: &str| {
        if status == 401 && body["error"]["code"] == code {
            return Ok(());
        }
        Err(BenchError::Unexpected(format!(
            "{} {}: {what} got {status} {body} instead of 401 {code}",
            peer.name, operation.name
        )))
    };
    let new = || {
        let mut draft = Draft::new(&fixture.keys[0], peer.server.address);
        operation.write(&mut draft);
        draft
    };
    let mut draft = new();
    draft.signing = Signing::Wrong;
    expect(
        "a wrong signature",
        send(&peer.server, draft.finish()).await?,
        "invalid_signature",
    )?;
    let mut draft = new();
    draft.age = 301;
    expect(
        "an old timestamp",
        send(&peer.server, draft.finish()).await?,
        "expired_timestamp",
    )?;
    let accept = |what: &str, (status, body): (u16, Value)| {
        if status == operation.expected {
            return Ok(());
        }
        Err(BenchError::Unexpected(format!(
            "{} {}: {what} got {status} {body} instead of {}",
            peer.name, operation.name, operation.expected
        )))
    };
    let mut draft = new();
    let request = draft.finish();
    let mut connection = open(&peer.server).await?;
    accept("a new nonce", send_on(&mut connection, request).await?)?;
    let again = send_on(&mut connection, request).await?;
    expect("a used nonce on the same connection", again, "replay_detected")?;
    // The service and the peers keep the nonces of `health` in the memory of a process. Another connection may lead to another process.
    if operation.name != "health" {
        let again = send(&peer.server, request).await?;
        expect("a used nonce on another connection", again, "replay_detected")?;
    }
    if operation.name == "list" {
        let mut draft = new();
        draft.path = draft.path.replace("limit=25", "&limit=%32%35");
        accept(
            "a query that is not canonical",
            send(&peer.server, draft.finish()).await?,
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{admit, difference};

    #[test]
    fn the_first_difference_is_named() {
        let (a, b) = (json!({"x": [1, {"y": 2}]}), json!({"x": [1, {"y": "2"}]}));
        assert_eq!(difference(&a, &a, ""), None);
        assert_eq!(difference(&a, &b, "").unwrap(), "/x/1/y is \"2\" instead of 2");
        assert!(difference(&a, &json!({}), "").is_some());
    }

    #[test]
    fn the_peers_insert_nonces_as_the_service_does_without_its_windows() {
        let sql = admit().unwrap();
        assert!(
            sql.contains("INSERT INTO used_nonces") && !sql.contains("rate_windows"),
            "{sql}"
        );
        assert!(
            sql.contains("$5::bigint") && !sql.contains("$6") && !sql.contains("$7"),
            "{sql}"
        );
    }
}
