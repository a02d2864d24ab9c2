// The inspectors' page, as a sandbox serves it: SANDBOX names its sandbox.json.
//
//   script/inspectors                           all of it
//   SCREENSHOTS=/tmp/pictures script/inspectors keeps pictures

import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { Partner } from "../../samples/node/partner.mjs";
import { axe, openPage, screenshot, startBrowser, tooWide } from "./browser.mjs";

const sandbox = JSON.parse(readFileSync(process.env.SANDBOX, "utf8"));
const [inspector, other] = sandbox.inspectors;
const url = sandbox.inspectors_url;
const alpha = sandbox.partners.find(({ name }) => name === "alpha");
const device = new Partner(sandbox.base_url, alpha.key_id, alpha.secret);
const TABLET = { width: 820, height: 1180 };
/** One that is good, one that is borderline, one that is out of limit, and two that are far apart. */
const VALUES = { SUSP_FRONT_LEFT: 71.5, SUSP_FRONT_RIGHT: 46, BRAKE_FRONT_LEFT: 2.85, BRAKE_FRONT_RIGHT: 1.12, SLIP_FRONT: -6.1, DYNO_MEASURED_HP: 96 };

/** Of reports that were opened longer ago, in hours, no change is told; the page reads them anew once a minute. */
const WATCHED = 30 * 24;

let browser;
/** Reports that are being written, of more than a day ago: what comes for their plates waits. Most tests take one of their own. */
let reports;
/** The same, of so few days ago that changes of them are told (WATCHED). */
let recent;
/** One that is a draft. */
let draft;
/** Codes of the inspector's branches, by id. */
let codes;
before(async () => {
  browser = await startBrowser();
  const { page, close } = await visit();
  const open = await ask(page, "GET", "/reports?limit=100");
  const age = ({ created_at: at }) => (Date.now() - new Date(at).getTime()) / 3_600_000;
  const old = open.data.filter((report) => ["DRAFT", "REVISION_REQUESTED"].includes(report.status) && report.waiting === 0 && age(report) > 24);
  reports = old.filter((report) => age(report) > WATCHED);
  [draft] = reports.splice(reports.findIndex(({ status }) => status === "DRAFT"), 1);
  // They would not be enough: those that are reviewed are sent back.
  for (const { id, status, waiting } of open.data) {
    if (status !== "IN_REVIEW" || waiting > 0) continue;
    const { data: reviewed } = await ask(page, "GET", `/reports/${id}`);
    const { data: report } = await ask(page, "PUT", `/reports/${id}/status`, { version: reviewed.version, to: "REVISION_REQUESTED", reason: "Eksik" });
    reports.unshift(report);
  }
  recent = old.filter((report) => age(report) < WATCHED);
  const { data } = await ask(page, "GET", "/session");
  codes = new Map(data.branches.map(({ id, code }) => [id, code]));
  await close();
});
after(() => browser.close());

/** A page at the list, signed in. */
async function visit({ token = inspector.token, language = "tr", viewport, ...options } = {}) {
  const opened = await openPage(browser, options);
  const { page } = opened;
  if (viewport) await page.setViewportSize(viewport);
  await page.goto(url);
  if (language === "en") await page.getByRole("button", { name: "EN" }).click();
  await page.locator("#token").fill(token);
  await page.keyboard.press("Enter");
  await page.locator("main.list .reports").waitFor();
  // Before anybody signed in, the service said so.
  opened.faults.splice(0);
  return opened;
}

/** What the API says to this page's session. */
async function ask(page, method, path, body) {
  return page.evaluate(async ([method, path, body]) => {
    const session = await (await fetch("/inspector/v1/session")).json();
    const headers = { "X-CSRF-Token": session.data.csrf_token, "Content-Type": "application/json" };
    const response = await fetch(`/inspector/v1${path}`, { method, headers: method === "GET" ? {} : headers, body: body && JSON.stringify(body) });
    return response.status === 204 ? null : response.json();
  }, [method, path, body]);
}

async function measure(report, { values = VALUES, serial = "BT3000-77812", ...members } = {}) {
  const body = JSON.stringify({ branch_code: codes.get(report.branch_id), plate: report.plate, device_serial: serial, measurements: values, external_id: randomUUID(), ...members });
  const answer = await device.send("POST", "/api/v1/partner/test-line/measurements", body);
  assert.equal(answer.status, 201, answer.body.toString());
  const { data } = JSON.parse(answer.body);
  assert.equal(data.status, "pending");
  return body;
}

