//! The clients of a history: what they send, what they receive, and what must then be true. The checks are in the same file,
//! because they compare the private records of the clients with the database.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use partner_api_tests::fixture::{inspections, organizations};
use partner_api_tests::measurements::{MEASUREMENTS, package};
use partner_api_tests::service::try_send;
use partner_api_tests::{ALPHA, Request, TestResponse, cluster};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::{Client, Config};

use super::inspectors::{INSPECTORS, Sent};
use super::replica::Addresses;

pub const ORGANIZATIONS: &str = "/api/v1/partner/organizations";

/// The clients that send requests concurrently.
const CLIENTS: u64 = 4;

/// The minimum number of actions of each client.
pub const ACTIONS: usize = 15;

/// After this time a client gives up waiting for a response.
pub const PATIENCE: Duration = Duration::from_secs(4);

/// After the last fault, every request must succeed within this time.
const RECOVERY: Duration = Duration::from_secs(60);

/// A package, the responses to which are 201 or 200 with the ID of the measurement.
struct Package {
    body: String,
    acknowledged: Vec<(u16, String)>,
}

/// A nonce, and the statuses of the responses to the requests that used it.
#[derive(Default)]
struct Nonce {
    uses: usize,
    accepted: usize,
}

/// The requests and their responses.
pub struct History {
    pub seed: u64,
    pub replicas: Vec<Addresses>,
    /// Whether inspectors may have to sign in again.
    pub sessions_may_end: bool,
    /// The writes of inspectors.
    pub notes: Sent,
    pub captions: Sent,
    packages: Mutex<BTreeMap<String, Package>>,
    nonces: Mutex<BTreeMap<String, Nonce>>,
    /// The last revision of an organization's name that is known to be committed, and the last one that was written.
    committed: AtomicUsize,
    written: AtomicUsize,
    /// Set after the last fault.
    pub faults_are_over: AtomicBool,
    /// The number of responses.
    pub responses: watch::Sender<usize>,
    violations: Mutex<BTreeSet<String>>,
}

impl History {
    /// Creates an empty history of requests to these replicas.
    pub fn new(seed: u64, replicas: Vec<Addresses>, sessions_may_end: bool) -> Arc<Self> {
        Arc::new(Self {
            seed,
            replicas,
            sessions_may_end,
            notes: Mutex::default(),
            captions: Mutex::default(),
            packages: Mutex::default(),
            nonces: Mutex::default(),
            committed: AtomicUsize::new(0),
            written: AtomicUsize::new(0),
            faults_are_over: AtomicBool::new(false),
            responses: watch::Sender::new(0),
            violations: Mutex::default(),
        })
    }

    pub fn violation(&self, text: String) {
        self.violations.lock().unwrap().insert(text);
    }

    /// Sends requests from all clients until the faults are over. Meanwhile, an organization is renamed repeatedly.
    pub async fn run(self: &Arc<Self>, database: Config, with_photos: bool) {
        let partners = (0..CLIENTS).map(|number| tokio::spawn(self.clone().act(number)));
        let inspectors = (0..INSPECTORS.len()).map(|number| tokio::spawn(self.clone().inspect(number, with_photos)));
        let clients: Vec<_> = partners.chain(inspectors).collect();
        let renaming = self.rename(database);
        let (done, ()) = futures::join!(futures::future::join_all(clients), renaming);
        for client in done {
            client.unwrap();
        }
    }

    /// Sends a request with a nonce; returns the response, if there is one.
    async fn send(&self, replica: usize, request: Request, nonce: &str) -> Option<TestResponse> {
        let first = {
            let mut nonces = self.nonces.lock().unwrap();
            let used = nonces.entry(nonce.to_owned()).or_default();
            used.uses += 1;
            used.uses == 1
        };
        let address = self.replicas[replica % self.replicas.len()].public;
        let request = request.signed_by(&ALPHA).nonce(nonce);
        let response = timeout(PATIENCE, try_send(address, &request)).await.ok()?.ok()?;
        self.responses.send_modify(|responses| *responses += 1);
        match (response.status.as_u16(), response.code().as_deref()) {
            (200 | 201, _) => {
                let mut nonces = self.nonces.lock().unwrap();
                let used = nonces.get_mut(nonce).unwrap();
                used.accepted += 1;
                if used.accepted > 1 {
                    self.violation(format!("the nonce {nonce} was accepted {} times", used.accepted));
                }
            }
            (503, _) => {}
            (401, Some("replay_detected")) if !first => {}
            (status, code) => self.violation(format!(
                "{} {} with the nonce {nonce}: {status} {code:?}",
                response.method, response.target
            )),
        }
        Some(response)
    }

