//! The addresses that may use a key (KEY-5).

use clap::{Args, Subcommand, ValueEnum};
use ipnet::IpNet;
use std::net::IpAddr;

use crate::failure::Failure;
use crate::key::{self, Key};
use crate::names;
use crate::output::{Output, list};
use crate::session::{Change, Changed, Query, Session};

partner_api_store::statement! {
    /// Serializes changes to one list.
    LOCK = "SELECT allowlist::text[] FROM api_keys WHERE key_id = $1 FOR NO KEY UPDATE";
    SET = "UPDATE api_keys SET allowlist = $2::text[]::cidr[] WHERE key_id = $1";
    MODE = "UPDATE api_keys SET allowlist_mode = $2 WHERE key_id = $1 AND allowlist_mode <> $2";
}

/// The examples in the help of the group.
pub const EXAMPLES: &str = "\
An empty list admits every address. KEY is a key ID or a unique prefix of one.

Examples:
  partner-api allowlist mode vip_live_ABCD… report         dry run: other addresses are logged and admitted
  partner-api allowlist add vip_live_ABCD… 203.0.113.0/24 2001:db8::/48
  partner-api allowlist mode vip_live_ABCD… enforce
  partner-api allowlist remove vip_live_ABCD… 203.0.113.0/24";

/// Commands on allowlists.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Add addresses to a key's list
    Add(BlocksArgs),
    /// Remove addresses from a key's list
    Remove(RemoveArgs),
    /// Print a key's list
    List(key::KeyArgs),
    /// Set whether other addresses are rejected or only logged
    Mode(ModeArgs),
}

/// The arguments of `allowlist add` and `remove`.
#[derive(Args, Debug)]
pub struct BlocksArgs {
    /// The key ID or a unique prefix of it
    key: String,
    /// CIDR blocks or single addresses, IPv4 or IPv6
    #[arg(required = true, value_name = "CIDR", value_parser = block)]
    blocks: Vec<IpNet>,
}

/// The arguments of `allowlist remove`.
#[derive(Args, Debug)]
pub struct RemoveArgs {
    #[command(flatten)]
    blocks: BlocksArgs,
    /// Allow the list to become empty, which admits every address
    #[arg(long)]
    admit_all: bool,
}

/// The arguments of `allowlist mode`.
#[derive(Args, Debug)]
pub struct ModeArgs {
    /// The key ID or a unique prefix of it
    key: String,
    /// The treatment of other addresses
    mode: Mode,
}

/// The treatment of addresses that are not on the list.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Mode {
    /// Reject
    Enforce,
    /// Log and admit
    Report,
}

impl Mode {
    fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Report => "report",
        }
    }
}

impl Command {
    pub(crate) async fn run(self, session: &Session) -> Result<Output, Failure> {
        match self {
            Self::Add(args) => {
                set(session, "allowlist add", &args, true, |blocks, given| {
                    blocks.extend(given)
                })
                .await
            }
            Self::Remove(args) => {
                set(
                    session,
                    "allowlist remove",
                    &args.blocks,
                    args.admit_all,
                    |blocks, given| {
                        blocks.retain(|block| !given.contains(block));
                    },
                )
                .await
            }
            Self::List(args) => {
                let connection = session.read().await?;
                let found = names::key(&connection, &args.key).await?;
                let key = key::load_one(&connection, &found.id).await?;
                let facts = facts(&key);
                Ok(Output::facts(&key, &facts))
            }
            Self::Mode(args) => mode(session, &args).await,
        }
    }
}

fn facts(key: &Key) -> Vec<(&'static str, String)> {
    let admitted = match key.allowlist.as_slice() {
        [] => "every address".to_owned(),
        some => list(some),
    };
    vec![
        ("key", key.key_id.clone()),
        ("admits", admitted),
        (
            "others are",
            if key.allowlist_mode == "report" {
                "logged and admitted"
            } else {
                "rejected"
            }
            .to_owned(),
        ),
    ]
}

