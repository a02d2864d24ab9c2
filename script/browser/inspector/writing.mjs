// Opening reports, and saving what is typed.

import assert from "node:assert/strict";
import { test } from "node:test";

import { axe, screenshot } from "../browser.mjs";
import { announced, apply, ask, banner, device, inspector, measure, numberOf, openDraft, other, reports, TABLET, url, visit, visitReport, withoutEvents } from "./setup.mjs";

test("typed text survives a reload", async () => {
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

test("saving a note does not overwrite values from a device", async () => {
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

test("a report is created for a plate, and the page asks for an unknown vehicle", async () => {
  const { page, close, errors } = await visit();
  await page.keyboard.press("Alt+n");
  await page.locator("#plate").fill("34 tst 777");
  await page.locator("#package_name").fill("Full + Test Hattı");
  await page.locator("#base_price").fill("6.900");
  await page.locator("main .primary").click();
  // The error appears at the missing field.
  assert.equal(await page.locator("#mileage_km-error").innerText(), "Bu alan zorunludur.");
  assert.ok(await page.locator("#mileage_km").evaluate((node) => node === document.activeElement));
  await page.locator("#mileage_km").fill("84210,5");
  await page.keyboard.press("Enter");
  await page.locator("#mileage_km-error", { hasText: "Yalnızca rakam" }).waitFor();
  await page.locator("#mileage_km").fill("84.210");
  await page.keyboard.press("Enter");
  await page.locator("#vin").waitFor();
  const vehicle = { vin: "wvwzzz1jz3w386752", brand: "Volkswagen", model: "Golf", year: "2019", color: "Beyaz", type: "HATCHBACK", fuel_type: "GASOLINE", transmission: "MANUAL", factory_power_hp: "115" };
  for (const [name, value] of Object.entries(vehicle)) {
    const field = page.locator(`#${name}`);
    if (await field.evaluate((node) => node.localName === "select")) await field.selectOption(value);
    else await field.fill(value);
  }
  // The choices have Turkish labels.
  assert.deepEqual(await page.locator("#fuel_type option").allInnerTexts(), ["Seçin", "Benzin", "Dizel", "LPG", "Hibrit", "Elektrik", "Diğer"]);
  errors.splice(0);
  await page.locator("main .primary").click();
  await page.locator("main.report .plate", { hasText: "34 TST 777" }).waitFor();
  await page.getByRole("link", { name: "Değerlendirme ve fiyat" }).click();
  assert.equal(await page.locator("#field-base_price").inputValue(), "6.900,00");
  assert.equal(await page.locator("#field-mileage_km").inputValue(), "84.210");
  assert.deepEqual(errors, []);
  await close();
});

test("a colleague's concurrent change is not overwritten without asking", async () => {
  const report = reports.pop();
  const { page, close } = await visitReport(report);
  await page.getByRole("link", { name: "Değerlendirme ve fiyat" }).click();
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

test("a form's note is saved alone, and answers are cleared and written again", async () => {
  const { page, errors, close } = await visit();
  const report = await openDraft(page);
  await page.goto(`${url}#/reports/${report.id}/BODY_PAINT`);
  await page.locator("#BODY_PAINT-note").fill("Araç kirli");
  await page.locator("#BODY_PAINT-note-state", { hasText: "aydedildi" }).waitFor();
  const { code, name } = report.forms.find((form) => form.template_code === "BODY_PAINT").points[0];
  const row = page.locator(`#BODY_PAINT-${code}`);
  const saved = page.locator(`#BODY_PAINT-${code}-state`, { hasText: "aydedildi" });
  const stored = async () => (await ask(page, "GET", `/reports/${report.id}`)).data.forms.find((form) => form.template_code === "BODY_PAINT").points[0];
  await row.getByRole("radio", { name: "Boyalı", exact: true }).check();
  await row.locator("input.note-of").fill("Sol kenarda");
  await saved.waitFor();
  assert.deepEqual([(await stored()).status_code, (await stored()).note], ["PAINTED", "Sol kenarda"]);
  const cleared = page.waitForResponse((response) => response.request().method() === "PUT" && response.ok());
  await page.getByRole("button", { name: `Temizle: ${name}`, exact: true }).click();
  await cleared;
  assert.equal((await stored()).status_code ?? null, null);
  const again = page.waitForResponse((response) => response.request().method() === "PUT" && response.ok());
  assert.equal(await row.getByRole("radio", { checked: true }).count(), 0);
  await row.getByRole("radio", { name: "Orijinal", exact: true }).check();
  await again;
  assert.deepEqual([(await stored()).status_code, (await stored()).note], ["ORIGINAL", ""]);
  const worn = page.waitForResponse((response) => response.request().method() === "PUT" && response.ok());
  await row.getByLabel(`Diğer durumlar: ${name}`).selectOption("CORRODED");
  await worn;
  assert.equal((await stored()).status_code, "CORRODED");
  assert.equal(await row.getByRole("radio", { checked: true }).count(), 0);
  assert.deepEqual(errors, []);
  await close();
});

test("a panel gets its status from the drawing of the car, and its earlier value is shown", async () => {
  for (const [language, painted, replaced, earlier] of [["tr", "Boyalı", "Değişen", /1 önceki değer/], ["en", "Painted", "Replaced", /1 earlier value/]]) {
    const { page, errors, close } = await visit({ language, viewport: TABLET });
    const report = await openDraft(page);
    await page.goto(`${url}#/reports/${report.id}/BODY_PAINT`);
    const panel = page.locator('.panel[data-place="DOOR_FRONT_RIGHT"]');
    const saved = () => page.waitForResponse((response) => response.request().method() === "PUT" && response.ok());
    await panel.locator("path").click();
    const chosen = page.locator(".chosen-panel");
    for (const status of [painted, replaced]) await Promise.all([saved(), chosen.getByRole("radio", { name: status, exact: true }).check()]);
    await page.locator('.panel.bad[data-place="DOOR_FRONT_RIGHT"]').waitFor();
    assert.equal(await panel.locator("text").textContent(), replaced[0]);
    const row = page.locator("#BODY_PAINT-DOOR_FRONT_RIGHT");
    await row.locator(".status", { hasText: replaced }).first().waitFor();
    await row.locator(".earlier-answers summary", { hasText: earlier }).click();
    await row.locator(".earlier-answers li", { hasText: painted }).waitFor();
    assert.deepEqual(await axe(page), []);
    await screenshot(page, `car-${language}`);
    const { data } = await ask(page, "GET", `/reports/${report.id}`);
    const point = data.forms.flatMap(({ points }) => points).find(({ code }) => code === "DOOR_FRONT_RIGHT");
    assert.deepEqual([point.status_code, point.status_label, point.earlier[0].status_code], ["REPLACED", "Değişen", "PAINTED"]);
    assert.deepEqual(errors, []);
    await close();
  }
});

test("the page offers the statuses and kinds of photos that the report's templates have", async () => {
  const { page, close } = await visit();
  const report = await openDraft(page);
  // As from a service whose templates have others.
  await page.route(`**/inspector/v1/reports/${report.id}`, async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    const form = body.data.forms.find(({ template_code: code }) => code === "BODY_PAINT");
    form.statuses = [{ code: "FINE", label: "Sorunsuz", severity: "NONE", is_common: true }, { code: "DENTED", label: "Göçük", severity: "HIGH", is_common: true }];
    body.data.photo_kinds = [{ code: "WHEEL", label: "Jant", expected: 4 }];
    await route.fulfill({ response, json: body });
  });
  await page.goto(`${url}#/reports/${report.id}/BODY_PAINT`);
  const first = page.locator(".points > li").first();
  await first.waitFor();
  assert.deepEqual(await first.locator(".statuses label").allInnerTexts(), ["Sorunsuz", "Göçük"]);
  assert.deepEqual(await first.locator(".statuses label").evaluateAll((labels) => labels.map((label) => label.className)), ["good", "bad"]);
  assert.equal(await first.locator(".statuses select").count(), 0);
  await page.goto(`${url}#/reports/${report.id}/photos`);
  await page.getByRole("button", { name: "Jant: 0/4" }).waitFor();
  await close();
});

test("a rejected number has no green status, and shows why the service rejected it", async () => {
  const { page, close } = await visit();
  const report = await openDraft(page);
  await page.goto(`${url}#/reports/${report.id}/TEST_LINE`);
  await numberOf(page, "BRAKE_FRONT_LEFT").fill("2850");
  await page.locator("#TEST_LINE-BRAKE_FRONT_LEFT-state .details", { hasText: "implausible" }).waitFor();
  assert.equal(await page.locator("#TEST_LINE-BRAKE_FRONT_LEFT .status.good").count(), 0);
  await close();
});

test("numbers are saved as they were typed in Turkish notation, and ambiguous ones are rejected", async () => {
  const { page, errors, close } = await visit();
  const report = await openDraft(page);
  await page.goto(`${url}#/reports/${report.id}/TEST_LINE`);
  const number = numberOf(page, "SLIP_FRONT");
  await number.pressSequentially("3.2.1");
  await page.locator("#TEST_LINE-SLIP_FRONT-state .error", { hasText: "Geçerli bir sayı" }).waitFor();
  assert.equal(await number.inputValue(), "3.2.1");
  await number.fill("");
  await number.pressSequentially("2,50");
  await page.locator("#TEST_LINE-SLIP_FRONT-state", { hasText: "aydedildi" }).waitFor();
  assert.equal(await number.inputValue(), "2,5");
  await page.goto(`${url}#/reports/${report.id}/details`);
  await page.locator("#field-base_price").fill("4500 TL");
  await page.locator("#field-base_price-state", { hasText: "aydedildi" }).waitFor();
  const { data } = await ask(page, "GET", `/reports/${report.id}`);
  const point = data.forms.find((form) => form.is_test_line).points.find(({ code }) => code === "SLIP_FRONT");
  assert.deepEqual([point.numeric_value, data.pricing.base_price], [2.5, "4500.00"]);
  assert.deepEqual(errors, []);
  await close();
});

test("a plate with an open report is opened again only after a warning", async () => {
  const { page, close } = await visit();
  const report = await openDraft(page);
  await page.goto(`${url}#/new`);
  await page.locator("#plate").fill(report.plate);
  await page.locator("#mileage_km").fill("10");
  await page.locator("#package_name").fill("Temel");
  await page.locator("#base_price").fill("100");
  await page.keyboard.press("Enter");
  await page.locator("#already a", { hasText: report.report_number }).waitFor();
  assert.deepEqual(await axe(page), []);
  await page.getByRole("button", { name: "Yine de yeni rapor aç" }).click();
  await page.locator("main.report h1").waitFor();
  assert.ok(!page.url().includes(report.id));
  await close();
});

test("another vehicle is entered for a known plate, and the VIN is read from a photo of its barcode", async () => {
  const { page, errors, close } = await visit();
  const known = await openDraft(page);
  // Chromium reads barcodes on Android and macOS only.
  await page.evaluate(() => { window.BarcodeDetector = class { async detect() { return [{ rawValue: window.barcode }]; } }; });
  await page.goto(`${url}#/new`);
  await page.locator("#plate").fill(known.plate);
  // The known vehicle is named before the report is opened, so that it is compared with the one that is there.
  await page.locator("#mileage_km").focus();
  await page.locator(".known", { hasText: known.vehicle.vin }).waitFor();
  await announced(page, new RegExp(known.vehicle.vin));
  assert.deepEqual(await axe(page), []);
  await screenshot(page, "known-vehicle");
  // It is not that of another plate.
  await page.locator("#plate").fill("34 TST 98765");
  await page.locator("#mileage_km").focus();
  await page.locator(".known", { hasText: known.vehicle.vin }).waitFor({ state: "detached" });
  // The vehicle that is found while the button is pressed does not move the button away.
  await page.locator("#plate").fill(known.plate);
  await page.locator("#other-vehicle").hover();
  await page.mouse.down();
  await page.locator(".known", { hasText: known.vehicle.vin }).waitFor();
  await page.mouse.up();
  const photo = { name: "vin.png", mimeType: "image/png", buffer: await page.screenshot() };
  await page.evaluate(() => { window.barcode = "https://example.com"; });
  await page.locator("#scan").setInputFiles([photo]);
  await page.locator("#vin-error", { hasText: "barkodu bulunamadı" }).waitFor();
  // Some labels have an I before the VIN.
  await page.evaluate(() => { window.barcode = "IWVWZZZ1JZ3W777001"; });
  await page.locator("#scan").setInputFiles([photo]);
  await page.waitForFunction(() => document.querySelector("#vin").value === "WVWZZZ1JZ3W777001");
  assert.deepEqual(await axe(page), []);
  await screenshot(page, "other-vehicle");
  await page.getByRole("button", { name: "Plakanın kayıtlı aracıyla devam et" }).click();
  assert.equal(await page.locator("#vin").count(), 0);
  // Without an answer in time, the vehicle is named after the report was opened.
  await page.route(/search=/, (route) => route.abort());
  for (const plate of ["34 TST 98765", known.plate]) {
    await page.locator("#plate").fill(plate);
    await page.locator("#mileage_km").focus();
  }
  for (const [field, value] of [["mileage_km", "10"], ["package_name", "Temel"], ["base_price", "100"]]) await page.locator(`#${field}`).fill(value);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Yine de yeni rapor aç" }).click();
  await page.locator(".notices").getByText(known.vehicle.vin).waitFor();
  assert.deepEqual(errors.filter((error) => !/409|search=|ERR_FAILED/.test(error)), []);
  await close();
});

test("a vehicle is corrected", async () => {
  const { page, errors, close } = await visit();
  const report = await openDraft(page);
  await page.goto(`${url}#/reports/${report.id}/details`);
  await page.locator("#correct-vehicle").click();
  // The page moves the focus there, and would take it from a field that is being filled.
  await page.locator("#plate:focus").waitFor();
  await page.locator("#model").fill("Ibiza");
  await page.locator("#fuel_type").selectOption("DIESEL");
  await page.getByRole("button", { name: "Düzeltmeyi kaydet" }).click();
  await page.locator("h1", { hasText: "Ibiza" }).waitFor();
  const { data } = await ask(page, "GET", `/reports/${report.id}`);
  assert.deepEqual([data.vehicle.fuel_type, data.vehicle.factory_power_hp, data.vehicle.vin], ["DIESEL", "110.00", report.vehicle.vin]);
  assert.deepEqual(errors, []);
  await close();
});

test("a colleague's correction of the vehicle is shown before one's own replaces it", async () => {
  const { page, close } = await visit();
  const report = await openDraft(page);
  // Once the event has arrived before the correction is saved, and once it has not.
  for (const [areEventsSent, color, model] of [[true, "Mavi", "Ibiza"], [false, "Siyah", "Arona"]]) {
    await page.goto(`${url}#/reports/${report.id}/details`);
    if (!areEventsSent) await withoutEvents(page);
    await page.locator(`.connection.${areEventsSent ? "open" : "lost"}`).waitFor();
    await page.locator("#correct-vehicle").click();
    // The page moves the focus there, and would take it from a field that is being filled.
    await page.locator("#plate:focus").waitFor();
    await page.locator("#model").fill(model);
    const { data: now } = await ask(page, "GET", `/reports/${report.id}`);
    const { vin, brand, year, type, fuel_type, transmission, factory_power_hp } = now.vehicle;
    const vehicle = { vin, brand, model: "Ateca", year, type, fuel_type, transmission, factory_power_hp, color };
    await ask(page, "PUT", `/reports/${report.id}/vehicle`, { version: now.version, vehicle });
    if (areEventsSent) await page.locator("h1", { hasText: "Ateca" }).waitFor();
    await page.getByRole("button", { name: "Düzeltmeyi kaydet" }).click();
    const theirs = page.locator("#their-vehicle");
    await theirs.filter({ hasText: `Renk: ${color}` }).filter({ hasText: "Model: Ateca" }).waitFor();
    assert.deepEqual(await axe(page), []);
    assert.equal((await ask(page, "GET", `/reports/${report.id}`)).data.vehicle.model, "Ateca");
    // What only the colleague has changed is taken over, and what was typed stays.
    assert.deepEqual([await page.locator("#color").inputValue(), await page.locator("#model").inputValue()], [color, model]);
    await page.getByRole("button", { name: "Düzeltmeyi kaydet" }).click();
    await page.locator("h1", { hasText: model }).waitFor();
    const { data } = await ask(page, "GET", `/reports/${report.id}`);
    assert.deepEqual([data.vehicle.color, data.vehicle.model], [color, model]);
  }
  await close();
});

test("a change of the report that does not concern the vehicle does not disturb its correction", async () => {
  const { page, close } = await visit();
  const report = await openDraft(page);
  await page.goto(`${url}#/reports/${report.id}/details`);
  await withoutEvents(page);
  await page.locator("#correct-vehicle").click();
  // The page moves the focus there, and would take it from a field that is being filled.
  await page.locator("#plate:focus").waitFor();
  await page.locator("#color").fill("Bej");
  await ask(page, "PATCH", `/reports/${report.id}`, { version: report.version, summary: "Onun yazdığı" });
  await page.getByRole("button", { name: "Düzeltmeyi kaydet" }).click();
  await page.locator("#correct-vehicle").waitFor();
  const { data } = await ask(page, "GET", `/reports/${report.id}`);
  assert.deepEqual([data.vehicle.color, data.summary], ["Bej", "Onun yazdığı"]);
  await close();
});

test("a refused VIN shows its rule in the inspector's language and in the service's words", async () => {
  const { page, close } = await visit();
  const report = await openDraft(page);
  await page.goto(`${url}#/reports/${report.id}/details`);
  await page.locator("#correct-vehicle").click();
  // The page moves the focus there, and would take it from a field that is being filled.
  await page.locator("#plate:focus").waitFor();
  await page.locator("#vin").fill("WVWZZZ12345");
  await page.getByRole("button", { name: "Düzeltmeyi kaydet" }).click();
  const error = page.locator("#vin-error");
  await error.filter({ hasText: "1981 öncesi" }).waitFor();
  assert.match(await error.locator("[lang=en]").innerText(), /only vehicles before the model year 1981 have fewer/);
  assert.deepEqual(await axe(page), []);
  await page.locator("#year").fill("1975");
  await page.getByRole("button", { name: "Düzeltmeyi kaydet" }).click();
  await page.locator("h1", { hasText: "1975" }).waitFor();
  await page.goto(`${url}#/new`);
  for (const [field, value] of [["plate", "34 TST 99999"], ["mileage_km", "10"], ["package_name", "Temel"], ["base_price", "100"]]) await page.locator(`#${field}`).fill(value);
  await page.keyboard.press("Enter");
  for (const [field, value] of [["vin", "WVWZZZ12345"], ["brand", "Seat"], ["model", "Leon"], ["year", "2021"], ["color", "Gri"]]) await page.locator(`#${field}`).fill(value);
  for (const [field, value] of [["type", "SUV"], ["fuel_type", "LPG"], ["transmission", "MANUAL"]]) await page.locator(`#${field}`).selectOption(value);
  await page.locator("main .primary").click();
  await page.locator("#vin-error [lang=en]", { hasText: "1981" }).waitFor();
  await close();
});

test("a number of zero determines its status, as every number does", async () => {
  const { page, close } = await visit();
  const report = await openDraft(page);
  await page.goto(`${url}#/reports/${report.id}/TEST_LINE`);
  const status = page.locator("#TEST_LINE-SLIP_FRONT select");
  assert.equal(await status.isDisabled(), false);
  await numberOf(page, "SLIP_FRONT").fill("0");
  await page.locator("#TEST_LINE-SLIP_FRONT-state", { hasText: "aydedildi" }).waitFor();
  assert.equal(await status.isDisabled(), true);
  await close();
});

test("a search finds reports in every status, and filters and the place in the list survive Back and a reload", async () => {
  const { page, close } = await visit();
  const { data: published } = await ask(page, "GET", "/reports?status=PUBLISHED&limit=1");
  await page.locator("#search").fill(published[0].report_number.toLowerCase());
  await page.locator(`.reports a[href="#/reports/${published[0].id}"]`).waitFor();
  await page.reload();
  await page.locator(`.reports a[href="#/reports/${published[0].id}"]`).waitFor();
  assert.equal(await page.locator("#search").inputValue(), published[0].report_number.toLowerCase());
  // Also after a reload of a report that was opened from the list.
  await page.locator(`.reports a[href="#/reports/${published[0].id}"]`).click();
  await page.locator("a.back").waitFor();
  await page.reload();
  await page.locator("a.back").click();
  await page.locator(`.reports a[href="#/reports/${published[0].id}"]`).waitFor();
  assert.equal(await page.locator("#search").inputValue(), published[0].report_number.toLowerCase());
  await close();
});

test("pages of the list stay complete while reports change, and Back, a link and a shortcut lead to the same place", async () => {
  // At another branch, so that the lists of the other tests stay short.
  const { page, close } = await visit({ token: other.token });
  const { branches } = (await ask(page, "GET", "/session")).data;
  const ids = () => page.locator(".reports a").evaluateAll((links) => links.map((link) => link.hash.replace("#/reports/", "")));
  // More than the 125 that are shown, of which the service returns at most 100 at once.
  const drafts = [];
  while (drafts.length < 135) drafts.push(await openDraft(page, { branch_id: branches[0].id }));
  await page.locator('label:has([value="DRAFT"])').click();
  await page.waitForFunction(() => document.querySelectorAll(".reports .is-draft").length === 25);
  for (const length of [50, 75, 100, 125]) {
    // One that is shown is discarded, so that the following ones move up.
    const { id: gone, version } = drafts.splice(-10, 1)[0];
    assert.equal((await ask(page, "PUT", `/reports/${gone}/status`, { version, to: "DISCARDED" })).data?.status, "DISCARDED");
    // A reload at the same time does not lose the page that the click requests.
    await page.evaluate(() => {
      document.querySelector(".more").click();
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await page.waitForFunction(([length, gone]) => {
      const links = [...document.querySelectorAll(".reports a")];
      return links.length === length && !links.some((link) => link.hash.endsWith(gone));
    }, [length, gone]);
  }
  const read = [];
  for (let cursor = null; read.length < 125;) {
    const { data, page: next } = await ask(page, "GET", `/reports?status=DRAFT&limit=100${cursor ? `&cursor=${cursor}` : ""}`);
    read.push(...data.map(({ id }) => id));
    cursor = next.next_cursor;
  }
  assert.deepEqual(await ids(), read.slice(0, 125));

  const last = page.locator(".reports a").last();
  const isBack = async (top) => {
    await page.waitForFunction(() => document.querySelectorAll(".reports a").length === 125);
    await page.waitForFunction((top) => Math.abs(window.scrollY - top) < 200, top);
    assert.match(page.url(), /status=DRAFT/);
  };
  for (const goBack of [
    () => page.goBack(),
    () => page.locator("a.back").click(),
    () => page.keyboard.press("Alt+l"),
    () => page.locator("header .name").click(),
    () => page.keyboard.press("Alt+n").then(() => page.locator("a.back").click()),
  ]) {
    await last.scrollIntoViewIfNeeded();
    const top = await page.evaluate(() => window.scrollY);
    assert.ok(top > 500, `${top}`);
    await last.click();
    await page.locator("main.report h1").waitFor();
    await goBack();
    await isBack(top);
  }
  // Without a click, which would have kept the place.
  const top = await page.evaluate(() => window.scrollY);
  await page.keyboard.press("Alt+n");
  await page.getByRole("button", { name: "Vazgeç" }).click();
  await isBack(top);
  await close();
});

test("a report that is opened right after a search was typed keeps its address", async () => {
  const { page, close } = await visit();
  await page.clock.install();
  const first = page.locator(".reports a").first();
  const address = await first.getAttribute("href");
  await page.locator("#search").fill("34");
  await first.click();
  await page.locator("main.report").waitFor();
  await page.clock.runFor(1_000);
  assert.equal(new URL(page.url()).hash, address);
  await close();
});
