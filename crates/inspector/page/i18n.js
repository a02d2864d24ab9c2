// The page's language: Turkish unless somebody chose the other one here before.

import { TEXTS } from "./texts.js";

const PLACE = "inspector.language";

let current = "tr";
try {
  const kept = localStorage.getItem(PLACE);
  if (kept in TEXTS) current = kept;
} catch { /* A browser that keeps nothing. */ }
document.documentElement.lang = current;

/** `tr` or `en`. */
export const language = () => current;

/** Shows the page in another language, and remembers it. */
export function speak(other) {
  current = other;
  document.documentElement.lang = other;
  try { localStorage.setItem(PLACE, other); } catch { /* It is asked again next time. */ }
}

/** A text of `texts.js`, with what stands in braces filled in; of several forms the one for `count`. */
export function t(key, values = {}) {
  const found = TEXTS[current][key];
  const text = typeof found === "object" ? found[new Intl.PluralRules(current).select(values.count)] ?? found.other : found;
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** The same where the key is put together of what the service says; what has no text is shown as it is. */
export const word = (group, code) => (`${group}.${code}` in TEXTS[current] ? t(`${group}.${code}`) : code);
