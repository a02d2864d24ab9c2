#!/usr/bin/env python3
"""Runs the Python sample's functions over spec/signing-vectors.json; names each vector that does not match."""

import base64
import json
import pathlib
import sys

sys.dont_write_bytecode = True  # leave no __pycache__ in the folder of the sample

import partner  # noqa: E402

DEFAULT = pathlib.Path(__file__).resolve().parents[2] / "spec" / "signing-vectors.json"


def octets(vector, field):
    """A field given as text or, under its name with `_base64`, as base64."""
    encoded = vector.get(f"{field}_base64")
    return vector[field].encode() if encoded is None else base64.b64decode(encoded, validate=True)


def query_vectors(vector):
    yield "canonical_query", partner.canonical_query(octets(vector, "raw")), vector["canonical_query"]


def rejected_queries(vector):
    try:
        offset = f"none, but {partner.canonical_query(octets(vector, 'raw'))!r}"
    except partner.MalformedQuery as error:
        offset = error.offset
    yield "offset", offset, vector["offset"]


def request_vectors(vector):
    target, body = vector["target"].encode(), octets(vector, "body")
    canonical = partner.canonical_string(vector["method"], target, vector["timestamp"], vector["nonce"], body)
    yield "canonical_query", partner.canonical_query(target.partition(b"?")[2]), vector["canonical_query"]
    yield "body_sha256", partner.body_sha256(body), vector["body_sha256"]
    yield "canonical_string", canonical, vector["canonical_string"]
    yield "signature", partner.sign(vector["secret"], canonical), vector["signature"]


def main():
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    vectors = json.loads(path.read_text(encoding="utf-8"))
    failures = 0
    for check in (query_vectors, rejected_queries, request_vectors):
        if not vectors[check.__name__]:
            sys.exit(f"{path} has no {check.__name__}")
        for vector in vectors[check.__name__]:
            for field, got, expected in check(vector):
                if got != expected:
                    failures += 1
                    print(f"{check.__name__}: {vector['name']}: {field}: got {got!r}, not {expected!r}", file=sys.stderr)
        print(f"{check.__name__}: {len(vectors[check.__name__])} checked")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
