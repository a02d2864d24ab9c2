//! The data of the template database: `fixture/data.sql`, and the partners' keys.

pub mod inspectors;
mod keys;

use partner_api::publishing::MIME_TYPE;
use partner_api::storage::Storage;
use partner_api_domain::pdf_key;
use partner_api_store::secrets::MasterKey;
use tokio_postgres::Client;

pub use keys::{
    ALLOWLISTED, ALPHA, ALPHA_ROTATED, BETA, DELTA, DISABLED, EXPIRED, GAMMA, KEYS, LIVE, REPORTED, REVOKED,
    THREE_A_MINUTE, TestKey,
};

const DATA: &str = include_str!("../fixture/data.sql");

/// The master key of every test. It encrypts the secrets below and nothing else.
pub const MASTER_KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// IDs of partners.
pub mod partners {
    /// Sees everything.
    pub const ALPHA: &str = "01974d1c-0000-7c00-8000-00000000000a";
    /// Sees two branches.
    pub const BETA: &str = "01974d1c-0000-7c00-8000-00000000000b";
    /// Sees nothing.
    pub const GAMMA: &str = "01974d1c-0000-7c00-8000-00000000000c";
    /// Sees one organization.
    pub const DELTA: &str = "01974d1c-0000-7c00-8000-00000000000d";
    /// Disabled.
    pub const EPSILON: &str = "01974d1c-0000-7c00-8000-00000000000e";
}

/// IDs of organizations.
pub mod organizations {
    /// `pii_mode` NONE.
    pub const NONE: &str = "01974d1a-7c00-7a00-8000-000000000001";
    /// `pii_mode` MASKED.
    pub const MASKED: &str = "01974d1a-7c00-7a00-8000-000000000002";
    /// `pii_mode` FULL.
    pub const FULL: &str = "01974d1a-7c00-7a00-8000-000000000003";
}

/// An organization, and its IDs for the variables of paths.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The ID of the organization.
    pub organization: &'static str,
    /// The ID of a published report of it.
    pub inspection: &'static str,
    /// The ID of an open report of it.
    pub draft: &'static str,
}

impl Subject {
    /// `pii_mode` NONE.
    pub const NONE: Self = Self {
        organization: organizations::NONE,
        inspection: inspections::NONE_PUBLISHED,
        draft: inspections::UNKNOWN,
    };
    /// `pii_mode` MASKED.
    pub const MASKED: Self = Self {
        organization: organizations::MASKED,
        inspection: inspections::PUBLISHED,
        draft: inspections::DRAFT,
    };
    /// `pii_mode` FULL.
    pub const FULL: Self = Self {
        organization: organizations::FULL,
        inspection: inspections::FULL_PUBLISHED,
        draft: inspections::FULL_DRAFT,
    };

    /// Returns the ID that follows a segment of a path, for example an organization's ID after `organizations`.
    ///
    /// # Panics
    /// If the segment is unknown.
    #[track_caller]
    pub fn id_after(&self, segment: &str) -> &'static str {
        match segment {
            "organizations" => self.organization,
            "inspections" => self.inspection,
            "reports" => self.draft,
            "forms" => "TEST_LINE",
            // No measurement and no photo has this ID; requests with it are rejected before it is looked up.
            "measurements" | "photos" => inspections::UNKNOWN,
            other => panic!("add the ID that follows /{other}/ in a path to fixture::Subject"),
        }
    }
}

/// IDs of branches.
pub mod branches {
    /// KAP-01 of NONE, in Ankara.
    pub const KAP_01: &str = "01974d1b-0a80-7b00-8000-000000000011";
    /// IZMIR-01 of MASKED.
    pub const IZMIR_01: &str = "01974d1b-0a80-7b00-8000-000000000021";
    /// ANK-01 of MASKED.
    pub const ANK_01: &str = "01974d1b-0a80-7b00-8000-000000000022";
    /// ESK-01 of MASKED, closed.
    pub const ESK_01: &str = "01974d1b-0a80-7b00-8000-000000000023";
    /// IST-02 of FULL.
    pub const IST_02: &str = "01974d1b-0a80-7b00-8000-000000000032";
}

/// IDs of inspections. Their names describe them.
pub mod inspections {
    /// NONE, published.
    pub const NONE_PUBLISHED: &str = "0197c2a4-6f00-7e00-8000-000000000101";
    /// NONE, archived.
    pub const NONE_ARCHIVED: &str = "0197c2a4-6f00-7e00-8000-000000000102";
    /// MASKED at IZMIR-01, published, with forms, photos and PDF.
    pub const PUBLISHED: &str = "0197c2a4-6f00-7e00-8000-000000000201";
    /// MASKED at IZMIR-01, published without a public slug.
    pub const WITHOUT_SLUG: &str = "0197c2a4-6f00-7e00-8000-000000000202";
    /// MASKED at IZMIR-01, archived.
    pub const ARCHIVED: &str = "0197c2a4-6f00-7e00-8000-000000000203";
    /// MASKED at IZMIR-01, cancelled.
    pub const CANCELLED: &str = "0197c2a4-6f00-7e00-8000-000000000204";
    /// MASKED at IZMIR-01, a draft of an hour ago, plate 35 OPN 205.
    pub const DRAFT: &str = "0197c2a4-6f00-7e00-8000-000000000205";
    /// MASKED at IZMIR-01, in review.
    pub const IN_REVIEW: &str = "0197c2a4-6f00-7e00-8000-000000000206";
    /// MASKED at IZMIR-01, sent back to the inspector three hours after it was begun, plate 35 DUZ 207.
    pub const REVISION_REQUESTED: &str = "0197c2a4-6f00-7e00-8000-000000000207";
    /// MASKED at IZMIR-01, its cancellation is requested.
    pub const CANCEL_REQUESTED: &str = "0197c2a4-6f00-7e00-8000-000000000208";
    /// MASKED at IZMIR-01, a draft of 25 hours ago, plate 35 OLD 209.
    pub const OLD_DRAFT: &str = "0197c2a4-6f00-7e00-8000-000000000209";
    /// MASKED at ANK-01, published: outside beta's branches.
    pub const OTHER_BRANCH: &str = "0197c2a4-6f00-7e00-8000-000000000211";
    /// FULL, published.
    pub const FULL_PUBLISHED: &str = "0197c2a4-6f00-7e00-8000-000000000301";
    /// FULL, a draft of an hour ago, plate 34 OPN 305; its vehicle has no registered power.
    pub const FULL_DRAFT: &str = "0197c2a4-6f00-7e00-8000-000000000305";
    /// No report has this ID.
    pub const UNKNOWN: &str = "0197c2a4-6f00-7e00-8000-000000000999";
    /// Reports that partners do not see.
    pub const INVISIBLE: [&str; 4] = [DRAFT, IN_REVIEW, REVISION_REQUESTED, CANCEL_REQUESTED];
}

