// Elements that several views share.

import { h } from "./dom.js";
import { ago, time } from "./format.js";
import { labelOf, t, word } from "./i18n.js";
import { tone } from "./rules.js";

/** The icons, as paths in a square of 24 by 24. */
const ICONS = {
  good: ["M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z", "M8 12.5l2.7 2.7L16 9.5"],
  fair: ["M12 3.5 22 20.5H2z", "M12 10v4.5", "M12 17.4v.2"],
  bad: ["M8 2.5h8L21.5 8v8L16 21.5H8L2.5 16V8z", "M9 9l6 6", "M15 9l-6 6"],
  none: ["M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z", "M8 12h8"],
  device: ["M3 14h18v6H3z", "M6 14V8a6 6 0 0 1 12 0v6", "M12 8l3 3", "M7 17h.2", "M11 17h6"],
  plus: ["M12 5v14", "M5 12h14"],
  back: ["M15 5l-7 7 7 7"],
  next: ["M9 5l7 7-7 7"],
  clock: ["M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z", "M12 7v5l3.5 2"],
  open: ["M5 13a10 10 0 0 1 14 0", "M8.5 16.5a5 5 0 0 1 7 0", "M12 20h.01", "M2 9.5a15 15 0 0 1 20 0"],
  lost: ["M5 13a10 10 0 0 1 4-2.4", "M15 10.6a10 10 0 0 1 4 2.4", "M8.5 16.5a5 5 0 0 1 7 0", "M12 20h.01", "M3 3l18 18"],
  photo: ["M3 8h4l2-3h6l2 3h4v12H3z", "M12 17.5a3.8 3.8 0 1 0 0-7.6 3.8 3.8 0 0 0 0 7.6z"],
  hidden: [
    "M3 3l18 18",
    "M10.6 6.2A9.5 9.5 0 0 1 12 6c5 0 8.5 4 9.6 6a15 15 0 0 1-2.6 3.3",
    "M6.6 7.6A15 15 0 0 0 2.4 12c1.1 2 4.6 6 9.6 6a9.4 9.4 0 0 0 4.2-1",
    "M9.9 9.9a3 3 0 0 0 4.2 4.2",
  ],
  check: ["M5 12.5l4.5 4.5L19 7.5"],
  close: ["M6 6l12 12", "M18 6L6 18"],
  copy: ["M9 9h11v11H9z", "M5 15H4V4h11v1"],
  "open-file": ["M6 2.5h8l4 4v15H6z", "M14 2.5v4h4", "M9 12h6", "M9 16h6"],
  print: ["M7 8V3h10v5", "M7 17H4V8h16v9h-3", "M7 14h10v7H7z"],
  up: ["M12 19V6", "M6 11l6-6 6 6"],
  pen: ["M4 20l1-4L16 5l3 3L8 19z", "M13.5 7.5l3 3"],
  scan: ["M4 8V4h4", "M16 4h4v4", "M20 16v4h-4", "M8 20H4v-4", "M8 8v8", "M12 8v8", "M16 8v8"],
  key: ["M14.5 14a5 5 0 1 0-4.6-3L3 18v3h3v-2h2v-2h2l1.2-1.2a5 5 0 0 0 3.3-1.8z", "M15.5 8.5h.01"],
};

export const icon = (name) =>
  h(
    "svg",
    { class: `icon ${name}`, viewBox: "0 0 24 24", "aria-hidden": "true" },
    ICONS[name].map((d) => h("path", { d })),
  );

/** A point's status, with color, icon and text. */
export function status(one) {
  const kind = tone(one);
  return h("span", { class: `status ${kind}` }, icon(kind), h("span", null, one ? labelOf(one) : t("status.none")));
}

/** A report's status. */
export const stage = (code) => h("span", { class: `stage is-${code.toLowerCase()}` }, word("stage", code));

/** A license plate, drawn as on the car. */
export const plate = (text) =>
  h("span", { class: "plate" }, h("span", { class: "country", "aria-hidden": "true" }, "TR"), spaced(text));

/** `34ABC123` as `34 ABC 123`. */
export function spaced(text) {
  const [, place, letters, digits] = /^(\d{2})\s*([A-Z]{1,3})\s*(\d{2,5})$/.exec(text) ?? [];
  return place ? `${place} ${letters} ${digits}` : text;
}

/** Names the car of a report in a dialog, so that nobody confirms for another one. */
export function subject(report, { branches }) {
  const branch = branches.find(({ id }) => id === report.branch_id);
  return h(
    "p",
    { class: "subject" },
    h("b", null, spaced(report.plate)),
    " · ",
    report.report_number,
    branch && ` · ${branch.name}`,
  );
}

/** A relative time; the exact time is its title. */
export const when = (at) => h("time", { datetime: at, title: time(at) }, ago(at));

/** A button; `kind` is `primary`, `quiet` or `danger`. */
export function button(text, onclick, { kind = "", sign = null, ...attributes } = {}) {
  return h("button", { type: "button", class: kind, onclick, ...attributes }, sign && icon(sign), h("span", null, text));
}

/** A note beside the element that it is about. */
export const note = (kind, ...children) =>
  h("p", { class: `note ${kind}` }, icon(kind === "info" ? "clock" : kind), h("span", null, children));

/** A field with its label, its hint and its error. */
export function field(id, label, control, { error = null, hint = null } = {}) {
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ") || null;
  Object.assign(control.attributes, { id, "aria-describedby": described, "aria-invalid": error ? "true" : null });
  return h(
    "div",
    { class: "field", key: id },
    h("label", { for: id }, label),
    control,
    hint && h("p", { class: "hint", id: `${id}-hint` }, hint),
    error && h("p", { class: "error", id: `${id}-error` }, icon("bad"), error),
  );
}

/** A modal dialog. Escape closes it. */
export function dialog(id, title, close, ...children) {
  return h(
    "dialog",
    {
      key: id,
      class: id,
      "aria-labelledby": `${id}-title`,
      onmount: (node) => node.showModal(),
      oncancel: (event) => {
        event.preventDefault();
        close?.();
      },
    },
    h("h2", { id: `${id}-title` }, title),
    children,
  );
}

/** Focuses the element that matches the selector, after the next rendering. */
export function focusSoon(selector) {
  requestAnimationFrame(() => document.querySelector(selector)?.focus());
}

/** Announces a text to screen readers. */
export function announce(text) {
  const region = document.getElementById("announcements");
  // Cleared first, so that the same text is announced again.
  region.textContent = "";
  requestAnimationFrame(() => {
    region.textContent = text;
  });
}

/** The codes of refusals whose message says more than the page's text: which points are missing, or what is wrong with a photo. */
const EXPLAINED = ["invalid_request", "transition_rejected", "report_incomplete", "unsupported_photo", "photo_too_large"];

/** The message for a failed request. */
export function failure(error) {
  if (error?.code === undefined) return t("failed.unreachable");
  const known = word("failed", error.code);
  if (known === error.code) return t("failed.internal_error", { id: error.requestId ?? "—" });
  // The service's words are English.
  const messages = error.details.length > 0 ? error.details.map(({ message }) => message) : [error.message];
  const words = EXPLAINED.includes(error.code) ? messages : [];
  return [known.replace("{id}", error.requestId ?? "—"), ...words].join(" · ");
}
