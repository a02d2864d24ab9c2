#!/usr/bin/env python3
"""Signed requests to the partner API, with only Python's standard library (3.8 or newer)."""

import base64
import hashlib
import hmac
import http.client
import json
import os
import random
import re
import secrets
import sys
import time
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

ATTEMPTS = 4
LONGEST_WAIT = 120  # seconds; a response with a longer Retry-After is returned instead


class MalformedQuery(ValueError):
    """A `%` in a query that is not followed by two hexadecimal digits."""

    def __init__(self, offset):
        super().__init__(f"the query's % at byte {offset} is not followed by two hexadecimal digits; write it as %25")
        self.offset = offset


def canonical_query(raw):
    """Returns the CANONICAL_QUERY of a raw query (the bytes after the first `?`): decoded, encoded canonically, sorted as pairs."""
    malformed = re.search(rb"%(?![0-9A-Fa-f]{2})", raw)
    if malformed:
        raise MalformedQuery(malformed.start())

    def recode(part):  # `quote_from_bytes` escapes all but A-Z a-z 0-9 - . _ ~
        return quote_from_bytes(unquote_to_bytes(part.replace(b"+", b" ")), safe="")

    pairs = []
    for piece in raw.split(b"&"):
        if piece:
            name, _, value = piece.partition(b"=")
            pairs.append((recode(name), recode(value)))
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def canonical_string(method, target, timestamp, nonce, body):
    """Returns the text that is signed. `target` is the path and query as sent (bytes), `body` the exact bytes."""
    path, _, raw_query = target.partition(b"?")
    digest = hashlib.sha256(body).hexdigest()
    return "\n".join([method.upper(), path.decode(), canonical_query(raw_query), timestamp, nonce, digest])


def sign(secret, canonical):
    """Returns the value of the signature header. The HMAC key is the secret's 32 characters, not decoded."""
    return "sha256=" + hmac.new(secret.encode(), canonical.encode(), hashlib.sha256).hexdigest()


def is_repeatable(method, body):
    """Returns whether a request can be retried safely when its outcome is unknown. A measurement needs an external_id."""
    return method.upper() == "GET" or re.search(rb'"external_id"\s*:\s*"[^"]', body) is not None


class Response:
    """A response: `status`, `reason`, `headers` and the bytes of the `body`."""

    def __init__(self, response):
        self.status, self.reason, self.headers = response.status, response.reason, response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)

    def skipped_points(self):
        """Returns the points of a measurement that were not written to the report: their `code`, `reason` and perhaps `hint`."""
        return self.json()["data"]["skipped_points"] if b'"skipped_points"' in self.body else []


class Partner:
    """A client with a key of the partner API. `base_url` is a scheme and a host, as in http://127.0.0.1:8080."""

    def __init__(self, base_url, key_id, secret):
        base = urlsplit(base_url)
        if base.scheme not in ("http", "https") or not base.hostname or base.path not in ("", "/"):
            raise ValueError("the base URL must be a scheme and a host, as in http://127.0.0.1:8080")
        self.base, self.key_id, self.secret = base, key_id, secret

    @classmethod
    def from_environment(cls):
        names = ("PARTNER_BASE_URL", "PARTNER_KEY_ID", "PARTNER_SECRET")
        missing = [name for name in names if not os.environ.get(name)]
        if missing:
            raise ValueError(f"set {', '.join(missing)}")
        return cls(*(os.environ[name] for name in names))

    def signed_headers(self, method, target, body):
        """Returns the headers of one attempt. Each attempt needs a new nonce and signature."""
        timestamp, nonce = str(int(time.time())), secrets.token_hex(16)
        return {
            "X-Partner-Key-Id": self.key_id,
            "X-Partner-Timestamp": timestamp,
            "X-Partner-Nonce": nonce,
            "X-Partner-Signature": sign(self.secret, canonical_string(method, target, timestamp, nonce, body)),
        }

    def attempt(self, method, target, body):
        """Signs and sends a request once."""
        headers = self.signed_headers(method, target, body)
        if body:
            headers["Content-Type"] = "application/json"
        connect = http.client.HTTPSConnection if self.base.scheme == "https" else http.client.HTTPConnection
        connection = connect(self.base.hostname, self.base.port, timeout=60)
        try:
            connection.request(method.upper(), target.decode(), body=body or None, headers=headers)
            return Response(connection.getresponse())
        finally:
            connection.close()

    def send(self, method, target, body=b"", log=lambda text: None):
        """Sends a request at most four times. After 408 or 429 it always retries, because the request was not processed. After 500,
        502, 503, 504 or without a response it retries only if that is safe. Raises the error of the last attempt."""
        body = body.encode() if isinstance(body, str) else body
        # Encodes spaces, control characters, `#` and non-ASCII bytes, so that the signed and the sent target are equal.
        target = re.sub(rb"[^!-~]|#", lambda match: b"%%%02X" % match[0][0], target.encode("utf-8", "surrogateescape"))
        if not target.startswith(b"/"):
            raise ValueError("the target must begin with a slash and have no host")
        repeatable = is_repeatable(method, body)
        for attempt in range(1, ATTEMPTS + 1):
            wait = random.uniform(0.5, 1) * 2 ** (attempt - 1)
            try:
                response = self.attempt(method, target, body)
            except (OSError, http.client.HTTPException) as error:
                if attempt == ATTEMPTS or not repeatable:
                    raise
                problem = f"no response ({error or type(error).__name__})"
            else:
                again = response.status in (408, 429) or (repeatable and response.status in (500, 502, 503, 504))
                retry_after = response.headers.get("Retry-After", "")
                wait = int(retry_after) if retry_after.isdigit() else wait
                if attempt == ATTEMPTS or not again or wait > LONGEST_WAIT:
                    return response
                problem = f"{response.status} {response.reason}"
            log(f"{problem}; retrying in {wait:.1f} s")
            time.sleep(wait)


