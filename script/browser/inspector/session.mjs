// Signing in and out, and the loss of a session or of the connection.

import assert from "node:assert/strict";
import { test } from "node:test";

import { axe, screenshot } from "../browser.mjs";
import { ask, banner, browser, inspector, measure, numberOf, openPage, other, reports, url, visitReport } from "./setup.mjs";

/** Signs in and opens a report on a page with a fake clock, so that the test need not wait. */
async function visitWithClock(report) {
  const { page, close } = await openPage(browser);
  await page.clock.install();
  await page.goto(url);
  await page.locator("#token").fill(inspector.token);
  await page.keyboard.press("Enter");
  await page.locator("main.list").waitFor();
  await page.goto(`${url}#/reports/${report.id}`);
  return { page, close };
}

test("a wrong token shows an error, and a right token may be typed in another form", async () => {
  const { page, close } = await openPage(browser);
  await page.goto(url);
  await page.locator("#token").fill("insp_00000000000000000000000000");
  await page.keyboard.press("Enter");
  await page.locator("#token-error").waitFor();
  assert.match(await page.locator("#token-error").innerText(), /anahtar geçerli değil/);
  assert.equal(await page.locator("#token").getAttribute("aria-invalid"), "true");
  assert.deepEqual(await axe(page), []);
  await page.locator("#token").fill(` ${inspector.token.toLowerCase().replace("insp_", "")} `);
  await page.keyboard.press("Enter");
  await page.locator("main.list .reports").waitFor();
  // No part of the token is stored.
  const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, document.documentElement.outerHTML]));
  assert.ok(!stored.toLowerCase().includes(inspector.token.slice(5).toLowerCase()));
  await close();
});

test("a lost connection is shown, typed text is kept, and missed measurements appear after the reconnect", async () => {
  const report = reports.pop();
  const { page, close } = await visitReport(report);
  await page.locator(".connection.open").waitFor();
  await page.context().setOffline(true);
  await page.locator(".connection.lost").waitFor();
  await page.locator("div.lost").waitFor();
  await measure(report);
  const number = numberOf(page, "BRAKE_REAR_LEFT");
  await number.fill("1,9");
  await page.locator("#TEST_LINE-BRAKE_REAR_LEFT-state", { hasText: "Gönderilemedi" }).waitFor();
  assert.deepEqual(await axe(page), []);
  await screenshot(page, "lost");
  await page.context().setOffline(false);
  await page.locator(".connection.open").waitFor();
  await banner(page).waitFor();
  await page.locator("#TEST_LINE-BRAKE_REAR_LEFT-state", { hasText: "kaydedildi" }).waitFor();
  const read = await ask(page, "GET", `/reports/${report.id}`);
  const point = read.data.forms.find((form) => form.is_test_line).points.find(({ code }) => code === "BRAKE_REAR_LEFT");
  assert.deepEqual([point.numeric_value, point.status_code, point.written_by], [1.9, "GOOD", inspector.name]);
  await close();
});

test("a stream without heartbeats counts as lost", async () => {
  const report = reports.pop();
  const { page, close } = await visitWithClock(report);
  await page.locator(".connection.open").waitFor();
  const opened = page.waitForRequest("**/inspector/v1/events");
  await page.clock.fastForward(41_000);
  await page.locator(".connection.lost").waitFor();
  await page.clock.fastForward(3_000);
  await opened;
  await page.locator(".connection.open").waitFor();
  await close();
});

test("an idle page signs out after half an hour and keeps typed text", async () => {
  const report = reports.pop();
  const { page, close } = await visitWithClock(report);
  await page.locator("main.report h1").waitFor();
  await page.route("**/forms/*", (route) => route.abort());
  await numberOf(page, "SLIP_REAR").fill("0,3");
  await page.clock.fastForward("29:00");
  await page.evaluate(() => document.title);
  assert.equal(await page.locator("dialog").count(), 0);
  await page.clock.fastForward("02:00");
  await page.locator("dialog #token").waitFor();
  assert.equal((await page.request.get(new URL("v1/session", url).href)).status(), 401);
  assert.equal(await numberOf(page, "SLIP_REAR").inputValue(), "0,3");
  await close();
});

