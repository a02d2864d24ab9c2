// Sends one request through the package, with the arguments of the signing kits: METHOD TARGET [-]. `script/samples --program` runs it
// against a server that fails.

import { readFileSync } from "node:fs";
import { signedFetch } from "partner-api-client";

const [method, target, body] = process.argv.slice(2);
const { PARTNER_BASE_URL: baseUrl, PARTNER_KEY_ID: keyId, PARTNER_SECRET: secret } = process.env;
const content = body && { body: readFileSync(0), headers: { "Content-Type": "application/json" } };
try {
  const response = await signedFetch({ baseUrl, keyId, secret })(new Request(baseUrl + target, { method, ...content }));
  console.error(response.status);
  const text = await response.text();
  process.stdout.write(text);
  const points = text.includes('"skipped_points"') ? JSON.parse(text).data.skipped_points : [];
  for (const { code, reason } of points) console.error(`not written: ${code} (${reason})`);
  const isMismatch = response.headers.get("x-idempotency-payload-mismatch") === "true";
  if (isMismatch) {
    console.error("not recorded: this external_id was already used for another measurement; send it with a new one");
  }
  process.exitCode = response.ok && !isMismatch ? 0 : 1;
} catch (error) {
  console.error(error);
  process.exitCode = 2;
}
