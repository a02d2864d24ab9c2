//! The benchmark's peer with axum and sqlx, as one would write it by hand: `script/bench --peers` builds, checks and measures it.
//!
//! It serves five operations of the service with the service's statements, which the benchmark passes in the file `PEER_CONFIG`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chrono::{DateTime, SubsecRound, Utc};
use hmac::{Hmac, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};
use regex::Regex;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgRow};
use sqlx::{Executor, Row};
use tokio::sync::mpsc;
use uuid::Uuid;

/// The service's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CONNECTIONS: u32 = 16;
const EARLIEST: i64 = -62_135_596_800;
const LATEST: i64 = 253_402_300_800;
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[derive(Deserialize)]
struct Config {
    host: String,
    user: String,
    database: String,
    session: BTreeMap<String, String>,
    public_url: String,
    cursor_key: String,
    keys: HashMap<String, KeyConfig>,
    statements: Statements,
    nonces: (f64, f64, i64),
}

#[derive(Deserialize)]
struct KeyConfig {
    secret: String,
    partner: Uuid,
    organizations: Vec<Uuid>,
}

#[derive(Deserialize)]
struct Statements {
    admit: String,
    organizations: String,
    list: String,
    detail: String,
    pending: String,
}

struct Key {
    id: String,
    mac: Hmac<Sha256>,
    partner: Uuid,
    organizations: Vec<Uuid>,
}

struct Peer {
    pool: PgPool,
    config: Config,
    cursors: Hmac<Sha256>,
    keys: HashMap<String, Key>,
    memory: Mutex<HashSet<Uuid>>,
    later: mpsc::UnboundedSender<(String, Uuid)>,
}

type Shared = State<Arc<Peer>>;

struct Failure(StatusCode, &'static str);

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        json(self.0, &serde_json::json!({ "error": { "code": self.1 } }))
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        eprintln!("{error}");
        Failure(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable")
    }
}

const NOT_FOUND: Failure = Failure(StatusCode::NOT_FOUND, "not_found");
const INVALID: Failure = Failure(StatusCode::BAD_REQUEST, "invalid_request");

fn unauthorized(code: &'static str) -> Failure {
    Failure(StatusCode::UNAUTHORIZED, code)
}

fn json<T: Serialize>(status: StatusCode, body: &T) -> Response {
    let bytes = serde_json::to_vec(body).expect("serializable");
    (status, [(header::CONTENT_TYPE, "application/json")], bytes).into_response()
}

/// Where a nonce is recorded before the response. The service keeps the nonces of `health` in memory, and records them after it.
#[derive(PartialEq)]
enum Durability {
    Database,
    Memory,
}

