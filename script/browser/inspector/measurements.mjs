// Pending measurements: they are applied, ignored and taken back.

import assert from "node:assert/strict";
import { test } from "node:test";

import { screenshot } from "../browser.mjs";
import { announced, apply, ask, banner, codes, device, inspector, measure, numberOf, openDraft, other, recent, reports, TABLET, tabTo, url, visit, visitReport } from "./setup.mjs";

test("a pending measurement can be applied with one click, and appears in the form at once", async () => {
  const { page, errors, close } = await visit();
  // The vehicle must have a factory power, so that there is a ratio.
  let report;
  do report = (await ask(page, "GET", `/reports/${reports.pop().id}`)).data; while (!report.vehicle.factory_power_hp);
  await measure(report);
  await page.goto(`${url}#/reports/${report.id}`);
  await banner(page).waitFor();
  const row = (name) => page.locator(".banner tbody tr", { hasText: name });
  assert.match(await row("Süspansiyon verimi, sol ön").innerText(), /%71,5\s+İyi/);
  assert.match(await row("Süspansiyon verimi, sağ ön").innerText(), /%46\s+Sınırda/);
  assert.match(await row("Fren kuvveti, sağ ön").innerText(), /1,12 kN\s+Limit dışı/);
  assert.match(await page.locator('.banner [data-code="BRAKE_FRONT_DIFFERENCE"]').innerText(), /Limit dışı/);
  await screenshot(page, "banner");
  await apply(page).click();
  await banner(page).waitFor({ state: "detached" });
  assert.equal(await numberOf(page, "BRAKE_FRONT_LEFT").inputValue(), "2,85");
  // The service computes the ratio, so it is read-only.
  assert.equal(await numberOf(page, "DYNO_RATIO").getAttribute("readonly"), "");
  assert.equal(await numberOf(page, "DYNO_MEASURED_HP").getAttribute("readonly"), null);
  assert.match(await numberOf(page, "DYNO_RATIO").inputValue(), /^\d+(,\d+)?$/);
  const brakes = page.locator(".picture .pair", { hasText: "Fren" }).first();
  assert.match(await brakes.innerText(), /2,85 kN[\s\S]*sağ %60,7 zayıf[\s\S]*1,12 kN/);
  // The same sums and differences as in the PDF, with their own limits.
  assert.match(await brakes.locator('[data-code="BRAKE_FRONT_DIFFERENCE"]').innerText(), /Fark: %60,7\s+Limit dışı/);
  assert.match(await brakes.locator('[data-code="BRAKE_FRONT_SUM"]').innerText(), /Toplam: 3,97 kN/);
  await announced(page, /Ölçüm uygulandı: 7 değer/);
  assert.ok(await page.evaluate(() => document.activeElement.closest("#tabs") !== null), "the focus moves to the new values");
  await screenshot(page, "applied");
  assert.deepEqual(errors, []);
  await close();
});

test("an ignored measurement is no longer pending, and a replay reports it as discarded", async () => {
  const report = reports.pop();
  const sent = await measure(report);
  const { page, errors, close } = await visitReport(report);
  const before = await numberOf(page, "BRAKE_FRONT_LEFT").inputValue();
  await page.locator("#ignore").click();
  await page.locator("#really").waitFor();
  // The page asks for confirmation, which can be cancelled.
  await page.locator(".confirmation").getByRole("button", { name: "Vazgeç" }).click();
  await page.locator("#ignore").click();
  await page.locator("#really").click();
  await banner(page).waitFor({ state: "detached" });
  assert.notEqual(before, "2,85");
  assert.equal(await numberOf(page, "BRAKE_FRONT_LEFT").inputValue(), before);
  const replay = await device.send("POST", "/api/v1/partner/test-line/measurements", sent);
  assert.equal(replay.status, 200);
  assert.equal(JSON.parse(replay.body).data.status, "discarded");
  assert.deepEqual(errors, []);
  await close();
});

test("a measurement that arrives while the report is open appears by itself and keeps typed text", async () => {
  const report = recent.pop();
  const { page, errors, close } = await visitReport(report);
  await page.locator(".connection.open").waitFor();
  await page.getByRole("link", { name: "Değerlendirme ve fiyat" }).click();
  const text = page.locator("#field-summary");
  await text.fill("Sağ ön çamurluk");
  await text.press("End");
  await measure(report);
  await banner(page).waitFor();
  await announced(page, /Yeni bir cihaz ölçümü geldi/);
  assert.ok(await text.evaluate((node) => node === document.activeElement), "the focus stays");
  await page.keyboard.type(" boyalı.");
  assert.equal(await text.inputValue(), "Sağ ön çamurluk boyalı.");
  await page.locator("#field-summary-state", { hasText: "kaydedildi" }).waitFor();
  // The newer one is listed first.
  await measure(report, { serial: "BT3000-NEWER", values: { SLIP_FRONT: 1.2 } });
  await page.locator(".banner", { hasText: "2 cihaz ölçümü" }).waitFor();
  assert.match(await page.locator(".measurement").first().innerText(), /BT3000-NEWER/);
  const read = await ask(page, "GET", `/reports/${report.id}`);
  assert.equal(read.data.summary, "Sağ ön çamurluk boyalı.");
  assert.deepEqual(errors, []);
  await close();
});

