#!/usr/bin/env node
// Signed requests to the partner API, with only Node's standard library (18 or newer).

import { createHash, createHmac, randomBytes } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const ATTEMPTS = 4;
const LONGEST_WAIT = 120; // seconds; a response with a longer Retry-After is returned instead

/** A `%` in a query that is not followed by two hexadecimal digits. */
export class MalformedQuery extends Error {
  constructor(offset) {
    super(`the query's % at byte ${offset} is not followed by two hexadecimal digits; write it as %25`);
    this.offset = offset;
  }
}

/** Returns a byte as `%XX`. `byte` is a character below U+0100. */
const percentEncoded = (byte) => "%" + byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0");

/**
 * Returns the CANONICAL_QUERY of a raw query (a Buffer with the bytes after the first `?`): decoded, encoded canonically,
 * sorted as pairs. encodeURIComponent is not suitable: it does not escape ! ' ( ) * and requires valid UTF-8.
 */
export function canonicalQuery(raw) {
  const text = raw.toString("latin1"); // one character per byte
  const malformed = text.search(/%(?![0-9A-Fa-f]{2})/);
  if (malformed >= 0) throw new MalformedQuery(malformed);

  const recode = (part) =>
    part
      .replaceAll("+", " ")
      .replace(/%(..)/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)))
      .replace(/[^A-Za-z0-9\-._~]/g, percentEncoded);

  const pairs = text
    .split("&")
    .filter((piece) => piece !== "")
    .map((piece) => {
      const equals = piece.indexOf("=");
      return equals < 0 ? [recode(piece), ""] : [recode(piece.slice(0, equals)), recode(piece.slice(equals + 1))];
    });
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0); // not localeCompare, which depends on the locale
  pairs.sort(([name, value], [otherName, otherValue]) => compare(name, otherName) || compare(value, otherValue));
  return pairs.map(([name, value]) => `${name}=${value}`).join("&");
}

/** Returns the text that is signed. `target` is the path and query as sent, `body` a Buffer with the exact bytes. */
export function canonicalString(method, target, timestamp, nonce, body) {
  const [, path, query] = /^([^?]*)\??(.*)$/s.exec(target);
  const digest = createHash("sha256").update(body).digest("hex");
  return [method.toUpperCase(), path, canonicalQuery(Buffer.from(query, "utf8")), timestamp, nonce, digest].join("\n");
}

/** Returns the value of the signature header. The HMAC key is the secret's 32 characters, not decoded. */
export function sign(secret, canonical) {
  return "sha256=" + createHmac("sha256", secret).update(canonical, "utf8").digest("hex");
}

/** Returns whether a request can be retried safely when its outcome is unknown. A measurement needs an external_id. */
export function isRepeatable(method, body) {
  return method.toUpperCase() === "GET" || /"external_id"\s*:\s*"[^"]/.test(body.toString("latin1"));
}

/** A client with a key of the partner API. `baseUrl` is a scheme and a host, as in http://127.0.0.1:8080. */
export class Partner {
  constructor(baseUrl, keyId, secret) {
    this.base = new URL(baseUrl);
    if (!["http:", "https:"].includes(this.base.protocol) || this.base.pathname !== "/") {
      throw new Error("the base URL must be a scheme and a host, as in http://127.0.0.1:8080");
    }
    Object.assign(this, { keyId, secret });
  }

  static fromEnvironment() {
    const names = ["PARTNER_BASE_URL", "PARTNER_KEY_ID", "PARTNER_SECRET"];
    const missing = names.filter((name) => !process.env[name]);
    if (missing.length > 0) throw new Error(`set ${missing.join(", ")}`);
    return new Partner(...names.map((name) => process.env[name]));
  }

  /** Returns the headers of one attempt. Each attempt needs a new nonce and signature. */
  signedHeaders(method, target, body) {
    const timestamp = String(Math.floor(Date.now() / 1000));
    const nonce = randomBytes(16).toString("hex");
    return {
      "X-Partner-Key-Id": this.keyId,
      "X-Partner-Timestamp": timestamp,
      "X-Partner-Nonce": nonce,
      "X-Partner-Signature": sign(this.secret, canonicalString(method, target, timestamp, nonce, body)),
    };
  }