impl Peer {
    /// Checks timestamp, nonce and signature, and consumes the nonce.
    async fn admit(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        body: &[u8],
        durability: Durability,
    ) -> Result<&Key, Failure> {
        let value = |name| {
            let mut values = headers.get_all(name).iter();
            match (values.next().and_then(|value| value.to_str().ok()), values.next()) {
                (Some(value), None) => Ok(value),
                _ => Err(unauthorized("missing_signature_headers")),
            }
        };
        let (id, timestamp) = (value("x-partner-key-id")?, value("x-partner-timestamp")?);
        let (nonce, signature) = (value("x-partner-nonce")?, value("x-partner-signature")?);
        let is_number = timestamp.bytes().all(|byte| byte.is_ascii_digit());
        let seconds: i64 = timestamp
            .parse()
            .ok()
            .filter(|_| is_number)
            .ok_or(unauthorized("missing_signature_headers"))?;
        if !(16..=128).contains(&nonce.len()) || !nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(unauthorized("missing_signature_headers"));
        }
        let key = self.keys.get(id).ok_or(unauthorized("invalid_key"))?;
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        if seconds.abs_diff(now.cast_signed()) > 300 {
            return Err(unauthorized("expired_timestamp"));
        }
        let query = canonical_query(uri.query().unwrap_or_default()).ok_or(INVALID)?;
        let canonical = format!(
            "{method}\n{}\n{query}\n{timestamp}\n{nonce}\n{}",
            uri.path(),
            hex::encode(Sha256::digest(body))
        );
        let mut sent = [0; 32];
        let hexadecimal = signature.strip_prefix("sha256=").unwrap_or_default();
        let is_lower = !hexadecimal.bytes().any(|byte| byte.is_ascii_uppercase());
        if !is_lower || hex::decode_to_slice(hexadecimal, &mut sent).is_err() {
            return Err(unauthorized("invalid_signature"));
        }
        key.mac
            .clone()
            .chain_update(canonical)
            .verify_slice(&sent)
            .map_err(|_| unauthorized("invalid_signature"))?;
        let digest = Sha256::new()
            .chain_update(id)
            .chain_update([0])
            .chain_update(nonce)
            .finalize();
        let digest = Uuid::from_slice(&digest[..16]).expect("16 bytes");
        if durability == Durability::Memory {
            let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
            if !memory.insert(digest) {
                return Err(unauthorized("replay_detected"));
            }
            // The receiver lives as long as the process.
            let _ = self.later.send((key.id.clone(), digest));
            return Ok(key);
        }
        match self.record(&[id], &[digest]).await? {
            1 => Ok(key),
            _ => Err(unauthorized("replay_detected")),
        }
    }

    /// Records nonces; returns the number of new ones.
    async fn record(&self, ids: &[&str], digests: &[Uuid]) -> Result<i32, sqlx::Error> {
        let (bucket, margin, later) = self.config.nonces;
        let row = sqlx::query(&self.config.statements.admit)
            .bind(ids)
            .bind(digests)
            .bind(bucket)
            .bind(margin)
            .bind(later)
            .fetch_one(&self.pool)
            .await?;
        row.try_get(0)
    }

    fn cursor(&self, partner: Uuid, time: DateTime<Utc>, id: Uuid) -> String {
        let mut bytes = time.timestamp_micros().to_be_bytes().to_vec();
        bytes.extend_from_slice(id.as_bytes());
        let mac = self
            .cursors
            .clone()
            .chain_update("partner-api cursor v1")
            .chain_update(partner);
        // No filters are set.
        let mac = mac.chain_update(Sha256::digest([])).chain_update(&bytes);
        bytes.extend_from_slice(&mac.finalize().into_bytes());
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }
}

fn canonical_query(raw: &str) -> Option<String> {
    let mut pairs = Vec::new();
    for piece in raw.split('&').filter(|piece| !piece.is_empty()) {
        let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
        pairs.push((encoded(name)?, encoded(value)?));
    }
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    Some(pairs.join("&"))
}

/// Decodes a name or value and encodes it again in the canonical form; `None` if it is malformed.
fn encoded(text: &str) -> Option<String> {
    let is_escape = |rest: &str| rest.len() >= 2 && rest.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit);
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    let spaced = text.replace('+', " ");
    let decoded: Vec<u8> = percent_decode(spaced.as_bytes()).collect();
    Some(percent_encode(&decoded, RESERVED).to_string())
}

// The privacy modes.

static PLATE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^(0[1-9]|[1-7][0-9]|8[01])([A-Z]{1,3})([0-9]{2,5})$").expect("a pattern"));
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    const TELEPHONE: &str =
        r"(?:(?:\+|00)?90[ ().-]*|0[ ().-]*)?\(?[2-5][0-9]{2}\)?[ .-]*[0-9]{3}[ .-]*[0-9]{2}[ .-]*[0-9]{2}\b";
    const ID: &str = r"\b[1-9][0-9]{2}[ .-]?[0-9]{3}[ .-]?[0-9]{3}[ .-]?[0-9]{2}\b";
    Regex::new(&format!("{ID}|{TELEPHONE}")).expect("a pattern")
});

