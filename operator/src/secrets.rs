//! Partners' secrets as they are kept: sealed under the master key.

use clap::{Args, Subcommand};
use partner_api::replicas;
use partner_api::secrets::MasterKeyError;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::Output;
use crate::session::{Changed, Session};

partner_api::statement! {
    /// In one order, so that two who do this wait for each other instead of dying.
    SEALED = "SELECT key_id, secret_nonce, secret_ciphertext FROM api_keys ORDER BY key_id FOR NO KEY UPDATE";
    SEAL = "UPDATE api_keys SET secret_nonce = $2, secret_ciphertext = $3 WHERE key_id = $1";
}

/// Help of the group.
pub const EXAMPLES: &str = "\
Example: a new master key while the service runs.
  1. openssl rand -hex 32 > new.key && chmod 600 new.key
  2. restart the replicas, one after the other, with
       --master-key-file new.key --other-master-key-file old.key
     Both are accepted from now on; a cursor or a file's link that a restarted replica makes is refused by one that is not
     restarted yet, so do it without a long break in between.
  3. partner-api secrets rekey --master-key-file new.key --other-master-key-file old.key
  4. restart the replicas without --other-master-key-file, and destroy old.key once no backup needs it";

/// Commands on secrets.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Seal all secrets under the new master key
    Rekey(RekeyArgs),
}

/// The options of `secrets rekey`.
#[derive(Args, Debug)]
pub struct RekeyArgs {
    /// Even if a replica does not accept the new key, and then refuses all partners
    #[arg(long)]
    force: bool,
}

/// What was sealed anew.
#[derive(Debug, Serialize)]
struct Rekeyed {
    keys: usize,
    resealed: usize,
    master_key: String,
}

impl Command {
    pub(crate) async fn run(self, session: &Session) -> Result<Output, Failure> {
        match self {
            Self::Rekey(args) => rekey(session, &args).await,
        }
    }
}

async fn rekey(session: &Session, args: &RekeyArgs) -> Result<Output, Failure> {
    let both = session.master_key()?;
    let new = both.alone();
    let master_key = new.checks().concat();
    if !args.force {
        let deaf: Vec<_> = replicas::list(&session.read().await?)
            .await?
            .into_iter()
            .filter(|replica| !replica.master_keys.contains(&master_key))
            .map(|replica| format!("{} on {}", replica.address, replica.host))
            .collect();
        if !deaf.is_empty() {
            return Err(Failure::Refused(format!(
                "the master key {master_key} is not accepted by {}: partners would be refused there; restart it with this key \
                 (partner-api secrets --help)",
                deaf.join(", ")
            )));
        }
    }
    session
        .change("secrets rekey", async |change| {
            let rows = change.query(SEALED, &[]).await?;
            let mut resealed = 0;
            for row in &rows {
                let key_id: String = row.try_get("key_id")?;
                let nonce: Vec<u8> = row.try_get("secret_nonce")?;
                let ciphertext: Vec<u8> = row.try_get("secret_ciphertext")?;
                match new.open(&key_id, &nonce, &ciphertext) {
                    Ok(_) => continue,
                    Err(MasterKeyError::Open(_)) => {}
                    Err(error) => return Err(error.into()),
                }
                let secret = both.open(&key_id, &nonce, &ciphertext)?;
                let (nonce, ciphertext) = new.seal(&key_id, &secret)?;
                change.execute(SEAL, &[&key_id, &nonce.as_slice(), &ciphertext]).await?;
                resealed += 1;
            }
            let rekeyed = Rekeyed {
                keys: rows.len(),
                resealed,
                master_key: master_key.clone(),
            };
            if resealed == 0 {
                let what = format!(
                    "All {} secrets are sealed under the master key {master_key} already.",
                    rows.len()
                );
                return Ok(Changed::nothing("secrets", "all", what, rekeyed));
            }
            let what = format!(
                "{resealed} of {} secrets were sealed anew, under the master key {master_key}.",
                rows.len()
            );
            let undo = "the same command with the two files in each other's place";
            Ok(Changed::of("secrets", "all", what, rekeyed).undo(undo))
        })
        .await
}