test("if two inspectors click at the same time, one succeeds and the other sees a notice", async () => {
  const report = reports.pop();
  await measure(report);
  const [first, second] = [await visitReport(report), await visitReport(report)];
  for (const { page } of [first, second]) {
    // Without the event stream.
    await page.route("**/inspector/v1/events", (route) => route.abort());
    await page.reload();
    await apply(page).waitFor();
  }
  // Both clicks happen before either page receives a response.
  const release = [];
  for (const { page } of [first, second]) {
    await page.route("**/measurements/*", async (route) => { await new Promise((go) => release.push(go)); await route.continue(); });
    await apply(page).click();
  }
  while (release.length < 2) await new Promise((resume) => setImmediate(resume));
  release.forEach((go) => go());
  for (const { page } of [first, second]) await banner(page).waitFor({ state: "detached" });
  const notices = await Promise.all([first, second].map(({ page }) => page.locator(".notice").first().innerText()));
  assert.deepEqual(notices.map((text) => (/uygulandı: \d+ değer/.test(text) ? "won" : /meslektaşınız sizden önce/.test(text) ? "lost" : text)).sort(), ["lost", "won"]);
  // Both see the result.
  for (const { page } of [first, second]) assert.equal(await numberOf(page, "BRAKE_FRONT_LEFT").inputValue(), "2,85");
  const loser = [first, second][notices.findIndex((text) => /meslektaşınız/.test(text))];
  await screenshot(loser.page, "race-lost");
  await first.close();
  await second.close();
});

test("an inspector can open a report, apply a measurement and send it to review with only the keyboard", async () => {
  const report = reports.pop();
  await measure(report, { values: { SLIP_REAR: 2.1 } });
  await measure(report);
  const { page, errors, close } = await visit({ viewport: TABLET });
  const line = page.locator(`.reports a[href="#/reports/${report.id}"]`);
  for (let more = 0; more < 5 && !(await line.count()); more++) {
    const length = await page.locator(".reports li").count();
    await page.locator(".more").focus();
    await page.keyboard.press("Enter");
    await page.locator(".reports li").nth(length).waitFor();
  }
  await tabTo(page, `.reports a[href="#/reports/${report.id}"]`);
  await page.keyboard.press("Enter");
  await apply(page).waitFor();
  await tabTo(page, "#apply");
  await page.keyboard.press("Enter");
  await page.locator(".banner h2", { hasText: "Bir cihaz ölçümü" }).waitFor();
  // The shortcut applies the older one.
  await page.keyboard.press("Alt+u");
  await banner(page).waitFor({ state: "detached" });
  assert.equal(await numberOf(page, "SLIP_REAR").inputValue(), "2,1");
  await tabTo(page, '[data-to="IN_REVIEW"]');
  await page.keyboard.press("Enter");
  await page.locator("dialog").waitFor();
  await tabTo(page, 'dialog [type="submit"]');
  await page.keyboard.press("Enter");
  await page.locator("main .stage", { hasText: "İncelemede" }).first().waitFor();
  assert.equal(await numberOf(page, "SLIP_REAR").count(), 0, "a report in review is read-only");
  assert.deepEqual(errors, []);
  await close();
});

test("an applied and an ignored measurement are taken back", async () => {
  const report = reports.pop();
  await measure(report, { values: { SLIP_REAR: 2.1 } });
  const { page, errors, close } = await visitReport(report);
  const before = await numberOf(page, "SLIP_REAR").inputValue();
  await apply(page).click();
  await banner(page).waitFor({ state: "detached" });
  assert.equal(await numberOf(page, "SLIP_REAR").inputValue(), "2,1");
  await page.locator(".notice").getByRole("button", { name: "Geri al" }).click();
  await banner(page).waitFor();
  assert.equal(await numberOf(page, "SLIP_REAR").inputValue(), before);
  await page.locator("#ignore").click();
  await page.locator("#really").click();
  await banner(page).waitFor({ state: "detached" });
  await page.goto(`${url}#/reports/${report.id}/history`);
  await page.locator("[data-undo]").first().click();
  await banner(page).waitFor();
  assert.deepEqual(errors, []);
  await close();
});

test("a device's value over a typed one is announced with both values, and the typed one can be restored", async () => {
  const { page, errors, close } = await visit();
  const report = await openDraft(page);
  await page.goto(`${url}#/reports/${report.id}/TEST_LINE`);
  await page.locator(".connection.open").waitFor();
  await numberOf(page, "SLIP_FRONT").fill("2,5");
  await page.locator("#TEST_LINE-SLIP_FRONT-state", { hasText: "aydedildi" }).waitFor();
  const body = JSON.stringify({ branch_code: codes.get(report.branch_id), plate: report.plate, measurements: { SLIP_FRONT: 3.1 } });
  const answer = await device.send("POST", "/api/v1/partner/test-line/measurements", body);
  assert.equal(JSON.parse(answer.body).data.status, "applied");
  const replaced = page.locator("#TEST_LINE-SLIP_FRONT .replaced");
  await replaced.filter({ hasText: "3,1" }).filter({ hasText: "2,5" }).waitFor();
  await announced(page, /2,5 m\/km yerine 3,1 m\/km/);
  assert.equal(await numberOf(page, "SLIP_FRONT").inputValue(), "3,1");
  await replaced.getByRole("button").click();
  await replaced.waitFor({ state: "detached" });
  assert.equal(await numberOf(page, "SLIP_FRONT").inputValue(), "2,5");
  assert.deepEqual(errors, []);
  await close();
});
