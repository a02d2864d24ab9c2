// Photos: they are uploaded, sorted, changed and deleted.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { axe, screenshot } from "../browser.mjs";
import { announced, ask, codes, openDraft, reports, TABLET, url, visit } from "./setup.mjs";

test("photos are uploaded with their captions and reordered with the keyboard", async () => {
  const { page, errors, close } = await visit();
  const vehicle = { vin: "WVWZZZ1JZ3W386753", brand: "Skoda", model: "Fabia", year: 2020, type: "HATCHBACK", fuel_type: "GASOLINE", transmission: "MANUAL", color: "Gri" };
  const { data: report } = await ask(page, "POST", "/reports", { branch_id: [...codes.keys()][0], plate: "34 FTO 100", package_name: "Temel", base_price: "2450.00", mileage_km: 10, vehicle });
  await page.goto(`${url}#/reports/${report.id}`);
  await page.getByRole("link", { name: "Fotoğraflar" }).click();
  // Two different screenshots of the page.
  const pictures = [await page.screenshot(), await page.locator(".drop").screenshot()];
  await page.locator("#choose").setInputFiles([
    ...pictures.map((buffer, index) => ({ name: `photo-${index}.png`, mimeType: "image/png", buffer })),
    { name: "notes.png", mimeType: "image/png", buffer: Buffer.from("no picture") },
  ]);
  const queue = page.locator(".to-send li");
  await queue.nth(2).waitFor();
  await queue.nth(0).getByLabel("Açıklama").fill("Önden");
  await queue.nth(1).getByLabel("Fotoğraf türü").selectOption("DAMAGE");
  // Two clicks send each photo once.
  await page.locator("#send").evaluate((button) => { button.click(); button.click(); });
  // The invalid file shows an error and stays in the queue; the others are uploaded.
  await page.locator(".gallery li").nth(1).waitFor();
  await queue.locator(".error", { hasText: "okunabilir bir JPEG veya PNG değil" }).waitFor();
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
  await announced(page, /Fotoğraf 2\. sıraya alındı/);
  assert.deepEqual(await axe(page), []);
  await screenshot(page, "photos");
  const unexpected = errors.filter((error) => !/415/.test(error));
  assert.deepEqual(unexpected, []);
  await close();
});

test("chosen photos survive a reload, and an empty or truncated file shows its reason", async () => {
  const { page, close } = await visit();
  page.on("dialog", (dialog) => dialog.accept());
  const report = await openDraft(page);
  await page.goto(`${url}#/reports/${report.id}/photos`);
  const jpeg = await page.screenshot({ type: "jpeg" });
  await page.locator("#choose").setInputFiles([
    { name: "whole.jpg", mimeType: "image/jpeg", buffer: jpeg },
    { name: "half.jpg", mimeType: "image/jpeg", buffer: jpeg.subarray(0, jpeg.length / 2) },
    { name: "empty.jpg", mimeType: "image/jpeg", buffer: Buffer.alloc(0) },
  ]);
  const queue = page.locator(".to-send li");
  await queue.nth(2).waitFor();
  await queue.nth(2).locator(".error", { hasText: "eksik kopyalanmış" }).waitFor();
  // Files that cannot be sent are not counted.
  await page.getByRole("button", { name: "2 fotoğrafı gönder" }).waitFor();
  await queue.nth(0).getByLabel("Açıklama").fill("Arkadan");
  // The browser stores it after the event.
  await page.waitForFunction(() => new Promise((resolve) => {
    indexedDB.open("inspector").onsuccess = ({ target: { result: database } }) => {
      database.transaction("photos").objectStore("photos").getAll().onsuccess = ({ target }) => {
        database.close();
        resolve(target.result.some(({ caption }) => caption === "Arkadan"));
      };
    };
  }));
  await page.reload();
  await queue.nth(2).waitFor();
  assert.equal(await queue.nth(0).getByLabel("Açıklama").inputValue(), "Arkadan");
  await page.locator("#send").click();
  await page.locator(".gallery li").first().waitFor();
  await queue.filter({ hasText: "half.jpg" }).locator(".error", { hasText: "eksik kopyalanmış" }).waitFor();
  assert.equal(await page.locator(".gallery li").count(), 1);
  await close();
});

