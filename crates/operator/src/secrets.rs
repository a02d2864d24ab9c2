//! The stored secrets of partners, which are encrypted with the master key.

use clap::{Args, Subcommand};
use partner_api::replicas;
use partner_api_store::secrets::MasterKeyError;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::Output;
use crate::session::{Changed, Query, Session};

partner_api_store::statement! {
    /// Locks in a fixed order, so that concurrent runs wait instead of deadlocking.
    ENCRYPTED = "SELECT key_id, secret_nonce, secret_ciphertext FROM api_keys ORDER BY key_id FOR NO KEY UPDATE";
    REPLACE_SECRET = "UPDATE api_keys SET secret_nonce = $2, secret_ciphertext = $3 WHERE key_id = $1";
}

/// The examples in the help of the group.
pub const EXAMPLES: &str = "\
Example: change the master key while the service runs.
  1. openssl rand -hex 32 > new.key && chmod 600 new.key
  2. restart the replicas, one after the other, with
       --master-key-file new.key --other-master-key-file old.key
     Both keys are accepted from now on. Until all replicas are restarted, those with the old configuration reject
     cursors and file links from those with the new one, so restart them without long breaks.
  3. partner-api secrets rekey --master-key-file new.key --other-master-key-file old.key
  4. restart the replicas without --other-master-key-file, and destroy old.key once no backup needs it";

/// Commands on secrets.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Re-encrypt all secrets with the new master key
    Rekey(RekeyArgs),
}

/// The options of `secrets rekey`.
#[derive(Args, Debug)]
pub struct RekeyArgs {
    /// Proceed even if a replica does not accept the new key and will reject all partners
    #[arg(long)]
    force: bool,
}

/// The result of a rekey.
#[derive(Debug, Serialize)]
struct Rekeyed {
    keys: usize,
    reencrypted: usize,
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
    let new = both.without_other();
    let master_key = new.fingerprints().concat();
    if !args.force {
        let rejecting: Vec<_> = replicas::list(&session.read().await?)
            .await?
            .into_iter()
            .filter(|replica| !replica.master_keys.contains(&master_key))
            .map(|replica| format!("{} on {}", replica.address, replica.host))
            .collect();
        if !rejecting.is_empty() {
            return Err(Failure::Rejected(format!(
                "the master key {master_key} is not accepted by {}, which would reject all partners; restart it with this key \
                 (partner-api secrets --help)",
                rejecting.join(", ")
            )));
        }
    }
    session
        .change("secrets rekey", async |change| {
            let rows = change.query(ENCRYPTED, &[]).await?;
            let mut reencrypted = 0;
            for row in &rows {
                let key_id: String = row.try_get("key_id")?;
                let nonce: Vec<u8> = row.try_get("secret_nonce")?;
                let ciphertext: Vec<u8> = row.try_get("secret_ciphertext")?;
                match new.decrypt(&key_id, &nonce, &ciphertext) {
                    Ok(_) => continue,
                    Err(MasterKeyError::Decrypt(_)) => {}
                    Err(error) => return Err(error.into()),
                }
                let secret = both.decrypt(&key_id, &nonce, &ciphertext)?;
                let (nonce, ciphertext) = new.encrypt(&key_id, &secret)?;
                change
                    .execute(REPLACE_SECRET, &[&key_id, &nonce.as_slice(), &ciphertext])
                    .await?;
                reencrypted += 1;
            }
            let rekeyed = Rekeyed {
                keys: rows.len(),
                reencrypted,
                master_key: master_key.clone(),
            };
            if reencrypted == 0 {
                let what = format!(
                    "All {} secrets are already encrypted with the master key {master_key}.",
                    rows.len()
                );
                return Ok(Changed::unchanged("secrets", "all", what, rekeyed));
            }
            let what = format!(
                "{reencrypted} of {} secrets were re-encrypted with the master key {master_key}.",
                rows.len()
            );
            let undo = "run the same command with the two files swapped";
            Ok(Changed::of("secrets", "all", what, rekeyed).undo(undo))
        })
        .await
}
