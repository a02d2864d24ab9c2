// Tests of the documentation site, served by a sandbox and opened from a folder. SANDBOX names the sandbox.json, FOLDER the folder.
//
//   script/site                           runs all tests
//   SCREENSHOTS=/tmp/pictures script/site saves screenshots of some pages, on a desktop and a phone, light and dark

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { axe, openPage, screenshot, startBrowser, tooWide } from "./browser.mjs";

const { base_url: base, examples, partners } = JSON.parse(readFileSync(process.env.SANDBOX, "utf8"));
const vectors = JSON.parse(readFileSync("spec/signing-vectors.json", "utf8"));
const SHOWN = ["", "docs/index.html", "docs/signing.html", "docs/submit_measurement.html", "docs/errors.html", "docs/kits.html", "docs/tools.html", "docs/try.html"];

let browser;
/** The ids in each page of the site, by its URL. The first test fills it by following links. */
const pages = new Map();
before(async () => { browser = await startBrowser(); });
after(() => browser.close());

test("every link leads to an existing page and anchor", async () => {
  const { page, errors, close } = await openPage(browser, { origin: base });
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
  assert.deepEqual(errors, []);
  await close();
});

for (const [screen, colors] of [["desktop", "light"], ["phone", "dark"], ["desktop", "dark"], ["phone", "light"]]) {
  const isShownOnly = (screen === "desktop") === (colors === "dark");
  test(`on a ${screen}, ${colors}: there are no errors, no axe violations, and nothing is too wide`, async () => {
    const { page, errors, close } = await openPage(browser, { screen, colors, origin: base });
    const found = [];
    // Two of the four combinations cover only the pages that differ most.
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
    assert.deepEqual(errors, []);
    await close();
  });
}

/** Fills in the calculator and returns its output. */
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

/** Returns the fields for a request of the vectors. A text field cannot contain a carriage return, so such a body is entered as base64. */
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
    assert.deepEqual([got.verdict, got.differences], ["Your signature is correct.", ""], vector.name);
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

test("the calculator reproduces every vector without sending requests", async () => {
  const { page, errors, close } = await openPage(browser, { origin: base });
  await page.goto(`${base}/docs/signing.html`, { waitUntil: "networkidle" });
  const requests = [];
  page.on("request", (request) => requests.push(request.url()));
  await reproducesEveryVector(page);
  assert.deepEqual([errors, requests], [[], []]);
  await close();
});

/** The mistakes that `partner explain` names as well: it reads the same file. */
const { host, secret, cases } = JSON.parse(readFileSync("crates/partner/src/explain/cases.json", "utf8"));

test("the calculator names each mistake from the signature alone", async () => {
  const { page, close } = await openPage(browser, { origin: base });
  await page.goto(`${base}/docs/signing.html`);
  const unnamed = [];
  for (const { name, method, target, timestamp, nonce, body, signature, says } of cases) {
    const raw = `${method} ${target} HTTP/1.1\nHost: ${host}\nX-Partner-Timestamp: ${timestamp}\nX-Partner-Nonce: ${nonce}\nX-Partner-Signature: ${signature}\n\n${body}`;
    await page.evaluate(([text, key]) => {
      document.getElementById("secret").value = key;
      document.getElementById("raw").value = text;
      document.getElementById("verdict").textContent = "";
      document.getElementById("take").click();
    }, [raw, secret]);
    await page.waitForFunction(() => document.getElementById("verdict").textContent !== "");
    const shown = await page.evaluate(() => ["verdict", "problem"].map((id) => document.getElementById(id)).filter((element) => !element.hidden).map((element) => element.textContent).join(" "));
    const isNamed = says.length === 0 ? shown === "Your signature is correct." : says.every((words) => shown.includes(words));
    if (!isNamed) unnamed.push(`${name}: ${shown}`);
  }
  assert.deepEqual(unnamed, []);
  await close();
});

