//! Partners.

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use partner_api_store::DbError;
use serde::Serialize;
use uuid::Uuid;

use crate::failure::Failure;
use crate::names::{self, quoted};
use crate::output::{Output, Row, yes};
use crate::session::{Changed, Query, Session};
use crate::when;
use crate::{grant, key};

partner_api_store::statement! {
    CREATE = "INSERT INTO partners (id, name) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    LIST = "SELECT p.id, p.name, p.is_enabled, p.created_at, \
              (SELECT count(*) FROM api_keys k WHERE k.partner_id = p.id AND k.revoked_at IS NULL \
                AND (k.expires_at IS NULL OR k.expires_at > now())) AS active_keys, \
              (SELECT count(*) FROM grants g WHERE g.partner_id = p.id) AS organizations \
            FROM partners p WHERE $1::uuid IS NULL OR p.id = $1 ORDER BY p.name";
    ENABLE = "UPDATE partners SET is_enabled = $2 WHERE id = $1 AND is_enabled <> $2";
}

/// The examples in the help of the group.
pub const EXAMPLES: &str = "\
Examples:
  partner-api partner create 'Acme Devices'
  partner-api partner list
  partner-api partner show 'Acme Devices'       its keys and grants
  partner-api partner disable 'Acme Devices'    all its keys are rejected within 5 s";

/// Commands on partners.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a partner, without keys and grants
    Create(CreateArgs),
    /// List all partners
    List,
    /// Show a partner with its keys and grants
    Show(PartnerArgs),
    /// Reject all keys of a partner, on every replica within 5 s
    Disable(PartnerArgs),
    /// Accept the keys of a disabled partner again
    Enable(PartnerArgs),
}

/// The arguments of `partner create`.
#[derive(Args, Debug)]
pub struct CreateArgs {
    /// The name
    name: String,
}

/// A partner.
#[derive(Args, Debug)]
pub struct PartnerArgs {
    /// The name or ID
    partner: String,
}

/// A partner.
#[derive(Debug, Serialize)]
pub(crate) struct Partner {
    id: Uuid,
    name: String,
    is_enabled: bool,
    created_at: DateTime<Utc>,
    active_keys: i64,
    organizations: i64,
}

impl Row for Partner {
    const COLUMNS: &'static [&'static str] = &["NAME", "ENABLED", "ACTIVE KEYS", "ORGANIZATIONS", "CREATED", "ID"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            yes(self.is_enabled),
            self.active_keys.to_string(),
            self.organizations.to_string(),
            when::at(self.created_at),
            self.id.to_string(),
        ]
    }
}

impl Command {
    pub(crate) async fn run(self, session: &Session) -> Result<Output, Failure> {
        match self {
            Self::Create(args) => create(session, &args.name).await,
            Self::List => Ok(Output::rows(
                &load(&session.read().await?, None).await?,
                "There are no partners. Create one with: partner-api partner create NAME",
            )),
            Self::Show(args) => show(session, &args.partner).await,
            Self::Disable(args) => enable(session, &args.partner, false).await,
            Self::Enable(args) => enable(session, &args.partner, true).await,
        }
    }
}

async fn load(query: &impl Query, id: Option<Uuid>) -> Result<Vec<Partner>, DbError> {
    let rows = query.query(LIST, &[&id]).await?;
    rows.iter()
        .map(|row| {
            Ok(Partner {
                id: row.try_get("id")?,
                name: row.try_get("name")?,
                is_enabled: row.try_get("is_enabled")?,
                created_at: row.try_get("created_at")?,
                active_keys: row.try_get("active_keys")?,
                organizations: row.try_get("organizations")?,
            })
        })
        .collect()
}

async fn load_one(query: &impl Query, id: Uuid) -> Result<Partner, Failure> {
    let removed = || Failure::Rejected("the partner was removed in the meantime".to_owned());
    load(query, Some(id)).await?.pop().ok_or_else(removed)
}

async fn create(session: &Session, name: &str) -> Result<Output, Failure> {
    names::check("partner", name)?;
    session
        .change("partner create", async |change| {
            let id = Uuid::now_v7();
            if change.execute(CREATE, &[&id, &name]).await? == 0 {
                return Err(Failure::Rejected(format!(
                    "partner `{name}` already exists; show it with: partner-api partner show {}",
                    quoted(name)
                )));
            }
            let partner = load_one(change, id).await?;
            Ok(
                Changed::of("partner", id, format!("Partner `{name}` was created."), partner)
                    .facts(vec![
                        ("id", id.to_string()),
                        ("next", format!("partner-api grant add {} ORGANIZATION", quoted(name))),
                        ("", format!("partner-api key create {}", quoted(name))),
                    ])
                    .undo(format!("partner-api partner disable {}", quoted(name))),
            )
        })
        .await
}

async fn enable(session: &Session, text: &str, enabled: bool) -> Result<Output, Failure> {
    let (command, word, back) = match enabled {
        true => ("partner enable", "enabled", "disable"),
        false => ("partner disable", "disabled", "enable"),
    };
    session
        .change(command, async |change| {
            let found = names::partner(change, text).await?;
            let before = load_one(change, found.id).await?;
            let changed = change.execute(ENABLE, &[&found.id, &enabled]).await? > 0;
            let after = load_one(change, found.id).await?;
            let name = found.name;
            if !changed {
                return Ok(Changed::unchanged(
                    "partner",
                    found.id,
                    format!("Partner `{name}` is already {word}."),
                    after,
                ));
            }
            let what = match enabled {
                true => format!("Partner `{name}` was enabled. Every replica accepts its keys within 5 s."),
                false => format!("Partner `{name}` was disabled. Every replica rejects its keys within 5 s."),
            };
            Ok(Changed::of("partner", found.id, what, after)
                .before(&before)
                .undo(format!("partner-api partner {back} {}", quoted(&name))))
        })
        .await
}

/// A partner with its keys and grants.
#[derive(Debug, Serialize)]
struct PartnerDetails {
    #[serde(flatten)]
    partner: Partner,
    keys: Vec<key::Key>,
    grants: Vec<grant::Grant>,
}

async fn show(session: &Session, text: &str) -> Result<Output, Failure> {
    let connection = session.read().await?;
    let found = names::partner(&connection, text).await?;
    let details = PartnerDetails {
        partner: load_one(&connection, found.id).await?,
        keys: key::load(&connection, Some(found.id), None, true).await?,
        grants: grant::load(&connection, Some(found.id)).await?,
    };
    let mut facts = vec![
        ("name", details.partner.name.clone()),
        ("id", details.partner.id.to_string()),
        ("enabled", yes(details.partner.is_enabled)),
        ("created", when::at(details.partner.created_at)),
    ];
    for (index, key) in details.keys.iter().enumerate() {
        facts.push((if index == 0 { "keys" } else { "" }, key.in_a_line()));
    }
    for (index, grant) in details.grants.iter().enumerate() {
        facts.push((if index == 0 { "sees" } else { "" }, grant.in_a_line()));
    }
    Ok(Output::facts(&details, &facts))
}
