// The published site, as a sandbox serves it and as it lies in a folder: SANDBOX names its sandbox.json, FOLDER the folder.
//
//   script/site                           all of it
//   SCREENSHOTS=/tmp/pictures script/site keeps pictures of some pages, on a desk and in a pocket, light and dark

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

import { axe, openPage, screenshot, startBrowser, tooWide } from "./browser.mjs";

const { base_url: base } = JSON.parse(readFileSync(process.env.SANDBOX, "utf8"));
const vectors = JSON.parse(readFileSync("spec/signing-vectors.json", "utf8"));
const SHOWN = ["", "docs/index.html", "docs/signing.html", "docs/submit_measurement.html", "docs/errors.html", "docs/kits.html"];

let browser;
/** Every page of the site, by its address; found by following links. */
const pages = new Map();
before(async () => { browser = await startBrowser(); });
after(() => browser.close());

test("every link leads to something that is there", async () => {
  const { page, faults, close } = await openPage(browser, { origin: base });
  const queue = [`${base}/`];
  const anchors = [];
  const seen = new Set(queue);
  while (queue.length > 0) {
    const address = queue.shift();
    const response = await page.request.get(address);
    assert.equal(response.status(), 200, address);
    if (!response.headers()["content-type"].startsWith("text/html")) continue;
    await page.goto(address);
    const { links, ids } = await page.evaluate(() => ({
      links: [...document.querySelectorAll("[href], [src]")].map((element) => element.href || element.src),
      ids: [...document.querySelectorAll("[id]")].map((element) => element.id),
    }));
    pages.set(address, new Set(ids));
    for (const link of links.filter((link) => link.startsWith(base))) {
      const [target, anchor] = link.split("#");
      if (anchor) anchors.push([address, target, decodeURIComponent(anchor)]);
      if (!seen.has(target)) { seen.add(target); queue.push(target); }
    }
  }
  assert.ok(pages.size > 18, `${pages.size} pages`);
  for (const [from, target, anchor] of anchors) assert.ok(pages.get(target)?.has(anchor), `${from}: ${target}#${anchor}`);
  assert.deepEqual(faults, []);
  await close();
});

for (const [screen, colors] of [["desktop", "light"], ["phone", "dark"], ["desktop", "dark"], ["phone", "light"]]) {
  const isShownOnly = (screen === "desktop") === (colors === "dark");
  test(`on a ${screen}, ${colors}: nothing goes wrong, axe finds nothing, nothing is too wide`, async () => {
    const { page, faults, close } = await openPage(browser, { screen, colors, origin: base });
    const found = [];
    // The other two are for the eye, and for the pages that differ most.
    const addresses = isShownOnly ? SHOWN.map((path) => `${base}/${path}`) : [...pages.keys()];
    for (const address of addresses) {
      await page.goto(address);
      if (screen === "phone") assert.equal(await page.locator("details.menu[open]").count(), 0, "the menu covers the page");
      const path = address.slice(base.length + 1);
      if (SHOWN.includes(path)) await screenshot(page, `${path.replaceAll("/", "-") || "sandbox"}-${screen}-${colors}`);
      await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
      found.push(...(await axe(page)).map((line) => `${path}: ${line}`), ...(await tooWide(page)).map((line) => `${path}: too wide: ${line}`));
    }
    assert.deepEqual(found, []);
    assert.deepEqual(faults, []);
    await close();
  });
}

/** Fills in the calculator and gives what it says. */
async function calculate(page, fields) {
  await page.evaluate((values) => {
    for (const [id, value] of Object.entries(values)) document.getElementById(id).value = value;
    document.getElementById("lines").replaceChildren();
    document.getElementById("method").dispatchEvent(new Event("input", { bubbles: true }));
  }, { yours: "", theirs: "", ...fields });
  await page.waitForFunction(() => document.querySelectorAll("#lines li").length === 6 || document.getElementById("results").hidden);
  return page.evaluate(() => {
    const text = (id) => (document.getElementById(id).hidden ? "" : document.getElementById(id).textContent);
    const lines = [...document.querySelectorAll("#lines li")].map((line) => line.firstChild.textContent);
    return { lines: lines.map((line) => (line === "(empty)" ? "" : line)), headers: text("headers"), problem: text("problem"), verdict: text("verdict"), differences: text("differences") };
  });
}

