//! Loading of keys and grants from the database.

use std::collections::HashMap;
use std::sync::Arc;

use ipnet::IpNet;
use partner_api_domain::grants::{Grants, Partner};
use partner_api_signing::Environment;
use tokio_postgres::Row;
use uuid::Uuid;

use super::{ClaimedKey, ConnectionQuotas, Key, KeyProblem, Keys, UnusableKey};
use crate::DbError;
use crate::connection::Connection;
use crate::secrets::MasterKey;
use crate::statement;

statement! {
    /// A number that increases with every change to keys or grants.
    VERSION = "SELECT version FROM directory_version";

    /// All keys, including expired ones: expiry is checked at each use.
    KEYS = "\
SELECT k.key_id, k.partner_id, p.name, k.secret_nonce, k.secret_ciphertext, k.scopes, k.rate_limit, k.allowlist::text[],
       k.allowlist_mode, k.expires_at, k.environment <> $1 AS is_of_other_environment, k.revoked_at IS NOT NULL AS is_revoked,
       NOT p.is_enabled AS is_disabled
FROM api_keys k
JOIN partners p ON p.id = k.partner_id";

    /// The grants of all partners.
    GRANTS = "\
SELECT g.partner_id, g.organization_id, g.all_branches,
       array_remove(array_agg(b.branch_id ORDER BY b.branch_id), NULL) AS branches
FROM grants g
LEFT JOIN grant_branches b USING (partner_id, organization_id)
GROUP BY g.partner_id, g.organization_id, g.all_branches
ORDER BY g.partner_id, g.organization_id";
}

pub(super) async fn version(client: &Connection) -> Result<i64, DbError> {
    Ok(client.query_one(VERSION, &[]).await?.try_get(0)?)
}

pub(super) async fn keys(
    client: &Connection,
    environment: Environment,
    master_key: &MasterKey,
    quotas: &ConnectionQuotas,
) -> Result<Keys, DbError> {
    let mut grants: HashMap<Uuid, GrantRows> = HashMap::new();
    for row in client.query(GRANTS, &[]).await? {
        let of_partner = grants.entry(row.try_get("partner_id")?).or_default();
        let organization: Uuid = row.try_get("organization_id")?;
        match row.try_get("all_branches")? {
            true => of_partner.whole.push(organization),
            false => of_partner.restricted.push((organization, row.try_get("branches")?)),
        }
    }
    let mut partners: HashMap<Uuid, Arc<Partner>> = HashMap::new();
    let mut keys = Keys::default();
    for row in client.query(KEYS, &[&environment.as_str()]).await? {
        let id: Uuid = row.try_get("partner_id")?;
        let partner = match partners.get(&id) {
            Some(partner) => partner.clone(),
            None => {
                let GrantRows { whole, restricted } = grants.remove(&id).unwrap_or_default();
                let partner = Arc::new(Partner {
                    id,
                    name: row.try_get("name")?,
                    grants: Grants::new(whole, restricted),
                });
                partners.insert(id, partner.clone());
                partner
            }
        };
        let key_id: String = row.try_get("key_id")?;
        let mut insert_unusable = |problem| {
            let key = ClaimedKey {
                key_id: key_id.as_str().into(),
                partner: Some(partner.clone()),
            };
            keys.unusable.insert(key_id.clone(), UnusableKey { key, problem });
        };
        if let Some(problem) = problem(&row)? {
            insert_unusable(problem);
            continue;
        }
        match key(&row, &key_id, partner.clone(), master_key, quotas) {
            Ok(key) => {
                keys.usable.insert(key_id, Arc::new(key));
            }
            // One invalid row must not affect other keys.
            Err(reason) => {
                tracing::error!(key_id, reason, "failed to load a key");
                insert_unusable(KeyProblem::Unusable);
            }
        }
    }
    Ok(keys)
}

/// Returns why a key is not accepted, judged by the flags in its row.
fn problem(row: &Row) -> Result<Option<KeyProblem>, DbError> {
    for (column, problem) in [
        ("is_of_other_environment", KeyProblem::OfOtherEnvironment),
        ("is_revoked", KeyProblem::Revoked),
        ("is_disabled", KeyProblem::PartnerDisabled),
    ] {
        if row.try_get(column)? {
            return Ok(Some(problem));
        }
    }
    Ok(None)
}

/// The grants of one partner.
#[derive(Default)]
struct GrantRows {
    whole: Vec<Uuid>,
    restricted: Vec<(Uuid, Vec<Uuid>)>,
}

fn key(
    row: &Row,
    key_id: &str,
    partner: Arc<Partner>,
    master_key: &MasterKey,
    quotas: &ConnectionQuotas,
) -> Result<Key, String> {
    let nonce: &[u8] = row.get("secret_nonce");
    let ciphertext: &[u8] = row.get("secret_ciphertext");
    let secret = master_key
        .decrypt(key_id, nonce, ciphertext)
        .map_err(|error| error.to_string())?;
    let mut allowlist = Vec::new();
    for block in row.get::<_, Vec<String>>("allowlist") {
        let block: IpNet = block
            .parse()
            .map_err(|_| format!("`{block}` in the allowlist is not a CIDR block"))?;
        allowlist.push(block);
    }
    Ok(Key {
        id: key_id.into(),
        secret,
        permissions: row.get("scopes"),
        rate_limit: u32::try_from(row.get::<_, i32>("rate_limit")).unwrap_or(u32::MAX),
        allowlist,
        allowlist_mode: row.try_get("allowlist_mode").map_err(|error| error.to_string())?,
        expires_at: row.get("expires_at"),
        partner,
        connection_quota: quotas.of_key(key_id),
    })
}
