#!/usr/bin/env python3
"""A signed request to the partner API, with nothing but Python's standard library (3.8 or newer).

The functions up to `signed_headers` are what an integration needs; the rest is a small command line around them.
"""

import argparse
import hashlib
import hmac
import http.client
import json
import os
import re
import secrets
import sys
import time
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

EXAMPLES = """\
examples:
  export PARTNER_BASE_URL=http://127.0.0.1:8080 PARTNER_KEY_ID=vip_test_... PARTNER_SECRET=...
  partner.py GET /api/v1/partner/health
  partner.py GET '/api/v1/partner/inspections?status=published&limit=5'
  partner.py POST /api/v1/partner/test-line/measurements measurement.json
  partner.py --sandbox .sandbox/sandbox.json --partner alpha GET /api/v1/partner/organizations

exit code: 0 for an answer of 2xx, 1 for any other answer, 2 when nothing was sent or no answer came
"""


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


def body_sha256(body):
    """BODY_SHA256 of the body's exact bytes."""
    return hashlib.sha256(body).hexdigest()


def canonical_string(method, target, timestamp, nonce, body):
    """The text that is signed. `target` is the path and query exactly as sent (bytes), `body` the exact bytes."""
    path, _, raw_query = target.partition(b"?")
    parts = [method.upper(), path.decode(), canonical_query(raw_query), timestamp, nonce, body_sha256(body)]
    return "\n".join(parts)


def sign(secret, canonical):
    """The signature header's value. The HMAC key is the secret's 32 characters themselves, not their decoding."""
    return "sha256=" + hmac.new(secret.encode(), canonical.encode(), hashlib.sha256).hexdigest()


def signed_headers(key_id, secret, method, target, body):
    """The four headers of a request. Call it again for each retry: a nonce is good for one request only."""
    timestamp, nonce = str(int(time.time())), secrets.token_hex(16)
    return {
        "X-Partner-Key-Id": key_id,
        "X-Partner-Timestamp": timestamp,
        "X-Partner-Nonce": nonce,
        "X-Partner-Signature": sign(secret, canonical_string(method, target, timestamp, nonce, body)),
    }


def sendable(target):
    """The target with spaces, controls, `#` and non-ASCII bytes percent-encoded: what is signed must be what is sent."""
    return re.sub(rb"[^!-~]|#", lambda match: b"%%%02X" % match[0][0], target)


def send(base_url, key_id, secret, method, target, body):
    """Sends one signed request; returns the response's status, reason, headers and body."""
    base = urlsplit(base_url)
    if base.scheme not in ("http", "https") or not base.hostname or base.path not in ("", "/"):
        raise ValueError("the base URL is a scheme and a host, as in http://127.0.0.1:8080")
    headers = signed_headers(key_id, secret, method, target, body)
    if body:
        headers["Content-Type"] = "application/json"
    connect = http.client.HTTPSConnection if base.scheme == "https" else http.client.HTTPConnection
    connection = connect(base.hostname, base.port, timeout=60)
    try:
        connection.request(method.upper(), target.decode(), body=body or None, headers=headers)
        response = connection.getresponse()
        return response.status, response.reason, response.headers, response.read()
    finally:
        connection.close()


def credentials(options):
    """Base URL, key id and secret: of a partner in a sandbox.json, or from the environment."""
    if not options.sandbox:
        try:
            return tuple(os.environ[name] for name in ("PARTNER_BASE_URL", "PARTNER_KEY_ID", "PARTNER_SECRET"))
        except KeyError as missing:
            raise ValueError(f"set {missing.args[0]}, or name a sandbox with --sandbox") from None
    with open(options.sandbox, encoding="utf-8") as file:
        sandbox = json.load(file)
    for partner in sandbox["partners"]:
        if partner["name"] == options.partner:
            return sandbox["base_url"], partner["key_id"], partner["secret"]
    raise ValueError(f"{options.sandbox} has no partner {options.partner}")


def main():
    parser = argparse.ArgumentParser(
        description="Sends one signed request: the status line goes to stderr, the body to stdout.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("method", metavar="METHOD", help="GET or POST")
    parser.add_argument("target", metavar="TARGET", help="path and query, from /api/v1/partner/...")
    parser.add_argument("body", metavar="BODY-FILE", nargs="?", help="file with the JSON body; - reads stdin")
    parser.add_argument("--sandbox", metavar="PATH", help="take base URL and key from this sandbox.json")
    parser.add_argument("--partner", metavar="NAME", default="alpha", help="which of its partners (default: alpha)")
    options = parser.parse_args()
    try:
        target = sendable(os.fsencode(options.target))
        if not target.startswith(b"/"):
            raise ValueError("the target begins with a slash and has no host")
        body = b""
        if options.body:
            with open(0 if options.body == "-" else options.body, "rb") as file:
                body = file.read()
        status, reason, headers, answer = send(*credentials(options), options.method, target, body)
    except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
        print(f"partner.py: {error or type(error).__name__}", file=sys.stderr)
        return 2
    print(f"HTTP/1.1 {status} {reason}\nX-Request-Id: {headers.get('X-Request-Id', '-')}", file=sys.stderr)
    sys.stdout.buffer.write(answer)
    return 0 if 200 <= status < 300 else 1


if __name__ == "__main__":
    sys.exit(main())