/** The fields of a request of the vectors. A text field of a page has no carriage return: such a body goes in as base64. */
function fieldsOf({ method, target, timestamp, nonce, secret, body, body_base64 }) {
  const isBase64 = body_base64 !== undefined || /\r/.test(body);
  const text = isBase64 ? (body_base64 ?? Buffer.from(body).toString("base64")) : body;
  return { method, target, timestamp, nonce, secret, encoding: isBase64 ? "base64" : "text", "body-text": text };
}

async function reproducesEveryVector(page) {
  for (const vector of vectors.request_vectors) {
    const got = await calculate(page, { ...fieldsOf(vector), yours: vector.signature, theirs: vector.canonical_string });
    assert.equal(got.lines.join("\n"), vector.canonical_string, vector.name);
    assert.match(got.headers, new RegExp(`X-Partner-Signature: ${vector.signature}$`), vector.name);
    assert.deepEqual([got.verdict, got.differences], ["Your signature is right.", ""], vector.name);
  }
  for (const { name, raw, raw_base64, canonical_query } of vectors.query_vectors) {
    const bytes = raw_base64 === undefined ? [...Buffer.from(raw)] : [...Buffer.from(raw_base64, "base64")];
    assert.equal(await page.evaluate((query) => window.partnerSigning.canonicalQuery(Uint8Array.from(query)), bytes), canonical_query, name);
  }
  for (const { name, raw, offset } of vectors.rejected_queries) {
    const got = await calculate(page, { target: `/api/v1/partner/health?${raw}` });
    assert.match(got.problem, new RegExp(`byte ${offset} `), name);
  }
}

test("the calculator reproduces every vector, and asks nobody", async () => {
  const { page, faults, close } = await openPage(browser, { origin: base });
  await page.goto(`${base}/docs/signing.html`, { waitUntil: "networkidle" });
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await reproducesEveryVector(page);
  assert.deepEqual([faults, asked], [[], []]);
  await close();
});

test("the calculator names the mistake that another signature was made with", async () => {
  const { page, close } = await openPage(browser, { origin: base });
  await page.goto(`${base}/docs/signing.html`);
  const { createHash, createHmac } = await import("node:crypto");
  const { canonicalString } = await import(resolve("samples/node/partner.mjs"));
  const vector = vectors.request_vectors.find(({ method, body }) => method === "POST" && body?.includes("34 ABC 123") && !/\r/.test(body));
  const target = `${vector.target}?b=2&a=+`;
  const body = Buffer.from(vector.body);
  const right = canonicalString(vector.method, target, vector.timestamp, vector.nonce, body).split("\n");
  const having = (at, value) => right.map((part, index) => (index === at ? value : part)).join("\n");
  const sign = (text, key = vector.secret) => "sha256=" + createHmac("sha256", key).update(text).digest("hex");
  const decoded = Buffer.from(vector.secret.replace(/=+$/, "").split("").map((c) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(c).toString(2).padStart(5, "0")).join("").match(/.{8}/g).map((byte) => parseInt(byte, 2)));
  const spaced = createHash("sha256").update(JSON.stringify(JSON.parse(vector.body), null, 2)).digest("hex");
  for (const [signature, words] of [
    [sign(right.join("\n"), decoded), /decoded from base32/],
    [sign(`${right.join("\n")}\n`), /ends with a line feed/],
    [sign(having(2, "b=2&a=+")), /signed as it was sent/],
    [sign(having(2, "a=%2B&b=2")), /plus in the query/],
    [sign(having(3, `${vector.timestamp}000`)), /milliseconds/],
    [sign(having(5, spaced)), /serialized again with spaces/],
    [sign(right.join("\n")).toUpperCase(), /written differently/],
    [sign("something else"), /none of the usual reasons/],
  ]) {
    const got = await calculate(page, { ...fieldsOf({ ...vector, target }), yours: signature });
    assert.match(got.verdict, words);
  }
  const got = await calculate(page, { ...fieldsOf({ ...vector, target }), theirs: `${having(2, "")}\n` });
  assert.match(got.differences, /CANONICAL_QUERY: yours is ""/);
  assert.match(got.differences, /7 lines/);
  await close();
});

