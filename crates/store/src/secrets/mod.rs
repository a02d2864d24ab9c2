//! The master key: partners' secrets at rest are encrypted under it, and the keys for cursors and links derive from it.

mod file;

use std::{fmt, io, str};

use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use hmac::Mac;
use partner_api_signing::{
    Environment, InvalidKeyId, KEY_ID_RANDOM_BYTES, KeyId, SECRET_RANDOM_BYTES, Secret, hmac_sha256,
};
use rand::TryRngCore;
use thiserror::Error;
use zeroize::Zeroizing;

use partner_api_domain::inspector_token::{self, InspectorToken};

pub use file::is_open_to_others;

/// The environment variable that may hold the master key.
pub const MASTER_KEY_VARIABLE: &str = "PARTNER_API_MASTER_KEY";
/// The length of a sealed secret's nonce, in bytes.
pub const NONCE_LENGTH: usize = 24;

/// What a derived key is for. Each purpose has a key of its own, so that none says anything about another.
pub mod purpose {
    /// Authenticates paging cursors.
    pub const CURSORS: &str = "partner-api/cursors/v1";
    /// Tells one master key from another.
    pub const CHECKS: &str = "partner-api/checks/v1";
    /// Signs the links of the embedded file store.
    pub const LINKS: &str = "partner-api/links/v1";
}

/// Why there is no master key, or a secret cannot be sealed or opened. Never repeats any of them.
#[derive(Debug, Error)]
pub enum MasterKeyError {
    /// None was given.
    #[error(
        "no master key: set {MASTER_KEY_VARIABLE}, or name a file (--master-key-file). Make one with: openssl rand -hex 32"
    )]
    Missing,
    /// Not 64 hex digits.
    #[error("the master key in {0} is not 64 hex digits (32 bytes); make one with: openssl rand -hex 32")]
    Malformed(String),
    /// The key's file cannot be read or written.
    #[error("the master key's file {path}: {source}")]
    File {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The key's file is open to everybody.
    #[error("the master key's file {0} can be read by other users; close it with: chmod 600")]
    FileOpen(String),
    /// The operating system gives no random bytes.
    #[error("no random bytes: {0}")]
    Random(rand::rand_core::OsError),
    /// The prefix cannot begin a key id.
    #[error(transparent)]
    KeyId(#[from] InvalidKeyId),
    /// Encryption failed, which it does only for a message beyond all bounds.
    #[error("the secret cannot be encrypted")]
    Seal,
    /// Another master key, another key id, or altered bytes: these cannot be told apart.
    #[error("the stored secret of key {0} cannot be decrypted: it was stored under another master key, or altered")]
    Open(String),
}

/// A new key id and its secret (KEY-1).
///
/// # Errors
/// The operating system gives no random bytes, or `prefix` cannot begin a key id.
pub fn new_key(prefix: &str, environment: Environment) -> Result<(KeyId, Secret), MasterKeyError> {
    let mut public = [0; KEY_ID_RANDOM_BYTES];
    let mut private = Zeroizing::new([0; SECRET_RANDOM_BYTES]);
    rand::rngs::OsRng
        .try_fill_bytes(&mut public)
        .map_err(MasterKeyError::Random)?;
    rand::rngs::OsRng
        .try_fill_bytes(&mut *private)
        .map_err(MasterKeyError::Random)?;
    Ok((
        KeyId::generate(prefix, environment, &public)?,
        Secret::generate(&private),
    ))
}

/// A new inspector's token (INS-1).
///
/// # Errors
/// The operating system gives no random bytes.
pub fn new_inspector_token() -> Result<InspectorToken, MasterKeyError> {
    let mut random = Zeroizing::new([0; inspector_token::RANDOM_BYTES]);
    rand::rngs::OsRng
        .try_fill_bytes(&mut *random)
        .map_err(MasterKeyError::Random)?;
    Ok(InspectorToken::generate(&random))
}

/// 32 random bytes that must be kept as long as the database is: without them no partner's secret can be read.
#[derive(Clone)]
pub struct MasterKey {
    key: Zeroizing<[u8; 32]>,
    /// Accepted, too, while one takes the other's place.
    other: Option<Zeroizing<[u8; 32]>>,
}

/// The key for a purpose, and that of the other master key, if one is accepted.
#[derive(Clone)]
pub struct Derived {
    key: Zeroizing<[u8; 32]>,
    other: Option<Zeroizing<[u8; 32]>>,
}

impl Derived {
    /// What is made is made with this one.
    pub fn signing(&self) -> &[u8; 32] {
        &self.key
    }

    /// What was made with this one is accepted, too.
    pub fn other(&self) -> Option<&[u8; 32]> {
        self.other.as_deref()
    }

    /// What was made with any of these is accepted; the first one is [`signing`](Self::signing).
    pub fn accepted(&self) -> impl Iterator<Item = &[u8; 32]> {
        [Some(&*self.key), self.other()].into_iter().flatten()
    }
}

impl From<[u8; 32]> for Derived {
    fn from(key: [u8; 32]) -> Self {
        Self {
            key: Zeroizing::new(key),
            other: None,
        }
    }
}

impl fmt::Debug for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Derived([redacted])")
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey([redacted])")
    }
}