/** Chooses photos that the page itself draws, because they are large. Each has a width, a height, and a change of its bytes. */
async function choosePhotos(page, photos) {
  await page.evaluate(async (photos) => {
    const chosen = new DataTransfer();
    for (const { name, width, height, change } of photos) {
      const canvas = Object.assign(document.createElement("canvas"), { width, height });
      const context = canvas.getContext("2d");
      for (let x = 0; x < width; x += 200) {
        context.fillStyle = `hsl(${x % 360} 60% 50%)`;
        context.fillRect(x, 0, 200, height);
      }
      const blob = await new Promise((resolve) => { canvas.toBlob(resolve, "image/jpeg", 0.5); });
      let bytes = [...new Uint8Array(await blob.arrayBuffer())];
      // An Exif segment with a thumbnail, which has an end marker of its own, and the first third of the photo.
      if (change === "truncated") bytes = [0xff, 0xd8, 0xff, 0xe1, 0, 12, ...[0x45, 0x78, 0x69, 0x66, 0, 0], 0xff, 0xd8, 0xff, 0xd9, ...bytes.slice(2, bytes.length / 3)];
      // Some cameras append a film.
      if (change === "appended") bytes = [...bytes, 1, 2, 3, 0xff, 0xd8];
      chosen.items.add(new File([new Uint8Array(bytes)], name, { type: "image/jpeg" }));
    }
    const input = document.querySelector("#choose");
    input.files = chosen.files;
    input.dispatchEvent(new Event("change"));
  }, photos);
}

// As a data URL, because Node.js may not treat the file extension as a module.
const source = readFileSync(new URL("../../../crates/inspector/page/reduce.js", import.meta.url));
const { hasEnd } = await import(`data:text/javascript;base64,${source.toString("base64")}`);

test("the end of a JPEG is found past its thumbnail, and not within a scan", () => {
  const start = [0xff, 0xd8];
  // The length includes its own two bytes.
  const exif = [0xff, 0xe1, 0, 12, 0x45, 0x78, 0x69, 0x66, 0, 0, 0xff, 0xd8, 0xff, 0xd9];
  const scan = [0xff, 0xda, 0, 4, 1, 2, 7, 0xff, 0, 0xd9, 0xff, 0xd0, 7];
  const end = [0xff, 0xd9];
  for (const [bytes, isWhole] of [
    [[...start, ...exif, ...scan, ...end], true],
    // Several scans, fill bytes before a marker, and a film behind the end.
    [[...start, ...exif, ...scan, ...scan, 0xff, ...end, 1, 2, 3], true],
    [[...start, ...exif, ...scan], false],
    [[...start, ...exif, ...scan, 0xff], false],
    [[...start, ...exif.slice(0, -1)], false],
    [[...start, 0xff, 0xe1], false],
    [[], false],
  ]) assert.equal(hasEnd(new Uint8Array(bytes)), isWhole, JSON.stringify(bytes));
});

test("a photo of more than 50 megapixels is scaled down, and a truncated one is not sent as a smaller whole one", async () => {
  const { page, close } = await visit();
  const report = await openDraft(page);
  await page.goto(`${url}#/reports/${report.id}/photos`);
  const sizeOf = (bytes) => page.evaluate(async (bytes) => {
    const { width, height } = await createImageBitmap(new Blob([new Uint8Array(bytes)]));
    return [width, height];
  }, [...bytes]);
  const queue = page.locator(".to-send li");
  await choosePhotos(page, [{ name: "large.jpg", width: 8_200, height: 6_200 }]);
  await queue.waitFor({ timeout: 90_000 });
  // Only the file is of interest: a debug build of the service takes long to decode a large photo.
  const sent = new Promise((resolve) => {
    page.route("**/photos?*", async (route) => {
      resolve(route.request().postDataBuffer());
      await route.fulfill({ json: { data: report } });
    }, { times: 1 });
  });
  await page.locator("#send").click();
  assert.deepEqual(await sizeOf(await sent), [2_560, 1_936]);
  await page.locator(".to-send").waitFor({ state: "detached" });
  await choosePhotos(page, [
    { name: "film.jpg", width: 2_600, height: 130, change: "appended" },
    { name: "half.jpg", width: 2_600, height: 390, change: "truncated" },
  ]);
  await queue.nth(1).waitFor();
  await page.locator("#send").click();
  await queue.filter({ hasText: "half.jpg" }).locator(".error", { hasText: "eksik kopyalanmış" }).waitFor();
  const { data } = await ask(page, "GET", `/reports/${report.id}`);
  assert.equal(data.photos.length, 1);
  assert.deepEqual(await sizeOf(await (await page.request.get(data.photos[0].url)).body()), [2_560, 128]);
  await close();
});