test("a request can be pasted as it is sent", async () => {
  const { page, close } = await openPage(browser, { origin: base });
  await page.goto(`${base}/docs/signing.html`);
  const vector = vectors.request_vectors.find(({ method, body }) => method === "POST" && body?.startsWith("{") && !/\r/.test(body));
  await page.getByText("Paste a request").click();
  await page.getByLabel("Request", { exact: true }).fill(`${vector.method} ${vector.target} HTTP/1.1\nHost: x\nX-Partner-Timestamp: ${vector.timestamp}\n`
    + `X-Partner-Nonce: ${vector.nonce}\nX-Partner-Signature: ${vector.signature}\n\n${vector.body}`);
  await page.getByLabel("Secret").fill(vector.secret);
  await page.getByRole("button", { name: "Take over" }).click();
  await page.getByText("Your signature is right.").waitFor();
  await close();
});

test("what is looked for is found, with the keyboard alone", async () => {
  const { page, faults, close } = await openPage(browser, { origin: base });
  await page.goto(`${base}/docs/`);
  await page.keyboard.press("/");
  await page.keyboard.type("replay_detected");
  await page.locator("#found a").first().waitFor();
  await screenshot(page, "search-desktop-light");
  assert.deepEqual(await axe(page), []);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${base}/docs/errors.html#replay_detected`);
  await page.getByRole("searchbox").fill("zzzz");
  await page.getByText("Nothing found.").waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test("a language that was chosen is chosen on every page, and colors stay", async () => {
  const { page, close } = await openPage(browser, { origin: base });
  await page.goto(`${base}/docs/start.html`);
  await page.getByRole("tab", { name: "Go" }).first().click();
  await page.getByRole("button", { name: "Dark" }).click();
  await page.goto(`${base}/docs/get_health.html`);
  assert.equal(await page.getByRole("tab", { selected: true }).first().textContent(), "Go");
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).colorScheme), "dark");
  await page.getByRole("tab", { selected: true }).first().press("ArrowLeft");
  assert.equal(await page.getByRole("tab", { selected: true }).first().textContent(), "C#");
  await page.getByRole("button", { name: /^Copy: Code, C#/ }).click();
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /Partner\.FromEnvironment/);
  await close();
});

test("a page can be read without scripts", async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(`${base}/docs/start.html`);
  assert.ok(await page.getByText("Partner.FromEnvironment().Send(").first().isVisible());
  await context.close();
});

test("the request of the sandbox's page works as it is copied", async () => {
  const { page, close } = await openPage(browser, { origin: base });
  await page.goto(`${base}/`);
  const texts = await page.locator("#request ~ .tabs pre").allTextContents();
  assert.equal(texts.length, 2);
  const folder = mkdtempSync(join(tmpdir(), "copied-"));
  for (const text of texts) {
    const { stdout } = await promisify(execFile)("bash", ["-euc", text], { cwd: folder, env: { ...process.env, http_proxy: "", HTTP_PROXY: "" } });
    assert.equal(JSON.parse(stdout).status, "ok");
  }
  rmSync(folder, { recursive: true });
  await close();
});

test("from a folder, without a server, it reads, finds and calculates", async () => {
  const { page, faults, close } = await openPage(browser, { origin: "file://" });
  await page.goto(pathToFileURL(join(process.env.FOLDER, "docs/index.html")).href);
  await page.getByRole("searchbox").fill("rate limit");
  await page.locator("#found a").first().click();
  await page.getByRole("link", { name: "Signing", exact: true }).click();
  // A click does not wait for the page that it leads to.
  await page.waitForURL("**/signing.html", { waitUntil: "load" });
  await reproducesEveryVector(page);
  assert.deepEqual(faults, []);
  await close();
});