/// Personal data of reports whose organization does not show it in full. No response may contain it.
pub const NEVER_SHOWN: &[&str] = &[
    "0532 111",
    "532) 111",
    "532 111",
    "10000000146",
    "100 000 001 46",
    "0533 222",
    "0533.222",
    "WVWZZZAUZLW000101",
    "VF1RJA00068000102",
    "NM0GXXTTPGL000201",
    "NMTKZ3BE80R000202",
    "NLHBA51CAHZ000203",
    "ZFA3560000J000204",
    "W0L0SDL6884000211",
    "06NNE101",
    "06 NNE 101",
    "35MSK201",
    "35 MSK 201",
    "35MSK202",
    "35MSK203",
    "35MSK204",
    "06MSK211",
    "photos/20103",
    "photos/20104",
    "photos/20105",
];

/// Objects that the rows reference, with key and content. [`store_pdfs`] adds the PDFs.
pub const OBJECTS: &[(&str, &[u8], &str)] = &[
    ("photos/20101.jpg", b"a picture of a scratch", "image/jpeg"),
    ("photos/20102.jpg", b"a picture of a car", "image/jpeg"),
    ("thumbs/20101.jpg", b"a small picture", "image/jpeg"),
];

/// Returns the parsed master key.
pub fn master_key() -> MasterKey {
    MasterKey::from_hex(MASTER_KEY, "the fixture").unwrap()
}

/// Stores a one-line PDF for each report of a new database that has a PDF.
pub async fn store_pdfs(client: &Client, storage: &Storage) {
    let rows = client
        .query(
            "SELECT id, pdf_object_key FROM inspections WHERE pdf_object_key IS NOT NULL",
            &[],
        )
        .await;
    for row in rows.unwrap() {
        let key: &str = row.get(1);
        if !storage.exists(key).await.unwrap() {
            storage
                .put(key, stored_pdf(row.get(0)).into(), MIME_TYPE)
                .await
                .unwrap();
        }
    }
}

/// Returns the placeholder for a report's PDF.
fn stored_pdf(report: uuid::Uuid) -> String {
    let id = report.to_string();
    format!("%PDF-1.7 report {}", &id[id.len() - 3..])
}

/// Gives the reports with a PDF the storage key of a current one, so that nothing is left to render.
async fn set_pdf_keys(client: &Client) {
    let with_pdf = "SELECT id, report_fingerprint(id) FROM inspections WHERE pdf_object_key IS NOT NULL";
    for row in client.query(with_pdf, &[]).await.unwrap() {
        let id: uuid::Uuid = row.get(0);
        let key = pdf_key::new_key(id, row.get(1));
        client
            .execute("UPDATE inspections SET pdf_object_key = $2 WHERE id = $1", &[&id, &key])
            .await
            .unwrap();
        let line = stored_pdf(id);
        let insert = "INSERT INTO published_pdfs (object_key, inspection_id, organization_id, sha256, size_bytes, published_at)
                    SELECT $2, id, organization_id, sha256(convert_to($3, 'UTF8')), octet_length($3), published_at FROM inspections
                    WHERE id = $1";
        client.execute(insert, &[&id, &key, &line]).await.unwrap();
    }
    client.batch_execute("DELETE FROM report_renderings").await.unwrap();
}

/// Sets the last change of reports: ten days after publication if archived or cancelled, else at publication. Data that all
/// reports of an organization show has not changed since its creation.
const CHANGES: &str = "
UPDATE inspections SET updated_at = coalesce(published_at, created_at)
    + CASE WHEN status IN ('ARCHIVED', 'CANCELLED') THEN interval '10 days' ELSE interval '0' END;
UPDATE organizations SET reports_changed_at = created_at;";

/// The thresholds of the fixture data are valid from the beginning.
const THRESHOLDS_FROM_BEGINNING: &str =
    "ALTER TABLE thresholds ALTER COLUMN valid_from SET DEFAULT '2026-01-05T08:00:00Z'";
const THRESHOLDS_FROM_NOW: &str = "ALTER TABLE thresholds ALTER COLUMN valid_from SET DEFAULT clock_timestamp()";

/// Fills a migrated database.
pub async fn fill(client: &Client) {
    client.batch_execute(THRESHOLDS_FROM_BEGINNING).await.unwrap();
    client.batch_execute(DATA).await.unwrap();
    client.batch_execute(THRESHOLDS_FROM_NOW).await.unwrap();
    client.batch_execute(CHANGES).await.unwrap();
    set_pdf_keys(client).await;
    keys::store(client).await;
    inspectors::insert(client).await;
}
