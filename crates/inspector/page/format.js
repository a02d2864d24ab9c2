// Formats numbers, times and money in the page's language.

import { language } from "./i18n.js";

const locale = () => (language() === "tr" ? "tr-TR" : "en-GB");

/** Formats a number with at most three decimals. */
export const number = (value) => new Intl.NumberFormat(locale(), { maximumFractionDigits: 3 }).format(value);

/** Formats a number for a field, in which it is read again: a separator of thousands could be read as that of decimals. */
export const editable = (value) =>
  new Intl.NumberFormat(locale(), { maximumFractionDigits: 3, useGrouping: false }).format(value);

const UNITS = { percent: "%", "%": "%" };

/** A unit as it is written after a number. */
export const unit = (name) => UNITS[name] ?? name ?? "";

/** Formats a number with its unit. Turkish puts the percent sign first. */
export function quantity(value, name) {
  if (value === null || value === undefined) return "—";
  const shown = unit(name);
  if (shown === "%") return language() === "tr" ? `%${number(value)}` : `${number(value)}%`;
  return shown ? `${number(value)} ${shown}` : number(value);
}

/** Formats an amount, which the API sends as a string with two decimals. */
export function money(amount, currency) {
  try {
    return new Intl.NumberFormat(locale(), { style: "currency", currency }).format(Number(amount));
  } catch {
    return `${amount} ${currency}`;
  }
}

/** An amount for a field: `4500.00` as `4.500,00` or `4,500.00`. */
export const amount = (text) =>
  new Intl.NumberFormat(locale(), { minimumFractionDigits: 2, maximumFractionDigits: 2 }).format(Number(text));

/** A whole number for a field. */
export const whole = (value) => new Intl.NumberFormat(locale()).format(value);

const DAY = 86_400;
const YEAR = 365.25 * DAY;

/** Formats the time since `at`, such as "5 minutes ago". */
export function ago(at, now = Date.now()) {
  const seconds = Math.round((new Date(at).getTime() - now) / 1000);
  const spans = new Intl.RelativeTimeFormat(locale(), { numeric: "auto" });
  const size = Math.abs(seconds);
  if (size < 45) return spans.format(0, "second");
  if (size < 3_600) return spans.format(Math.round(seconds / 60) || -1, "minute");
  if (size < DAY) return spans.format(Math.round(seconds / 3_600), "hour");
  if (size < YEAR) return spans.format(Math.round(seconds / DAY), "day");
  return spans.format(Math.round(seconds / YEAR), "year");
}

/** Formats the time of day, with the date unless it is today. */
export function time(at, now = Date.now()) {
  const moment = new Date(at);
  const isToday = moment.toDateString() === new Date(now).toDateString();
  const options = isToday ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" };
  return new Intl.DateTimeFormat(locale(), options).format(moment);
}