async fn current(change: &Change<'_>, id: &str) -> Result<Vec<IpNet>, Failure> {
    let rows = change.query(LOCK, &[&id]).await?;
    let texts: Vec<String> = match rows.first() {
        Some(row) => row.try_get("allowlist")?,
        None => Vec::new(),
    };
    let unusable = |text: &String| Failure::Rejected(format!("`{text}` in the list of key {id} is not a CIDR block"));
    texts
        .iter()
        .map(|text| text.parse().map_err(|_| unusable(text)))
        .collect()
}

async fn set(
    session: &Session,
    command: &'static str,
    args: &BlocksArgs,
    admit_all: bool,
    alter: impl Fn(&mut Vec<IpNet>, &[IpNet]),
) -> Result<Output, Failure> {
    session
        .change(command, async |change| {
            let found = names::key(change, &args.key).await?;
            let before = key::load_one(change, &found.id).await?;
            let old = current(change, &found.id).await?;
            let mut new = old.clone();
            alter(&mut new, &args.blocks);
            new.sort();
            new.dedup();
            let dropped: Vec<_> = old.iter().filter(|block| !new.contains(block)).map(ToString::to_string).collect();
            let added: Vec<_> = new.iter().filter(|block| !old.contains(block)).map(ToString::to_string).collect();
            if dropped.is_empty() && added.is_empty() {
                let what = format!("There was nothing to change in the allowlist of {}.", found.id);
                let facts = facts(&before);
                return Ok(Changed::unchanged("allowlist", found.id, what, before).facts(facts));
            }
            if new.is_empty() && !admit_all {
                return Err(Failure::Rejected(format!(
                    "an empty list admits every address; add the remaining blocks before you remove the last one of {}, or \
                     use --admit-all",
                    found.id
                )));
            }
            let texts: Vec<_> = new.iter().map(ToString::to_string).collect();
            change.execute(SET, &[&found.id, &texts]).await?;
            let after = key::load_one(change, &found.id).await?;
            let mut undo = Vec::new();
            if !dropped.is_empty() {
                undo.push(format!("partner-api allowlist add {} {}", found.id, dropped.join(" ")));
            }
            if !added.is_empty() {
                let all = if old.is_empty() { " --admit-all" } else { "" };
                undo.push(format!("partner-api allowlist remove {} {}{all}", found.id, added.join(" ")));
            }
            let what = format!("The list of {} was changed. Every replica applies it within 5 s.", found.id);
            let facts = facts(&after);
            Ok(Changed::of("allowlist", found.id, what, after)
                .before(&before)
                .facts(facts)
                .undo(undo.join(" && ")))
        })
        .await
}

async fn mode(session: &Session, args: &ModeArgs) -> Result<Output, Failure> {
    session
        .change("allowlist mode", async |change| {
            let found = names::key(change, &args.key).await?;
            let before = key::load_one(change, &found.id).await?;
            let changed = change.execute(MODE, &[&found.id, &args.mode.as_str()]).await? > 0;
            let after = key::load_one(change, &found.id).await?;
            let facts = facts(&after);
            let what = match args.mode {
                Mode::Enforce => format!("Addresses outside the allowlist of {} are rejected.", found.id),
                Mode::Report => format!(
                    "Addresses outside the allowlist of {} are logged and admitted.",
                    found.id
                ),
            };
            if !changed {
                return Ok(Changed::unchanged("allowlist", found.id, what, after).facts(facts));
            }
            let undo = format!("partner-api allowlist mode {} {}", found.id, before.allowlist_mode);
            Ok(Changed::of("allowlist", found.id, what, after)
                .before(&before)
                .facts(facts)
                .undo(undo))
        })
        .await
}

/// Parses a block or a single address. Host bits are an error, which suggests the block.
fn block(text: &str) -> Result<IpNet, String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(IpNet::from(address));
    }
    let block: IpNet = text
        .parse()
        .map_err(|_| "expected a CIDR block or an address, like 203.0.113.0/24 or 2001:db8::1".to_owned())?;
    if block.addr() != block.network() {
        return Err(format!(
            "{} is not the block's first address; did you mean {}?",
            block.addr(),
            block.trunc()
        ));
    }
    Ok(block)
}
