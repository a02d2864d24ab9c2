// Moving a report to another status: what a publication requires, revisions, and dialogs.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { axe, openPage as openTab, screenshot, tooWide } from "../browser.mjs";
import { answerRequired, apply, ask, banner, browser, device, draft, inspector, measure, numberOf, openDraft, other, reports, sandbox, url, visit, visitReport, withoutEvents } from "./setup.mjs";

test("a published report shows its score, its public name and the digest of its PDF", async () => {
  await measure(draft);
  const { page, errors, close } = await visitReport(draft);
  await apply(page).click();
  await banner(page).waitFor({ state: "detached" });
  await answerRequired(page, draft.id);
  // Printing itself opens a dialog of the browser. This says what is printed, in every frame.
  await page.context().addInitScript(() => { window.print = () => { window.top.printedFile = [document.contentType, location.href]; }; });
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
  await page.locator("#print-pdf").click();
  await page.waitForFunction(() => window.printedFile);
  assert.deepEqual(await page.evaluate(() => window.printedFile), ["application/pdf", opened.url()]);
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
  const isFocused = async (link) => {
    await dialog.waitFor({ state: "detached" });
    const [, , , form, point] = link.split("/");
    await page.waitForFunction((id) => document.activeElement?.closest("li")?.id === id, `${form}-${point}`);
  };
  await first.click();
  await isFocused(address);
  // As with a template that requires all points: those beyond 20 unfold.
  await page.route(`**/reports/${report.id}`, async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    for (const form of body.data.forms) for (const point of form.points) point.is_required = true;
    await route.fulfill({ response, json: body });
  });
  await page.reload();
  await page.locator('[data-to="PUBLISHED"]').click();
  assert.equal(await dialog.locator(".required a").count(), report.forms.reduce((sum, { points }) => sum + points.length, 0));
  await dialog.locator(".required summary").click();
  const last = dialog.locator(".required details a").last();
  const addressOfLast = await last.getAttribute("href");
  assert.deepEqual(await axe(page), []);
  await screenshot(page, "required-all");
  await last.click();
  await isFocused(addressOfLast);
  await page.unroute(`**/reports/${report.id}`);
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

test("a colleague's change that only the response to one's own input has closes the dialog", async () => {
  const { page, close } = await visit();
  const report = await openDraft(page);
  await answerRequired(page, report.id);
  await page.goto(`${url}#/reports/${report.id}/TEST_LINE`);
  await withoutEvents(page);
  await page.route("**/forms/TEST_LINE", (route) => route.abort());
  await numberOf(page, "SLIP_FRONT").fill("2,5");
  await page.locator("#TEST_LINE-SLIP_FRONT-state", { hasText: "Gönderilemedi" }).waitFor();
  const { data } = await ask(page, "GET", `/reports/${report.id}`);
  await page.locator('[data-to="PUBLISHED"]').click();
  await ask(page, "PUT", `/reports/${report.id}/forms/BODY_PAINT`, { answers: [{ point_code: data.forms.find(({ template_code: code }) => code === "BODY_PAINT").points[0].code, status_code: "REPLACED" }] });
  await page.unroute("**/forms/TEST_LINE");
  await page.locator('dialog [type="submit"]').click();
  await page.locator("dialog").waitFor({ state: "detached" });
  await page.locator(".notice", { hasText: "Rapor bu arada değişti" }).waitFor();
  await page.locator("#TEST_LINE-SLIP_FRONT-state", { hasText: "aydedildi" }).waitFor();
  assert.equal((await ask(page, "GET", `/reports/${report.id}`)).data.status, "DRAFT");
  await close();
});

test("a dialog closes with a link, a sign-out in another tab, and a change of branches", async () => {
  const { page, close } = await visit();
  const report = await openDraft(page);
  const openMoveDialog = async () => {
    await page.goto(`${url}#/reports/${report.id}`);
    await page.locator('[data-to="IN_REVIEW"]').click();
    await page.locator("dialog.move").waitFor();
  };
  const signIn = async () => {
    await page.locator("dialog.again #token").fill(inspector.token);
    await page.keyboard.press("Enter");
    await page.locator("dialog.again").waitFor({ state: "detached" });
  };
  await openMoveDialog();
  // As a link does that another program opens in this tab.
  await page.evaluate(() => { location.hash = location.hash.replace(/(reports\/[^/]+).*/, "$1/photos"); });
  await page.locator(".drop").waitFor();
  assert.equal(await page.locator("dialog").count(), 0);
  await openMoveDialog();
  const tab = await page.context().newPage();
  await tab.goto(url);
  await tab.getByRole("button", { name: "Çıkış", exact: true }).click();
  await tab.locator("main.door").waitFor();
  await tab.close();
  await page.locator("dialog.again").waitFor();
  await signIn();
  assert.equal(await page.locator("dialog").count(), 0);
  await openMoveDialog();
  // As after an operator has moved the inspector to other branches: the report is not found, and the session has others.
  await page.route("**/inspector/v1/session", async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    await route.fulfill({ response, json: { data: { ...body.data, branches: body.data.branches.slice(1) } } });
  });
  await page.route(`**/reports/${report.id}`, (route) => route.fulfill({ status: 404, json: { error: { code: "not_found", message: "no such report at your branches" } } }));
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await page.locator("dialog.again").waitFor();
  assert.equal(await page.locator("dialog.move").count(), 0);
  await signIn();
  await page.locator("h1", { hasText: "Bu rapor bulunamadı" }).waitFor();
  assert.equal(await page.locator("dialog").count(), 0);
  assert.equal((await ask(page, "GET", "/reports?status=IN_REVIEW&limit=100")).data.some(({ id }) => id === report.id), false);
  await close();
});

