// Moving a report to another status: what a publication requires, revisions, and dialogs.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { axe, openPage as openTab, screenshot, tooWide } from "../browser.mjs";
import { answerRequired, apply, ask, banner, browser, device, draft, measure, openDraft, other, reports, sandbox, url, visit, visitReport } from "./setup.mjs";

test("a published report shows its score, its public name and the digest of its PDF", async () => {
  await measure(draft);
  const { page, errors, close } = await visitReport(draft);
  await apply(page).click();
  await banner(page).waitFor({ state: "detached" });
  await answerRequired(page, draft.id);
  await page.reload();
  await page.locator('[data-to="PUBLISHED"]').click();
  await page.locator("dialog", { hasText: "Unutulmuş olabilir" }).waitFor();
  assert.deepEqual(await axe(page), []);
  await page.locator('dialog [type="submit"]').click();
  await page.locator(".published .ring").waitFor({ timeout: 90_000 });
  // The sandbox renders thousands of other PDFs, which may come first.
  const shown = page.locator(".published code", { hasText: /^[0-9a-f]{64}$/ });
  await shown.waitFor({ timeout: 90_000 });
  const { status, body } = await device.send("GET", `/api/v1/partner/inspections/${draft.id}/pdf`);
  assert.equal(status, 200, body.toString());
  assert.equal(body.subarray(0, 5).toString(), "%PDF-");
  assert.equal(await shown.innerText(), createHash("sha256").update(body).digest("hex"));
  assert.equal(await page.locator(".points input").count(), 0);
  assert.deepEqual(await axe(page), []);
  await screenshot(page, "published");
  // The PDF opens in a tab, and prints from a frame.
  const opened = await page.request.get(new URL(await page.locator("#open-pdf").getAttribute("href"), url).href);
  assert.deepEqual([opened.status(), opened.headers()["content-type"]], [200, "application/pdf"]);
  assert.match(opened.headers()["content-disposition"], /^inline; filename=/);
  assert.ok(body.equals(await opened.body()));
  await page.route("**/pdf", (route) => route.fulfill({ contentType: "text/html", body: "<script>window.print = () => parent.postMessage('printed', '*');</script>" }));
  const printed = page.evaluate(() => new Promise((resolve) => { window.addEventListener("message", ({ data }) => resolve(data), { once: true }); }));
  await page.locator("#print-pdf").click();
  assert.equal(await printed, "printed");
  const { data } = await ask(page, "GET", `/reports/${draft.id}`);
  assert.match(await page.locator(".published").innerText(), new RegExp(data.public_slug));
  assert.deepEqual(errors, []);
  await close();
});

test("the public page of a report compares a PDF with its digests in the browser", async () => {
  const { page: visited, close: closeVisit } = await visit();
  const { data: reports } = await ask(visited, "GET", "/reports?status=PUBLISHED&limit=100");
  // One with a rendered PDF.
  let report;
  for (const { id } of reports) {
    ({ data: report } = await ask(visited, "GET", `/reports/${id}`));
    if (report.pdf_sha256) break;
  }
  const { body } = await device.send("GET", `/api/v1/partner/inspections/${report.id}/pdf`);
  const { page, errors, close } = await openTab(browser, { origin: new URL(sandbox.base_url).origin });
  const response = await page.goto(`${sandbox.base_url}/r/${report.public_slug}`);
  assert.equal(response.status(), 200);
  assert.equal(await page.locator("#digest").innerText(), report.pdf_sha256);
  const text = await page.locator("main").innerText();
  assert.ok(text.includes(report.report_number) && !text.includes(report.plate) && !text.includes(report.vehicle.vin), text);
  const sent = [];
  page.on("request", (request) => sent.push(request.url()));
  await page.locator("#file").setInputFiles({ name: "report.pdf", mimeType: "application/pdf", buffer: body });
  await page.locator("#result.good").waitFor();
  assert.deepEqual(await axe(page), []);
  await screenshot(page, "public-page");
  await page.locator("#file").setInputFiles({ name: "report.pdf", mimeType: "application/pdf", buffer: Buffer.concat([body, Buffer.from(" ")]) });
  await page.locator("#result.bad").waitFor();
  assert.deepEqual(sent, [], "the file is not sent");
  assert.deepEqual(await tooWide(page), []);
  assert.deepEqual(errors, []);
  const missing = await page.goto(`${sandbox.base_url}/r/unknown`);
  assert.equal(missing.status(), 404);
  // In the browser's language.
  await page.locator("h1", { hasText: /^Report not found$/ }).waitFor();
  assert.deepEqual(await axe(page), []);
  await close();
  await closeVisit();
});

