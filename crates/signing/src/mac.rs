//! HMAC-SHA256, the one way in which anything of this API is authenticated: signatures, cursors, links, derived keys.

use hmac::digest::Key;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

/// SHA-256's block size in bytes, to which HMAC pads its key.
const BLOCK: usize = 64;

/// HMAC-SHA256 under a key of 32 bytes, for what is to be authenticated to be fed to it.
pub fn hmac_sha256(key: &[u8; 32]) -> Hmac<Sha256> {
    // HMAC (RFC 2104) pads a shorter key with zeros to the block; the padded key is the one form without a failure.
    let mut block = Zeroizing::new([0; BLOCK]);
    block[..key.len()].copy_from_slice(key);
    Hmac::new(Key::<Hmac<Sha256>>::from_slice(block.as_slice()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_the_library_makes_of_a_key_of_any_length() {
        let key: [u8; 32] = std::array::from_fn(|index| index as u8);
        let librarys = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        let digest = |mac: Hmac<Sha256>| mac.chain_update("text").finalize().into_bytes();
        assert_eq!(digest(hmac_sha256(&key)), digest(librarys));
    }
}
