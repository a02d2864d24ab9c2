//! The sandbox's four partners with their keys and grants.

use partner_api_signing::Environment;
use partner_api_store::DbError;
use partner_api_store::connection::Connection;
use partner_api_store::secrets::{MasterKey, new_key};
use partner_api_store::transaction::Transaction;
use uuid::Uuid;

use super::SandboxError;
use super::catalog::places::{BETA_CODES, FULL, MASKED, NONE};
use super::data::Dataset;
use super::manifest::Partner;

partner_api_store::statement! {
    PARTNER = "INSERT INTO partners (id, name) VALUES ($1, $2)";
    KEY = "INSERT INTO api_keys (key_id, partner_id, environment, secret_nonce, secret_ciphertext, scopes, rate_limit) \
           VALUES ($1, $2, $3, $4, $5, $6, $7)";
    GRANT = "INSERT INTO grants (partner_id, organization_id, all_branches) VALUES ($1, $2, $3)";
    BRANCH = "INSERT INTO grant_branches (partner_id, organization_id, branch_id) VALUES ($1, $2, $3)";
    /// Returns the partners with these names, each with its newest valid key.
    LOAD = "SELECT p.name, k.key_id, k.secret_nonce, k.secret_ciphertext, k.scopes, k.rate_limit, \
        (SELECT coalesce(array_agg(g.organization_id::text ORDER BY g.organization_id), '{}') FROM grants g \
         WHERE g.partner_id = p.id) AS organizations, \
        (SELECT array_agg(b.branch_id::text ORDER BY b.branch_id) FROM grant_branches b WHERE b.partner_id = p.id) \
         AS branches \
        FROM partners p CROSS JOIN LATERAL (SELECT * FROM api_keys k WHERE k.partner_id = p.id \
         AND k.environment = 'test' AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now()) \
         ORDER BY k.created_at DESC LIMIT 1) k WHERE p.name = ANY ($1::text[]) ORDER BY p.name";
}

/// The scope for `POST /test-line/measurements`.
const WRITE: &str = "test-line:write";
/// The partner whose devices sent the measurements in the data set.
pub const SENDER: &str = "alpha";

/// A partner to create.
struct PartnerSpec {
    name: &'static str,
    about: &'static str,
    scopes: &'static [&'static str],
    /// Requests per minute.
    rate_limit: i32,
    /// Indexes of organizations, each with the codes of the granted branches; `None` grants all branches.
    grants: &'static [(usize, Option<&'static [&'static str]>)],
}

const PARTNERS: [PartnerSpec; 4] = [
    PartnerSpec {
        name: SENDER,
        about: "Reads the reports of all organizations, in every privacy mode, and submits measurements. Its rate limit is high \
                enough for load tests.",
        scopes: &[WRITE],
        rate_limit: 600_000,
        grants: &[(MASKED, None), (NONE, None), (FULL, None)],
    },
    PartnerSpec {
        name: "beta",
        about: "Reads the reports of two branches of one organization. It cannot submit measurements.",
        scopes: &[],
        rate_limit: 6_000,
        grants: &[(MASKED, Some(&BETA_CODES))],
    },
    PartnerSpec {
        name: "gamma",
        about: "Has no grants yet: lists are empty, and reports and branches are not found.",
        scopes: &[WRITE],
        rate_limit: 6_000,
        grants: &[],
    },
    // The default limit (LIM-1).
    PartnerSpec {
        name: "delta",
        about: "Reads the reports of one organization, in the privacy mode NONE. It has the default rate limit of 60 requests per \
                minute.",
        scopes: &[WRITE],
        rate_limit: 60,
        grants: &[(NONE, None)],
    },
];

/// Inserts the partners with new keys and secrets. Returns the ID and the key ID of the sender.
pub async fn insert(
    transaction: &Transaction<'_>,
    data: &Dataset,
    master_key: &MasterKey,
    key_prefix: &str,
) -> Result<(Uuid, String), SandboxError> {
    let partner = transaction.prepare(PARTNER).await?;
    let key = transaction.prepare(KEY).await?;
    let mut sender = (Uuid::nil(), String::new());
    for spec in &PARTNERS {
        let id = Uuid::now_v7();
        let (key_id, secret) = new_key(key_prefix, Environment::Test)?;
        let (nonce, ciphertext) = master_key.encrypt(key_id.as_str(), &secret)?;
        transaction.execute(&partner, &[&id, &spec.name]).await?;
        let environment = Environment::Test.as_str();
        transaction
            .execute(
                &key,
                &[
                    &key_id.as_str(),
                    &id,
                    &environment,
                    &nonce.as_slice(),
                    &ciphertext,
                    &spec.scopes,
                    &spec.rate_limit,
                ],
            )
            .await?;
        for (organization, codes) in spec.grants {
            grant(transaction, data, id, *organization, *codes).await?;
        }
        if spec.name == SENDER {
            sender = (id, key_id.as_str().to_owned());
        }
    }
    Ok(sender)
}

async fn grant(
    transaction: &Transaction<'_>,
    data: &Dataset,
    partner: Uuid,
    organization: usize,
    codes: Option<&[&str]>,
) -> Result<(), DbError> {
    let grant = transaction.prepare(GRANT).await?;
    let grant_branch = transaction.prepare(BRANCH).await?;
    let organization_id = data.organizations[organization].id;
    transaction
        .execute(&grant, &[&partner, &organization_id, &codes.is_none()])
        .await?;
    for branch in data
        .branches
        .iter()
        .filter(|branch| branch.organization == organization)
    {
        if codes.is_some_and(|codes| codes.contains(&branch.code)) {
            transaction
                .execute(&grant_branch, &[&partner, &organization_id, &branch.id])
                .await?;
        }
    }
    Ok(())
}

/// Loads the four partners with their newest valid keys and their secrets.
pub async fn load(connection: &Connection, master_key: &MasterKey) -> Result<Vec<Partner>, SandboxError> {
    let names: Vec<_> = PARTNERS.iter().map(|spec| spec.name).collect();
    let rows = connection.query(LOAD, &[&names]).await?;
    let mut partners = Vec::new();
    for row in rows {
        let key_id: String = row.try_get("key_id").map_err(DbError::from)?;
        let nonce: Vec<u8> = row.try_get("secret_nonce").map_err(DbError::from)?;
        let ciphertext: Vec<u8> = row.try_get("secret_ciphertext").map_err(DbError::from)?;
        let secret = master_key.decrypt(&key_id, &nonce, &ciphertext)?;
        let name: String = row.try_get("name").map_err(DbError::from)?;
        let spec = PARTNERS.iter().find(|spec| spec.name == name);
        partners.push(Partner {
            about: spec.map(|spec| spec.about.to_owned()).unwrap_or_default(),
            name,
            secret: secret.expose().to_owned(),
            scopes: row.try_get("scopes").map_err(DbError::from)?,
            organizations: row.try_get("organizations").map_err(DbError::from)?,
            branches: row.try_get("branches").map_err(DbError::from)?,
            rate_limit: row.try_get("rate_limit").map_err(DbError::from)?,
            key_id,
        });
    }
    Ok(partners)
}