test("a report is published only with its required points, which the dialog lists as links", async () => {
  const { page, errors, close } = await visit();
  const report = await openDraft(page);
  await page.goto(`${url}#/reports/${report.id}`);
  await page.locator('[data-to="PUBLISHED"]').click();
  const dialog = page.locator("dialog");
  // The dialog names the car.
  await dialog.locator(".subject", { hasText: report.report_number }).waitFor();
  assert.equal(await dialog.locator('[type="submit"]').count(), 0);
  const first = dialog.locator(".required a").first();
  const address = await first.getAttribute("href");
  assert.deepEqual(await axe(page), []);
  await screenshot(page, "required");
  await first.click();
  await dialog.waitFor({ state: "detached" });
  const [, , , form, point] = address.split("/");
  await page.waitForFunction((id) => document.activeElement?.closest("li")?.id === id, `${form}-${point}`);
  await answerRequired(page, report.id);
  await page.reload();
  await page.locator('[data-to="PUBLISHED"]').click();
  await dialog.locator('[type="submit"]').click();
  await page.locator(".published .ring").waitFor();
  // Only a part of all points was inspected.
  await page.locator(".published", { hasText: /noktanın \d+ tanesi incelendi/ }).waitFor();
  assert.deepEqual(errors, []);
  await close();
});

test("a dialog closes with Back and with a colleague's change", async () => {
  const { page, close } = await visit();
  const report = await openDraft(page);
  await page.goto(`${url}#/`);
  await page.locator(`.reports a[href="#/reports/${report.id}"]`).click();
  await page.locator(".connection.open").waitFor();
  const openMoveDialog = () => page.locator('[data-to="IN_REVIEW"]').click();
  await openMoveDialog();
  await page.locator("dialog").waitFor();
  await page.goBack();
  await page.locator("main.list").waitFor();
  assert.equal(await page.locator("dialog").count(), 0);
  await page.goForward();
  await openMoveDialog();
  await page.locator("dialog").waitFor();
  const { data } = await ask(page, "GET", `/reports/${report.id}`);
  await ask(page, "PATCH", `/reports/${report.id}`, { version: data.version, summary: "Onun yazdığı" });
  await page.locator("dialog").waitFor({ state: "detached" });
  await page.locator(".notice", { hasText: "Rapor bu arada değişti" }).waitFor();
  assert.equal((await ask(page, "GET", `/reports/${report.id}`)).data.status, "DRAFT");
  await close();
});

test("a published report is revised with a reason and published again, and an empty draft is discarded", async () => {
  const { page, errors, close } = await visit();
  const report = await openDraft(page);
  await answerRequired(page, report.id);
  await page.goto(`${url}#/reports/${report.id}`);
  const move = async (to, reason) => {
    await page.locator(`[data-to="${to}"]`).click();
    if (reason) await page.locator("#reason").fill(reason);
    await page.locator('dialog [type="submit"]').click();
    await page.locator("dialog").waitFor({ state: "detached" });
  };
  await move("PUBLISHED");
  await page.locator('[data-to="REVISION_REQUESTED"]').click();
  await page.locator('dialog [type="submit"]').click();
  await page.locator("#reason-error").waitFor();
  await page.keyboard.press("Escape");
  await move("REVISION_REQUESTED", "Kilometre yanlış.");
  await page.goto(`${url}#/reports/${report.id}/details`);
  await page.locator("#field-mileage_km").fill("84210");
  await page.locator("#field-mileage_km-state", { hasText: "aydedildi" }).waitFor();
  await move("PUBLISHED");
  await page.goto(`${url}#/reports/${report.id}/history`);
  await page.locator(".history blockquote", { hasText: "Kilometre yanlış." }).waitFor();
  const empty = await openDraft(page);
  await page.goto(`${url}#/reports/${empty.id}`);
  await move("DISCARDED");
  await page.locator("main.list").waitFor();
  assert.equal((await ask(page, "GET", `/reports/${empty.id}`)).data.status, "DISCARDED");
  assert.deepEqual(errors, []);
  await close();
});
