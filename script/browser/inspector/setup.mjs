// What the tests of the inspectors' page share: the browser, the reports of the sandbox, and visits to the page. SANDBOX names
// the sandbox's sandbox.json.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before } from "node:test";

import { Partner } from "../../../samples/node/partner.mjs";
import { openPage as openTab, startBrowser } from "../browser.mjs";
import { checkAllSent, watchRequests } from "./contract.mjs";

export const sandbox = JSON.parse(readFileSync(process.env.SANDBOX, "utf8"));
export const [inspector, other] = sandbox.inspectors;
export const url = sandbox.inspectors_url;
const alpha = sandbox.partners.find(({ name }) => name === "alpha");
export const device = new Partner(sandbox.base_url, alpha.key_id, alpha.secret);
export const TABLET = { width: 820, height: 1180 };
/** A good value, a borderline one, one that is out of bounds, and a left and a right value that differ greatly. */
export const VALUES = { SUSP_FRONT_LEFT: 71.5, SUSP_FRONT_RIGHT: 46, BRAKE_FRONT_LEFT: 2.85, BRAKE_FRONT_RIGHT: 1.12, SLIP_FRONT: -6.1, DYNO_MEASURED_HP: 96 };

/** The service sends no events for reports older than this, in hours. The page polls them once a minute. */
const EVENTS_UP_TO = 30 * 24;

export let browser;
/** Open reports that are older than EVENTS_UP_TO. Measurements for their plates stay pending. Most tests take one from the list. */
export let reports;
/** Open reports that are older than a day and have events. */
export let recent;
/** A draft. */
export let draft;
/** The codes of the inspector's branches, by id. */
export let codes;
before(async () => {
  browser = await startBrowser();
  const { page, close } = await visit();
  const open = await ask(page, "GET", "/reports?limit=100");
  const age = ({ created_at: at }) => (Date.now() - new Date(at).getTime()) / 3_600_000;
  const old = open.data.filter((report) => ["DRAFT", "REVISION_REQUESTED"].includes(report.status) && report.waiting === 0 && age(report) > 24);
  reports = old.filter((report) => age(report) > EVENTS_UP_TO);
  [draft] = reports.splice(reports.findIndex(({ status }) => status === "DRAFT"), 1);
  // There are not enough of them, so those in review are sent back.
  for (const { id, status, waiting } of open.data) {
    if (status !== "IN_REVIEW" || waiting > 0) continue;
    const { data: reviewed } = await ask(page, "GET", `/reports/${id}`);
    const { data: report } = await ask(page, "PUT", `/reports/${id}/status`, { version: reviewed.version, to: "REVISION_REQUESTED", reason: "Eksik" });
    reports.unshift(report);
  }
  recent = old.filter((report) => age(report) < EVENTS_UP_TO);
  const { data } = await ask(page, "GET", "/session");
  codes = new Map(data.branches.map(({ id, code }) => [id, code]));
  await close();
});
after(async () => {
  await browser.close();
  checkAllSent();
});

/** Opens a page whose requests are checked against the contract. */
export async function openPage(browser, options) {
  const opened = await openTab(browser, options);
  watchRequests(opened.page.context());
  return opened;
}

/** Opens a page, signs in, and waits for the list. */
export async function visit({ token = inspector.token, language = "tr", viewport, ...options } = {}) {
  const opened = await openPage(browser, options);
  const { page } = opened;
  if (viewport) await page.setViewportSize(viewport);
  await page.goto(url);
  if (language === "en") await page.getByRole("button", { name: "EN" }).click();
  await page.locator("#token").fill(token);
  await page.keyboard.press("Enter");
  await page.locator("main.list .reports").waitFor();
  // Drop the 401 from before the sign-in.
  opened.errors.splice(0);
  return opened;
}

/** Sends a request to the API with the page's session. */
export async function ask(page, method, path, body) {
  return page.evaluate(async ([method, path, body]) => {
    const session = await (await fetch("/inspector/v1/session", { headers: { "X-Sent-By": "test" } })).json();
    const headers = { "X-CSRF-Token": session.data.csrf_token, "Content-Type": "application/json", "X-Sent-By": "test" };
    const response = await fetch(`/inspector/v1${path}`, { method, headers: method === "GET" ? { "X-Sent-By": "test" } : headers, body: body && JSON.stringify(body) });
    return response.status === 204 ? null : response.json();
  }, [method, path, body]);
}

export async function measure(report, { values = VALUES, serial = "BT3000-77812", ...members } = {}) {
  const body = JSON.stringify({ branch_code: codes.get(report.branch_id), plate: report.plate, device_serial: serial, measurements: values, external_id: randomUUID(), ...members });
  const answer = await device.send("POST", "/api/v1/partner/test-line/measurements", body);
  assert.equal(answer.status, 201, answer.body.toString());
  const { data } = JSON.parse(answer.body);
  assert.equal(data.status, "pending");
  return body;
}

/** Signs in and opens a report. */
export async function visitReport(report, options) {
  const opened = await visit(options);
  await opened.page.goto(`${url}#/reports/${report.id}`);
  await opened.page.locator("main.report h1").waitFor();
  return opened;
}

export const banner = (page) => page.locator(".banner");
export const apply = (page) => page.locator("#apply");
/** Waits for an announcement to screen readers. */
export const announced = (page, text) => page.locator("#announcements", { hasText: text }).waitFor();
export const numberOf = (page, code) => page.locator(`#TEST_LINE-${code}-number`);

/** Presses the tab key until the element is focused, and asserts that the focus is visible. */
export async function tabTo(page, selector) {
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

/** Random, so that the tests can run again with the same sandbox. */
let cars = Math.floor(Math.random() * 9_000);

/** Opens a draft for a new car. */
export async function openDraft(page, members = {}) {
  const number = String(++cars).padStart(4, "0");
  const vehicle = { vin: `WVWZZZ1JZ3W39${number}`, brand: "Seat", model: "Leon", year: 2021, type: "HATCHBACK", fuel_type: "GASOLINE", transmission: "MANUAL", color: "Gri", factory_power_hp: "110.00" };
  const body = { branch_id: [...codes.keys()][0], plate: `34 TEST ${number}`.replace("TEST", "TST"), package_name: "Temel", base_price: "2450.00", mileage_km: 10, vehicle, ...members };
  const { data, error } = await ask(page, "POST", "/reports", body);
  assert.ok(data, JSON.stringify(error));
  return data;
}

/** Keeps the event stream from a page, so that a colleague's changes arrive only with responses. */
export async function withoutEvents(page) {
  await page.route("**/inspector/v1/events", (route) => route.abort());
  await page.reload();
}

/** Answers the points without which a report is not published. */
export async function answerRequired(page, id) {
  const { data } = await ask(page, "GET", `/reports/${id}`);
  for (const form of data.forms) {
    const answers = form.points.filter((point) => point.is_required && !point.status_code).map(({ code }) => ({ point_code: code, status_code: "ORIGINAL" }));
    if (answers.length > 0) await ask(page, "PUT", `/reports/${id}/forms/${form.template_code}`, { answers });
  }
}
