#!/usr/bin/env node
// Signed requests to the partner API, with nothing but Node's standard library (18 or newer).

import { createHash, createHmac, randomBytes } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const ATTEMPTS = 4;
const LONGEST_WAIT = 120; // seconds; who is told to wait longer gets the answer instead

/** A `%` in a query that is not followed by two hexadecimal digits. */
export class MalformedQuery extends Error {
  constructor(offset) {
    super(`the query's % at byte ${offset} is not followed by two hexadecimal digits; write it as %25`);
    this.offset = offset;
  }
}

/** One byte as `%XX`. `byte` is a character below U+0100. */
const percentEncoded = (byte) => "%" + byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0");

/**
 * CANONICAL_QUERY of a raw query (a Buffer: the bytes after the first `?`): decoded once, encoded one way, sorted as
 * pairs. encodeURIComponent would not do: it leaves ! ' ( ) * alone and cannot hold bytes that are not UTF-8.
 */
export function canonicalQuery(raw) {
  const text = raw.toString("latin1"); // one character for each byte
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
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0); // never localeCompare: that sorts as people do
  pairs.sort(([name, value], [otherName, otherValue]) => compare(name, otherName) || compare(value, otherValue));
  return pairs.map(([name, value]) => `${name}=${value}`).join("&");
}

/** The text that is signed. `target` is the path and query exactly as sent, `body` a Buffer of the exact bytes. */
export function canonicalString(method, target, timestamp, nonce, body) {
  const [, path, query] = /^([^?]*)\??(.*)$/s.exec(target);
  const digest = createHash("sha256").update(body).digest("hex");
  return [method.toUpperCase(), path, canonicalQuery(Buffer.from(query, "utf8")), timestamp, nonce, digest].join("\n");
}

/** The signature header's value. The HMAC key is the secret's 32 characters themselves, not their decoding. */
export function sign(secret, canonical) {
  return "sha256=" + createHmac("sha256", secret).update(canonical, "utf8").digest("hex");
}

/** Whether a request may be sent again when nobody knows what became of it: a measurement only with an external_id. */
export function isRepeatable(method, body) {
  return method.toUpperCase() === "GET" || /"external_id"\s*:\s*"[^"]/.test(body.toString("latin1"));
}

/** A key of the partner API. `baseUrl` is a scheme and a host, as in http://127.0.0.1:8080. */
export class Partner {
  constructor(baseUrl, keyId, secret) {
    this.base = new URL(baseUrl);
    if (!["http:", "https:"].includes(this.base.protocol) || this.base.pathname !== "/") {
      throw new Error("the base URL is a scheme and a host, as in http://127.0.0.1:8080");
    }
    Object.assign(this, { keyId, secret });
  }

  static fromEnvironment() {
    const names = ["PARTNER_BASE_URL", "PARTNER_KEY_ID", "PARTNER_SECRET"];
    const missing = names.filter((name) => !process.env[name]);
    if (missing.length > 0) throw new Error(`set ${missing.join(", ")}`);
    return new Partner(...names.map((name) => process.env[name]));
  }

  /** The four headers of one attempt: a nonce is good for one, so each is signed anew. */
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

  /** Signs and sends once. (`fetch` would rewrite some targets.) */
  attempt(method, target, body) {
    const headers = this.signedHeaders(method, target, body);
    if (body.length > 0) Object.assign(headers, { "Content-Type": "application/json", "Content-Length": body.length });
    const hostname = this.base.hostname.replace(/^\[(.*)\]$/, "$1"); // a socket takes IPv6 without brackets
    const options = { hostname, port: this.base.port, method: method.toUpperCase(), path: target, headers };
    return new Promise((resolve, reject) => {
      const { request: start } = this.base.protocol === "https:" ? https : http;
      const request = start({ ...options, agent: false, timeout: 60_000 }, (response) => {
        const chunks = [];
        response.on("data", (chunk) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const { statusCode: status, statusMessage: reason, headers: answered } = response;
          resolve({ status, reason, headers: answered, body: Buffer.concat(chunks) });
        });
      });
      request.on("timeout", () => request.destroy(new Error("none within 60 seconds")));
      request.on("error", reject);
      request.end(body);
    });
  }

  /**
   * Sends a request, up to four times: what was not processed (408, 429) again in any case, what may have been (500,
   * 502, 503, 504, no answer) only if it is repeatable. Resolves to { status, reason, headers, body }.
   */
  async send(method, target, body = "", log = () => {}) {
    body = Buffer.from(body);
    // What is signed must be what is sent: spaces, controls, `#` and bytes that are not ASCII are encoded here.
    target = Buffer.from(target, "utf8").toString("latin1").replace(/[^!-~]|#/g, percentEncoded);
    if (!target.startsWith("/")) throw new Error("the target begins with a slash and has no host");
    const repeatable = isRepeatable(method, body);
    for (let attempt = 1; ; attempt++) {
      let wait = (0.5 + Math.random() / 2) * 2 ** (attempt - 1);
      let problem;
      try {
        const answer = await this.attempt(method, target, body);
        const { status, reason, headers } = answer;
        const again = [408, 429].includes(status) || (repeatable && [500, 502, 503, 504].includes(status));
        if (/^\d+$/.test(headers["retry-after"] ?? "")) wait = Number(headers["retry-after"]);
        if (attempt === ATTEMPTS || !again || wait > LONGEST_WAIT) return answer;
        problem = `${status} ${reason}`;
      } catch (error) {
        if (attempt === ATTEMPTS || !repeatable) throw error;
        problem = `no answer (${error.message || error.code})`;
      }
      log(`${problem}; again in ${wait.toFixed(1)} s`);
      await sleep(wait * 1000);
    }
  }
}

/** Runs the functions above over signing-vectors.json; names each vector that does not match. */
function check(path) {
  const octets = (vector, field) =>
    vector[`${field}_base64`] === undefined
      ? Buffer.from(vector[field], "utf8")
      : Buffer.from(vector[`${field}_base64`], "base64");

  const checks = {
    query_vectors: (vector) => ({ canonical_query: canonicalQuery(octets(vector, "raw")) }),
    rejected_queries: (vector) => {
      try {
        return { offset: `none, but ${canonicalQuery(octets(vector, "raw"))}` };
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
        console.error(`${vector.name}: ${field}: got ${JSON.stringify(value)}, not ${JSON.stringify(vector[field])}`);
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
  const answer = await Partner.fromEnvironment().send(method, target, body, console.error);
  const { status, reason, headers } = answer;
  console.error(`HTTP/1.1 ${status} ${reason}\nX-Request-Id: ${headers["x-request-id"] ?? "-"}`);
  process.stdout.write(answer.body);
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
