//! The inspectors among the clients of a history: each writes notes about a point of its own into an open report, and adds photos.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use bytes::Bytes;
use partner_api_tests::fixture::inspections;
use partner_api_tests::inspectors::{InspectorClient, TestInspector, cookie};
use partner_api_tests::service::try_send;
use partner_api_tests::{AYSE, MEHMET, Request, TestResponse};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

use super::clients::{ACTIONS, History, PATIENCE};

/// The inspectors, and the point that each of them alone answers.
pub const INSPECTORS: [(TestInspector, &str); 2] = [(AYSE, "FRONT_HOOD"), (MEHMET, "REAR_RIGHT_FENDER")];

static PHOTO: LazyLock<Bytes> = LazyLock::new(|| sandbox_pictures::SCENES[0].draw().unwrap().full.into());

/// The notes or captions that were sent; whether each was acknowledged.
pub type Sent = Mutex<BTreeMap<String, bool>>;

impl History {
    /// Sends a request to the inspectors' listener of a replica. Returns the response, unless there is none or it is 429 or 503. 401 is a
    /// violation, unless clocks step: a session that began under a wrong clock ends when the clock is corrected.
    async fn ask(&self, replica: usize, request: Request) -> Option<TestResponse> {
        let address = self.replicas[replica].inspectors;
        let response = timeout(PATIENCE, try_send(address, &request)).await.ok()?.ok()?;
        self.responses.send_modify(|responses| *responses += 1);
        match response.status.as_u16() {
            200 | 201 => return Some(response),
            // An inspector whose sign-ins got no response may have exceeded the limit of attempts.
            429 | 503 => {}
            401 if self.sessions_may_end => return Some(response),
            status => self.violation(format!(
                "{} {}: {status} {:?}",
                response.method,
                response.target,
                response.code()
            )),
        }
        None
    }

    /// Signs in, answers the point and adds photos until the faults are over.
    pub async fn inspect(self: Arc<Self>, number: usize, with_photos: bool) {
        let (inspector, point) = INSPECTORS[number];
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(1_000 + u64::try_from(number).unwrap());
        let mut session: Option<InspectorClient> = None;
        let mut actions = 0;
        while actions < ACTIONS || !self.faults_are_over.load(Ordering::SeqCst) {
            actions += 1;
            sleep(Duration::from_millis(random.random_range(20..100))).await;
            let replica = random.random_range(0..self.replicas.len());
            let Some(inspector_client) = &session else {
                session = self.sign_in(replica, &inspector).await;
                continue;
            };
            let report = format!("/inspector/v1/reports/{}", inspections::DRAFT);
            let text = format!("{point} of history {}, {actions}", self.seed);
            let (sent, request) = match random.random_range(0..10) {
                0..2 if with_photos => {
                    let target = format!("{report}/photos?kind=DAMAGE&caption={}", text.replace([' ', ','], "-"));
                    let request = Request::new("POST", &target)
                        .body(PHOTO.clone())
                        .header("content-type", "application/octet-stream");
                    (Some((&self.captions, text.replace([' ', ','], "-"))), request)
                }
                0..4 => (None, Request::get(&report)),
                _ => {
                    let body = serde_json::json!({ "answers": [
                        { "point_code": point, "status_code": "ORIGINAL", "note": text }
                    ] });
                    let request = Request::post(&format!("{report}/forms/BODY"), body.to_string()).with_method("PUT");
                    (Some((&self.notes, text)), request)
                }
            };
            if let Some((texts, text)) = &sent {
                texts.lock().unwrap().insert(text.clone(), false);
            }
            match self.ask(replica, inspector_client.sends(request)).await {
                Some(response) if response.status == 401 => session = None,
                Some(_) => {
                    if let Some((texts, text)) = sent {
                        texts.lock().unwrap().insert(text, true);
                    }
                }
                None => {}
            }
        }
    }

    async fn sign_in(&self, replica: usize, inspector: &TestInspector) -> Option<InspectorClient> {
        let body = serde_json::json!({ "token": inspector.token }).to_string();
        let response = self.ask(replica, Request::post("/inspector/v1/session", body)).await?;
        response.assert_status(200);
        Some(InspectorClient {
            cookie: cookie(&response),
            csrf_token: response.json()["data"]["csrf_token"].as_str().unwrap().to_owned(),
        })
    }

    /// Compares the answers and photos in the database with those that were sent and acknowledged. `objects` is the folder of
    /// the object store. Returns the number of acknowledged ones.
    pub async fn compare_with_reports(&self, db: &Client, objects: Option<&Path>) -> usize {
        let mut acknowledged = 0;
        let mut stored = BTreeSet::new();
        for (what, texts, select) in [
            (
                "note",
                &self.notes,
                "SELECT note FROM inspection_form_answers WHERE note LIKE '% of history %'
                 UNION ALL SELECT note FROM inspection_form_answer_history WHERE note LIKE '% of history %'",
            ),
            (
                "caption",
                &self.captions,
                "SELECT caption FROM photos WHERE caption LIKE '%-of-history-%'",
            ),
        ] {
            let sent = texts.lock().unwrap().clone();
            for row in db.query(select, &[]).await.unwrap() {
                let text: String = row.get(0);
                if !sent.contains_key(&text) {
                    self.violation(format!("the {what} {text:?} was stored and not sent"));
                }
                if !stored.insert(text.clone()) {
                    self.violation(format!("the {what} {text:?} was stored twice"));
                }
            }
            for (text, _) in sent.iter().filter(|(_, is_acknowledged)| **is_acknowledged) {
                acknowledged += 1;
                if !stored.contains(text) {
                    self.violation(format!("the {what} {text:?} was acknowledged and is lost"));
                }
            }
        }
        let Some(objects) = objects else {
            return acknowledged;
        };
        let keys = "SELECT object_key, thumb_object_key FROM photos WHERE caption LIKE '%-of-history-%'";
        for row in db.query(keys, &[]).await.unwrap() {
            for key in [row.get::<_, String>(0), row.get(1)] {
                if !objects.join(&key).is_file() {
                    self.violation(format!("the object {key} of a stored photo is missing"));
                }
            }
        }
        acknowledged
    }
}