/** The page at a report. */
async function visitReport(report, options) {
  const opened = await visit(options);
  await opened.page.goto(`${url}#/reports/${report.id}`);
  await opened.page.locator("main.report h1").waitFor();
  return opened;
}

const banner = (page) => page.locator(".banner");
const apply = (page) => page.locator("#apply");
/** What somebody is told who does not see the page. */
const told = (page, text) => page.locator("#told", { hasText: text }).waitFor();
const numberOf = (page, code) => page.locator(`#TEST_LINE-${code}-number`);

test("a wrong token is refused kindly, and typed by hand the right one is known", async () => {
  const { page, close } = await openPage(browser);
  await page.goto(url);
  await page.locator("#token").fill("insp_00000000000000000000000000");
  await page.keyboard.press("Enter");
  await page.locator("#token-fault").waitFor();
  assert.match(await page.locator("#token-fault").innerText(), /anahtar geçerli değil/);
  assert.equal(await page.locator("#token").getAttribute("aria-invalid"), "true");
  assert.deepEqual(await axe(page), []);
  await page.locator("#token").fill(` ${inspector.token.toLowerCase().replace("insp_", "")} `);
  await page.keyboard.press("Enter");
  await page.locator("main.list .reports").waitFor();
  // Nothing of the token is left behind.
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, document.documentElement.outerHTML]));
  assert.ok(!kept.toLowerCase().includes(inspector.token.slice(5).toLowerCase()));
  await close();
});

test("what waits is one click away, and is in the form at once", async () => {
  const { page, faults, close } = await visit();
  // With a registered power there is a ratio.
  let report;
  do report = (await ask(page, "GET", `/reports/${reports.pop().id}`)).data; while (!report.vehicle.factory_power_hp);
  await measure(report);
  await page.goto(`${url}#/reports/${report.id}`);
  await banner(page).waitFor();
  const row = (name) => page.locator(".banner tbody tr", { hasText: name });
  assert.match(await row("Süspansiyon verimi, sol ön").innerText(), /%71,5\s+İyi/);
  assert.match(await row("Süspansiyon verimi, sağ ön").innerText(), /%46\s+Sınırda/);
  assert.match(await row("Fren kuvveti, sağ ön").innerText(), /1,12 kN\s+Limit dışı/);
  await screenshot(page, "banner");
  await apply(page).click();
  await banner(page).waitFor({ state: "detached" });
  assert.equal(await numberOf(page, "BRAKE_FRONT_LEFT").inputValue(), "2,85");
  // The ratio is the service's own, and nobody types another one.
  assert.equal(await numberOf(page, "DYNO_RATIO").getAttribute("readonly"), "");
  assert.equal(await numberOf(page, "DYNO_MEASURED_HP").getAttribute("readonly"), null);
  assert.match(await numberOf(page, "DYNO_RATIO").inputValue(), /^\d+(,\d+)?$/);
  assert.match(await page.locator(".picture .pair", { hasText: "Fren" }).first().innerText(), /2,85 kN[\s\S]*sağ %61 zayıf[\s\S]*1,12 kN/);
  await told(page, /Ölçüm uygulandı: 7 değer/);
  assert.ok(await page.evaluate(() => document.activeElement.closest("#tabs") !== null), "the focus is at what was written");
  await screenshot(page, "applied");
  assert.deepEqual(faults, []);
  await close();
});

test("what is ignored waits no more, and a replay says so", async () => {
  const report = reports.pop();
  const sent = await measure(report);
  const { page, faults, close } = await visitReport(report);
  const before = await numberOf(page, "BRAKE_FRONT_LEFT").inputValue();
  await page.locator("#ignore").click();
  await page.locator("#really").waitFor();
  // Asked first, and one may think better of it.
  await page.locator(".asked").getByRole("button", { name: "Vazgeç" }).click();
  await page.locator("#ignore").click();
  await page.locator("#really").click();
  await banner(page).waitFor({ state: "detached" });
  assert.notEqual(before, "2,85");
  assert.equal(await numberOf(page, "BRAKE_FRONT_LEFT").inputValue(), before);
  const replay = await device.send("POST", "/api/v1/partner/test-line/measurements", sent);
  assert.equal(replay.status, 200);
  assert.equal(JSON.parse(replay.body).data.status, "discarded");
  assert.deepEqual(faults, []);
  await close();
});

