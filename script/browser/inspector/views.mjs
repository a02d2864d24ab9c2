// All views on several screens, and the page's headers.

import assert from "node:assert/strict";
import { test } from "node:test";

import { axe, screenshot, tooWide } from "../browser.mjs";
import { browser, measure, openPage, other, reports, sandbox, TABLET, url, visit } from "./setup.mjs";

test("a report of another branch is not found", async () => {
  const { page, close } = await visit({ token: other.token });
  await page.goto(`${url}#/reports/${reports[0].id}`);
  await page.locator("h1", { hasText: "Bu rapor bulunamadı" }).waitFor();
  assert.ok(!(await page.locator("#page").innerText()).includes(reports[0].plate));
  assert.deepEqual(await axe(page), []);
  await close();
});

const VIEWS = ["", "new", "TEST_LINE", "BODY_PAINT", "photos", "details", "history"];
for (const [name, viewport, colors, language] of [
  ["desktop", { width: 1280, height: 800 }, "light", "en"],
  ["tablet", TABLET, "light", "tr"],
  ["tablet-wide", { width: 1180, height: 820 }, "dark", "en"],
  ["phone", { width: 375, height: 720 }, "dark", "tr"],
]) {
  test(`on a ${name}, ${colors}, in ${language}: there are no axe violations, nothing is too wide, and controls are large enough`, async () => {
    const report = reports.at(-1);
    if (name === "desktop") await measure(report);
    const { page, errors, close } = await visit({ viewport, colors, language });
    const found = [];
    for (const view of VIEWS) {
      await page.goto(`${url}#/${view === "" || view === "new" ? view : `reports/${report.id}/${view}`}`);
      await page.locator(view === "" ? ".reports" : view === "new" ? "#plate" : ".part").waitFor();
      assert.equal(await page.evaluate(() => document.documentElement.lang), language);
      const small = await page.evaluate(() => [...document.querySelectorAll("button, select, input:not([type=radio]):not([type=checkbox]), .button, nav a, .reports a")]
        .filter((node) => node.offsetParent && node.getBoundingClientRect().height < 43.5 && !node.classList.contains("unseen")).map((node) => node.outerHTML.slice(0, 80)));
      found.push(...[...await axe(page), ...await tooWide(page), ...small].map((problem) => `${view}: ${problem}`));
      if (name === "phone" && view === "TEST_LINE") await page.locator(".picture").first().evaluate((picture) => picture.scrollIntoView());
      await screenshot(page, `${name}-${colors}-${view || "list"}`);
    }
    assert.deepEqual(found, []);
    assert.deepEqual(errors, []);
    await close();
  });
}

test("on a window at 400 % zoom, the header leaves the screen to the content", async () => {
  const { page, close } = await visit({ viewport: { width: 320, height: 200 } });
  await page.goto(`${url}#/reports/${reports.at(-1).id}/TEST_LINE`);
  await page.locator(".points").waitFor();
  await page.evaluate(() => window.scrollTo(0, 600));
  const covered = await page.locator("header.top").evaluate((header) => Math.max(header.getBoundingClientRect().bottom, 0));
  assert.equal(covered, 0);
  assert.deepEqual(await tooWide(page), []);
  await close();
});

test("the page's headers restrict it to its own origin and the photos", async () => {
  const photos = new URL(sandbox.base_url).origin;
  const { page, close } = await openPage(browser);
  const response = await page.goto(url);
  const { "content-security-policy": policy, ...headers } = response.headers();
  assert.equal(policy, `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' ${photos}; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`);
  assert.deepEqual([headers["x-content-type-options"], headers["referrer-policy"], headers["cache-control"], headers["content-encoding"]], ["nosniff", "no-referrer", "public, no-cache", "gzip"]);
  const script = await page.request.get(new URL(await page.locator("script").getAttribute("src"), url).href);
  assert.match(script.headers()["cache-control"], /immutable/);
  // A URL without the trailing slash, and unknown paths.
  const bare = await page.request.get(url.replace(/\/$/, ""), { maxRedirects: 0 });
  assert.deepEqual([bare.status(), bare.headers().location], [308, "inspector/"]);
  assert.equal((await page.request.get(`${url}assets/nothing.js`)).status(), 404);
  assert.equal((await page.request.post(url)).status(), 404);
  await close();
});
