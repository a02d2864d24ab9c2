//! Creates keys and shows their secret once.

use chrono::{DateTime, Utc};
use clap::Args;
use partner_api_signing::{KeyId, Secret};
use partner_api_store::secrets::new_key;
use serde::Serialize;
use uuid::Uuid;

use super::{Key, load_one, scope, too_many_keys};
use crate::failure::Failure;
use crate::names;
use crate::output::{Output, list, to_json};
use crate::session::{Change, Changed, Session};
use crate::when;

partner_api_store::statement! {
    CREATE = "INSERT INTO api_keys (key_id, partner_id, environment, secret_nonce, secret_ciphertext, scopes, rate_limit, \
                allowlist, allowlist_mode, expires_at) \
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8::text[]::cidr[], $9, $10)";
}

/// The arguments of `key create`.
#[derive(Args, Debug)]
pub struct CreateArgs {
    /// The partner, by name or ID
    partner: String,
    /// Scope beyond reading, such as test-line:write
    #[arg(long, value_name = "SCOPE", value_parser = scope)]
    scope: Vec<String>,
    /// Requests per minute
    #[arg(long, value_name = "NUMBER", default_value_t = 60, value_parser = clap::value_parser!(i32).range(1..))]
    rate_limit: i32,
    /// Expiry time, with its offset [default: never]
    #[arg(long, value_name = "TIME", value_parser = when::moment)]
    expires_at: Option<DateTime<Utc>>,
}

/// A new key with its secret, which is shown only once.
#[derive(Serialize)]
pub(super) struct NewKey {
    #[serde(flatten)]
    key: Key,
    secret: String,
}

/// The properties of a new key.
pub(super) struct KeyProperties<'a> {
    pub(super) partner: Uuid,
    pub(super) scopes: &'a [String],
    pub(super) rate_limit: i32,
    pub(super) allowlist: &'a [String],
    pub(super) allowlist_mode: &'a str,
    pub(super) expires_at: Option<DateTime<Utc>>,
}

/// Creates a key, encrypts its secret and stores both.
pub(super) async fn insert(
    session: &Session,
    change: &Change<'_>,
    properties: &KeyProperties<'_>,
) -> Result<(KeyId, Secret), Failure> {
    let environment = session.config.options.environment;
    let (id, secret) = new_key(&session.config.options.key_prefix, environment)?;
    let (nonce, ciphertext) = session.master_key()?.encrypt(id.as_str(), &secret)?;
    let inserted = change
        .execute(
            CREATE,
            &[
                &id.as_str(),
                &properties.partner,
                &environment.as_str(),
                &nonce.as_slice(),
                &ciphertext,
                &properties.scopes,
                &properties.rate_limit,
                &properties.allowlist,
                &properties.allowlist_mode,
                &properties.expires_at,
            ],
        )
        .await;
    inserted.map_err(|error| too_many_keys(error, environment))?;
    Ok((id, secret))
}

fn shown(key: &Key, secret: &Secret) -> Vec<(&'static str, String)> {
    vec![
        ("key ID", key.key_id.clone()),
        ("secret", secret.expose().to_owned()),
        (
            "",
            "Shown only once. Deliver it over a separate channel and do not store a copy.".to_owned(),
        ),
        ("scopes", list(&key.scopes)),
        ("requests per minute", key.rate_limit.to_string()),
        ("expires", when::at_or_none(key.expires_at)),
    ]
}

pub(super) async fn create(session: &Session, args: CreateArgs) -> Result<Output, Failure> {
    if args.expires_at.is_some_and(|at| at <= Utc::now()) {
        return Err(Failure::Usage("--expires-at: must be in the future".to_owned()));
    }
    session
        .change("key create", async |change| {
            let partner = names::partner(change, &args.partner).await?;
            let properties = KeyProperties {
                partner: partner.id,
                scopes: &args.scope,
                rate_limit: args.rate_limit,
                allowlist: &[],
                allowlist_mode: "enforce",
                expires_at: args.expires_at,
            };
            let (id, secret) = insert(session, change, &properties).await?;
            let key = load_one(change, id.as_str()).await?;
            let what = format!("A {} key was created for partner `{}`.", key.environment, partner.name);
            Ok(created(key, &secret, what).undo(format!("partner-api key revoke {}", id.as_str())))
        })
        .await
}

/// Creates the change for a new key. The secret is printed but not written to the audit log.
pub(super) fn created(key: Key, secret: &Secret, what: String) -> Changed<NewKey> {
    let facts = shown(&key, secret);
    let after = to_json(&key);
    let id = key.key_id.clone();
    let new = NewKey {
        secret: secret.expose().to_owned(),
        key,
    };
    let mut changed = Changed::of("key", id, what, new).facts(facts);
    changed.after = Some(after);
    changed
}