impl MasterKey {
    /// From 64 hex digits; `source` says in an error where they came from.
    ///
    /// # Errors
    /// It is something else.
    pub fn from_hex(text: &str, source: &str) -> Result<Self, MasterKeyError> {
        let malformed = || MasterKeyError::Malformed(source.to_owned());
        let text = text.trim().as_bytes();
        let mut key = Zeroizing::new([0; 32]);
        if HEXLOWER_PERMISSIVE.decode_len(text.len()) != Ok(key.len()) {
            return Err(malformed());
        }
        HEXLOWER_PERMISSIVE
            .decode_mut(text, &mut *key)
            .map_err(|_| malformed())?;
        Ok(Self { key, other: None })
    }

    /// The same, accepting what was made with `other`, too.
    #[must_use]
    pub fn accepting(self, other: &Self) -> Self {
        Self {
            other: Some(other.key.clone()),
            ..self
        }
    }

    /// Without the other key.
    #[must_use]
    pub fn alone(&self) -> Self {
        Self {
            key: self.key.clone(),
            other: None,
        }
    }

    /// What the keys that are accepted are told apart by, the one that seals first: it says nothing of them.
    #[must_use]
    pub fn checks(&self) -> Vec<String> {
        let derived = self.derive(purpose::CHECKS);
        derived.accepted().map(|check| HEXLOWER.encode(&check[..8])).collect()
    }

    /// A new key.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub fn generate() -> Result<Self, MasterKeyError> {
        let mut key = Zeroizing::new([0; 32]);
        rand::rngs::OsRng
            .try_fill_bytes(&mut *key)
            .map_err(MasterKeyError::Random)?;
        Ok(Self { key, other: None })
    }

    /// Encrypts a partner's secret with XChaCha20-Poly1305 under a fresh random nonce, the key id as associated data: the
    /// columns `secret_nonce` and `secret_ciphertext` of `api_keys`.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub fn seal(&self, key_id: &str, secret: &Secret) -> Result<([u8; NONCE_LENGTH], Vec<u8>), MasterKeyError> {
        let mut nonce = [0; NONCE_LENGTH];
        rand::rngs::OsRng
            .try_fill_bytes(&mut nonce)
            .map_err(MasterKeyError::Random)?;
        let payload = Payload {
            msg: secret.expose().as_bytes(),
            aad: key_id.as_bytes(),
        };
        let ciphertext = cipher(&self.key)
            .encrypt(XNonce::from_slice(&nonce), payload)
            .map_err(|_| MasterKeyError::Seal)?;
        Ok((nonce, ciphertext))
    }

    /// Decrypts what [`MasterKey::seal`] made for the same key id.
    ///
    /// # Errors
    /// Another master key, another key id, or altered bytes.
    pub fn open(&self, key_id: &str, nonce: &[u8], ciphertext: &[u8]) -> Result<Secret, MasterKeyError> {
        let refused = || MasterKeyError::Open(key_id.to_owned());
        if nonce.len() != NONCE_LENGTH {
            return Err(refused());
        }
        let nonce = XNonce::from_slice(nonce);
        let keys = [Some(&self.key), self.other.as_ref()];
        let plain = keys
            .into_iter()
            .flatten()
            .find_map(|key| {
                let payload = Payload {
                    msg: ciphertext,
                    aad: key_id.as_bytes(),
                };
                cipher(key).decrypt(nonce, payload).ok()
            })
            .ok_or_else(refused)?;
        let plain = Zeroizing::new(plain);
        str::from_utf8(&plain)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(refused)
    }

    /// The key for a [`purpose`]: HMAC-SHA256 of its label under the master key.
    #[must_use]
    pub fn derive(&self, label: &str) -> Derived {
        Derived {
            key: derived(&self.key, label),
            other: self.other.as_ref().map(|other| derived(other, label)),
        }
    }
}