test("the calculator names the mistake in a canonical string", async () => {
  const { page, close } = await openPage(browser, { origin: base });
  await page.goto(`${base}/docs/signing.html`);
  const vector = vectors.request_vectors.find(({ method, body }) => method === "POST" && body?.includes("34 ABC 123") && !/\r/.test(body));
  const lines = vector.canonical_string.split("\n");
  for (const [theirs, words] of [
    [lines.filter((line) => line !== "").join("\n"), /^The line of the empty query is missing; keep it, empty\.$/],
    [`${vector.canonical_string}\n`, /line feed at its end/],
    [lines.with(0, "post").join("\n"), /METHOD: yours is "post", expected "POST".*upper case/],
    [lines.with(4, "another nonce").join("\n"), /^NONCE: yours is "another nonce"/],
  ]) assert.match((await calculate(page, { ...fieldsOf(vector), theirs })).differences, words);
  await close();
});

test("a raw request can be pasted", async () => {
  const { page, close } = await openPage(browser, { origin: base });
  await page.goto(`${base}/docs/signing.html`);
  const vector = vectors.request_vectors.find(({ method, body }) => method === "POST" && body?.startsWith("{") && !/\r/.test(body));
  await page.getByText("Paste a request").click();
  await page.getByLabel("Request", { exact: true }).fill(`${vector.method} ${vector.target} HTTP/1.1\nHost: x\nX-Partner-Timestamp: ${vector.timestamp}\n`
    + `X-Partner-Nonce: ${vector.nonce}\nX-Partner-Signature: ${vector.signature}\n\n${vector.body}`);
  await page.getByLabel("Secret").fill(vector.secret);
  await page.getByRole("button", { name: "Fill in" }).click();
  await page.getByText("Your signature is correct.").waitFor();
  await close();
});

test("the search works with only the keyboard", async () => {
  const { page, errors, close } = await openPage(browser, { origin: base });
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
  await page.getByText("No results.").waitFor();
  assert.deepEqual(errors, []);
  await close();
});

test("words that the documentation does not use are found by their synonyms", async () => {
  const { page, close } = await openPage(browser, { origin: base });
  await page.goto(`${base}/docs/`);
  const search = page.getByRole("searchbox");
  const results = async (words) => {
    await search.fill(words);
    await page.waitForFunction(() => window.searchIndex && !document.getElementById("found").hidden);
    return page.locator("#found a").allTextContents();
  };
  for (const [words, title] of [
    ["pagination", /cursor|page/i], ["sdk", /Tool and packages/], ["install", /Tool and packages/], ["ruby", /vectors/i],
    ["contact", /Contact/], ["synchronise", /sync/i], ["powershell", /Windows|PowerShell/],
  ]) assert.match((await results(words)).join("\n"), title, words);
  // A short word must not match the beginning of another one.
  for (const result of await results("kN")) assert.match(result, /\bkN\b/i);
  await close();
});

