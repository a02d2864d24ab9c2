// Photos: they are uploaded, sorted, changed and deleted.

import assert from "node:assert/strict";
import { test } from "node:test";

import { axe, screenshot } from "../browser.mjs";
import { announced, ask, codes, openDraft, reports, url, visit } from "./setup.mjs";

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
  await page.reload();
  await queue.nth(2).waitFor();
  assert.equal(await queue.nth(0).getByLabel("Açıklama").inputValue(), "Arkadan");
  await page.locator("#send").click();
  await page.locator(".gallery li").first().waitFor();
  await queue.filter({ hasText: "half.jpg" }).locator(".error", { hasText: "eksik kopyalanmış" }).waitFor();
  assert.equal(await page.locator(".gallery li").count(), 1);
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
