//! A request that is filled in by an operation, signed, and serialized into reused buffers.

use std::io::Write;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use partner_api_signing::{
    HEADER_KEY_ID, HEADER_NONCE, HEADER_SIGNATURE, HEADER_TIMESTAMP, Headers, UnsignedRequest, nonce_from,
};

use crate::fixture::Key;

/// How a request is signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signing {
    /// Correctly, with a new nonce.
    #[default]
    Right,
    /// With the signature of another request.
    Wrong,
    /// Correctly once, and then repeatedly with the same nonce.
    Repeated,
    /// Without a signature.
    None,
}

/// A request.
pub struct Draft<'a> {
    key: &'a Key,
    host: String,
    /// The method.
    pub method: &'static str,
    /// The path.
    pub path: String,
    /// The body; empty means none.
    pub body: Vec<u8>,
    /// How the request is signed.
    pub signing: Signing,
    /// The nonce; `None` generates a new one each time.
    pub nonce: Option<String>,
    /// The age of the timestamp, in seconds.
    pub age: u64,
    /// The random number that the operation used for this request, needed to check the response.
    pub drawn: u32,
    bytes: Vec<u8>,
    /// Whether `bytes` holds a request that [`Signing::Repeated`] can send again.
    repeated: bool,
}

impl<'a> Draft<'a> {
    /// Returns an empty request for a connection with this key.
    pub fn new(key: &'a Key, address: SocketAddr) -> Self {
        Self {
            key,
            host: address.to_string(),
            method: "GET",
            path: String::new(),
            body: Vec::new(),
            signing: Signing::Right,
            nonce: None,
            age: 0,
            drawn: 0,
            bytes: Vec::with_capacity(4096),
            repeated: false,
        }
    }

    /// Signs with another key from now on.
    pub fn sign_with(&mut self, key: &'a Key) {
        self.key = key;
    }

    /// Returns the ID of the key that signs.
    pub fn key_id(&self) -> &str {
        self.key.id.as_str()
    }

    /// Signs the request now, and returns its bytes.
    pub fn finish(&mut self) -> &[u8] {
        if self.signing == Signing::Repeated && self.repeated {
            return &self.bytes;
        }
        self.repeated = true;
        self.bytes.clear();
        // Writing into a vector cannot fail.
        let _ = write!(
            self.bytes,
            "{} {} HTTP/1.1\r\nhost: {}\r\n",
            self.method, self.path, self.host
        );
        if self.signing != Signing::None {
            self.sign();
        }
        if !self.body.is_empty() {
            let _ = write!(
                self.bytes,
                "content-type: application/json\r\ncontent-length: {}\r\n",
                self.body.len()
            );
        }
        self.bytes.extend_from_slice(b"\r\n");
        self.bytes.extend_from_slice(&self.body);
        &self.bytes
    }

    fn sign(&mut self) {
        let (path, query) = self.path.split_once('?').unwrap_or((&self.path, ""));
        let request = UnsignedRequest {
            method: self.method,
            path,
            raw_query: query.as_bytes(),
            body: &self.body,
        };
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs()
            .saturating_sub(self.age);
        let nonce = self.nonce.clone().unwrap_or_else(|| nonce_from(&rand::random()));
        // All queries and nonces are well-formed. A malformed one would be sent unsigned, and counted as rejected.
        let Ok(mut headers) = Headers::sign(&self.key.id, &self.key.secret, request, now, &nonce) else {
            return;
        };
        if self.signing == Signing::Wrong {
            headers.nonce = nonce_from(&rand::random());
        }
        let _ = write!(
            self.bytes,
            "{HEADER_KEY_ID}: {}\r\n{HEADER_TIMESTAMP}: {}\r\n{HEADER_NONCE}: {}\r\n{HEADER_SIGNATURE}: {}\r\n",
            headers.key_id, headers.timestamp, headers.nonce, headers.signature
        );
    }
}
