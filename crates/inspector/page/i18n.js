// The page's language: Turkish by default, and the last choice is remembered.

import { TEXTS } from "./texts.js";

const STORAGE_KEY = "inspector.language";

let current = "tr";
try {
  const stored = localStorage.getItem(STORAGE_KEY);
  if (stored in TEXTS) current = stored;
} catch {
  /* The browser allows no storage. */
}
document.documentElement.lang = current;

/** `tr` or `en`. */
export const language = () => current;

/** Sets the page's language and remembers it. */
export function setLanguage(other) {
  current = other;
  document.documentElement.lang = other;
  try {
    localStorage.setItem(STORAGE_KEY, other);
  } catch {
    /* The choice is not remembered. */
  }
}

/** A text of `texts.js` with its placeholders filled in. Of several plural forms, the one for `count` is used. */
export function t(key, values = {}) {
  const found = TEXTS[current][key];
  const text = typeof found === "object" ? (found[new Intl.PluralRules(current).select(values.count)] ?? found.other) : found;
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** The label of a status or a kind of photo in the page's language. */
export const labelOf = ({ label, label_en: english }) => (current === "en" && english ? english : label);

/** The text for a code from the service; a code without a text is returned unchanged. */
export const word = (group, code) => (`${group}.${code}` in TEXTS[current] ? t(`${group}.${code}`) : code);
