#!/usr/bin/env python3
"""Signed requests to the partner API, with nothing but Python's standard library (3.8 or newer)."""

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
LONGEST_WAIT = 120  # seconds; who is told to wait longer gets the answer instead


class MalformedQuery(ValueError):
    """A `%` in a query that is not followed by two hexadecimal digits."""

    def __init__(self, offset):
        super().__init__(f"the query's % at byte {offset} is not followed by two hexadecimal digits; write it as %25")
        self.offset = offset


def canonical_query(raw):
    """CANONICAL_QUERY of a raw query (bytes after the first `?`): decoded once, encoded one way, sorted as pairs."""
    malformed = re.search(rb"%(?![0-9A-Fa-f]{2})", raw)
    if malformed:
        raise MalformedQuery(malformed.start())

    def recode(part):  # `quote_from_bytes` leaves exactly A-Z a-z 0-9 - . _ ~
        return quote_from_bytes(unquote_to_bytes(part.replace(b"+", b" ")), safe="")

    pairs = []
    for piece in raw.split(b"&"):
        if piece:
            name, _, value = piece.partition(b"=")
            pairs.append((recode(name), recode(value)))
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def canonical_string(method, target, timestamp, nonce, body):
    """The text that is signed. `target` is the path and query exactly as sent (bytes), `body` the exact bytes."""
    path, _, raw_query = target.partition(b"?")
    digest = hashlib.sha256(body).hexdigest()
    return "\n".join([method.upper(), path.decode(), canonical_query(raw_query), timestamp, nonce, digest])


def sign(secret, canonical):
    """The signature header's value. The HMAC key is the secret's 32 characters themselves, not their decoding."""
    return "sha256=" + hmac.new(secret.encode(), canonical.encode(), hashlib.sha256).hexdigest()


def is_repeatable(method, body):
    """Whether a request may be sent again when nobody knows what became of it: a measurement only with an external_id."""
    return method.upper() == "GET" or re.search(rb'"external_id"\s*:\s*"[^"]', body) is not None


class Answer:
    """An answer: `status`, `reason`, `headers` and the `body`'s bytes."""

    def __init__(self, response):
        self.status, self.reason, self.headers = response.status, response.reason, response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)


class Partner:
    """A key of the partner API. `base_url` is a scheme and a host, as in http://127.0.0.1:8080."""

    def __init__(self, base_url, key_id, secret):
        base = urlsplit(base_url)
        if base.scheme not in ("http", "https") or not base.hostname or base.path not in ("", "/"):
            raise ValueError("the base URL is a scheme and a host, as in http://127.0.0.1:8080")
        self.base, self.key_id, self.secret = base, key_id, secret

    @classmethod
    def from_environment(cls):
        names = ("PARTNER_BASE_URL", "PARTNER_KEY_ID", "PARTNER_SECRET")
        missing = [name for name in names if not os.environ.get(name)]
        if missing:
            raise ValueError(f"set {', '.join(missing)}")
        return cls(*(os.environ[name] for name in names))

    def signed_headers(self, method, target, body):
        """The four headers of one attempt: a nonce is good for one, so each is signed anew."""
        timestamp, nonce = str(int(time.time())), secrets.token_hex(16)
        return {
            "X-Partner-Key-Id": self.key_id,
            "X-Partner-Timestamp": timestamp,
            "X-Partner-Nonce": nonce,
            "X-Partner-Signature": sign(self.secret, canonical_string(method, target, timestamp, nonce, body)),
        }

    def attempt(self, method, target, body):
        """Signs and sends once."""
        headers = self.signed_headers(method, target, body)
        if body:
            headers["Content-Type"] = "application/json"
        connect = http.client.HTTPSConnection if self.base.scheme == "https" else http.client.HTTPConnection
        connection = connect(self.base.hostname, self.base.port, timeout=60)
        try:
            connection.request(method.upper(), target.decode(), body=body or None, headers=headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def send(self, method, target, body=b"", log=lambda text: None):
        """Sends a request, up to four times: what was not processed (408, 429) again in any case, what may have been
        (500, 502, 503, 504, no answer) only if it is repeatable. Raises what the last attempt raised."""
        body = body.encode() if isinstance(body, str) else body
        # What is signed must be what is sent: spaces, controls, `#` and bytes that are not ASCII are encoded here.
        target = re.sub(rb"[^!-~]|#", lambda match: b"%%%02X" % match[0][0], target.encode("utf-8", "surrogateescape"))
        if not target.startswith(b"/"):
            raise ValueError("the target begins with a slash and has no host")
        repeatable = is_repeatable(method, body)
        for attempt in range(1, ATTEMPTS + 1):
            wait = random.uniform(0.5, 1) * 2 ** (attempt - 1)
            try:
                answer = self.attempt(method, target, body)
            except (OSError, http.client.HTTPException) as error:
                if attempt == ATTEMPTS or not repeatable:
                    raise
                problem = f"no answer ({error or type(error).__name__})"
            else:
                again = answer.status in (408, 429) or (repeatable and answer.status in (500, 502, 503, 504))
                told = answer.headers.get("Retry-After", "")
                wait = int(told) if told.isdigit() else wait
                if attempt == ATTEMPTS or not again or wait > LONGEST_WAIT:
                    return answer
                problem = f"{answer.status} {answer.reason}"
            log(f"{problem}; again in {wait:.1f} s")
            time.sleep(wait)


def check(path):
    """Runs the functions above over signing-vectors.json; names each vector that does not match."""

    def octets(vector, field):
        encoded = vector.get(f"{field}_base64")
        return vector[field].encode() if encoded is None else base64.b64decode(encoded, validate=True)

    def rejected(vector):
        try:
            return f"none, but {canonical_query(octets(vector, 'raw'))!r}"
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
                    print(f"{vector['name']}: {field}: got {value!r}, not {vector[field]!r}", file=sys.stderr)
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
        answer = Partner.from_environment().send(
            arguments[0], arguments[1], body, log=lambda text: print(text, file=sys.stderr)
        )
    except (OSError, ValueError, http.client.HTTPException) as error:
        print(f"partner.py: {error or type(error).__name__}", file=sys.stderr)
        return 2
    request_id = answer.headers.get("X-Request-Id", "-")
    print(f"HTTP/1.1 {answer.status} {answer.reason}\nX-Request-Id: {request_id}", file=sys.stderr)
    sys.stdout.buffer.write(answer.body)
    return 0 if 200 <= answer.status < 300 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
