#!/usr/bin/env node
// Runs the Node sample's functions over spec/signing-vectors.json; names each vector that does not match.

import { readFileSync } from "node:fs";

import { MalformedQuery, bodySha256, canonicalQuery, canonicalString, sign } from "./partner.mjs";

const path = process.argv[2] ?? new URL("../../spec/signing-vectors.json", import.meta.url);

/** A field given as text or, under its name with `_base64`, as base64. */
function octets(vector, field) {
  const encoded = vector[`${field}_base64`];
  return encoded === undefined ? Buffer.from(vector[field], "utf8") : Buffer.from(encoded, "base64");
}

const checks = {
  query_vectors: (vector) => ({ canonical_query: canonicalQuery(octets(vector, "raw")) }),

  rejected_queries: (vector) => {
    try {
      return { offset: `none, but ${canonicalQuery(octets(vector, "raw"))}` };
    } catch (error) {
      if (!(error instanceof MalformedQuery)) throw error;
      return { offset: error.offset };
    }
  },

  request_vectors: (vector) => {
    const { method, target, timestamp, nonce, secret } = vector;
    const body = octets(vector, "body");
    const canonical = canonicalString(method, target, timestamp, nonce, body);
    const query = target.includes("?") ? target.slice(target.indexOf("?") + 1) : "";
    return {
      canonical_query: canonicalQuery(Buffer.from(query, "utf8")),
      body_sha256: bodySha256(body),
      canonical_string: canonical,
      signature: sign(secret, canonical),
    };
  },
};

const vectors = JSON.parse(readFileSync(path, "utf8"));
for (const [list, check] of Object.entries(checks)) {
  if (!(vectors[list]?.length > 0)) throw new Error(`there are no ${list}`);
  for (const vector of vectors[list]) {
    for (const [field, got] of Object.entries(check(vector))) {
      if (got !== vector[field]) {
        const [shown, expected] = [got, vector[field]].map((value) => JSON.stringify(value));
        console.error(`${list}: ${vector.name}: ${field}: got ${shown}, not ${expected}`);
        process.exitCode = 1;
      }
    }
  }
  console.log(`${list}: ${vectors[list].length} checked`);
}