test("what arrives while the report is open shows by itself, and takes nothing that was typed", async () => {
  const report = recent.pop();
  const { page, faults, close } = await visitReport(report);
  await page.locator(".connection.open").waitFor();
  await page.getByRole("link", { name: "Metinler ve fiyat" }).click();
  const text = page.locator("#field-summary");
  await text.fill("Sağ ön çamurluk");
  await text.press("End");
  await measure(report);
  await banner(page).waitFor();
  await told(page, /Yeni bir cihaz ölçümü geldi/);
  assert.ok(await text.evaluate((node) => node === document.activeElement), "the focus stays");
  await page.keyboard.type(" boyalı.");
  assert.equal(await text.inputValue(), "Sağ ön çamurluk boyalı.");
  await page.locator("#field-summary-state", { hasText: "kaydedildi" }).waitFor();
  // A newer one comes before it.
  await measure(report, { serial: "BT3000-NEWER", values: { SLIP_FRONT: 1.2 } });
  await page.locator(".banner", { hasText: "2 cihaz ölçümü" }).waitFor();
  assert.match(await page.locator(".measurement").first().innerText(), /BT3000-NEWER/);
  const read = await ask(page, "GET", `/reports/${report.id}`);
  assert.equal(read.data.summary, "Sağ ön çamurluk boyalı.");
  assert.deepEqual(faults, []);
  await close();
});

test("of two who click, one wins and the other is told kindly", async () => {
  const report = reports.pop();
  await measure(report);
  const [first, second] = [await visitReport(report), await visitReport(report)];
  for (const { page } of [first, second]) {
    // No stream tells them.
    await page.route("**/inspector/v1/events", (route) => route.abort());
    await page.reload();
    await apply(page).waitFor();
  }
  // Both clicks are made before either page has heard of the other's.
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
  // Both see what it came to.
  for (const { page } of [first, second]) assert.equal(await numberOf(page, "BRAKE_FRONT_LEFT").inputValue(), "2,85");
  const loser = [first, second][notices.findIndex((text) => /meslektaşınız/.test(text))];
  await screenshot(loser.page, "race-lost");
  await first.close();
  await second.close();
});

test("a report of another branch is not there", async () => {
  const { page, close } = await visit({ token: other.token });
  await page.goto(`${url}#/reports/${reports[0].id}`);
  await page.locator("h1", { hasText: "Bu rapor bulunamadı" }).waitFor();
  assert.ok(!(await page.locator("#page").innerText()).includes(reports[0].plate));
  assert.deepEqual(await axe(page), []);
  await close();
});

