//! Key rotation: creates a second key like the first, which expires after an overlap.

use std::time::Duration;

use chrono::Utc;
use clap::Args;

use super::create::{KeyProperties, created, insert};
use super::{EXPIRE, LOCK, load_one};
use crate::failure::Failure;
use crate::names::{self, quoted};
use crate::output::Output;
use crate::session::{Change, Query, Session};
use crate::when;

partner_api_store::statement! {
    /// The active keys of a partner.
    ACTIVE = "SELECT key_id FROM api_keys WHERE partner_id = $1 AND environment = $2 AND revoked_at IS NULL \
              AND (expires_at IS NULL OR expires_at > now()) ORDER BY created_at";
}

/// The longest overlap of two keys (KEY-11).
const LONGEST_OVERLAP: Duration = Duration::from_secs(7 * 24 * 3600);

/// The arguments of `key rotate`.
#[derive(Args, Debug)]
pub struct RotateArgs {
    /// The key, or a partner that has only one active key
    key_or_partner: String,
    /// How long the first key stays valid, 0 to 7days
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = overlap)]
    overlap: Duration,
}

/// Finds the key with this ID, or the only active key of the partner.
async fn rotated(session: &Session, change: &Change<'_>, text: &str) -> Result<names::Key, Failure> {
    let no_key = match names::key(change, text).await {
        Ok(key) => return Ok(key),
        Err(no_key @ Failure::NotFound { .. }) => no_key,
        Err(other) => return Err(other),
    };
    let partner = match names::partner(change, text).await {
        Ok(partner) => partner,
        // A text in the format of a key ID is not the name of a partner.
        Err(Failure::NotFound { .. }) if text.contains("_test_") || text.contains("_live_") => return Err(no_key),
        Err(other) => return Err(other),
    };
    let environment = session.config.options.environment;
    let rows = change.query(ACTIVE, &[&partner.id, &environment.as_str()]).await?;
    match rows.as_slice() {
        [row] => Ok(names::Key {
            id: row.try_get("key_id")?,
            partner,
        }),
        [] => Err(Failure::Rejected(format!(
            "partner `{0}` has no active {environment} key; create one with: partner-api key create {1}",
            partner.name,
            quoted(&partner.name)
        ))),
        _ => Err(Failure::Usage(format!(
            "partner `{}` has two active {environment} keys; choose one (partner-api key list {})",
            partner.name,
            quoted(&partner.name)
        ))),
    }
}

pub(super) async fn rotate(session: &Session, args: &RotateArgs) -> Result<Output, Failure> {
    session
        .change("key rotate", async |change| {
            let found = rotated(session, change, &args.key_or_partner).await?;
            change.query(LOCK, &[&found.id]).await?;
            let old = load_one(change, &found.id).await?;
            if old.state == "revoked" || old.state == "expired" {
                return Err(Failure::Rejected(format!(
                    "the key {} is {}; create a new one with: partner-api key create {}",
                    old.key_id,
                    old.state,
                    quoted(&found.partner.name)
                )));
            }
            if old.environment != session.config.options.environment.as_str() {
                return Err(Failure::Rejected(format!(
                    "the key {} is for {}, and this deployment is configured as {}",
                    old.key_id, old.environment, session.config.options.environment
                )));
            }
            let ends = Utc::now() + args.overlap;
            // A key that expires earlier keeps its expiry.
            let ends = old.expires_at.map_or(ends, |at| at.min(ends));
            change.execute(EXPIRE, &[&old.key_id, &ends]).await?;
            let properties = KeyProperties {
                partner: found.partner.id,
                scopes: &old.scopes,
                rate_limit: old.rate_limit,
                allowlist: &old.allowlist,
                allowlist_mode: &old.allowlist_mode,
                expires_at: None,
            };
            let (id, secret) = insert(session, change, &properties).await?;
            let key = load_one(change, id.as_str()).await?;
            let what = format!(
                "{} replaces {}, which expires at {}.",
                key.key_id,
                old.key_id,
                when::at(ends)
            );
            let previous = match old.expires_at {
                Some(at) => format!("--at {}", at.to_rfc3339()),
                None => "--never".to_owned(),
            };
            let undo = format!(
                "partner-api key revoke {} && partner-api key expire {} {previous}",
                id.as_str(),
                old.key_id
            );
            Ok(created(key, &secret, what).before(&old).undo(undo))
        })
        .await
}

fn overlap(text: &str) -> Result<Duration, String> {
    let span = when::span(text)?;
    if span > LONGEST_OVERLAP {
        return Err("two keys can overlap for at most 7days".to_owned());
    }
    Ok(span)
}
