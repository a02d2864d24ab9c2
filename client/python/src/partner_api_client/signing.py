"""The signature of a request: its canonical string, the HMAC, and the four headers."""

import hashlib
import hmac
import re
import secrets
import time
from urllib.parse import quote_from_bytes, unquote_to_bytes

SIGNED_FROM = b"/api/v1/partner"


def canonical_query(raw: bytes) -> str:
    """CANONICAL_QUERY of a raw query, the bytes after the first `?`.

    Each name and value is decoded once and encoded in one way, and the pairs are sorted bytewise. A `%` that is not followed by two
    hexadecimal digits raises a `ValueError`.
    """
    malformed = re.search(rb"%(?![0-9A-Fa-f]{2})", raw)
    if malformed:
        raise ValueError(f"the % at byte {malformed.start()} of the query must be followed by two hexadecimal digits; write it as %25")

    def recode(part: bytes) -> str:
        # Leaves exactly A-Z a-z 0-9 - . _ ~ unencoded.
        return quote_from_bytes(unquote_to_bytes(part.replace(b"+", b" ")), safe="")

    pieces = (piece.partition(b"=") for piece in raw.split(b"&") if piece)
    pairs = sorted((recode(name), recode(value)) for name, _, value in pieces)
    return "&".join(f"{name}={value}" for name, value in pairs)


def canonical_string(method: str, target: bytes, timestamp: str, nonce: str, body: bytes) -> str:
    """The text that is signed. `target` is the path and query exactly as sent, `body` the exact bytes."""
    path, _, query = target.partition(b"?")
    # The path of a gateway in front of the API is not signed.
    path = path[max(path.find(SIGNED_FROM), 0) :]
    digest = hashlib.sha256(body).hexdigest()
    return "\n".join([method, path.decode("ascii"), canonical_query(query), timestamp, nonce, digest])


def sign(secret: str, canonical: str) -> str:
    """The value of the signature header. The HMAC key is the secret's 32 characters, not what they decode to."""
    return "sha256=" + hmac.new(secret.encode("ascii"), canonical.encode("ascii"), hashlib.sha256).hexdigest()


def signed_headers(key_id: str, secret: str, method: str, target: bytes, body: bytes) -> dict[str, str]:
    """The four headers of one attempt, with the current time and a nonce that was never used."""
    timestamp, nonce = str(int(time.time())), secrets.token_hex(16)
    return {
        "X-Partner-Key-Id": key_id,
        "X-Partner-Timestamp": timestamp,
        "X-Partner-Nonce": nonce,
        "X-Partner-Signature": sign(secret, canonical_string(method, target, timestamp, nonce, body)),
    }
