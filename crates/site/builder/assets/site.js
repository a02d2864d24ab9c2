// Themes, menus, language tabs, copy buttons and search. Nothing here sends requests.
"use strict";

const storage = {
  get(name) { try { return localStorage.getItem(name); } catch { return null; } },
  set(name, value) { try { localStorage.setItem(name, value); } catch {} },
};

/** Creates an element with properties and children. */
function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function themes() {
  const button = document.querySelector("button.theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const show = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    storage.set("theme", document.documentElement.dataset.theme);
    show();
  });
  system.addEventListener("change", show);
  show();
  button.hidden = false;
}

/** Closes the menu and "On this page" on screens where they would cover the page. */
function menus() {
  for (const [selector, width] of [["details.menu", "54.99rem"], ["details.contents", "79.99rem"]]) {
    const details = document.querySelector(selector);
    if (!details) continue;
    const narrow = matchMedia(`(max-width: ${width})`);
    const fit = () => { details.open = !narrow.matches; };
    narrow.addEventListener("change", fit);
    fit();
  }
}

/** Shows the sections of each group as tabs. A language that is chosen in one group is chosen in all. */
function tabs() {
  const groups = [...document.querySelectorAll(".tabs")];
  const choose = (name) => {
    for (const group of groups) {
      const sections = [...group.querySelectorAll("section")];
      const chosen = sections.find((section) => section.dataset.tab === name) ?? sections[0];
      sections.forEach((section) => { section.hidden = section !== chosen; });
      group.querySelectorAll("[role=tab]").forEach((tab) => {
        tab.setAttribute("aria-selected", String(tab.textContent === chosen.dataset.tab));
        tab.tabIndex = tab.textContent === chosen.dataset.tab ? 0 : -1;
      });
    }
  };
  groups.forEach((group, number) => {
    const list = element("div");
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", group.dataset.what);
    group.querySelectorAll("section").forEach((section, at) => {
      section.id = `tab-${number}-${at}`;
      section.setAttribute("role", "tabpanel");
      section.setAttribute("aria-label", section.dataset.tab);
      const tab = element("button", { type: "button", textContent: section.dataset.tab });
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", section.id);
      tab.addEventListener("click", () => { choose(section.dataset.tab); storage.set("language", section.dataset.tab); });
      list.append(tab);
    });
    list.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const all = [...list.children];
      const next = step && all[(all.indexOf(document.activeElement) + step + all.length) % all.length];
      if (next) { next.click(); next.focus(); }
    });
    group.prepend(list);
    group.classList.add("ready");
  });
  choose(storage.get("language"));
}

function copying() {
  if (!navigator.clipboard) return; // not available over plain HTTP from another host
  for (const pre of document.querySelectorAll("main pre")) {
    const button = element("button", { type: "button", className: "copy", textContent: "Copy" });
    button.setAttribute("aria-label", `Copy: ${pre.getAttribute("aria-label")}`);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(pre.textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    const frame = element("div", { className: "code" });
    pre.replaceWith(frame);
    frame.append(button, pre);
  }
}

/** Returns the part of a text around the words, with the words marked. */
function excerpt(text, words) {
  const pattern = new RegExp(words.map((word) => wordPattern(word).source).join("|"), "giu");
  const at = Math.max(0, text.search(pattern) - 40);
  const shown = text.slice(at, at + 170);
  const parts = [];
  let end = 0;
  for (const found of shown.matchAll(pattern)) {
    parts.push(shown.slice(end, found.index), element("mark", { textContent: found[0] }));
    end = found.index + found[0].length;
  }
  return [at > 0 ? "…" : "", ...parts, shown.slice(end), at + 170 < text.length ? "…" : ""];
}

/** Words of the documentation for words that readers search for. */
const SYNONYMS = {
  pagination: "cursor", paginate: "cursor", paging: "cursor",
  sdk: "package", library: "package", npm: "package", pypi: "package", nuget: "package",
  install: "download", cli: "partner", terminal: "partner",
  ruby: "vectors", perl: "vectors", rust: "crate",
  synchronise: "sync", synchronize: "sync", synchronisation: "sync", synchronization: "sync", webhook: "webhooks", polling: "poll",
  authentication: "signature", authorization: "signature", auth: "signature", hmac: "signature", throttling: "rate_limited",
  throttle: "rate_limited", quota: "limit", support: "contact", help: "contact", email: "contact", console: "try", playground: "try",
  kilonewton: "kn", newton: "kn", windows: "powershell",
};

/** Returns a pattern for words that begin with this text. A text of up to two characters must be a whole word. */
function wordPattern(word) {
  const escaped = word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`(?<![\\p{L}\\p{N}])${escaped}${word.length > 2 ? "" : "(?![\\p{L}\\p{N}])"}`, "u");
}

/** Returns the entries that contain all words or their synonyms, best first. A word in a heading counts more than one in the text. */
function matches(index, words) {
  const patterns = words.map((word) => [word, SYNONYMS[word]].filter(Boolean).map((known) => [known, wordPattern(known)]));
  const scored = index.map((entry) => {
    const [heading, page, text] = [entry.h, entry.p, entry.t].map((part) => part.toLowerCase());
    let score = 0;
    for (const alternatives of patterns) {
      const points = Math.max(...alternatives.map(([word, pattern]) =>
        (pattern.test(heading) ? (heading === word ? 20 : 8) : 0) + (pattern.test(page) ? 3 : 0) + (pattern.test(text) ? 1 : 0)));
      if (points === 0) return [0, entry];
      score += points;
    }
    return [score, entry];
  });
  return scored.filter(([score]) => score > 0).sort(([a], [b]) => b - a).slice(0, 12).map(([, entry]) => entry);
}

function search() {
  const input = document.querySelector("#search");
  if (!input) return;
  const found = document.querySelector("#found");
  const base = document.querySelector("link[rel=stylesheet]").getAttribute("href").replace(/[^/]*$/, "");
  const show = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
    found.hidden = words.length === 0;
    if (found.hidden || !window.searchIndex) return;
    const entries = matches(window.searchIndex, words);
    const items = entries.map((entry) => {
      const where = entry.h === entry.p ? entry.p : `${entry.p} › ${entry.h}`;
      const link = element("a", { href: base + entry.u }, element("b", { textContent: where }), element("small", {}, ...excerpt(entry.t, words.flatMap((word) => [word, SYNONYMS[word]].filter(Boolean)))));
      return element("li", {}, link);
    });
    found.replaceChildren(items.length > 0 ? element("ul", {}, ...items) : element("p", { textContent: "No results." }));
  };
  const load = () => {
    if (document.querySelector("script[data-search]")) return;
    const script = element("script", { src: base + input.dataset.index, onload: show });
    script.dataset.search = "";
    document.head.append(script);
  };
  input.addEventListener("focus", load);
  input.addEventListener("input", show);
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.matches("input, textarea, select");
    if (event.key === "/" && !isTyping) { event.preventDefault(); input.focus(); }
    if (event.key === "Escape") { found.hidden = true; }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const stops = [input, ...found.querySelectorAll("a")];
    const at = stops.indexOf(document.activeElement);
    if (step && !found.hidden && at >= 0) { event.preventDefault(); stops[(at + step + stops.length) % stops.length].focus(); }
    if (event.key === "Enter" && event.target === input) stops[1]?.click();
  });
  document.addEventListener("click", (event) => { if (!event.target.closest(".search")) found.hidden = true; });
  input.disabled = false;
}

themes();
menus();
tabs();
copying();
search();