    /// Sends a package once; returns whether it was acknowledged.
    async fn measure(&self, replica: usize, external_id: &str, nonce: &str) -> bool {
        let body = self.packages.lock().unwrap()[external_id].body.clone();
        let Some(response) = self.send(replica, Request::post(MEASUREMENTS, body), nonce).await else {
            return false;
        };
        if !response.status.is_success() {
            return false;
        }
        let id = response.json()["data"]["measurement_id"].as_str().unwrap().to_owned();
        let mut packages = self.packages.lock().unwrap();
        let acknowledged = &mut packages.get_mut(external_id).unwrap().acknowledged;
        acknowledged.push((response.status.as_u16(), id));
        true
    }

    /// Reads the revision of the organization's name, which must not be older than one that was read or acknowledged before.
    async fn read(&self, replica: usize, nonce: &str) {
        let known = self.committed.load(Ordering::SeqCst);
        let Some(response) = self.send(replica, Request::get(ORGANIZATIONS), nonce).await else {
            return;
        };
        if response.status != 200 {
            return;
        }
        let names = response.data("name");
        let revisions = names
            .iter()
            .filter_map(|name| name.strip_prefix("Revision ")?.parse().ok());
        let read: usize = revisions.max().unwrap_or(0);
        let written = self.written.load(Ordering::SeqCst);
        if !(known..=written).contains(&read) {
            self.violation(format!(
                "read revision {read} after {known}; the last one written is {written}"
            ));
        }
        self.committed.fetch_max(read, Ordering::SeqCst);
    }

    /// Downloads a PDF, whose bytes must be those that were stored.
    async fn download(&self, replica: usize, nonce: &str) {
        let id = inspections::PUBLISHED;
        let request = Request::get(&format!("/api/v1/partner/inspections/{id}/pdf"));
        if let Some(response) = self.send(replica, request, nonce).await
            && response.status == 200
            && response.body != format!("%PDF-1.7 report {}", &id[id.len() - 3..])
        {
            self.violation(format!("the PDF is {:?}", response.body));
        }
    }

    async fn act(self: Arc<Self>, client: u64) {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(client + 1);
        let mut sent: Vec<(String, Request)> = Vec::new();
        let mut nonces = 0;
        let mut new_nonce = || {
            nonces += 1;
            format!("history-{}-client-{client}-nonce-{nonces}", self.seed)
        };
        let mut actions = 0;
        while actions < ACTIONS || !self.faults_are_over.load(Ordering::SeqCst) {
            actions += 1;
            sleep(Duration::from_millis(random.random_range(5..50))).await;
            let replica = random.random_range(0..self.replicas.len());
            let nonce = new_nonce();
            match random.random_range(0..100) {
                0..50 => {
                    let external_id = self.new_package(client, actions, &mut random);
                    let body = self.packages.lock().unwrap()[&external_id].body.clone();
                    sent.push((nonce.clone(), Request::post(MEASUREMENTS, body)));
                    let mut acknowledged = self.measure(replica, &external_id, &nonce).await;
                    // Some devices never send a package again, and most of them do so until it is acknowledged.
                    let mut retries = if random.random_bool(0.2) { 0 } else { 20 };
                    while !acknowledged && retries > 0 {
                        retries -= 1;
                        sleep(Duration::from_millis(random.random_range(5..200))).await;
                        let replica = random.random_range(0..self.replicas.len());
                        acknowledged = self.measure(replica, &external_id, &new_nonce()).await;
                    }
                }
                50..60 => {
                    // A package of any client, which may be in progress there.
                    let ids: Vec<String> = self.packages.lock().unwrap().keys().cloned().collect();
                    if let Some(external_id) = ids.choose(&mut random) {
                        self.measure(replica, external_id, &nonce).await;
                    }
                }
                60..75 => {
                    if let Some((nonce, request)) = sent.choose(&mut random) {
                        // The status is examined, but a lost response does not matter.
                        let _ = self.send(replica, request.clone(), nonce).await;
                    }
                }
                75..90 => {
                    sent.push((nonce.clone(), Request::get(ORGANIZATIONS)));
                    self.read(replica, &nonce).await;
                }
                _ => self.download(replica, &nonce).await,
            }
        }
    }

