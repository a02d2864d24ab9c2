// A headless Chromium for tests of pages. Collects the errors of a page, and runs axe on it.
//
// The browser is Debian's (script/setup --checks); playwright-core, which drives it, does not include one.

import { existsSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";

import { chromium } from "playwright-core";

const AXE = readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The screens of a desktop computer and a phone. */
export const SCREENS = {
  desktop: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 375, height: 720 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
};

/** Starts Chromium. The caller must `close` it. */
export async function startBrowser() {
  const places = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium"];
  const executablePath = places.find((place) => place && existsSync(place));
  if (!executablePath) throw new Error("failed to find Chromium; install it with script/setup --checks, or set CHROMIUM to its path");
  // Chromium's sandbox does not work for root, for example in a container.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath, args });
}

/**
 * Opens a page in a new context, for a screen and colors. Collects its errors in `errors`: console errors and warnings, exceptions,
 * failed requests, and, if `origin` is given, requests to other origins.
 */
export async function openPage(browser, { screen = "desktop", colors = "light", origin } = {}) {
  const context = await browser.newContext({ ...SCREENS[screen], colorScheme: colors, reducedMotion: "reduce" });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]).catch(() => {});
  const page = await context.newPage();
  const errors = [];
  const addError = (text) => errors.push(`${page.url()}: ${text}`);
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) addError(`console: ${message.text()}`); });
  page.on("pageerror", (error) => addError(`exception: ${error.message}`));
  // The browser aborts requests itself, for example for a page's icon when the page is left.
  page.on("requestfailed", (request) => { if (request.failure()?.errorText !== "net::ERR_ABORTED") addError(`failed to load: ${request.url()} (${request.failure()?.errorText})`); });
  page.on("response", (response) => { if (response.status() >= 400) addError(`${response.status()}: ${response.url()}`); });
  if (origin) page.on("request", (request) => { if (!request.url().startsWith(origin)) addError(`request to another origin: ${request.url()}`); });
  return { page, errors, close: () => context.close() };
}

/** Returns the violations that axe finds in the page, one line each. */
export async function axe(page) {
  // Injected by the debugger, because the page's content security policy does not allow it.
  await page.evaluate(await AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const places = (nodes) => nodes.slice(0, 3).map((node) => `${node.target.join(" ")} (${node.failureSummary})`).join("; ");
  return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${places(nodes)}`);
}

/** Saves a screenshot of the page if SCREENSHOTS names a folder. */
export async function screenshot(page, name, { fullPage = false } = {}) {
  const folder = process.env.SCREENSHOTS;
  if (!folder) return;
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage });
}

/** Returns elements that make the page wider than its screen; empty if the page fits. */
export async function tooWide(page) {
  return page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const wide = [...document.querySelectorAll("body *")].filter((element) => element.getBoundingClientRect().right > width + 1);
    return wide.slice(0, 5).map((element) => `${element.tagName.toLowerCase()}.${element.className}: ${element.textContent.slice(0, 40)}`);
  });
}