test("what awaits a confirmation, and a vehicle that is being corrected, end with the address and with the inspector", async () => {
  const waiting = reports.pop();
  await measure(waiting);
  const { page, close } = await visitReport(waiting);
  page.on("dialog", (dialog) => dialog.accept());
  await page.locator("#ignore").click();
  await page.locator("#really").waitFor();
  await page.goto(`${url}#/reports/${waiting.id}/photos`);
  await page.locator(".drop").waitFor();
  assert.equal(await page.locator("#really").count(), 0);
  await page.locator("#choose").setInputFiles([{ name: "photo.png", mimeType: "image/png", buffer: await page.screenshot() }]);
  // The dialog for lines on a photo names the car.
  await page.getByRole("button", { name: "İşaretle: photo.png" }).click();
  await page.locator("dialog.mark .subject", { hasText: waiting.report_number }).waitFor();
  await page.keyboard.press("Escape");
  // So does the one about what a sign-out deletes.
  await page.getByRole("button", { name: "Çıkış", exact: true }).click();
  const { data } = await ask(page, "GET", `/reports/${waiting.id}`);
  const plateOf = (text) => text.replace(/\s/g, "");
  assert.equal(plateOf(await page.locator("dialog.leave .subject").innerText()), plateOf(data.plate));
  await page.keyboard.press("Escape");
  await page.locator("#send").click();
  await page.locator(".to-send").waitFor({ state: "detached" });
  const photo = page.locator(".gallery li").last();
  await photo.locator("summary").click();
  await photo.getByRole("button", { name: /^Fotoğrafı sil/ }).click();
  await photo.getByRole("button", { name: "Evet, sil" }).waitFor();
  await page.goto(`${url}#/reports/${waiting.id}/details`);
  await page.locator("#correct-vehicle").click();
  // The page moves the focus there, and would take it from a field that is being filled.
  await page.locator("#plate:focus").waitFor();
  await page.locator("#model").fill("Ibiza");
  await page.goto(`${url}#/reports/${waiting.id}/photos`);
  await photo.locator("summary").click();
  assert.equal(await photo.getByRole("button", { name: "Evet, sil" }).count(), 0);
  // A correction that was typed is kept for its inspector, but not for the next one.
  await page.goto(`${url}#/reports/${waiting.id}/details`);
  assert.equal(await page.locator("#model").inputValue(), "Ibiza");
  await page.getByRole("button", { name: "Çıkış", exact: true }).click();
  await page.locator("#token").fill(inspector.token);
  await page.keyboard.press("Enter");
  await page.goto(`${url}#/reports/${waiting.id}/details`);
  await page.locator("#correct-vehicle").waitFor();
  assert.equal(await page.locator("#model").count(), 0);
  await close();
});