test("photos that were being sent without a connection are sent when it is back, also after a reload", async () => {
  const { page, close } = await visit();
  page.on("dialog", (dialog) => dialog.accept());
  const report = await openDraft(page);
  await page.goto(`${url}#/reports/${report.id}/photos`);
  await page.locator(".connection.open").waitFor();
  const photo = { mimeType: "image/png", buffer: await page.screenshot() };
  const error = page.locator(".to-send .error", { hasText: "Sunucuya ulaşılamadı" });
  for (const [count, comeBack] of [
    [1, () => page.context().setOffline(false)],
    // The report is not on the page at that time.
    [2, () => page.goto(`${url}#/`).then(() => page.context().setOffline(false))],
    [3, () => page.context().setOffline(false).then(() => page.unroute("**/photos?*")).then(() => page.reload())],
  ]) {
    await page.locator("#choose").setInputFiles([{ name: `photo-${count}.png`, ...photo }]);
    await page.locator("#send").waitFor();
    if (count === 3) await page.route("**/photos?*", (route) => route.abort());
    else await page.context().setOffline(true);
    await page.locator("#send").click();
    await error.waitFor();
    const sent = page.waitForResponse((response) => response.request().method() === "POST" && response.url().includes("/photos?") && response.ok(), { timeout: 90_000 });
    await comeBack();
    await sent;
    await page.goto(`${url}#/reports/${report.id}/photos`);
    await page.locator(".to-send").waitFor({ state: "detached" });
    await page.locator(".gallery li").nth(count - 1).waitFor();
    await page.locator(".connection.open").waitFor();
  }
  const { data } = await ask(page, "GET", `/reports/${report.id}`);
  assert.equal(data.photos.length, 3);
  await close();
});

test("a photo whose response was lost is on the report once", async () => {
  const { page, close } = await visit();
  const report = await openDraft(page);
  await page.goto(`${url}#/reports/${report.id}/photos`);
  await page.locator(".connection.open").waitFor();
  let count = 0;
  await page.route("**/photos?*", async (route) => {
    if (++count > 1) return route.continue();
    // The service has stored the photo.
    assert.equal((await route.fetch()).status(), 201);
    return route.abort();
  });
  await page.locator("#choose").setInputFiles([{ name: "photo.png", mimeType: "image/png", buffer: await page.screenshot() }]);
  await page.locator("#send").click();
  await page.locator(".to-send .error", { hasText: "Sunucuya ulaşılamadı" }).waitFor();
  await page.locator(".to-send").waitFor({ state: "detached" });
  assert.equal(count, 2);
  const { data } = await ask(page, "GET", `/reports/${report.id}`);
  assert.equal(data.photos.length, 1);
  await close();
});

