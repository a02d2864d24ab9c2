//! Changes to a key: revocation, expiry, scopes and rate limit.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Args;

use super::{EXPIRE, LOCK, load_one, scope, too_many_keys};
use crate::failure::Failure;
use crate::names::{self, quoted};
use crate::output::Output;
use crate::session::{Changed, Query, Session};
use crate::when;

partner_api_store::statement! {
    REVOKE = "UPDATE api_keys SET revoked_at = now() WHERE key_id = $1 AND revoked_at IS NULL";
    SCOPES = "UPDATE api_keys SET scopes = $2 WHERE key_id = $1 AND scopes <> $2";
    LIMIT = "UPDATE api_keys SET rate_limit = $2 WHERE key_id = $1 AND rate_limit <> $2";
}

/// The arguments of `key expire`.
#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("end").required(true).args(["at", "within", "never"])))]
pub struct ExpireArgs {
    /// The key ID or a unique prefix of it
    key: String,
    /// The time, with its offset
    #[arg(long, value_name = "TIME", value_parser = when::moment)]
    at: Option<DateTime<Utc>>,
    /// The time from now, such as 24h
    #[arg(long = "in", value_name = "TIME", value_parser = when::span)]
    within: Option<Duration>,
    /// Never
    #[arg(long)]
    never: bool,
}

/// The arguments of `key scope`.
#[derive(Args, Debug)]
pub struct ScopeArgs {
    /// The key ID or a unique prefix of it
    key: String,
    /// Scope to add
    #[arg(long, value_name = "SCOPE", value_parser = scope, required_unless_present = "remove")]
    add: Vec<String>,
    /// Scope to remove
    #[arg(long, value_name = "SCOPE")]
    remove: Vec<String>,
}

/// The arguments of `key limit`.
#[derive(Args, Debug)]
pub struct LimitArgs {
    /// The key ID or a unique prefix of it
    key: String,
    /// Requests per minute
    #[arg(value_parser = clap::value_parser!(i32).range(1..))]
    limit: i32,
}

pub(super) async fn revoke(session: &Session, text: &str) -> Result<Output, Failure> {
    session
        .change("key revoke", async |change| {
            let found = names::key(change, text).await?;
            let before = load_one(change, &found.id).await?;
            let changed = change.execute(REVOKE, &[&found.id]).await? > 0;
            let after = load_one(change, &found.id).await?;
            if !changed {
                let since = when::at_or_none(after.revoked_at);
                let what = format!("The key {} was already revoked at {since}.", found.id);
                return Ok(Changed::unchanged("key", found.id, what, after));
            }
            let what = format!(
                "The key {} of partner `{}` was revoked. Every replica rejects it within 5 s.",
                found.id, found.partner.name
            );
            let undo = format!(
                "cannot be undone: revoked secrets are never reactivated. Create a new key with: partner-api key create {}",
                quoted(&found.partner.name)
            );
            Ok(Changed::of("key", found.id, what, after).before(&before).undo(undo))
        })
        .await
}

pub(super) async fn expire(session: &Session, args: &ExpireArgs) -> Result<Output, Failure> {
    let ends = args.at.or_else(|| args.within.map(|span| Utc::now() + span));
    session
        .change("key expire", async |change| {
            let found = names::key(change, &args.key).await?;
            let before = load_one(change, &found.id).await?;
            if before.state == "revoked" {
                return Err(Failure::Rejected(format!(
                    "the key {} is revoked and cannot be changed",
                    found.id
                )));
            }
            let environment = session.config.options.environment;
            let changed = change.execute(EXPIRE, &[&found.id, &ends]).await;
            let changed = changed.map_err(|error| too_many_keys(error, environment))? > 0;
            let after = load_one(change, &found.id).await?;
            let when = ends.map_or_else(
                || "never expires".to_owned(),
                |at| format!("expires at {}", when::at(at)),
            );
            let what = format!("The key {} of partner `{}` {when}.", found.id, found.partner.name);
            if !changed {
                return Ok(Changed::unchanged("key", found.id, what, after));
            }
            let previous = match before.expires_at {
                Some(at) => format!("--at {}", at.to_rfc3339()),
                None => "--never".to_owned(),
            };
            let undo = format!("partner-api key expire {} {previous}", found.id);
            Ok(Changed::of("key", found.id, what, after).before(&before).undo(undo))
        })
        .await
}

pub(super) async fn scopes(session: &Session, args: &ScopeArgs) -> Result<Output, Failure> {
    session
        .change("key scope", async |change| {
            let found = names::key(change, &args.key).await?;
            change.query(LOCK, &[&found.id]).await?;
            let before = load_one(change, &found.id).await?;
            let mut scopes = before.scopes.clone();
            scopes.retain(|scope| !args.remove.contains(scope));
            scopes.extend(args.add.iter().filter(|scope| !before.scopes.contains(scope)).cloned());
            scopes.sort();
            scopes.dedup();
            let changed = change.execute(SCOPES, &[&found.id, &scopes]).await? > 0;
            let after = load_one(change, &found.id).await?;
            let what = match scopes.is_empty() {
                true => format!("The key {} may only read.", found.id),
                false => format!("The key {} may read, plus {}.", found.id, scopes.join(", ")),
            };
            if !changed {
                return Ok(Changed::unchanged("key", found.id, what, after));
            }
            let dropped = before.scopes.iter().filter(|scope| !scopes.contains(scope));
            let added = scopes.iter().filter(|scope| !before.scopes.contains(scope));
            let previous: String = dropped
                .map(|scope| format!(" --add {scope}"))
                .chain(added.map(|scope| format!(" --remove {scope}")))
                .collect();
            let undo = format!("partner-api key scope {}{previous}", found.id);
            Ok(Changed::of("key", found.id, what, after).before(&before).undo(undo))
        })
        .await
}

pub(super) async fn limit(session: &Session, args: &LimitArgs) -> Result<Output, Failure> {
    session
        .change("key limit", async |change| {
            let found = names::key(change, &args.key).await?;
            let before = load_one(change, &found.id).await?;
            let changed = change.execute(LIMIT, &[&found.id, &args.limit]).await? > 0;
            let after = load_one(change, &found.id).await?;
            let what = format!("The key {} may send {} requests per minute.", found.id, args.limit);
            if !changed {
                return Ok(Changed::unchanged("key", found.id, what, after));
            }
            let undo = format!("partner-api key limit {} {}", found.id, before.rate_limit);
            Ok(Changed::of("key", found.id, what, after).before(&before).undo(undo))
        })
        .await
}
