// Tests of the installed package against the signing vectors and a running sandbox (`SANDBOX` names its sandbox.json).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import {
  unwrap,
  canonicalQuery,
  canonicalString,
  connect,
  inspections,
  type Key,
  type MeasurementRequest,
  PartnerError,
  PayloadMismatchError,
  sign,
} from "partner-api-client";

const { SANDBOX = "", SPEC = "" } = process.env;
const vectors = JSON.parse(readFileSync(join(SPEC, "signing-vectors.json"), "utf8"));
const sandbox = JSON.parse(readFileSync(SANDBOX, "utf8"));
const alpha = sandbox.partners[0];
const key: Key = { baseUrl: sandbox.base_url, keyId: alpha.key_id, secret: alpha.secret };
const partner = connect(key);
const published: string = sandbox.examples.inspections.published;

function measurement(): MeasurementRequest {
  const branch_code: string = sandbox.examples.open_report.branch_code;
  const external_id = `${branch_code}-typescript-${crypto.randomUUID()}`;
  return { branch_code, plate: "06 TST 4713", external_id, measurements: { BRAKE_FRONT_LEFT: 2.85 } };
}

async function ids(reports: AsyncIterable<{ id: string }>): Promise<string[]> {
  const found = [];
  for await (const report of reports) found.push(report.id);
  return found;
}

test("every query has the canonical form of the vectors", () => {
  // A URL is text: a query that is not UTF-8 cannot be sent through this client.
  for (const vector of vectors.query_vectors.filter(({ raw }: { raw?: string }) => raw !== undefined)) {
    const { search } = new URL(`https://partner.example/?${vector.raw}`);
    assert.equal(canonicalQuery(search.slice(1)), vector.canonical_query, vector.name);
  }
});

test("a query without a canonical form is rejected", () => {
  for (const { raw, offset } of vectors.rejected_queries) {
    assert.throws(() => canonicalQuery(raw), new RegExp(`at byte ${offset} `));
  }
});

test("every request has the signature of the vectors", async () => {
  for (const { method, target, timestamp, nonce, secret, name, ...vector } of vectors.request_vectors) {
    const body = vector.body_base64 === undefined ? Buffer.from(vector.body) : Buffer.from(vector.body_base64, "base64");
    const url = new URL(`https://partner.example${target}`);
    const canonical = await canonicalString(method, url, timestamp, nonce, new Uint8Array(body));
    assert.equal(canonical, vector.canonical_string, name);
    assert.equal(await sign(secret, canonical), vector.signature, name);
  }
});

test("the path of a gateway is not signed", async () => {
  const url = new URL("https://partner.example/gateway/api/v1/partner/health");
  const canonical = await canonicalString("GET", url, "1780000000", "0123456789abcdef", new Uint8Array());
  assert.equal(canonical.split("\n")[1], "/api/v1/partner/health");
});

test("a signed request gets a response", async () => {
  const health = await unwrap(partner.GET("/api/v1/partner/health"));
  assert.deepEqual([health.status, health.environment], ["ok", "test"]);
});

test("a request is retried after 429 and 503 with a new nonce and the same body", async () => {
  const ordered = ["code=429, error=rate_limited", "code=503, error=service_unavailable"];
  const nonces = new Set();
  const bodies: string[] = [];
  const recording = connect({
    ...key,
    fetch: (url, init) => {
      const headers = new Headers(init.headers);
      nonces.add(headers.get("X-Partner-Nonce"));
      bodies.push(new TextDecoder().decode(init.body as Uint8Array));
      const preference = ordered.shift();
      if (preference !== undefined) headers.set("Prefer", preference);
      return fetch(url, { ...init, headers });
    },
  });
  const { data } = await unwrap(recording.POST("/api/v1/partner/test-line/measurements", { body: measurement() }));
  assert.equal(data.idempotent_replay, false);
  assert.deepEqual([nonces.size, bodies.length, new Set(bodies).size], [3, 3, 1]);
});

test("pages contain every report once", async () => {
  const all = await ids(inspections(partner));
  assert.equal(new Set(all).size, all.length);
  assert.ok(all.length > 100);
  assert.deepEqual(await ids(inspections(partner, { limit: 61 })), all);
});

test("filters are sent", async () => {
  const statuses = new Set<string>();
  for await (const report of inspections(partner, { status: "cancelled" })) statuses.add(report.status);
  assert.deepEqual([...statuses], ["cancelled"]);
  const { data } = await unwrap(partner.GET("/api/v1/partner/inspections", { params: { query: { limit: 1 } } }));
  const newest = data[0];
  assert.ok(newest);
  const changed = await ids(inspections(partner, { updated_from: newest.updated_at.replace("Z", "+00:00") }));
  assert.ok(changed.includes(newest.id));
});

test("a measurement that is submitted twice is recorded once", async () => {
  const body = measurement();
  const submit = () => unwrap(partner.POST("/api/v1/partner/test-line/measurements", { body }));
  const [first, second] = [(await submit()).data, (await submit()).data];
  assert.deepEqual([first.idempotent_replay, second.idempotent_replay], [false, true]);
  assert.equal(first.measurement_id, second.measurement_id);
  assert.equal(second.payload_mismatch, undefined);
});

test("a measurement with the external_id of another one is thrown, with the recorded measurement", async () => {
  const body = measurement();
  const submit = (value: number) =>
    unwrap(
      partner.POST("/api/v1/partner/test-line/measurements", { body: { ...body, measurements: { BRAKE_FRONT_LEFT: value } } }),
    );
  const first = (await submit(2.85)).data;
  await assert.rejects(submit(2.86), (error: unknown) => {
    assert.ok(error instanceof PayloadMismatchError && error instanceof PartnerError);
    assert.equal(error.response.status, 200);
    assert.equal(error.recorded.measurement_id, first.measurement_id);
    return error.message.includes("submit it with a new external_id");
  });
});

test("a PDF is read as bytes", async () => {
  const params = { path: { id: published } };
  const pdf = await unwrap(partner.GET("/api/v1/partner/inspections/{id}/pdf", { params, parseAs: "arrayBuffer" }));
  assert.equal(new TextDecoder().decode(pdf.slice(0, 4)), "%PDF");
});

test("a rejection is thrown with its code and request ID", async () => {
  const params = { path: { id: "no such/report" } };
  const rejected = unwrap(partner.GET("/api/v1/partner/inspections/{id}", { params }));
  await assert.rejects(rejected, (error: unknown) => {
    assert.ok(error instanceof PartnerError && error.error);
    assert.deepEqual([error.response.status, error.error.code], [404, "not_found"]);
    return error.message.includes(error.error.request_id);
  });
});

test("the types know the document", async () => {
  const report = await unwrap(partner.GET("/api/v1/partner/inspections/{id}", { params: { path: { id: published } } }));
  const status: "published" | "archived" | "cancelled" = report.status;
  assert.equal(status, "published");
  // @ts-expect-error The member is missing from the document.
  assert.equal(report.stat, undefined);
  // @ts-expect-error The path is missing from the document.
  await assert.rejects(unwrap(partner.GET("/api/v1/partner/nothing")), PartnerError);
});