def check(path):
    """Checks the functions above with signing-vectors.json and prints each vector that does not match."""

    def octets(vector, field):
        encoded = vector.get(f"{field}_base64")
        return vector[field].encode() if encoded is None else base64.b64decode(encoded, validate=True)

    def rejected(vector):
        try:
            return f"no error, but {canonical_query(octets(vector, 'raw'))!r}"
        except MalformedQuery as error:
            return error.offset

    def request(vector):
        body = octets(vector, "body")
        canonical = canonical_string(
            vector["method"], vector["target"].encode(), vector["timestamp"], vector["nonce"], body
        )
        return {"canonical_string": canonical, "signature": sign(vector["secret"], canonical)}

    checks = {
        "query_vectors": lambda vector: {"canonical_query": canonical_query(octets(vector, "raw"))},
        "rejected_queries": lambda vector: {"offset": rejected(vector)},
        "request_vectors": request,
    }
    failures = 0
    with open(path, encoding="utf-8") as file:
        vectors = json.load(file)
    for name, got in checks.items():
        for vector in vectors[name]:
            for field, value in got(vector).items():
                if value != vector[field]:
                    failures += 1
                    print(f"{vector['name']}: {field}: got {value!r}, expected {vector[field]!r}", file=sys.stderr)
        print(f"{name}: {len(vectors[name])} checked")
    return 1 if failures else 0


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--check":
        return check(arguments[1])
    if len(arguments) not in (2, 3) or arguments[0].startswith("-"):
        print("usage: partner.py METHOD TARGET [BODY-FILE]   (- reads the body from standard input)", file=sys.stderr)
        print("       partner.py --check signing-vectors.json", file=sys.stderr)
        return 2
    try:
        body = b""
        if len(arguments) == 3:
            with open(0 if arguments[2] == "-" else arguments[2], "rb") as file:
                body = file.read()
        response = Partner.from_environment().send(
            arguments[0], arguments[1], body, log=lambda text: print(text, file=sys.stderr)
        )
    except (OSError, ValueError, http.client.HTTPException) as error:
        print(f"partner.py: {error or type(error).__name__}", file=sys.stderr)
        return 2
    request_id = response.headers.get("X-Request-Id", "-")
    print(f"HTTP/1.1 {response.status} {response.reason}\nX-Request-Id: {request_id}", file=sys.stderr)
    sys.stdout.buffer.write(response.body)
    for point in response.skipped_points():
        print(f"not written: {point['code']} ({point['reason']})", file=sys.stderr)
    if response.headers.get("X-Idempotency-Payload-Mismatch") == "true":
        print("not recorded: this external_id was already used for another measurement; send it with a new one", file=sys.stderr)
        return 1
    return 0 if 200 <= response.status < 300 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