test("a connection that is lost is told, what is typed is kept, and what came meanwhile shows when it is back", async () => {
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

test("a stream that falls silent is not taken for one without news", async () => {
  const report = reports.pop();
  const { page, close } = await openPage(browser);
  // The page's own clock, which need not be waited for.
  await page.clock.install();
  await page.goto(url);
  await page.locator("#token").fill(inspector.token);
  await page.keyboard.press("Enter");
  await page.locator("main.list").waitFor();
  await page.goto(`${url}#/reports/${report.id}`);
  await page.locator(".connection.open").waitFor();
  const opened = page.waitForRequest("**/inspector/v1/events");
  await page.clock.fastForward(41_000);
  await page.locator(".connection.lost").waitFor();
  await page.clock.fastForward(3_000);
  await opened;
  await page.locator(".connection.open").waitFor();
  await close();
});

test("a page that nobody touches for half an hour signs out, and keeps what was typed", async () => {
  const report = reports.pop();
  const { page, close } = await openPage(browser);
  await page.clock.install();
  await page.goto(url);
  await page.locator("#token").fill(inspector.token);
  await page.keyboard.press("Enter");
  await page.locator("main.list").waitFor();
  await page.goto(`${url}#/reports/${report.id}`);
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

test("what the page reads by itself keeps no session alive, and whoever touches one tab keeps the other", async () => {
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
  // What is shown is read anew meanwhile.
  const read = tab.waitForResponse(`**/reports/${report.id}`);
  await page.context().clock.fastForward("20:00");
  await read;
  assert.deepEqual(kept, []);
  const told = tab.waitForResponse("**/inspector/v1/session");
  await tab.locator("h1").click();
  await told;
  assert.deepEqual(kept, ["/inspector/v1/session"]);
  // It is told once a minute at most.
  await tab.locator("h1").click();
  await page.context().clock.fastForward("20:00");
  assert.deepEqual(kept, ["/inspector/v1/session"]);
  assert.equal((await page.request.get(new URL("v1/session", url).href)).status(), 200);
  for (const one of [page, tab]) assert.equal(await one.locator("dialog").count(), 0);
  await page.context().clock.fastForward("11:00");
  for (const one of [page, tab]) await one.locator("dialog #token").waitFor();
  await close();
});

test("what was typed as one inspector is never sent as another, from a second tab or after a reload", async () => {
  const report = reports.pop();
  const { page, close } = await visitReport(report);
  page.on("dialog", (dialog) => dialog.accept());
  // As if the other one saw the report: the page alone keeps what was typed from being sent with the other's token.
  const { data: there } = await ask(page, "GET", `/reports/${report.id}`);
  await page.route(`**/reports/${report.id}`, (route) => route.fulfill({ json: { data: there } }));
  const written = [];
  page.on("response", (response) => { if (response.request().method() === "PUT" && response.status() !== 403) written.push(response.url()); });
  // The same browser, in which somebody else signs in.
  const tab = await page.context().newPage();
  await tab.goto(url);
  await tab.locator("main.list").waitFor();
  await tab.getByRole("button", { name: "Çık", exact: true }).click();
  await tab.locator("#token").fill(other.token);
  await tab.keyboard.press("Enter");
  await tab.locator(".inspector", { hasText: other.name }).waitFor();
  await numberOf(page, "BRAKE_REAR_RIGHT").fill("1,7");
  await page.locator("dialog #token").waitFor();
  assert.deepEqual(written, []);
  // After a reload the other one is signed in here as well.
  await page.reload();
  await page.locator(".inspector", { hasText: other.name }).waitFor();
  assert.ok(!(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).includes("1.7"));
  await close();
});

test("what was typed outlives a reload", async () => {
  const report = reports.pop();
  const { page, close } = await visitReport(report);
  page.on("dialog", (dialog) => dialog.accept());
  await page.route("**/forms/*", (route) => route.abort());
  await numberOf(page, "BRAKE_REAR_RIGHT").fill("1,7");
  await page.locator("#TEST_LINE-BRAKE_REAR_RIGHT-state", { hasText: "Gönderilemedi" }).waitFor();
  await page.unroute("**/forms/*");
  await page.reload();
  await page.locator("#TEST_LINE-BRAKE_REAR_RIGHT-state", { hasText: "kaydedildi" }).waitFor();
  assert.equal(await numberOf(page, "BRAKE_REAR_RIGHT").inputValue(), "1,7");
  await close();
});

test("a note takes nothing that a device has written meanwhile", async () => {
  const report = reports.pop();
  await measure(report, { values: { SUSP_FRONT_LEFT: 71.5 }, serial: "FIRST" });
  const { page, close } = await visitReport(report);
  await apply(page).click();
  await banner(page).waitFor({ state: "detached" });
  const sent = page.waitForRequest((request) => request.method() === "PUT" && request.url().includes("/forms/"));
  await page.getByLabel("Not: Süspansiyon verimi, sol ön").fill("Amortisör yeni");
  const { answers } = (await sent).postDataJSON();
  assert.deepEqual(answers, [{ point_code: "SUSP_FRONT_LEFT", note: "Amortisör yeni" }]);
  await page.locator("#TEST_LINE-SUSP_FRONT_LEFT-state", { hasText: "kaydedildi" }).waitFor();
  const { data } = await ask(page, "GET", `/reports/${report.id}`);
  const point = data.forms.find((form) => form.is_test_line).points.find(({ code }) => code === "SUSP_FRONT_LEFT");
  assert.deepEqual([point.numeric_value, point.note, /FIRST/.test(point.written_by)], [71.5, "Amortisör yeni", true]);
  await close();
});

test("a session that ends asks for the token over the page, and loses nothing that was typed", async () => {
  const report = reports.pop();
  const { page, close } = await visitReport(report);
  const note = page.locator(".points input.note-of").first();
  await page.context().clearCookies();
  await numberOf(page, "SLIP_REAR").fill("0,4");
  await note.fill("Kontrol edildi");
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

test("a report is opened for a plate, and the vehicle is asked for if it is not known", async () => {
  const { page, close, faults } = await visit();
  await page.keyboard.press("Alt+n");
  await page.locator("#plate").fill("34 tst 777");
  await page.locator("#package_name").fill("Full + Test Hattı");
  await page.locator("#base_price").fill("6.900");
  await page.locator("main .primary").click();
  // What is lacking is said where it is lacking.
  assert.equal(await page.locator("#mileage_km-fault").innerText(), "Bu alan gerekli.");
  assert.ok(await page.locator("#mileage_km").evaluate((node) => node === document.activeElement));
  await page.locator("#mileage_km").fill("84210,5");
  await page.keyboard.press("Enter");
  await page.locator("#mileage_km-fault", { hasText: "Yalnızca rakam" }).waitFor();
  await page.locator("#mileage_km").fill("84.210");
  await page.keyboard.press("Enter");
  await page.locator("#vin").waitFor();
  const vehicle = { vin: "wvwzzz1jz3w386752", brand: "Volkswagen", model: "Golf", year: "2019", color: "Beyaz", type: "HATCHBACK", fuel_type: "GASOLINE", transmission: "MANUAL", factory_power_hp: "115" };
  for (const [name, value] of Object.entries(vehicle)) await page.locator(`#${name}`).fill(value);
  faults.splice(0);
  await page.locator("main .primary").click();
  await page.locator("main.report .plate", { hasText: "34 TST 777" }).waitFor();
  await page.getByRole("link", { name: "Metinler ve fiyat" }).click();
  assert.equal(await page.locator("#field-base_price").inputValue(), "6.900,00");
  assert.equal(await page.locator("#field-mileage_km").inputValue(), "84.210");
  assert.deepEqual(faults, []);
  await close();
});

test("what somebody else changed meanwhile is not overwritten unasked", async () => {
  const report = reports.pop();
  const { page, close } = await visitReport(report);
  await page.getByRole("link", { name: "Metinler ve fiyat" }).click();
  await page.route("**/inspector/v1/events", (route) => route.abort());
  await page.locator("#field-summary").fill("Benim yazdığım");
  const held = [];
  await page.route(`**/reports/${report.id}`, async (route) => {
    if (route.request().method() === "PATCH" && held.length === 0) await new Promise((go) => held.push(go));
    await route.continue();
  });
  while (held.length === 0) await new Promise((resume) => setImmediate(resume));
  const colleague = await visit();
  const { data: now } = await ask(colleague.page, "GET", `/reports/${report.id}`);
  await ask(colleague.page, "PATCH", `/reports/${report.id}`, { version: now.version, summary: "Onun yazdığı" });
  await colleague.close();
  held.forEach((go) => go());
  const asked = page.locator(".note", { hasText: "Onun yazdığı" });
  await asked.waitFor();
  assert.equal(await page.locator("#field-summary").inputValue(), "Benim yazdığım");
  await asked.getByRole("button", { name: "Benimkini kaydet" }).click();
  await page.locator("#field-summary-state", { hasText: "kaydedildi" }).waitFor();
  const { data: after } = await ask(page, "GET", `/reports/${report.id}`);
  assert.equal(after.summary, "Benim yazdığım");
  await close();
});

test("photos are sent with their captions and put into order by keys", async () => {
  const { page, faults, close } = await visit();
  const vehicle = { vin: "WVWZZZ1JZ3W386753", brand: "Skoda", model: "Fabia", year: 2020, type: "HATCHBACK", fuel_type: "GASOLINE", transmission: "MANUAL", color: "Gri" };
  const { data: report } = await ask(page, "POST", "/reports", { branch_id: [...codes.keys()][0], plate: "34 FTO 100", package_name: "Temel", base_price: "2450.00", mileage_km: 10, vehicle });
  await page.goto(`${url}#/reports/${report.id}`);
  await page.getByRole("link", { name: "Fotoğraflar" }).click();
  // Pictures of the page itself: two that differ.
  const pictures = [await page.screenshot(), await page.locator(".drop").screenshot()];
  await page.locator("#choose").setInputFiles([
    ...pictures.map((buffer, index) => ({ name: `photo-${index}.png`, mimeType: "image/png", buffer })),
    { name: "notes.png", mimeType: "image/png", buffer: Buffer.from("no picture") },
  ]);
  const queue = page.locator(".to-send li");
  assert.equal(await queue.count(), 3);
  await queue.nth(0).getByLabel("Alt yazı").fill("Önden");
  await queue.nth(1).getByLabel("Ne gösteriyor?").selectOption("DAMAGE");
  // Pressed twice, it sends each once.
  await page.locator("#send").evaluate((button) => { button.click(); button.click(); });
  // What is no picture says so and stays; the others are there.
  await page.locator(".gallery li").nth(1).waitFor();
  await queue.locator(".fault", { hasText: "okunabilir bir JPEG" }).waitFor();
  assert.equal(await queue.count(), 1);
  await queue.getByRole("button", { name: "Çıkar: notes.png" }).click();
  const kinds = () => page.locator(".gallery figcaption b").allInnerTexts();
  assert.deepEqual(await kinds(), ["Dış görünüm", "Hasar"]);
  await page.locator(".gallery img").first().evaluate((image) => image.complete || new Promise((resolve) => { image.onload = resolve; }));
  const saved = page.waitForResponse((response) => response.request().method() === "PUT" && response.ok());
  const later = page.getByRole("button", { name: /^Arkaya al: 1/ });
  await later.focus();
  await page.keyboard.press("Enter");
  await saved;
  assert.deepEqual(await kinds(), ["Hasar", "Dış görünüm"]);
  await told(page, /2 içinde 2\. sırada/);
  assert.deepEqual(await axe(page), []);
  await screenshot(page, "photos");
  const unexpected = faults.filter((fault) => !/415/.test(fault));
  assert.deepEqual(unexpected, []);
  await close();
});

test("by keys alone: from the list to the report, applied, and on to review", async () => {
  const report = reports.pop();
  await measure(report, { values: { SLIP_REAR: 2.1 } });
  await measure(report);
  const { page, faults, close } = await visit({ viewport: TABLET });
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
  // The older one by the shortcut.
  await page.keyboard.press("Alt+u");
  await banner(page).waitFor({ state: "detached" });
  assert.equal(await numberOf(page, "SLIP_REAR").inputValue(), "2,1");
  await tabTo(page, '[data-to="IN_REVIEW"]');
  await page.keyboard.press("Enter");
  await page.locator("dialog").waitFor();
  await tabTo(page, 'dialog [type="submit"]');
  await page.keyboard.press("Enter");
  await page.locator("main .stage", { hasText: "İncelemede" }).first().waitFor();
  assert.equal(await numberOf(page, "SLIP_REAR").count(), 0, "it is not written while it is reviewed");
  assert.deepEqual(faults, []);
  await close();
});

/** Presses the tab key until something is focused, which must show that it is. */
async function tabTo(page, selector) {
  for (let presses = 0; presses < 150; presses++) {
    if (await page.evaluate((selector) => document.activeElement?.matches(selector), selector)) {
      const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
      assert.equal(outline, "solid", `${selector} shows that it is focused`);
      return;
    }
    await page.keyboard.press("Tab");
  }
  assert.fail(`the tab key does not lead to ${selector}`);
}

test("published, it has a score, a name and the digest of its PDF", async () => {
  await measure(draft);
  const { page, faults, close } = await visitReport(draft);
  await apply(page).click();
  await banner(page).waitFor({ state: "detached" });
  await page.locator('[data-to="PUBLISHED"]').click();
  await page.locator("dialog", { hasText: "Unutulmuş olabilir" }).waitFor();
  assert.deepEqual(await axe(page), []);
  await page.locator('dialog [type="submit"]').click();
  await page.locator(".published .ring").waitFor({ timeout: 90_000 });
  // The sandbox has thousands of PDFs to draw, for which nobody waits.
  const shown = page.locator(".published code", { hasText: /^[0-9a-f]{64}$/ });
  await shown.waitFor({ timeout: 90_000 });
  const { status, body } = await device.send("GET", `/api/v1/partner/inspections/${draft.id}/pdf`);
  assert.equal(status, 200, body.toString());
  assert.equal(body.subarray(0, 5).toString(), "%PDF-");
  assert.equal(await shown.innerText(), createHash("sha256").update(body).digest("hex"));
  assert.equal(await page.locator(".points input").count(), 0);
  assert.deepEqual(await axe(page), []);
  await screenshot(page, "published");
  const { data } = await ask(page, "GET", `/reports/${draft.id}`);
  assert.match(await page.locator(".published").innerText(), new RegExp(data.public_slug));
  assert.deepEqual(faults, []);
  await close();
});

const VIEWS = ["", "new", "TEST_LINE", "BODY_PAINT", "photos", "details", "history"];
for (const [name, viewport, colors, language] of [
  ["desktop", { width: 1280, height: 800 }, "light", "en"],
  ["tablet", TABLET, "light", "tr"],
  ["tablet-wide", { width: 1180, height: 820 }, "dark", "en"],
  ["phone", { width: 375, height: 720 }, "dark", "tr"],
]) {
  test(`on a ${name}, ${colors}, in ${language}: axe finds nothing, nothing is too wide, what is touched is large enough`, async () => {
    const report = reports.at(-1);
    if (name === "desktop") await measure(report);
    const { page, faults, close } = await visit({ viewport, colors, language });
    const found = [];
    for (const view of VIEWS) {
      await page.goto(`${url}#/${view === "" || view === "new" ? view : `reports/${report.id}/${view}`}`);
      await page.locator(view === "" ? ".reports" : view === "new" ? "#plate" : ".part").waitFor();
      assert.equal(await page.evaluate(() => document.documentElement.lang), language);
      const small = await page.evaluate(() => [...document.querySelectorAll("button, select, input:not([type=radio]):not([type=checkbox]), .button, nav a, .reports a")]
        .filter((node) => node.offsetParent && node.getBoundingClientRect().height < 43.5 && !node.classList.contains("unseen")).map((node) => node.outerHTML.slice(0, 80)));
      found.push(...[...await axe(page), ...await tooWide(page), ...small].map((fault) => `${view}: ${fault}`));
      if (name === "phone" && view === "TEST_LINE") await page.locator(".picture").first().evaluate((picture) => picture.scrollIntoView());
      await screenshot(page, `${name}-${colors}-${view || "list"}`);
    }
    assert.deepEqual(found, []);
    assert.deepEqual(faults, []);
    await close();
  });
}

test("the page asks nobody else, and what it may load is told", async () => {
  const photos = new URL(sandbox.base_url).origin;
  const { page, close } = await openPage(browser);
  const response = await page.goto(url);
  const { "content-security-policy": policy, ...headers } = response.headers();
  assert.equal(policy, `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' ${photos}; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`);
  assert.deepEqual([headers["x-content-type-options"], headers["referrer-policy"], headers["cache-control"], headers["content-encoding"]], ["nosniff", "no-referrer", "public, no-cache", "gzip"]);
  const script = await page.request.get(new URL(await page.locator("script").getAttribute("src"), url).href);
  assert.match(script.headers()["cache-control"], /immutable/);
  // Where the slash at its end was forgotten, and where nothing is.
  const bare = await page.request.get(url.replace(/\/$/, ""), { maxRedirects: 0 });
  assert.deepEqual([bare.status(), bare.headers().location], [308, "inspector/"]);
  assert.equal((await page.request.get(`${url}assets/nothing.js`)).status(), 404);
  assert.equal((await page.request.post(url)).status(), 404);
  await close();
});

test("signing out asks about what is not saved, and leaves nothing behind", async () => {
  const report = reports.at(-1);
  const { page, close } = await visitReport(report);
  await page.route("**/forms/*", (route) => route.abort());
  await page.locator(".points input.note-of").first().fill("Yarım");
  await numberOf(page, "SLIP_REAR").fill("0,7");
  await page.getByRole("button", { name: "Çık", exact: true }).click();
  await page.locator("dialog", { hasText: "Kaydedilmemiş" }).waitFor();
  await page.getByRole("button", { name: "Sil ve çık" }).click();
  await page.locator("main.door").waitFor();
  assert.ok(!(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).includes("Yarım"));
  assert.equal((await page.request.get(new URL("v1/session", url).href)).status(), 401);
  await close();
});
