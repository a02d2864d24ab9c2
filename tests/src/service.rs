//! The service that a test starts, over the test's own database.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bounded_listener::tls::Tls;
use deadpool_postgres::Pool;
use http::StatusCode;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use partner_api::context::Context;
use partner_api::inspectors::InspectorState;
use partner_api::recorder;
use partner_api::request_log::{self, Stats};
use partner_api::server::{self, RunningServer, ServerParts};
use partner_api::storage::Storage;
use partner_api_client::{Client, Connector, Exchange, RetryPolicy};
use partner_api_store::pool::{self, PoolSettings};
use partner_api_store::secrets::purpose;
use tokio::net::{TcpSocket, TcpStream};
use url::Position;

use crate::cluster::{self, Database};
use crate::contract;
use crate::dropshot::DropshotServers;
use crate::fixture::{self, OBJECTS, TestKey};
use crate::options::Options;
use crate::request::Request;
use crate::response::TestResponse;
use crate::wait::until;

/// A running service with the data of [`fixture`]. It is stopped, and its database dropped, when this value is dropped.
pub struct Service {
    /// Its base URL.
    pub base_url: String,
    /// The test's own session in the service's database.
    pub db: tokio_postgres::Client,
    last_response: Arc<Mutex<Option<TestResponse>>>,
    config: tokio_postgres::Config,
    pool: Pool,
    running: RunningServer,
    dropshot: Option<DropshotServers>,
    // Fields are dropped in this order, so that the users of the database are dropped before it.
    folder: Arc<tempfile::TempDir>,
    database: Option<Arc<Database>>,
}

impl Service {
    /// Starts a service with the default [`Options`].
    pub async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    /// Starts a service with these options.
    pub async fn start_with(options: Options) -> Self {
        let database = Database::create().await;
        Self::start_over(database.config(), Some(Arc::new(database)), new_folder(), options).await
    }

    /// Starts another service over the same database and storage.
    pub async fn replica(&self) -> Self {
        self.replica_with(Options::default()).await
    }

    /// Starts another service over the same database and storage, with these options.
    pub async fn replica_with(&self, options: Options) -> Self {
        Self::start_over(self.config.clone(), self.database.clone(), self.folder.clone(), options).await
    }

    /// Starts a service over a database that the test has created. The database remains when the service ends.
    pub async fn start_on(config: tokio_postgres::Config) -> Self {
        Self::start_on_with(config, Options::default()).await
    }

    /// Like [`start_on`](Self::start_on), with these options.
    pub async fn start_on_with(config: tokio_postgres::Config, options: Options) -> Self {
        Self::start_over(config, None, new_folder(), options).await
    }

    async fn start_over(
        config: tokio_postgres::Config,
        database: Option<Arc<Database>>,
        folder: Arc<tempfile::TempDir>,
        options: Options,
    ) -> Self {
        // In a database of the harness, the service has only the rights of its role.
        let its_config = match &database {
            Some(_) => config.clone().user(cluster::SERVER).clone(),
            None => config.clone(),
        };
        let objects = folder.path().to_owned();
        let master_key = options.master_key;
        let link_key = master_key.derive(purpose::LINKS);
        let few = |size| PoolSettings {
            size,
            ..PoolSettings::default()
        };
        let pool = pool::pool(its_config.clone(), &few(8)).unwrap();
        let trusted_proxies = options.trusted_proxies.clone();
        let parts = ServerParts {
            listen: options.listen,
            internal_listen: options.internal_listen,
            inspectors_listen: Some(options.inspectors_listen),
            public_url: None,
            tls: options.tls,
            environment: options.environment,
            pool: pool.clone(),
            admission_pool: pool::pool(its_config.clone(), &few(3)).unwrap(),
            recorder_pool: pool::pool(its_config.clone(), &recorder::pool_settings(&few(4))).unwrap(),
            database: its_config.clone(),
            request_log: Some((
                pool::pool(its_config.clone(), &request_log::pool_settings(&few(2))).unwrap(),
                options.request_log_days,
            )),
            standbys: options.standbys,
            storage: Box::new(move |public_url| match options.s3 {
                Some(settings) => Storage::s3(&settings),
                None => Storage::folder(&objects, public_url, link_key),
            }),
            pages: Box::new(|_| options.pages),
            inspector_routes: Some(partner_api_inspector::serve),
            master_key,
            ip_limit: options.ip_limit,
            trusted_proxies: options.trusted_proxies,
            body_timeout: options.body_timeout,
            request_timeout: Duration::from_secs(20),
            traces: options.traces,
            renderers: options.renderers,
        };
        let running = server::start(parts).await.unwrap_or_else(|error| panic!("{error}"));
        let dropshot = DropshotServers::start_if_selected(&running.gateway, || InspectorState {
            context: running.context.clone(),
            pool: pool.clone(),
            reporter: running.gateway.reporter().clone(),
            trusted_proxies: trusted_proxies.clone(),
            body_timeout: options.body_timeout,
        });
        for (key, bytes, content_type) in OBJECTS {
            running
                .context
                .storage
                .put(key, (*bytes).into(), content_type)
                .await
                .unwrap();
        }
        let db = cluster::connect(&config).await;
        fixture::store_pdfs(&db, &running.context.storage).await;
        let base_url = running.public_url.clone();
        Self {
            base_url,
            db,
            last_response: Arc::default(),
            config,
            pool,
            running,
            dropshot,
            folder,
            database,
        }
    }

