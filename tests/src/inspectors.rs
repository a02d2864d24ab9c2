//! Clients that are signed in as inspectors of the fixture data.

use std::sync::{Arc, Mutex};

use http::StatusCode;
use partner_api_inspector_client::{Client as GeneratedClient, Exchange};
use serde_json::{Value, json};
use url::Position;

use crate::contract;
use crate::request::Request;
use crate::response::TestResponse;
use crate::service::Service;

pub use crate::fixture::inspectors::{AYSE, DERYA, INSPECTORS, MEHMET, REVOKED_INSPECTOR, TestInspector};

/// A client that has signed in as an inspector, and sends requests as the browser does.
#[derive(Clone, Debug)]
pub struct InspectorClient {
    /// The session's cookie, as it is sent.
    pub cookie: String,
    /// The CSRF token of the session, which each write carries.
    pub csrf_token: String,
}

impl Service {
    /// Signs in as an inspector.
    pub async fn inspector(&self, inspector: &TestInspector) -> InspectorClient {
        let response = self.sign_in(inspector.token).await;
        response.assert_status(200);
        InspectorClient {
            cookie: cookie(&response),
            csrf_token: response.json()["data"]["csrf_token"].as_str().unwrap().to_owned(),
        }
    }

    /// Sends a token.
    pub async fn sign_in(&self, token: &str) -> TestResponse {
        let body = json!({ "token": token }).to_string();
        self.send(Request::post("/inspector/v1/session", body)).await
    }

    /// Returns the generated client of the inspectors' contract, signed in as an inspector. Every response is checked;
    /// [`Received`] has the last one.
    pub async fn generated_inspector_client(&self, inspector: &TestInspector) -> (GeneratedClient, Received) {
        let received = Received::default();
        let (last, base_url) = (received.clone(), self.base_url.clone());
        let observer = move |exchange: &Exchange| {
            let response = response(exchange, &base_url);
            contract::check(&response);
            *last.0.lock().unwrap() = Some(response);
        };
        let address = format!("http://{}", self.inspectors_address());
        let client = partner_api_inspector_client::connect_observed(&address, observer).unwrap();
        partner_api_inspector_client::sign_in(&client, inspector.token)
            .await
            .unwrap();
        (client, received)
    }
}

/// The last response that a client of the inspectors' contract received.
#[derive(Clone, Debug, Default)]
pub struct Received(Arc<Mutex<Option<TestResponse>>>);

impl Received {
    /// Returns the response.
    ///
    /// # Panics
    /// If there was none.
    #[track_caller]
    pub fn last(&self) -> TestResponse {
        self.0.lock().unwrap().clone().expect("a response")
    }
}

impl InspectorClient {
    /// Returns the request with the session's cookie and CSRF token.
    #[must_use]
    pub fn sends(&self, request: Request) -> Request {
        request
            .header("cookie", &self.cookie)
            .header("x-csrf-token", &self.csrf_token)
    }

    /// Sends a GET.
    pub async fn get(&self, service: &Service, target: &str) -> TestResponse {
        service.send(self.sends(Request::get(target))).await
    }

    /// Sends a write with a JSON body.
    pub async fn write(&self, service: &Service, method: &str, target: &str, body: Value) -> TestResponse {
        let request = Request::post(target, body.to_string()).with_method(method);
        service.send(self.sends(request)).await
    }

    /// Sends a write without a body.
    pub async fn act(&self, service: &Service, method: &str, target: &str) -> TestResponse {
        service.send(self.sends(Request::new(method, target))).await
    }

    /// Answers the points without which a report of the MASKED organization is not published.
    pub async fn answer_required_points(&self, service: &Service, id: &str) {
        let answers = json!({ "answers": [
            { "point_code": "FRONT_HOOD", "status_code": "ORIGINAL" },
            { "point_code": "REAR_RIGHT_FENDER", "status_code": "ORIGINAL" },
        ] });
        let form = format!("/inspector/v1/reports/{id}/forms/BODY");
        self.write(service, "PUT", &form, answers).await.assert_status(200);
    }

    /// Moves a report to another status, with its current version.
    pub async fn move_to(&self, service: &Service, id: &str, to: &str, reason: Option<&str>) -> TestResponse {
        let mut body = json!({ "version": self.report(service, id).await["version"], "to": to });
        if let Some(reason) = reason {
            body["reason"] = json!(reason);
        }
        self.write(service, "PUT", &format!("/inspector/v1/reports/{id}/status"), body)
            .await
    }

    /// Returns a report as this inspector sees it.
    pub async fn report(&self, service: &Service, id: &str) -> Value {
        let response = self.get(service, &format!("/inspector/v1/reports/{id}")).await;
        response.assert_status(200);
        response.json()["data"].clone()
    }
}

/// Returns the cookie that a response sets, as it is sent back.
#[track_caller]
pub fn cookie(response: &TestResponse) -> String {
    let line = response.header("set-cookie").expect("Set-Cookie");
    line.split(';').next().unwrap().to_owned()
}

fn response(exchange: &Exchange, base_url: &str) -> TestResponse {
    TestResponse {
        method: exchange.method.clone(),
        target: exchange.url[Position::BeforePath..Position::AfterQuery].to_owned(),
        sent: exchange.request_body.clone(),
        base_url: base_url.to_owned(),
        operation: Some(exchange.operation_id.to_owned()),
        status: StatusCode::from_u16(exchange.status.as_u16()).unwrap(),
        headers: exchange.headers.clone(),
        body: exchange.body.clone(),
    }
}
