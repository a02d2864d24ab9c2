// Tests of the texts of the inspectors' page: each language has the same texts, and exactly those that the page uses.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

const folder = new URL("../../crates/inspector/page/", import.meta.url);
// As a data URL, because Node.js may not treat the file extension as a module.
const source = readFileSync(new URL("texts.js", folder));
const { TEXTS } = await import(`data:text/javascript;base64,${source.toString("base64")}`);

const placeholders = (text) => Object.values(typeof text === "object" ? text : { text }).flatMap((form) => form.match(/\{\w+\}/g) ?? []);

test("every language has the same texts, with the same placeholders", () => {
  const [first, ...others] = Object.keys(TEXTS);
  for (const other of others) {
    assert.deepEqual(Object.keys(TEXTS[other]).sort(), Object.keys(TEXTS[first]).sort());
    for (const [key, text] of Object.entries(TEXTS[first])) {
      assert.deepEqual(new Set(placeholders(TEXTS[other][key])), new Set(placeholders(text)), key);
    }
  }
  for (const [language, texts] of Object.entries(TEXTS)) {
    for (const [key, text] of Object.entries(texts)) {
      const forms = typeof text === "object" ? Object.values(text) : [text];
      assert.ok(forms.every((form) => form.trim().length > 0), `${language}: ${key}`);
      // A text with plural forms has one for each plural category of the language.
      if (typeof text === "object") for (const form of new Intl.PluralRules(language).resolvedOptions().pluralCategories) assert.ok(form in text, `${language}: ${key} for ${form}`);
    }
  }
});

test("every text that the page uses exists, and every text is used", () => {
  const scripts = readdirSync(folder).filter((name) => name.endsWith(".js") && name !== "texts.js").map((name) => readFileSync(new URL(name, folder), "utf8"));
  const code = scripts.join("\n");
  const used = new Set([...code.matchAll(/"([a-z][A-Za-z0-9]*(?:\.[A-Za-z0-9_]+)*)"/g)].map(([, key]) => key));
  // Keys that are composed: `t(`open.${name}`)`, `word("stage", …)`.
  const prefixes = [...code.matchAll(/t\(`([A-Za-z.]+)\$\{/g)].map(([, begin]) => begin).concat([...code.matchAll(/word\("(\w+)"/g)].map(([, group]) => `${group}.`));
  const keys = Object.keys(TEXTS.tr);
  for (const [, key] of code.matchAll(/\bt\("([^"]+)"/g)) assert.ok(key in TEXTS.tr, key);
  for (const key of keys) assert.ok(used.has(key) || prefixes.some((prefix) => key.startsWith(prefix)), `${key} is not used`);
  assert.ok(keys.length > 200, `${keys.length} texts`);
});

test("every report status and error code of the contract has a text", () => {
  const contract = readFileSync(new URL("../../spec/inspector-api.yaml", import.meta.url), "utf8");
  const listed = (name) => new RegExp(`\\n    ${name}:[\\s\\S]*?enum: \\[([^\\]]+)\\]`).exec(contract)[1].split(",").map((word) => word.trim());
  for (const [group, name] of [["stage", "ReportStatus"]]) {
    for (const word of listed(name)) assert.ok(`${group}.${word}` in TEXTS.tr, `${group}.${word}`);
  }
  const codes = /x-known-values:\n((?:\s+- \w+\n)+)/.exec(contract)[1].match(/\w+/g);
  // The page never causes these.
  for (const code of codes.filter((code) => !["method_not_allowed", "service_unavailable"].includes(code))) assert.ok(`failed.${code}` in TEXTS.tr, `failed.${code}`);
});
