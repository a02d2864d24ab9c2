//! `partner-api import`.

mod files;
mod mistakes;
mod resuming;

use std::fs;

use partner_api_tests::cluster::{self, Database};
use serde_json::{Value, json};

use crate::operators::program::{Deployment, Ran};

/// A deployment over a database with the fixture data of the conformance tests.
async fn deployment() -> Deployment {
    Deployment::of(Database::create().await)
}

impl Deployment {
    /// Writes a file into the deployment's folder.
    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.folder.path().join(name), bytes).unwrap();
    }

    /// Imports a file with this content.
    fn import(&self, name: &str, bytes: impl AsRef<[u8]>, options: &[&str]) -> Ran {
        self.put(name, bytes);
        self.run(&[&["import", name], options].concat())
    }

    async fn count(&self, what: &str) -> i64 {
        let client = cluster::connect(&self.config).await;
        let row = client.query_one(&format!("SELECT count(*) FROM {what}"), &[]).await;
        row.unwrap().get(0)
    }
}

/// Formats values as NDJSON.
fn ndjson(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn vehicle(vin: &str) -> Value {
    json!({
        "plate": "34 abc 123", "vin": vin, "brand": "Fiat", "model": "Egea", "year": 2020, "type": "SEDAN",
        "fuel_type": "DIESEL", "transmission": "MANUAL", "color": "Beyaz", "mileage_km": 90_000,
    })
}

/// A report of the branch ANK-01, on one of the vehicles of the fixture data.
fn report(number: &str) -> Value {
    json!({
        "report_number": number, "organization": "anadolu-ekspertiz", "branch": "ank-01", "vehicle": "W0L0SDL6884000211",
        "status": "PUBLISHED", "plate": "06 MSK 211", "package_name": "Tam", "package_base_price": 2500, "base_price": 2500.5,
        "final_price": 2250.45, "payment_type": "CARD", "snapshot_vin": "W0L0SDL6884000211", "snapshot_mileage_km": 166_000,
        "public_slug": format!("s-{number}"), "published_at": "2026-05-12T11:40:00+03:00", "created_at": "2026-05-12T11:00:00+03:00",
    })
}

/// A form of a report of the fixture data with an answer that has these members.
fn form(members: Value) -> Value {
    let mut answer = json!({
        "point": "FRONT_HOOD", "status_code": "PAINTED", "status_label": "Boyalı", "severity": "MEDIUM", "written_by": "Ayşe",
        "written_at": "2026-05-12T08:00:00Z",
    });
    for (name, value) in members.as_object().unwrap() {
        answer[name] = value.clone();
    }
    json!({ "organization": "anadolu-ekspertiz", "inspection": "ANK-2026-000211", "template": "BODY", "answers": [answer] })
}

fn with(mut line: Value, field: &str, value: Value) -> Value {
    line[field] = value;
    line
}

fn without(mut line: Value, field: &str) -> Value {
    line.as_object_mut().unwrap().remove(field);
    line
}