    /// Returns the generated client with this key, without retries. Every response is checked; [`last`](Self::last) returns the
    /// last one.
    pub fn client(&self, key: &TestKey) -> Client {
        self.connector(key).connect().unwrap()
    }

    /// Like [`client`](Self::client), with an HTTP client of the test.
    pub fn client_over(&self, http: reqwest::Client, key: &TestKey) -> Client {
        self.connector(key).http_client(http).connect().unwrap()
    }

    fn connector(&self, key: &TestKey) -> Connector {
        let (last_response, base_url) = (self.last_response.clone(), self.base_url.clone());
        let url = match &self.dropshot {
            Some(dropshot) => format!("http://{}", dropshot.partners()),
            None => base_url.clone(),
        };
        let observer = move |exchange: &Exchange| {
            let response = response(exchange, &base_url);
            contract::check(&response);
            *last_response.lock().unwrap() = Some(response);
        };
        let connector = Connector::new(&url, key.id, key.secret).unwrap();
        connector.retry(RetryPolicy::never()).observer(observer)
    }

    /// Returns the last response of a [`client`](Self::client).
    #[track_caller]
    pub fn last(&self) -> TestResponse {
        self.last_response.lock().unwrap().clone().expect("a response")
    }

    /// Sends a GET, signed by this key.
    pub async fn get(&self, key: &TestKey, target: &str) -> TestResponse {
        self.send(Request::get(target).signed_by(key)).await
    }

    /// Sends a POST of a measurement, signed by this key. The bytes are sent unchanged.
    pub async fn measure(&self, key: &TestKey, package: impl Into<bytes::Bytes>) -> TestResponse {
        self.send(Request::post("/api/v1/partner/test-line/measurements", package).signed_by(key))
            .await
    }

    /// Sends a request over a new connection; the response is checked against the document.
    pub async fn send(&self, request: Request) -> TestResponse {
        let response = self.exchange(&request).await;
        contract::check(&response);
        response
    }

    /// Sends a request, and returns whether the connection was closed without a response.
    pub async fn has_no_response(&self, request: Request) -> bool {
        self.try_exchange(&request).await.is_err()
    }

    async fn exchange(&self, request: &Request) -> TestResponse {
        let response = self.try_exchange(request).await;
        response.unwrap_or_else(|error| panic!("{} {}: {error:?}", request.method, request.target))
    }

    async fn try_exchange(&self, request: &Request) -> Result<TestResponse, Box<dyn Error + Send + Sync>> {
        let address = self.address(request.target.split('?').next().unwrap());
        exchange(address, &self.base_url, request).await
    }

    /// Returns the address of the server that serves a path.
    pub fn address(&self, path: &str) -> SocketAddr {
        let dropshot = self.dropshot.as_ref().and_then(|dropshot| dropshot.address(path));
        dropshot.unwrap_or_else(|| match contract::is_inspectors(path) {
            true => self.inspectors_address(),
            false => self.running.address,
        })
    }

    /// Cuts the service and [`db`](Self::db) off from the database.
    pub async fn cut_off_from_database(&self) {
        self.database
            .as_ref()
            .expect("a database of the harness")
            .cut_off()
            .await;
    }

    /// Returns its connections for reads.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Returns the context of its handlers, with its storage.
    pub fn context(&self) -> &Context {
        &self.running.context
    }

