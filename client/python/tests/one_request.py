"""Sends one request through the package, with the arguments of the signing kits: METHOD TARGET [-].

`script/samples --program` runs it against a server that fails.
"""

import os
import sys

import httpx
from partner_api_client import Partner

method, target, *body = sys.argv[1:]
key = [os.environ[f"PARTNER_{part}"] for part in ("BASE_URL", "KEY_ID", "SECRET")]
with Partner(*key) as partner:
    try:
        response = partner.send(method, target, body=sys.stdin.buffer.read() if body else b"")
    except httpx.TransportError as error:
        print(repr(error), file=sys.stderr)
        sys.exit(2)
print(response.status_code, file=sys.stderr)
sys.stdout.buffer.write(response.content)
if b'"skipped_points"' in response.content:
    for point in response.json()["data"]["skipped_points"]:
        print(f"not written: {point['code']} ({point['reason']})", file=sys.stderr)
if response.headers.get("X-Idempotency-Payload-Mismatch") == "true":
    sys.exit("not recorded: this external_id was already used for another measurement; send it with a new one")
sys.exit(0 if response.is_success else 1)
