//! The sandbox's four partners with their keys and grants, and their reset.

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
    FIND = "SELECT p.id, k.key_id FROM partners p JOIN api_keys k ON k.partner_id = p.id WHERE p.name = $1 \
            ORDER BY k.created_at DESC LIMIT 1";
    /// Creates the disabled partner that gets the earlier measurements of another.
    PREDECESSOR = "INSERT INTO partners (id, name, is_enabled) \
                   VALUES ($1::uuid, $2::text || ' before the reset ' || ($1::uuid)::text, false)";
    /// Moves the measurements of a partner, except those of the data set, to its predecessor, and removes their values from open
    /// reports. Measurements are never deleted.
    MOVE = "WITH moved AS ( \
              UPDATE measurements SET partner_id = $2, settled_at = coalesce(settled_at, now()), \
                status = CASE status WHEN 'PENDING' THEN 'DISCARDED' ELSE status END, \
                settled_by = CASE status WHEN 'PENDING' THEN 'reset' ELSE settled_by END \
              WHERE partner_id = $1 AND id <> ALL ($3::uuid[]) RETURNING id), \
            removed AS ( \
              DELETE FROM inspection_form_answers a USING inspection_forms f, inspections i \
              WHERE a.measurement_id IN (SELECT id FROM moved) \
                AND f.id = a.inspection_form_id AND f.organization_id = a.organization_id \
                AND i.id = f.inspection_id AND i.organization_id = f.organization_id \
                AND i.status IN ('DRAFT', 'REVISION_REQUESTED')) \
            SELECT count(*) FROM moved";
    ENABLE = "UPDATE partners SET is_enabled = true WHERE id = $1";
    RESTORE_KEY = "UPDATE api_keys SET revoked_at = NULL, expires_at = NULL, scopes = $2, rate_limit = $3, allowlist = '{}', \
                   allowlist_mode = 'enforce' WHERE key_id = $1";
    REVOKE_OTHERS = "UPDATE api_keys SET revoked_at = now() WHERE partner_id = $1 AND key_id <> $2 AND revoked_at IS NULL";
    RESTART_WINDOW = "DELETE FROM rate_windows WHERE key_id = $1";
    REMOVE_GRANTS = "DELETE FROM grants WHERE partner_id = $1";
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

/// The result of [`reset`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    /// The key, which is valid again.
    pub key_id: String,
    /// The number of measurements that no longer belong to the partner.
    pub measurements: i64,
}

/// Gives a partner the state of a new sandbox: its newest key, its grants, a full quota, and only the measurements of the data set.
pub(crate) async fn reset(transaction: &Transaction<'_>, data: &Dataset, name: &str) -> Result<Reset, SandboxError> {
    let missing = || SandboxError::NoPartner(name.to_owned());
    let spec = PARTNERS.iter().find(|spec| spec.name == name).ok_or_else(missing)?;
    let found = transaction.prepare(FIND).await?;
    let row = transaction.query_opt(&found, &[&name]).await?.ok_or_else(missing)?;
    let (id, key_id): (Uuid, String) = (row.try_get(0)?, row.try_get(1)?);
    let predecessor = Uuid::now_v7();
    let kept: Vec<Uuid> = data.measurements.iter().map(|measurement| measurement.id).collect();
    let prepared = transaction.prepare(PREDECESSOR).await?;
    transaction.execute(&prepared, &[&predecessor, &name]).await?;
    let prepared = transaction.prepare(MOVE).await?;
    let moved = transaction.query(&prepared, &[&id, &predecessor, &kept]).await?;
    let prepared = transaction.prepare(ENABLE).await?;
    transaction.execute(&prepared, &[&id]).await?;
    // First, because a partner has at most two active keys.
    let prepared = transaction.prepare(REVOKE_OTHERS).await?;
    transaction.execute(&prepared, &[&id, &key_id]).await?;
    let prepared = transaction.prepare(RESTORE_KEY).await?;
    transaction
        .execute(&prepared, &[&key_id, &spec.scopes, &spec.rate_limit])
        .await?;
    let prepared = transaction.prepare(RESTART_WINDOW).await?;
    transaction.execute(&prepared, &[&key_id]).await?;
    let prepared = transaction.prepare(REMOVE_GRANTS).await?;
    transaction.execute(&prepared, &[&id]).await?;
    for (organization, codes) in spec.grants {
        grant(transaction, data, id, *organization, *codes).await?;
    }
    let measurements = moved.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
    Ok(Reset { key_id, measurements })
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
