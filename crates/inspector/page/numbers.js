// Parses the numbers that inspectors type. All functions return `null` for an empty text and `undefined` for an invalid one.

/** Thousands in groups of three digits, with one kind of separator. A single group is ambiguous, see `readAmount`. */
const GROUPED = /^[+-]?\d{1,3}(?:(?:\.\d{3})+(?:,\d*)?|(?:,\d{3})+(?:\.\d*)?)$/;
const PLAIN = /^[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)$/;

/**
 * Parses a number. A single separator comes before the decimals. With several, all but the last divide thousands, so `1.234,5` is
 * 1234.5 and `1.234.567` a whole number; `3.2.1` is invalid.
 */
export function readNumber(text) {
  const compact = text.replace(/\s/g, "");
  if (compact === "") return null;
  if (PLAIN.test(compact)) return Number(compact.replace(",", "."));
  if (!GROUPED.test(compact)) return undefined;
  // The thousands' separator is the first one.
  const [thousands] = compact.match(/[.,]/);
  return Number(compact.replaceAll(thousands, "").replace(",", "."));
}

/** The currency, which some type behind an amount. */
const CURRENCY = /(?:₺|TL|TRY)$/i;

/** Parses an amount. Three digits after a separator are thousands, because prices have at most two decimals. */
export function readAmount(text) {
  const compact = text.replace(/\s/g, "").replace(/^₺/, "").replace(CURRENCY, "");
  if (compact === "") return null;
  const isWhole = /^\d{1,3}([.,])\d{3}(?:\1\d{3})*$/.test(compact);
  if (!isWhole && /[.,]\d{3,}$/.test(compact)) return undefined;
  const value = readNumber(isWhole ? compact.replace(/[.,]/g, "") : compact);
  return value === undefined || value < 0 ? undefined : value.toFixed(2);
}

/** Parses a whole number. Separators are only allowed between groups of three digits. */
export function readWhole(text) {
  const compact = text.replace(/\s/g, "").replace(/km$/i, "");
  if (compact === "") return null;
  return /^(\d+|\d{1,3}([.,])\d{3}(?:\2\d{3})*)$/.test(compact) ? Number(compact.replace(/[.,]/g, "")) : undefined;
}