test("the expected photos are listed, and lines around damage are drawn on a photo before it is sent", async () => {
  const { page, errors, close } = await visit({ viewport: TABLET });
  const report = await openDraft(page);
  await page.goto(`${url}#/reports/${report.id}/photos`);
  const exterior = page.locator('.expected [data-kind="EXTERIOR"]');
  assert.equal((await exterior.innerText()).trim(), "Dış görünüm: 0/4");
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.locator('.expected [data-kind="ENGINE"]').click()]);
  await chooser.setFiles([{ name: "engine.png", mimeType: "image/png", buffer: await page.screenshot() }]);
  const chosen = page.locator(".to-send li");
  await chosen.waitFor();
  assert.equal(await chosen.getByLabel("Fotoğraf türü").inputValue(), "ENGINE");
  await page.locator('.expected .enough[data-kind="ENGINE"]').waitFor();

  await chosen.getByRole("button", { name: "İşaretle: engine.png" }).click();
  const canvas = page.locator("dialog.mark canvas");
  await page.waitForFunction(() => document.querySelector("dialog.mark canvas").width > 300);
  const { x, y, width, height } = await canvas.boundingBox();
  const red = () => canvas.evaluate((node) => {
    // A copy, because Chromium warns about a canvas that is read repeatedly.
    const pixel = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    pixel.drawImage(node, node.width / 2, node.height / 2, 1, 1, 0, 0, 1, 1);
    const { data } = pixel.getImageData(0, 0, 1, 1);
    return data[0] > 200 && data[1] < 80 && data[2] < 80;
  });
  assert.equal(await red(), false);
  await page.mouse.move(x + width / 4, y + height / 2);
  await page.mouse.down();
  await page.mouse.move(x + width * 0.75, y + height / 2, { steps: 8 });
  await page.mouse.up();
  assert.equal(await red(), true);
  assert.deepEqual(await axe(page), []);
  await screenshot(page, "mark");
  await page.getByRole("button", { name: "Kaydet", exact: true }).click();
  await canvas.waitFor({ state: "detached" });
  await page.locator("#send").click();
  await page.locator(".gallery li").waitFor();
  // The stored photo has the line.
  const { data } = await ask(page, "GET", `/reports/${report.id}`);
  assert.deepEqual(data.photos.map(({ kind }) => kind), ["ENGINE"]);
  const stored = await page.request.get(data.photos[0].url);
  const isRed = await page.evaluate(async (bytes) => {
    const bitmap = await createImageBitmap(new Blob([new Uint8Array(bytes)], { type: "image/jpeg" }));
    const node = Object.assign(document.createElement("canvas"), { width: bitmap.width, height: bitmap.height });
    node.getContext("2d").drawImage(bitmap, 0, 0);
    const { data } = node.getContext("2d").getImageData(node.width / 2, node.height / 2, 1, 1);
    return data[0] > 180 && data[1] < 100 && data[2] < 100;
  }, [...await stored.body()]);
  assert.ok(isRed);
  assert.deepEqual(errors, []);
  await close();
});

test("a photo is renamed, hidden and deleted", async () => {
  const { page, errors, close } = await visit();
  const report = await openDraft(page);
  await page.goto(`${url}#/reports/${report.id}/photos`);
  await page.locator("#choose").setInputFiles([{ name: "photo.png", mimeType: "image/png", buffer: await page.screenshot() }]);
  await page.locator("#send").click();
  const photo = page.locator(".gallery li");
  await photo.waitFor();
  const changed = () => page.waitForResponse((response) => response.request().method() === "PATCH" && response.ok());
  await photo.locator("summary").click();
  for (const change of [
    () => photo.getByLabel("Açıklama").fill("Sağ ön").then(() => page.keyboard.press("Tab")),
    () => photo.getByLabel("Fotoğraf türü").selectOption("DAMAGE"),
    () => photo.getByLabel("Raporda göster").uncheck(),
  ]) await Promise.all([changed(), change()]);
  await photo.locator(".not-shown").waitFor();
  const { data } = await ask(page, "GET", `/reports/${report.id}`);
  assert.deepEqual(data.photos.map(({ caption, kind, is_shown: isShown }) => [caption, kind, isShown]), [["Sağ ön", "DAMAGE", false]]);
  assert.deepEqual(await axe(page), []);
  await photo.getByRole("button", { name: /^Fotoğrafı sil: 1/ }).click();
  await photo.getByRole("button", { name: "Evet, sil" }).click();
  await page.locator(".photos .empty").waitFor();
  assert.deepEqual(errors, []);
  await close();
});