    /// Returns the folder of its objects, each under its key.
    pub fn objects(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the active certificate.
    ///
    /// # Panics
    /// If it does not use TLS.
    pub fn tls(&self) -> &Tls {
        self.running.tls.as_ref().expect("TLS")
    }

    /// Returns the counters of its request log.
    pub fn stats(&self) -> Stats {
        self.running.request_log.stats()
    }

    /// Sends a GET to the internal listener over a new connection.
    pub async fn internal(&self, path: &str) -> (StatusCode, String) {
        internal(self.internal_address(), path).await
    }

    /// Returns the address of `/live`, `/ready` and `/metrics`.
    pub fn internal_address(&self) -> SocketAddr {
        self.running.internal_address.expect("an internal listener")
    }

    /// Returns the address of the inspectors' page and API.
    pub fn inspectors_address(&self) -> SocketAddr {
        self.running.inspectors_address.expect("an inspectors' listener")
    }

    /// Stops it as a signal does. Its database remains while another replica uses it.
    ///
    /// # Panics
    /// If requests are still being processed after ten seconds.
    pub async fn stop(self) {
        assert!(self.running.stop(Duration::from_secs(10)).await);
    }

    /// Returns the connection settings of its database.
    pub fn database(&self) -> tokio_postgres::Config {
        self.config.clone()
    }

    /// Waits until `condition` holds, for at most the 5 seconds that a change of keys and grants may take.
    ///
    /// # Panics
    /// If it does not hold by then.
    pub async fn within_five_seconds(&self, condition: impl AsyncFn() -> bool) {
        self.within(Duration::from_secs(5), condition).await;
    }

    /// Waits until `condition` holds, without a requirement on the time. A busy machine may need up to 30 seconds.
    ///
    /// # Panics
    /// If it does not hold after 30 seconds.
    pub async fn eventually(&self, condition: impl AsyncFn() -> bool) {
        self.within(Duration::from_secs(30), condition).await;
    }

    /// Waits until `condition` holds, for at most `bound`.
    ///
    /// # Panics
    /// If it does not hold by then.
    pub async fn within(&self, bound: Duration, condition: impl AsyncFn() -> bool) {
        until(bound, async || condition().await.then_some(())).await;
    }
}

/// Sends a request to a service that may fail, over a new connection; the response is checked against the document.
///
/// # Errors
/// If there is no complete response. It is then unknown whether the service has processed the request.
pub async fn try_send(address: SocketAddr, request: &Request) -> Result<TestResponse, Box<dyn Error + Send + Sync>> {
    let response = exchange(address, &format!("http://{address}"), request).await?;
    contract::check(&response);
    Ok(response)
}

async fn exchange(
    address: SocketAddr,
    base_url: &str,
    request: &Request,
) -> Result<TestResponse, Box<dyn Error + Send + Sync>> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(
        request.from.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        0,
    ))?;
    let stream = socket.connect(address).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // An error of the connection makes the request or the reading of its body fail.
    tokio::spawn(connection);
    let response = sender.send_request(request.build(&address.to_string())).await?;
    let (head, body) = response.into_parts();
    let path = request.target.split('?').next().unwrap();
    Ok(TestResponse {
        method: request.method.clone(),
        target: request.target.clone(),
        sent: request.sent(),
        base_url: base_url.to_owned(),
        operation: contract::operation_id(&request.method, path),
        status: head.status,
        headers: head.headers,
        body: body.collect().await?.to_bytes(),
    })
}

/// Sends a GET to an internal listener over a new connection; returns the status and the body.
pub async fn internal(address: SocketAddr, path: &str) -> (StatusCode, String) {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let request = http::Request::get(path)
        .header("host", address.to_string())
        .body(Empty::<bytes::Bytes>::new())
        .unwrap();
    let (head, body) = sender.send_request(request).await.unwrap().into_parts();
    let text = body.collect().await.unwrap().to_bytes();
    (head.status, String::from_utf8(text.into()).unwrap())
}

fn new_folder() -> Arc<tempfile::TempDir> {
    Arc::new(tempfile::tempdir().unwrap())
}

fn response(exchange: &Exchange, base_url: &str) -> TestResponse {
    TestResponse {
        method: exchange.method.clone(),
        target: exchange.url[Position::BeforePath..Position::AfterQuery].to_owned(),
        sent: exchange.request_body.clone(),
        base_url: base_url.to_owned(),
        operation: Some(exchange.operation_id.to_owned()),
        status: exchange.status,
        headers: exchange.headers.clone(),
        body: exchange.body.clone(),
    }
}