  /** Signs and sends a request once. (`fetch` rewrites some targets.) */
  attempt(method, target, body) {
    const headers = this.signedHeaders(method, target, body);
    if (body.length > 0) Object.assign(headers, { "Content-Type": "application/json", "Content-Length": body.length });
    const hostname = this.base.hostname.replace(/^\[(.*)\]$/, "$1"); // sockets need IPv6 addresses without brackets
    const options = { hostname, port: this.base.port, method: method.toUpperCase(), path: target, headers };
    return new Promise((resolve, reject) => {
      const { request: start } = this.base.protocol === "https:" ? https : http;
      const request = start({ ...options, agent: false, timeout: 60_000 }, (response) => {
        const chunks = [];
        response.on("data", (chunk) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const { statusCode: status, statusMessage: reason, headers: responseHeaders } = response;
          resolve({ status, reason, headers: responseHeaders, body: Buffer.concat(chunks) });
        });
      });
      request.on("timeout", () => request.destroy(new Error("timeout after 60 seconds")));
      request.on("error", reject);
      request.end(body);
    });
  }

  /**
   * Sends a request at most four times. After 408 or 429 it always retries, because the request was not processed. After 500,
   * 502, 503, 504 or without a response it retries only if that is safe. Resolves to { status, reason, headers, body }.
   */
  async send(method, target, body = "", log = () => {}) {
    body = Buffer.from(body);
    // Encodes spaces, control characters, `#` and non-ASCII bytes, so that the signed and the sent target are equal.
    target = Buffer.from(target, "utf8").toString("latin1").replace(/[^!-~]|#/g, percentEncoded);
    if (!target.startsWith("/")) throw new Error("the target must begin with a slash and have no host");
    const repeatable = isRepeatable(method, body);
    for (let attempt = 1; ; attempt++) {
      let wait = (0.5 + Math.random() / 2) * 2 ** (attempt - 1);
      let problem;
      try {
        const response = await this.attempt(method, target, body);
        const { status, reason, headers } = response;
        const again = [408, 429].includes(status) || (repeatable && [500, 502, 503, 504].includes(status));
        if (/^\d+$/.test(headers["retry-after"] ?? "")) wait = Number(headers["retry-after"]);
        if (attempt === ATTEMPTS || !again || wait > LONGEST_WAIT) return response;
        problem = `${status} ${reason}`;
      } catch (error) {
        if (attempt === ATTEMPTS || !repeatable) throw error;
        problem = `no response (${error.message || error.code})`;
      }
      log(`${problem}; retrying in ${wait.toFixed(1)} s`);
      await sleep(wait * 1000);
    }
  }
}

/** Returns the points of a measurement that were not written to the report: their `code`, `reason` and perhaps `hint`. */
export function skippedPoints({ body }) {
  return body.includes('"skipped_points"') ? JSON.parse(body).data.skipped_points : [];
}

/** Checks the functions above with signing-vectors.json and prints each vector that does not match. */
function check(path) {
  const octets = (vector, field) =>
    vector[`${field}_base64`] === undefined
      ? Buffer.from(vector[field], "utf8")
      : Buffer.from(vector[`${field}_base64`], "base64");

  const checks = {
    query_vectors: (vector) => ({ canonical_query: canonicalQuery(octets(vector, "raw")) }),
    rejected_queries: (vector) => {
      try {
        return { offset: `no error, but ${canonicalQuery(octets(vector, "raw"))}` };
      } catch (error) {
        return { offset: error.offset };
      }
    },
    request_vectors: ({ method, target, timestamp, nonce, secret, ...vector }) => {
      const canonical = canonicalString(method, target, timestamp, nonce, octets(vector, "body"));
      return { canonical_string: canonical, signature: sign(secret, canonical) };
    },
  };

  const vectors = JSON.parse(readFileSync(path, "utf8"));
  let failures = 0;
  for (const [list, got] of Object.entries(checks)) {
    for (const vector of vectors[list]) {
      for (const [field, value] of Object.entries(got(vector))) {
        if (value === vector[field]) continue;
        failures++;
        console.error(`${vector.name}: ${field}: got ${JSON.stringify(value)}, expected ${JSON.stringify(vector[field])}`);
      }
    }
    console.log(`${list}: ${vectors[list].length} checked`);
  }
  return failures > 0 ? 1 : 0;
}

async function main([method, target, bodyFile, ...others]) {
  if (method === "--check" && target !== undefined && bodyFile === undefined) return check(target);
  if (target === undefined || others.length > 0 || method.startsWith("-")) {
    console.error("usage: partner.mjs METHOD TARGET [BODY-FILE]   (- reads the body from standard input)");
    console.error("       partner.mjs --check signing-vectors.json");
    return 2;
  }
  const body = bodyFile === undefined ? "" : readFileSync(bodyFile === "-" ? 0 : bodyFile);
  const response = await Partner.fromEnvironment().send(method, target, body, console.error);
  const { status, reason, headers } = response;
  console.error(`HTTP/1.1 ${status} ${reason}\nX-Request-Id: ${headers["x-request-id"] ?? "-"}`);
  process.stdout.write(response.body);
  for (const { code, reason } of skippedPoints(response)) console.error(`not written: ${code} (${reason})`);
  if (headers["x-idempotency-payload-mismatch"] === "true") {
    console.error("not recorded: this external_id was already used for another measurement; send it with a new one");
    return 1;
  }
  return status >= 200 && status < 300 ? 0 : 1;
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    process.exitCode = await main(process.argv.slice(2));
  } catch (error) {
    console.error(`partner.mjs: ${error.message || error.code}`);
    process.exitCode = 2;
  }
}