test("a request is signed in the browser and sent with a test key", async () => {
  for (const screen of ["desktop", "phone"]) {
    const { page, errors, close } = await openPage(browser, { screen, origin: base });
    const [partner] = partners;
    await page.goto(`${base}/docs/try.html`);
    await page.getByLabel("Key ID").fill(partner.key_id);
    await page.getByLabel("Secret").fill(partner.secret);
    const send = async (status) => {
      await page.getByRole("button", { name: "Send" }).click();
      await page.waitForFunction((wanted) => !document.getElementById("try-results").hidden && document.getElementById("try-status").textContent === wanted, status);
      return page.locator("#try-text").textContent();
    };
    assert.equal(JSON.parse(await send("200")).status, "ok");
    await page.getByLabel("Operation").selectOption({ label: "POST Submit a package of test-line measurements" });
    const body = JSON.parse(await page.getByRole("textbox", { name: "Body" }).inputValue());
    await page.getByRole("textbox", { name: "Body" }).fill(JSON.stringify({ ...body, branch_code: examples.open_report.branch_code, external_id: `İ-${screen}-${Date.now()}` }));
    assert.ok(JSON.parse(await send("201")).data.measurement_id);
    await page.getByLabel("Path and query").fill("/api/v1/partner/inspections?limit=1&published_from=2020-01-01T00:00:00%2B03:00");
    await page.getByLabel("Method").fill("GET");
    await page.getByRole("textbox", { name: "Body" }).fill("");
    const list = JSON.parse(await send("200"));
    assert.equal(list.data.length, 1);
    await page.getByLabel("Path and query").fill(`/api/v1/partner/inspections/${list.data[0].id}/photos`);
    await send("200");
    assert.deepEqual([await axe(page), await tooWide(page), errors], [[], [], []]);
    await screenshot(page, `try-sent-${screen}-light`, { fullPage: true });
    // The secret is neither sent nor stored.
    assert.ok(!(await page.locator("#try-sent").textContent()).includes(partner.secret));
    assert.deepEqual(await page.evaluate(() => Object.values(localStorage)), []);
    for (const [id, words] of [[partner.key_id.replace("_test_", "_live_"), "live key"], ["nothing", "_test_"]]) {
      await page.getByLabel("Key ID").fill(id);
      const requests = [];
      page.on("request", (request) => requests.push(request.url()));
      await page.getByRole("button", { name: "Send" }).click();
      await page.locator("#try-problem").filter({ hasText: words }).waitFor();
      assert.deepEqual(requests, []);
    }
    await close();
  }
});

test("a heading can be linked, and On this page leads to it", async () => {
  const { page, close } = await openPage(browser, { origin: base });
  await page.goto(`${base}/docs/errors.html`);
  await page.locator("#rate_limited").hover();
  await page.getByRole("link", { name: "Link to", exact: false }).filter({ visible: true }).first().waitFor();
  await page.locator("#rate_limited .permalink").click();
  await page.waitForURL(`${base}/docs/errors.html#rate_limited`);
  await page.locator("details.contents").getByRole("link", { name: /invalid_request/ }).first().click();
  await page.waitForURL(/#invalid_request$/);
  await close();
  const phone = await openPage(browser, { screen: "phone", origin: base });
  await phone.page.goto(`${base}/docs/errors.html`);
  assert.equal(await phone.page.locator("details.contents[open]").count(), 0);
  await phone.page.getByText("On this page").click();
  await phone.page.locator("details.contents").getByRole("link").first().waitFor();
  await phone.close();
});

test("an unknown page is explained to browsers, and the feed and the list of pages are served", async () => {
  const { page, close } = await openPage(browser);
  assert.equal((await page.goto(`${base}/docs/no-such-page.html`)).status(), 404);
  await page.getByRole("heading", { name: "Page not found" }).waitFor();
  await page.getByRole("link", { name: "All operations" }).first().click();
  await page.waitForURL(`${base}/docs/reference.html`);
  const feed = await page.request.get(`${base}/docs/changes.xml`);
  assert.equal(feed.headers()["content-type"], "application/atom+xml; charset=utf-8");
  const list = await (await page.request.get(`${base}/llms.txt`)).text();
  for (const [, path] of list.matchAll(/\]\((\/[^)]*)\)/g)) assert.equal((await page.request.get(base + path)).status(), 200, path);
  await close();
});

test("the chosen language and colors apply to every page", async () => {
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

test("pages, search and calculator work from a folder without a server", async () => {
  const { page, errors, close } = await openPage(browser, { origin: "file://" });
  await page.goto(pathToFileURL(join(process.env.FOLDER, "docs/index.html")).href);
  await page.getByRole("searchbox").fill("rate limit");
  await page.locator("#found a").first().click();
  await page.getByRole("link", { name: "Signing", exact: true }).click();
  // A click does not wait for the page to load.
  await page.waitForURL("**/signing.html", { waitUntil: "load" });
  await reproducesEveryVector(page);
  assert.deepEqual(errors, []);
  await close();
});