fn plate(mode: &str, plate: String) -> String {
    if mode == "NONE" {
        return "***".to_owned();
    }
    match (PLATE.captures(&plate), mode) {
        (Some(parts), "MASKED") => format!("{}***{}", &parts[1], &parts[3][parts[3].len() - 2..]),
        (None, "MASKED") => "***".to_owned(),
        (Some(parts), _) => format!("{} {} {}", &parts[1], &parts[2], &parts[3]),
        (None, _) => plate,
    }
}

fn vin(mode: &str, vin: String) -> String {
    match mode {
        "FULL" => vin,
        "MASKED" if vin.is_ascii() && vin.len() >= 14 => format!("{}***{}", &vin[..3], &vin[vin.len() - 4..]),
        _ => "***".to_owned(),
    }
}

fn text(mode: &str, text: String) -> String {
    if mode == "FULL" || text.bytes().filter(u8::is_ascii_digit).count() < 10 {
        return text;
    }
    NUMBER.replace_all(&text, "[removed]").into_owned()
}

// The operations.

#[derive(Serialize)]
struct Health {
    status: &'static str,
    partner: Uuid,
    environment: &'static str,
    server_time: DateTime<Utc>,
}

async fn health(
    State(peer): Shared,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Failure> {
    let key = peer.admit(&method, &uri, &headers, &body, Durability::Memory).await?;
    let health = Health {
        status: "ok",
        partner: key.partner,
        environment: "test",
        server_time: Utc::now().trunc_subsecs(6),
    };
    Ok(json(StatusCode::OK, &health))
}

#[derive(Serialize)]
struct Data<T> {
    data: T,
}

#[derive(Serialize)]
struct Organization {
    id: Uuid,
    slug: String,
    name: String,
    branch_count: i32,
    pii_mode: String,
}

async fn organizations(
    State(peer): Shared,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Failure> {
    let key = peer.admit(&method, &uri, &headers, &body, Durability::Database).await?;
    let rows = sqlx::query(&peer.config.statements.organizations)
        .bind(&key.organizations)
        .bind(&key.organizations)
        .bind(Vec::<Uuid>::new())
        .fetch_all(&peer.pool)
        .await?;
    let data = rows.iter().map(organization).collect::<Result<Vec<_>, _>>()?;
    Ok(json(StatusCode::OK, &Data { data }))
}

fn organization(row: &PgRow) -> Result<Organization, sqlx::Error> {
    Ok(Organization {
        id: row.try_get(0)?,
        slug: row.try_get(1)?,
        name: row.try_get(2)?,
        pii_mode: row.try_get(3)?,
        branch_count: row.try_get(4)?,
    })
}

#[derive(Serialize)]
struct Vehicle {
    plate_masked: String,
    vin_masked: String,
    brand: String,
    model: String,
    year: i32,
    r#type: String,
    fuel_type: String,
    transmission: String,
    color: String,
    mileage_km: i32,
}

/// Reads the ten columns of a vehicle from `first`.
fn vehicle(row: &PgRow, first: usize, mode: &str) -> Result<Vehicle, sqlx::Error> {
    Ok(Vehicle {
        plate_masked: plate(mode, row.try_get(first)?),
        vin_masked: vin(mode, row.try_get(first + 1)?),
        brand: row.try_get(first + 2)?,
        model: row.try_get(first + 3)?,
        year: row.try_get(first + 4)?,
        r#type: row.try_get(first + 5)?,
        fuel_type: row.try_get(first + 6)?,
        transmission: row.try_get(first + 7)?,
        color: row.try_get(first + 8)?,
        mileage_km: row.try_get(first + 9)?,
    })
}

#[derive(Serialize)]
struct Item {
    id: Uuid,
    report_number: String,
    organization_id: Uuid,
    branch_id: Uuid,
    status: String,
    package_name: String,
    overall_score: i32,
    final_price_try: Decimal,
    vehicle: Vehicle,
    published_at: DateTime<Utc>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

/// Reads a number with two decimals; sqlx drops the decimals of zero.
fn amount(row: &PgRow, index: usize) -> Result<Decimal, sqlx::Error> {
    let mut amount: Decimal = row.try_get(index)?;
    amount.rescale(2);
    Ok(amount)
}

fn item(row: &PgRow) -> Result<Item, sqlx::Error> {
    let mode: &str = row.try_get(20)?;
    Ok(Item {
        id: row.try_get(0)?,
        report_number: row.try_get(1)?,
        organization_id: row.try_get(2)?,
        branch_id: row.try_get(3)?,
        status: row.try_get::<String, _>(4)?.to_ascii_lowercase(),
        package_name: text(mode, row.try_get(5)?),
        overall_score: row.try_get(6)?,
        final_price_try: amount(row, 7)?,
        published_at: row.try_get(8)?,
        created_at: row.try_get(9)?,
        vehicle: vehicle(row, 10, mode)?,
        updated_at: row.try_get(21)?,
    })
}

#[derive(Serialize)]
struct Page {
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    has_more: bool,
}

#[derive(Serialize)]
struct List {
    data: Vec<Item>,
    page: Page,
}

async fn list(
    State(peer): Shared,
    method: Method,
    uri: Uri,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Failure> {
    let key = peer.admit(&method, &uri, &headers, &body, Durability::Database).await?;
    let mut limit = 25;
    for pair in canonical_query(&query.unwrap_or_default()).ok_or(INVALID)?.split('&') {
        limit = match pair.split_once('=') {
            None => continue,
            Some(("limit", value)) => value
                .parse()
                .ok()
                .filter(|limit| (1..=100).contains(limit))
                .ok_or(INVALID)?,
            Some(_) => return Err(INVALID),
        };
    }
    let second = |seconds| DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    let rows = sqlx::query(&peer.config.statements.list)
        .bind(&key.organizations)
        .bind(second(LATEST))
        .bind(Uuid::nil())
        .bind(second(EARLIEST))
        .bind(i64::try_from(limit).unwrap_or_default() + 1)
        .fetch_all(&peer.pool)
        .await?;
    let mut data = rows.iter().map(item).collect::<Result<Vec<_>, _>>()?;
    data.sort_unstable_by_key(|item| std::cmp::Reverse((item.created_at, item.id)));
    let has_more = data.len() > limit;
    data.truncate(limit);
    let last = data.last().filter(|_| has_more);
    let next_cursor = last.map(|item| peer.cursor(key.partner, item.created_at, item.id));
    let page = Page { next_cursor, has_more };
    Ok(json(StatusCode::OK, &List { data, page }))
}

#[derive(Serialize)]
struct OrganizationRef {
    id: Uuid,
    slug: String,
    name: String,
}

#[derive(Serialize)]
struct BranchRef {
    id: Uuid,
    name: String,
    city: String,
}

#[derive(Serialize)]
struct Package {
    name: String,
    base_price_try: Decimal,
}

#[derive(Serialize)]
struct Pricing {
    base_price_try: Decimal,
    discount_percent: Decimal,
    discount_name: String,
    final_price_try: Decimal,
    payment_type: String,
    currency: String,
}

#[derive(Serialize)]
struct Snapshot {
    vin_masked: String,
    mileage_km: i32,
}

#[derive(Serialize)]
struct Links {
    forms: String,
    photos: String,
    pdf: String,
}

#[derive(Serialize)]
struct Inspection {
    id: Uuid,
    report_number: String,
    organization: OrganizationRef,
    branch: BranchRef,
    status: String,
    package: Package,
    pricing: Pricing,
    vehicle: Vehicle,
    snapshot: Snapshot,
    summary: String,
    recommendation: String,
    overall_score: i32,
    updated_at: DateTime<Utc>,
    links: Links,
}

async fn detail(
    State(peer): Shared,
    method: Method,
    uri: Uri,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Failure> {
    let key = peer.admit(&method, &uri, &headers, &body, Durability::Database).await?;
    let id: Uuid = id.parse().map_err(|_| NOT_FOUND)?;
    let row = sqlx::query(&peer.config.statements.detail)
        .bind(id)
        .bind(&key.organizations)
        .bind(Vec::<Uuid>::new())
        .fetch_optional(&peer.pool)
        .await?
        .ok_or(NOT_FOUND)?;
    Ok(json(StatusCode::OK, &inspection(&row, id, &peer.config.public_url)?))
}

fn inspection(row: &PgRow, id: Uuid, public_url: &str) -> Result<Inspection, sqlx::Error> {
    let mode: &str = row.try_get(3)?;
    let link = |part| format!("{public_url}/api/v1/partner/inspections/{id}/{part}");
    Ok(Inspection {
        id,
        report_number: row.try_get(1)?,
        organization: OrganizationRef {
            id: row.try_get(4)?,
            slug: row.try_get(5)?,
            name: row.try_get(6)?,
        },
        branch: BranchRef {
            id: row.try_get(7)?,
            name: row.try_get(8)?,
            city: row.try_get(9)?,
        },
        status: row.try_get::<String, _>(2)?.to_ascii_lowercase(),
        package: Package {
            name: text(mode, row.try_get(10)?),
            base_price_try: amount(row, 11)?,
        },
        pricing: Pricing {
            base_price_try: amount(row, 12)?,
            discount_percent: amount(row, 13)?,
            discount_name: text(mode, row.try_get(14)?),
            final_price_try: amount(row, 15)?,
            payment_type: row.try_get(16)?,
            currency: row.try_get(17)?,
        },
        vehicle: vehicle(row, 18, mode)?,
        snapshot: Snapshot {
            vin_masked: vin(mode, row.try_get(28)?),
            mileage_km: row.try_get(29)?,
        },
        summary: text(mode, row.try_get(30)?),
        recommendation: text(mode, row.try_get(31)?),
        overall_score: row.try_get(32)?,
        updated_at: row.try_get(33)?,
        links: Links {
            forms: link("forms"),
            photos: link("photos"),
            pdf: link("pdf"),
        },
    })
}

#[derive(Deserialize)]
struct Request {
    branch_code: String,
    plate: String,
    external_id: Option<String>,
    device_serial: Option<String>,
    measured_at: Option<DateTime<Utc>>,
    measurements: BTreeMap<String, serde_json::Number>,
}

#[derive(Serialize)]
struct Measurement<'m> {
    measurement_id: Uuid,
    status: &'m str,
    plate: &'m str,
    inspection_id: Option<Uuid>,
    applied_points: [&'m str; 0],
    idempotent_replay: bool,
}

fn folded(text: &str) -> String {
    let folded = text.replace(['i', 'ı', 'İ'], "I").replace("I\u{307}", "I");
    folded.to_uppercase()
}

fn is_code(code: &str) -> bool {
    code.len() <= 64
        && code.starts_with(|c: char| c.is_ascii_uppercase())
        && code
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

fn is_text(text: Option<&String>, length: usize) -> bool {
    text.is_none_or(|text| text.chars().count() <= length && !text.chars().any(|c| c.is_ascii_control()))
}

async fn measurement(
    State(peer): Shared,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Failure> {
    let key = peer.admit(&method, &uri, &headers, &body, Durability::Database).await?;
    let request: Request = serde_json::from_slice(&body).map_err(|_| INVALID)?;
    let plate: String = request
        .plate
        .chars()
        .filter(|c| !c.is_whitespace() && !matches!(c, '.' | '-'))
        .collect();
    let plate = folded(&plate);
    let are_texts = !request.branch_code.is_empty()
        && is_text(Some(&request.branch_code), 64)
        && is_text(request.external_id.as_ref(), 120)
        && is_text(request.device_serial.as_ref(), 120);
    let are_points =
        (1..=50).contains(&request.measurements.len()) && request.measurements.keys().all(|code| is_code(code));
    let is_past = request
        .measured_at
        .is_none_or(|time| (time - Utc::now()).num_seconds() <= 300);
    if !are_texts || !are_points || !is_past || !PLATE.is_match(&plate) {
        return Err(INVALID);
    }
    let id = Uuid::now_v7();
    let array = |elements: Vec<String>| format!("{{{}}}", elements.join(","));
    let codes = array(request.measurements.keys().cloned().collect());
    let texts = array(request.measurements.values().map(ToString::to_string).collect());
    let row = sqlx::query(&peer.config.statements.pending)
        .bind([id])
        .bind([key.partner])
        .bind([key.id.as_str()])
        .bind([folded(&request.branch_code)])
        .bind([plate.as_str()])
        .bind([request.external_id])
        .bind([request.device_serial])
        .bind([request.measured_at])
        .bind([&body[..]])
        .bind([Sha256::digest(&body).as_slice()])
        .bind([codes])
        .bind([texts])
        .fetch_one(&peer.pool)
        .await?;
    match row.try_get::<i32, _>("branches")? {
        0 => return Err(NOT_FOUND),
        1 if row.try_get("recorded")? => {}
        1 => return Err(Failure(StatusCode::NOT_IMPLEMENTED, "only_new_pending_measurements")),
        _ => return Err(INVALID),
    }
    let data = Measurement {
        measurement_id: id,
        status: "pending",
        plate: &plate,
        inspection_id: None,
        applied_points: [],
        idempotent_replay: false,
    };
    Ok(json(StatusCode::CREATED, &Data { data }))
}

/// Records the nonces of `health`, all that arrived while the previous statement ran.
async fn record_later(peer: Arc<Peer>, mut queue: mpsc::UnboundedReceiver<(String, Uuid)>) {
    let mut waiting = Vec::new();
    while queue.recv_many(&mut waiting, 1_000).await > 0 {
        let ids: Vec<&str> = waiting.iter().map(|(id, _)| id.as_str()).collect();
        let digests: Vec<Uuid> = waiting.iter().map(|(_, digest)| *digest).collect();
        if let Err(error) = peer.record(&ids, &digests).await {
            eprintln!("{error}");
        }
        waiting.clear();
    }
}

fn mac(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("any length")
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} must be set"))
}

#[tokio::main]
async fn main() {
    let text = std::fs::read_to_string(variable("PEER_CONFIG")).expect("a readable PEER_CONFIG");
    let mut config: Config = serde_json::from_str(&text).expect("a valid PEER_CONFIG");
    let options = PgConnectOptions::new()
        .socket(&config.host)
        .username(&config.user)
        .database(&config.database)
        .options(&config.session);
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS)
        // The service does not check a connection before each use either.
        .test_before_acquire(false)
        .connect_with(options)
        .await
        .expect("a database");
    pool.execute("SELECT").await.expect("a database that responds");
    let keys = std::mem::take(&mut config.keys).into_iter().map(|(id, key)| {
        let mac = mac(key.secret.as_bytes());
        let (partner, organizations) = (key.partner, key.organizations);
        (
            id.clone(),
            Key {
                id,
                mac,
                partner,
                organizations,
            },
        )
    });
    let (later, queue) = mpsc::unbounded_channel();
    let peer = Arc::new(Peer {
        pool,
        cursors: mac(&hex::decode(&config.cursor_key).expect("a cursor key")),
        keys: keys.collect(),
        memory: Mutex::default(),
        later,
        config,
    });
    tokio::spawn(record_later(peer.clone(), queue));
    let routes = axum::Router::new()
        .route("/api/v1/partner/health", get(health))
        .route("/api/v1/partner/organizations", get(organizations))
        .route("/api/v1/partner/inspections", get(list))
        .route("/api/v1/partner/inspections/{id}", get(detail))
        .route("/api/v1/partner/test-line/measurements", post(measurement))
        .with_state(peer);
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{}", variable("PEER_PORT"))).await;
    axum::serve(
        axum::serve::ListenerExt::tap_io(listener.expect("a free port"), |stream| {
            let _ = stream.set_nodelay(true);
        }),
        routes,
    )
    .await
    .expect("a server");
}