test("background requests do not extend a session, and activity in one tab extends it for the other", async () => {
  const report = reports.at(-1);
  const { page, close } = await openPage(browser);
  const kept = [];
  page.context().on("request", (request) => { if (request.method() === "GET" && request.headers()["x-csrf-token"]) kept.push(new URL(request.url()).pathname); });
  await page.context().clock.install();
  await page.goto(url);
  await page.locator("#token").fill(inspector.token);
  await page.keyboard.press("Enter");
  await page.locator("main.list").waitFor();
  const tab = await page.context().newPage();
  await tab.goto(`${url}#/reports/${report.id}`);
  await tab.locator(".connection.open").waitFor();
  kept.splice(0);
  // The report is reloaded in the background.
  const read = tab.waitForResponse(`**/reports/${report.id}`);
  await page.context().clock.fastForward("20:00");
  await read;
  assert.deepEqual(kept, []);
  const extended = tab.waitForResponse("**/inspector/v1/session");
  await tab.locator("h1").click();
  await extended;
  assert.deepEqual(kept, ["/inspector/v1/session"]);
  // The session is extended at most once a minute.
  await tab.locator("h1").click();
  await page.context().clock.fastForward("20:00");
  assert.deepEqual(kept, ["/inspector/v1/session"]);
  assert.equal((await page.request.get(new URL("v1/session", url).href)).status(), 200);
  for (const one of [page, tab]) assert.equal(await one.locator("dialog").count(), 0);
  await page.context().clock.fastForward("11:00");
  for (const one of [page, tab]) await one.locator("dialog #token").waitFor();
  await close();
});

test("text typed by one inspector is never sent as another, from a second tab or after a reload", async () => {
  const report = reports.pop();
  const { page, close } = await visitReport(report);
  page.on("dialog", (dialog) => dialog.accept());
  // Give the other inspector access to the report, so that only the page prevents the text from being sent.
  const { data: there } = await ask(page, "GET", `/reports/${report.id}`);
  await page.route(`**/reports/${report.id}`, (route) => route.fulfill({ json: { data: there } }));
  const written = [];
  page.on("response", (response) => { if (response.request().method() === "PUT" && response.status() !== 403) written.push(response.url()); });
  // Another inspector signs in in the same browser.
  const tab = await page.context().newPage();
  await tab.goto(url);
  await tab.locator("main.list").waitFor();
  await tab.getByRole("button", { name: "Çıkış", exact: true }).click();
  await tab.locator("#token").fill(other.token);
  await tab.keyboard.press("Enter");
  await tab.locator(".inspector", { hasText: other.name }).waitFor();
  await numberOf(page, "BRAKE_REAR_RIGHT").fill("1,7");
  await page.locator("dialog #token").waitFor();
  assert.deepEqual(written, []);
  // After a reload the other inspector is signed in here as well.
  await page.reload();
  await page.locator(".inspector", { hasText: other.name }).waitFor();
  assert.ok(!(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).match(/1[.,]7/));
  await close();
});

test("when a session expires, a dialog asks for the token and typed text is kept", async () => {
  const report = reports.pop();
  const { page, close } = await visitReport(report);
  const note = page.locator(".points input.note-of").first();
  // The dialog takes the focus, so nothing is sent before both fields are filled.
  let release;
  const typed = new Promise((resolve) => { release = resolve; });
  await page.route("**/forms/*", (route) => typed.then(() => route.continue()));
  await numberOf(page, "SLIP_REAR").fill("0,4");
  await note.fill("Kontrol edildi");
  await page.context().clearCookies();
  release();
  await page.locator("dialog #token").waitFor();
  assert.match(await page.locator("dialog").innerText(), /Yazdıklarınız duruyor, Ayşe Yılmaz/);
  assert.deepEqual(await axe(page), []);
  await screenshot(page, "session-ended");
  await page.locator("#token").fill(inspector.token);
  await page.keyboard.press("Enter");
  await page.locator("dialog").waitFor({ state: "detached" });
  assert.equal(await note.inputValue(), "Kontrol edildi");
  assert.equal(await numberOf(page, "SLIP_REAR").inputValue(), "0,4");
  await close();
});

test("signing out asks about unsaved text and deletes it", async () => {
  const report = reports.at(-1);
  const { page, close } = await visitReport(report);
  await page.route("**/forms/*", (route) => route.abort());
  await page.locator(".points input.note-of").first().fill("Yarım");
  await numberOf(page, "SLIP_REAR").fill("0,7");
  await page.getByRole("button", { name: "Çıkış", exact: true }).click();
  await page.locator("dialog", { hasText: "Kaydedilmemiş" }).waitFor();
  await page.getByRole("button", { name: "Sil ve çık" }).click();
  await page.locator("main.door").waitFor();
  assert.ok(!(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).includes("Yarım"));
  assert.equal((await page.request.get(new URL("v1/session", url).href)).status(), 401);
  await close();
});
