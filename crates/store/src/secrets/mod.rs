//! The master key, which encrypts the partners' secrets in the database, and from which the keys for cursors and links are
//! derived.

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
/// The length of the nonce of an encrypted secret, in bytes.
pub const NONCE_LENGTH: usize = 24;

/// The purposes of derived keys. Each purpose has a separate key that reveals nothing about the others.
pub mod purpose {
    /// Authenticates paging cursors.
    pub const CURSORS: &str = "partner-api/cursors/v1";
    /// Identifies master keys by their fingerprints.
    pub const FINGERPRINTS: &str = "partner-api/checks/v1";
    /// Signs the links of the embedded file store.
    pub const LINKS: &str = "partner-api/links/v1";
}

/// An error with the master key or with a secret. Its message never contains either of them.
#[derive(Debug, Error)]
pub enum MasterKeyError {
    /// No master key is configured.
    #[error(
        "no master key is configured: set {MASTER_KEY_VARIABLE} or --master-key-file. Create one with: openssl rand -hex 32"
    )]
    Missing,
    /// The master key is not 64 hex digits.
    #[error("the master key in {0} must be 64 hex digits (32 bytes); create one with: openssl rand -hex 32")]
    Malformed(String),
    /// The file of the master key cannot be read or written.
    #[error("failed to access the master key file {path}: {source}")]
    File {
        /// The path of the file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// The file of the master key is accessible to other users.
    #[error("the master key file {0} must not be accessible to other users; restrict it with: chmod 600 {0}")]
    FilePermissions(String),
    /// The operating system does not provide random bytes.
    #[error("failed to get random bytes: {0}")]
    Random(rand::rand_core::OsError),
    /// The prefix cannot be used in a key ID.
    #[error(transparent)]
    KeyId(#[from] InvalidKeyId),
    /// Encryption failed, which is possible only for an extremely long message.
    #[error("failed to encrypt the secret")]
    Encrypt,
    /// Decryption failed because of another master key, another key ID, or altered bytes, which cannot be distinguished.
    #[error("failed to decrypt the secret of key {0}: it was encrypted with another master key, or altered")]
    Decrypt(String),
}

impl MasterKeyError {
    /// Returns whether the configuration must be corrected.
    #[must_use]
    pub fn is_configuration(&self) -> bool {
        matches!(
            self,
            Self::Missing | Self::Malformed(_) | Self::File { .. } | Self::FilePermissions(_) | Self::KeyId(_)
        )
    }
}

/// Generates a key ID and its secret (KEY-1).
///
/// # Errors
/// If the operating system does not provide random bytes, or `prefix` is invalid.
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

/// Generates a token for an inspector (INS-1).
///
/// # Errors
/// If the operating system does not provide random bytes.
pub fn new_inspector_token() -> Result<InspectorToken, MasterKeyError> {
    let mut random = Zeroizing::new([0; inspector_token::RANDOM_BYTES]);
    rand::rngs::OsRng
        .try_fill_bytes(&mut *random)
        .map_err(MasterKeyError::Random)?;
    Ok(InspectorToken::generate(&random))
}

/// The master key: 32 random bytes. It must be preserved as long as the database, because the partners' secrets cannot be
/// decrypted without it.
#[derive(Clone)]
pub struct MasterKey {
    key: Zeroizing<[u8; 32]>,
    /// A second key that is accepted during a rotation.
    other: Option<Zeroizing<[u8; 32]>>,
}

/// The key for a purpose, derived from the master key, and the one derived from the other accepted master key, if any.
#[derive(Clone)]
pub struct Derived {
    key: Zeroizing<[u8; 32]>,
    other: Option<Zeroizing<[u8; 32]>>,
}

impl Derived {
    /// Returns the key to sign with.
    pub fn signing(&self) -> &[u8; 32] {
        &self.key
    }

    /// Returns the second key whose signatures are accepted, if any.
    pub fn other(&self) -> Option<&[u8; 32]> {
        self.other.as_deref()
    }

    /// Returns all keys whose signatures are accepted; the first one is [`signing`](Self::signing).
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
    /// Parses 64 hex digits. An error names their `source`.
    ///
    /// # Errors
    /// If the text is anything else.
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

    /// Returns this key, which also accepts secrets and signatures that were created with `other`.
    #[must_use]
    pub fn accepting(self, other: &Self) -> Self {
        Self {
            other: Some(other.key.clone()),
            ..self
        }
    }

    /// Returns this key without the other accepted key.
    #[must_use]
    pub fn without_other(&self) -> Self {
        Self {
            key: self.key.clone(),
            other: None,
        }
    }

    /// Returns the fingerprints of the accepted keys, which reveal nothing about them. The first one is that of the key that
    /// encrypts.
    #[must_use]
    pub fn fingerprints(&self) -> Vec<String> {
        let derived = self.derive(purpose::FINGERPRINTS);
        derived.accepted().map(|key| HEXLOWER.encode(&key[..8])).collect()
    }

    /// Generates a key.
    ///
    /// # Errors
    /// If the operating system does not provide random bytes.
    pub fn generate() -> Result<Self, MasterKeyError> {
        let mut key = Zeroizing::new([0; 32]);
        rand::rngs::OsRng
            .try_fill_bytes(&mut *key)
            .map_err(MasterKeyError::Random)?;
        Ok(Self { key, other: None })
    }

    /// Encrypts a partner's secret with XChaCha20-Poly1305 under a new random nonce, with the key ID as associated data. Returns
    /// the columns `secret_nonce` and `secret_ciphertext` of `api_keys`.
    ///
    /// # Errors
    /// If the operating system does not provide random bytes.
    pub fn encrypt(&self, key_id: &str, secret: &Secret) -> Result<([u8; NONCE_LENGTH], Vec<u8>), MasterKeyError> {
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
            .map_err(|_| MasterKeyError::Encrypt)?;
        Ok((nonce, ciphertext))
    }

    /// Decrypts a secret that [`MasterKey::encrypt`] encrypted for the same key ID.
    ///
    /// # Errors
    /// If the master key or the key ID differs, or the bytes were altered.
    pub fn decrypt(&self, key_id: &str, nonce: &[u8], ciphertext: &[u8]) -> Result<Secret, MasterKeyError> {
        let failed = || MasterKeyError::Decrypt(key_id.to_owned());
        if nonce.len() != NONCE_LENGTH {
            return Err(failed());
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
            .ok_or_else(failed)?;
        let plain = Zeroizing::new(plain);
        str::from_utf8(&plain)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(failed)
    }

    /// Derives the key for a [`purpose`]: HMAC-SHA256 of its label under the master key.
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
    // Encryption uses a derived key as well: the master key itself is used only for derivation.
    XChaCha20Poly1305::new((&*derived(key, "partner-api/secrets/v1")).into())
}

/// A master key for tests.
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
    fn a_secret_is_decrypted_only_unaltered_and_with_its_master_key_and_key_id() {
        let key = MasterKey::from_hex(HEX, "the test").unwrap();
        let (nonce, ciphertext) = key.encrypt("vip_test_A", &secret()).unwrap();
        assert!(!ciphertext.windows(8).any(|window| window == b"ABCDEFGH"));
        assert_eq!(
            key.decrypt("vip_test_A", &nonce, &ciphertext).unwrap().expose(),
            secret().expose()
        );

        let (other_nonce, other_ciphertext) = key.encrypt("vip_test_A", &secret()).unwrap();
        assert!(nonce != other_nonce && ciphertext != other_ciphertext);

        let other_key = MasterKey::generate().unwrap();
        let mut altered = ciphertext.clone();
        altered[0] ^= 1;
        assert!(other_key.decrypt("vip_test_A", &nonce, &ciphertext).is_err());
        assert!(key.decrypt("vip_test_B", &nonce, &ciphertext).is_err());
        assert!(key.decrypt("vip_test_A", &other_nonce, &ciphertext).is_err());
        assert!(key.decrypt("vip_test_A", &nonce[1..], &ciphertext).is_err());
        assert!(key.decrypt("vip_test_A", &nonce, &altered).is_err());
        assert!(key.decrypt("vip_test_A", &nonce, &[]).is_err());
    }

    #[test]
    fn each_purpose_has_a_different_and_reproducible_key() {
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
    fn the_other_key_decrypts_and_verifies_but_does_not_encrypt_or_sign() {
        let (old, new) = (MasterKey::generate().unwrap(), MasterKey::generate().unwrap());
        let (nonce, ciphertext) = old.encrypt("vip_test_A", &secret()).unwrap();
        assert!(new.decrypt("vip_test_A", &nonce, &ciphertext).is_err());
        let both = new.clone().accepting(&old);
        assert_eq!(
            both.decrypt("vip_test_A", &nonce, &ciphertext).unwrap().expose(),
            secret().expose()
        );
        let (nonce, ciphertext) = both.encrypt("vip_test_A", &secret()).unwrap();
        assert!(old.decrypt("vip_test_A", &nonce, &ciphertext).is_err());
        assert!(new.decrypt("vip_test_A", &nonce, &ciphertext).is_ok());
        assert_eq!(both.fingerprints(), [new.fingerprints(), old.fingerprints()].concat());
        let links = both.derive(purpose::LINKS);
        assert_eq!(links.signing(), new.derive(purpose::LINKS).signing());
        assert_eq!(links.accepted().nth(1), Some(old.derive(purpose::LINKS).signing()));
    }

    #[test]
    fn the_error_for_a_malformed_key_does_not_contain_the_key() {
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