fn derived(key: &[u8; 32], label: &str) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(hmac_sha256(key).chain_update(label).finalize().into_bytes().into())
}

fn cipher(key: &[u8; 32]) -> XChaCha20Poly1305 {
    // A key of its own, too: the master key itself only ever derives.
    XChaCha20Poly1305::new((&*derived(key, "partner-api/secrets/v1")).into())
}

/// A master key of the tests.
#[cfg(test)]
const HEX: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> Secret {
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".parse().unwrap()
    }

    /// KEY-2
    #[test]
    fn a_sealed_secret_opens_only_with_its_key_its_key_id_and_unaltered() {
        let key = MasterKey::from_hex(HEX, "the test").unwrap();
        let (nonce, sealed) = key.seal("vip_test_A", &secret()).unwrap();
        assert!(!sealed.windows(8).any(|window| window == b"ABCDEFGH"));
        assert_eq!(
            key.open("vip_test_A", &nonce, &sealed).unwrap().expose(),
            secret().expose()
        );

        let (other_nonce, other_sealed) = key.seal("vip_test_A", &secret()).unwrap();
        assert!(nonce != other_nonce && sealed != other_sealed);

        let other_key = MasterKey::generate().unwrap();
        let mut altered = sealed.clone();
        altered[0] ^= 1;
        assert!(other_key.open("vip_test_A", &nonce, &sealed).is_err());
        assert!(key.open("vip_test_B", &nonce, &sealed).is_err());
        assert!(key.open("vip_test_A", &other_nonce, &sealed).is_err());
        assert!(key.open("vip_test_A", &nonce[1..], &sealed).is_err());
        assert!(key.open("vip_test_A", &nonce, &altered).is_err());
        assert!(key.open("vip_test_A", &nonce, &[]).is_err());
    }

    #[test]
    fn each_purpose_has_a_key_of_its_own_that_stays_the_same() {
        let key = MasterKey::from_hex(HEX, "the test").unwrap();
        let of = |key: &MasterKey, label| *key.derive(label).signing();
        assert_eq!(of(&key, purpose::CURSORS), of(&key, purpose::CURSORS));
        assert_ne!(of(&key, purpose::CURSORS), of(&key, purpose::LINKS));
        assert_ne!(
            of(&key, purpose::CURSORS),
            of(&MasterKey::generate().unwrap(), purpose::CURSORS)
        );
    }

    #[test]
    fn what_was_made_with_the_other_key_is_accepted_and_nothing_new_is_made_with_it() {
        let (old, new) = (MasterKey::generate().unwrap(), MasterKey::generate().unwrap());
        let (nonce, sealed) = old.seal("vip_test_A", &secret()).unwrap();
        assert!(new.open("vip_test_A", &nonce, &sealed).is_err());
        let both = new.clone().accepting(&old);
        assert_eq!(
            both.open("vip_test_A", &nonce, &sealed).unwrap().expose(),
            secret().expose()
        );
        let (nonce, sealed) = both.seal("vip_test_A", &secret()).unwrap();
        assert!(old.open("vip_test_A", &nonce, &sealed).is_err());
        assert!(new.open("vip_test_A", &nonce, &sealed).is_ok());
        assert_eq!(both.checks(), [new.checks(), old.checks()].concat());
        let links = both.derive(purpose::LINKS);
        assert_eq!(links.signing(), new.derive(purpose::LINKS).signing());
        assert_eq!(links.accepted().nth(1), Some(old.derive(purpose::LINKS).signing()));
    }

    #[test]
    fn a_malformed_key_is_refused_without_being_repeated() {
        for text in [
            "",
            "00",
            &HEX[1..],
            &format!("{HEX}0"),
            &HEX.replace('A', "g"),
            &HEX.replace("00", "+0"),
        ] {
            let error = MasterKey::from_hex(text, MASTER_KEY_VARIABLE).unwrap_err().to_string();
            assert!(
                error.contains(MASTER_KEY_VARIABLE) && error.contains("openssl rand -hex 32"),
                "{error}"
            );
            assert!(text.is_empty() || text == "00" || !error.contains(text));
        }
        assert_eq!(
            format!("{:?}", MasterKey::from_hex(HEX, "").unwrap()),
            "MasterKey([redacted])"
        );
    }
}
