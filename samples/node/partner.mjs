#!/usr/bin/env node
// A signed request to the partner API, with nothing but Node's standard library (18.3 or newer).
//
// The functions up to `signedHeaders` are what an integration needs; the rest is a small command line around them.

import { createHash, createHmac, randomBytes } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const HELP = `usage: partner.mjs [--sandbox PATH [--partner NAME]] METHOD TARGET [BODY-FILE]

Sends one signed request: the status line goes to stderr, the body to stdout.

  METHOD          GET or POST
  TARGET          path and query, from /api/v1/partner/...
  BODY-FILE       file with the JSON body; - reads stdin
  --sandbox PATH  take base URL and key from this sandbox.json
  --partner NAME  which of its partners (default: alpha)

examples:
  export PARTNER_BASE_URL=http://127.0.0.1:8080 PARTNER_KEY_ID=vip_test_... PARTNER_SECRET=...
  partner.mjs GET /api/v1/partner/health
  partner.mjs GET '/api/v1/partner/inspections?status=published&limit=5'
  partner.mjs POST /api/v1/partner/test-line/measurements measurement.json
  partner.mjs --sandbox .sandbox/sandbox.json --partner alpha GET /api/v1/partner/organizations

exit code: 0 for an answer of 2xx, 1 for any other answer, 2 when nothing was sent or no answer came`;

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

/** BODY_SHA256 of the body's exact bytes (a Buffer). */
export function bodySha256(body) {
  return createHash("sha256").update(body).digest("hex");
}

/** The text that is signed. `target` is the path and query exactly as sent, `body` a Buffer of the exact bytes. */
export function canonicalString(method, target, timestamp, nonce, body) {
  const question = target.indexOf("?");
  const path = question < 0 ? target : target.slice(0, question);
  const rawQuery = question < 0 ? "" : target.slice(question + 1);
  const query = canonicalQuery(Buffer.from(rawQuery, "utf8"));
  return [method.toUpperCase(), path, query, timestamp, nonce, bodySha256(body)].join("\n");
}

/** The signature header's value. The HMAC key is the secret's 32 characters themselves, not their decoding. */
export function sign(secret, canonical) {
  return "sha256=" + createHmac("sha256", secret).update(canonical, "utf8").digest("hex");
}

/** The four headers of a request. Call it again for each retry: a nonce is good for one request only. */
export function signedHeaders(keyId, secret, method, target, body) {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const nonce = randomBytes(16).toString("hex");
  return {
    "X-Partner-Key-Id": keyId,
    "X-Partner-Timestamp": timestamp,
    "X-Partner-Nonce": nonce,
    "X-Partner-Signature": sign(secret, canonicalString(method, target, timestamp, nonce, body)),
  };
}

/** The target with spaces, controls, `#` and non-ASCII bytes percent-encoded: what is signed must be what is sent. */
function sendable(target) {
  return Buffer.from(target, "utf8").toString("latin1").replace(/[^!-~]|#/g, percentEncoded);
}

/** Sends one signed request; resolves to the response and its whole body. (`fetch` would rewrite some targets.) */
function send(baseUrl, keyId, secret, method, target, body) {
  const base = new URL(baseUrl);
  if (!["http:", "https:"].includes(base.protocol) || base.pathname !== "/") {
    throw new Error("the base URL is a scheme and a host, as in http://127.0.0.1:8080");
  }
  const headers = signedHeaders(keyId, secret, method, target, body);
  if (body.length > 0) {
    headers["Content-Type"] = "application/json";
    headers["Content-Length"] = body.length;
  }
  // An IPv6 host comes out of a URL with brackets, which a socket does not take.
  const hostname = base.hostname.replace(/^\[(.*)\]$/, "$1");
  const options = { hostname, port: base.port, method: method.toUpperCase(), path: target, headers, timeout: 60_000 };
  return new Promise((resolve, reject) => {
    const request = (base.protocol === "https:" ? https : http).request(options, (response) => {
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => resolve({ response, answer: Buffer.concat(chunks) }));
    });
    request.on("timeout", () => request.destroy(new Error("no answer within 60 seconds")));
    request.on("error", reject);
    request.end(body);
  });
}

/** Base URL, key id and secret: of a partner in a sandbox.json, or from the environment. */
function credentials(options) {
  if (options.sandbox === undefined) {
    return ["PARTNER_BASE_URL", "PARTNER_KEY_ID", "PARTNER_SECRET"].map((name) => {
      if (!process.env[name]) throw new Error(`set ${name}, or name a sandbox with --sandbox`);
      return process.env[name];
    });
  }
  const sandbox = JSON.parse(readFileSync(options.sandbox, "utf8"));
  const partner = sandbox.partners.find(({ name }) => name === options.partner);
  if (partner === undefined) throw new Error(`${options.sandbox} has no partner ${options.partner}`);
  return [sandbox.base_url, partner.key_id, partner.secret];
}

async function main() {
  const { values: options, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      help: { type: "boolean", short: "h" },
      sandbox: { type: "string" },
      partner: { type: "string", default: "alpha" },
    },
  });
  if (options.help) {
    console.log(HELP);
    return 0;
  }
  if (positionals.length < 2 || positionals.length > 3) throw new Error("give METHOD TARGET [BODY-FILE]; see --help");
  const [method, rawTarget, bodyFile] = positionals;
  const target = sendable(rawTarget);
  if (!target.startsWith("/")) throw new Error("the target begins with a slash and has no host");
  const body = bodyFile === undefined ? Buffer.alloc(0) : readFileSync(bodyFile === "-" ? 0 : bodyFile);
  const { response, answer } = await send(...credentials(options), method, target, body);
  const requestId = response.headers["x-request-id"] ?? "-";
  console.error(`HTTP/1.1 ${response.statusCode} ${response.statusMessage}\nX-Request-Id: ${requestId}`);
  process.stdout.write(answer);
  return response.statusCode >= 200 && response.statusCode < 300 ? 0 : 1;
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    process.exitCode = await main();
  } catch (error) {
    console.error(`partner.mjs: ${error.message || error.code}`);
    process.exitCode = 2;
  }
}
