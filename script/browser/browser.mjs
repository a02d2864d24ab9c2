// A headless Chromium for tests of pages: what goes wrong in a page is kept, and axe looks at it.
//
// It is Debian's (script/setup --checks), driven by playwright-core, which brings none of its own.

import { existsSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";

import { chromium } from "playwright-core";

const AXE = readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Screens: one of a desk, one of a pocket. */
export const SCREENS = {
  desktop: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 375, height: 720 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
};

/** Starts Chromium; `close` it at the end. */
export async function startBrowser() {
  const places = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium"];
  const executablePath = places.find((place) => place && existsSync(place));
  if (!executablePath) throw new Error("there is no Chromium: script/setup --checks installs it, or name one in CHROMIUM");
  // Root, as in a container, gets no sandbox of Chromium's.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath, args });
}

/**
 * A page of its own, for a screen and colors. `faults` fills with what goes wrong in it: what the console says of errors, what
 * is thrown, what does not load, and, with `origin`, what is asked of anybody else.
 */
export async function openPage(browser, { screen = "desktop", colors = "light", origin } = {}) {
  const context = await browser.newContext({ ...SCREENS[screen], colorScheme: colors, reducedMotion: "reduce" });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]).catch(() => {});
  const page = await context.newPage();
  const faults = [];
  const note = (text) => faults.push(`${page.url()}: ${text}`);
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) note(`console: ${message.text()}`); });
  page.on("pageerror", (error) => note(`thrown: ${error.message}`));
  // What the browser itself gives up, as it does with a page's icon when the page is left, is no fault of the page.
  page.on("requestfailed", (request) => { if (request.failure()?.errorText !== "net::ERR_ABORTED") note(`did not load: ${request.url()} (${request.failure()?.errorText})`); });
  page.on("response", (response) => { if (response.status() >= 400) note(`${response.status()}: ${response.url()}`); });
  if (origin) page.on("request", (request) => { if (!request.url().startsWith(origin)) note(`asks somebody else: ${request.url()}`); });
  return { page, faults, close: () => context.close() };
}

/** What axe finds in the page as it is now, one line for each. */
export async function axe(page) {
  // By the debugger: a page's policy need not allow it.
  await page.evaluate(await AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const places = (nodes) => nodes.slice(0, 3).map((node) => `${node.target.join(" ")} (${node.failureSummary})`).join("; ");
  return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${places(nodes)}`);
}

/** A picture of the page, if SCREENSHOTS names a folder for them. */
export async function screenshot(page, name, { fullPage = false } = {}) {
  const folder = process.env.SCREENSHOTS;
  if (!folder) return;
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage });
}

/** Whether the page is wider than its screen, so that a reader must scroll to the side; and what makes it so. */
export async function tooWide(page) {
  return page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const wide = [...document.querySelectorAll("body *")].filter((element) => element.getBoundingClientRect().right > width + 1);
    return wide.slice(0, 5).map((element) => `${element.tagName.toLowerCase()}.${element.className}: ${element.textContent.slice(0, 40)}`);
  });
}