    /// Adds a package, for an open report or for a plate without one.
    fn new_package(&self, client: u64, number: usize, random: &mut ChaCha8Rng) -> String {
        let external_id = format!("H{}-{client}-{number}", self.seed);
        let pending = format!("34 HST {:03}", random.random_range(0..1_000));
        let plates = ["35 OPN 205", "35 DUZ 207", &pending];
        let value = format!("{}.{:02}", random.random_range(1..5), random.random_range(0..100));
        let body = package(&external_id, plates.choose(random).unwrap()).replace("2.85", &value);
        let package = Package {
            body,
            acknowledged: Vec::new(),
        };
        self.packages.lock().unwrap().insert(external_id.clone(), package);
        external_id
    }

    /// Renames an organization repeatedly, over connections that no fault of the proxies affects.
    async fn rename(&self, database: Config) {
        let mut session: Option<Client> = None;
        while !self.faults_are_over.load(Ordering::SeqCst) {
            if session.as_ref().is_none_or(Client::is_closed) {
                session = connect(&database).await;
            }
            if let Some(client) = &session {
                let revision = self.written.fetch_add(1, Ordering::SeqCst) + 1;
                // A session that was given up may execute its statement later.
                let rename = format!(
                    "UPDATE organizations SET name = 'Revision {revision}'
                     WHERE id = '{}' AND coalesce(substring(name FROM 'Revision (.*)')::integer, 0) < {revision}",
                    organizations::FULL
                );
                match timeout(PATIENCE, client.execute(&rename, &[])).await {
                    Ok(Ok(_)) => drop(self.committed.fetch_max(revision, Ordering::SeqCst)),
                    // Whether it was committed is unknown.
                    Ok(Err(_)) | Err(_) => session = None,
                }
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Checks what must be true after the faults: sends each nonce and each package again, and compares the database with
    /// what was sent and acknowledged. `objects` is the folder of the object store. Returns the violations, and the counts.
    pub async fn check(&self, database: &Config, objects: Option<&Path>) -> (Vec<String>, String) {
        let db = cluster::connect(database).await;
        // Before anything is sent again.
        let recorded = self.compare(&db).await;
        let written = self.compare_with_reports(&db, objects).await;
        self.replay_nonces().await;
        self.send_all_packages().await;
        let all = self.compare(&db).await;
        if all < recorded {
            self.violation(format!("{recorded} measurements became {all}"));
        }
        let packages = self.packages.lock().unwrap();
        if all != packages.len() {
            self.violation(format!(
                "{all} measurements of {} packages that were all acknowledged",
                packages.len()
            ));
        }
        let acknowledged: usize = packages.values().map(|package| package.acknowledged.len()).sum();
        let nonces = self.nonces.lock().unwrap();
        let accepted = nonces.values().filter(|nonce| nonce.accepted > 0).count();
        let counts = format!(
            "{} responses, {all} packages, acknowledged {acknowledged} times, {written} notes and photos, {accepted} of {} nonces \
             accepted",
            *self.responses.borrow(),
            nonces.len()
        );
        (self.violations.lock().unwrap().iter().cloned().collect(), counts)
    }

    /// Repeats `attempt` until it succeeds.
    async fn recovered(&self, what: &str, attempt: impl AsyncFn(usize) -> bool) {
        let deadline = Instant::now() + RECOVERY;
        for number in 0.. {
            if attempt(number).await {
                return;
            }
            if Instant::now() > deadline {
                self.violation(format!(
                    "{what} did not succeed within {RECOVERY:?} after the last fault"
                ));
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// No replica accepts a nonce again that was accepted before.
    async fn replay_nonces(&self) {
        let accepted: Vec<String> = {
            let nonces = self.nonces.lock().unwrap();
            let accepted = nonces.iter().filter(|(_, used)| used.accepted > 0);
            accepted.map(|(nonce, _)| nonce.clone()).collect()
        };
        let replays = accepted
            .iter()
            .flat_map(|nonce| (0..self.replicas.len()).map(move |replica| (nonce, replica)));
        stream::iter(replays)
            .for_each_concurrent(8, async |(nonce, replica)| {
                let is_answered = async |_| {
                    let response = self.send(replica, Request::get(ORGANIZATIONS), nonce).await;
                    response.is_some_and(|response| response.status != 503)
                };
                self.recovered(&format!("a replay of {nonce}"), is_answered).await;
            })
            .await;
    }

    /// Each package is acknowledged in the end, with the ID of every earlier response.
    async fn send_all_packages(&self) {
        let ids: Vec<String> = self.packages.lock().unwrap().keys().cloned().collect();
        stream::iter(&ids)
            .for_each_concurrent(8, async |external_id| {
                let is_acknowledged = async |number| {
                    let nonce = format!("history-final-{external_id}-{number}");
                    self.measure(number, external_id, &nonce).await
                };
                self.recovered(external_id, is_acknowledged).await;
            })
            .await;
    }

    /// Compares the database with what was sent and acknowledged. Returns the number of measurements.
    async fn compare(&self, db: &Client) -> usize {
        let select = "SELECT external_id, id::text, raw FROM measurements";
        let mut records: BTreeMap<String, Vec<(String, Vec<u8>)>> = BTreeMap::new();
        let rows = db.query(select, &[]).await.unwrap();
        for row in &rows {
            records.entry(row.get(0)).or_default().push((row.get(1), row.get(2)));
        }
        self.compare_with_records(&mut records);
        // A value is written together with its measurement, and a measurement together with its values.
        for (what, broken) in [
            ("another body was recorded", "SELECT measurement_id::text FROM measurement_mismatches"),
            (
                "an applied measurement has no values",
                "SELECT m.external_id FROM measurements m WHERE 'applied' = ANY (m.point_outcomes)
                   AND NOT EXISTS (SELECT FROM inspection_form_answers a WHERE a.measurement_id = m.id)
                   AND NOT EXISTS (SELECT FROM inspection_form_answer_history h WHERE h.measurement_id = m.id)",
            ),
            (
                "a value has no applied measurement",
                "SELECT a.measurement_id::text FROM inspection_form_answers a LEFT JOIN measurements m ON m.id = a.measurement_id
                 WHERE a.measurement_id IS NOT NULL AND m.status IS DISTINCT FROM 'APPLIED'",
            ),
        ] {
            for row in db.query(broken, &[]).await.unwrap() {
                self.violation(format!("{what}: {}", row.get::<_, String>(0)));
            }
        }
        rows.len()
    }

    /// Compares the packages with their records: IDs and bodies by `external_id`.
    fn compare_with_records(&self, records: &mut BTreeMap<String, Vec<(String, Vec<u8>)>>) {
        let packages = self.packages.lock().unwrap();
        for (external_id, package) in &*packages {
            let records = records.remove(external_id).unwrap_or_default();
            let created = package.acknowledged.iter().filter(|(status, _)| *status == 201).count();
            if created > 1 {
                self.violation(format!("{external_id} was created {created} times"));
            }
            match &records[..] {
                [] if package.acknowledged.is_empty() => {}
                [] => self.violation(format!("{external_id} was acknowledged and is lost")),
                [(id, raw)] => {
                    if *raw != package.body.as_bytes() {
                        self.violation(format!("{external_id} was recorded with other bytes"));
                    }
                    if let Some((_, other)) = package.acknowledged.iter().find(|(_, other)| other != id) {
                        self.violation(format!(
                            "{external_id} was acknowledged as {other} and recorded as {id}"
                        ));
                    }
                }
                several => self.violation(format!("{external_id} was recorded {} times", several.len())),
            }
        }
        for external_id in records.keys() {
            self.violation(format!("{external_id} was recorded and not sent"));
        }
    }
}

async fn connect(database: &Config) -> Option<Client> {
    let (client, driver) = timeout(PATIENCE, database.connect(tokio_postgres::NoTls))
        .await
        .ok()?
        .ok()?;
    tokio::spawn(driver);
    Some(client)
}