test("a refused transition shows why, in the service's words", async () => {
  const { page, close } = await visit();
  const report = await openDraft(page);
  await answerRequired(page, report.id);
  await page.goto(`${url}#/reports/${report.id}`);
  await page.locator('[data-to="PUBLISHED"]').click();
  const error = page.locator("dialog .note.bad");
  for (const [code, message] of [["report_incomplete", "required points have no answer; answer them first: Hood"], ["transition_rejected", "the report is DRAFT"]]) {
    await page.route("**/status", (route) => route.fulfill({ status: 409, json: { error: { code, message } } }), { times: 1 });
    await page.locator('dialog [type="submit"]').click();
    await error.filter({ hasText: message }).waitFor();
  }
  await close();
});

test("a published report is archived, and cancelled or kept, each with its reason, and filters find it afterwards", async () => {
  const { page, errors, close } = await visit();
  const report = await openDraft(page);
  await answerRequired(page, report.id);
  await page.goto(`${url}#/reports/${report.id}`);
  const stage = page.locator("main.report h1 .stage");
  const move = async (to, shown, reason) => {
    await page.locator(`[data-to="${to}"]`).click();
    await page.locator("dialog .subject", { hasText: report.report_number }).waitFor();
    if (reason) {
      // Without its reason, it is not sent.
      await page.locator('dialog [type="submit"]').click();
      await page.locator("#reason-error").waitFor();
      assert.deepEqual(await axe(page), []);
      await page.locator("#reason").fill(reason);
    }
    await screenshot(page, `move-${to}`);
    await page.locator('dialog [type="submit"]').click();
    await page.locator("dialog").waitFor({ state: "detached" });
    await stage.filter({ hasText: shown }).waitFor();
  };
  const isListed = async (status) => {
    await page.goto(`${url}#/?status=${status}`);
    await page.locator(`.reports a[href="#/reports/${report.id}"]`).waitFor();
    assert.equal(await page.locator(`[name="status"][value="${status}"]`).isChecked(), true);
    await page.goto(`${url}#/reports/${report.id}`);
  };
  await move("PUBLISHED", "Yayımlandı");
  await move("CANCEL_REQUESTED", "İptal istendi", "Müşteri istedi.");
  // The way back is the status from before.
  assert.match(await page.locator('[data-to="PUBLISHED"]').innerText(), /İptalden vazgeç/);
  await move("PUBLISHED", "Yayımlandı");
  await move("ARCHIVED", "Arşivlendi", "Yenisi var.");
  await isListed("ARCHIVED");
  await move("CANCEL_REQUESTED", "İptal istendi", "Yanlış araç.");
  await isListed("CANCEL_REQUESTED");
  await move("CANCELLED", "İptal edildi");
  assert.equal(await page.locator("[data-to]").count(), 0);
  await page.locator("#tabs").getByText("Geçmiş").click();
  for (const reason of ["Müşteri istedi.", "Yenisi var.", "Yanlış araç."]) await page.locator(".history blockquote", { hasText: reason }).waitFor();
  await screenshot(page, "cancelled");
  await isListed("CANCELLED");
  assert.equal((await ask(page, "GET", `/reports/${report.id}`)).data.status, "CANCELLED");
  assert.deepEqual(errors, []);
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
  await page.locator('label:has([value="DISCARDED"])').click();
  await page.locator(`.reports a[href="#/reports/${empty.id}"]`).waitFor();
  assert.deepEqual(errors, []);
  await close();
});
