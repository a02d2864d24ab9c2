// Measurements that wait for the report's plate: what they say, beside what the report has, and what is to become of them.

import { api, Refused, Unreachable } from "./api.js";
import { h } from "./dom.js";
import { queued, took } from "./drafts.js";
import { quantity, time } from "./format.js";
import { t, word } from "./i18n.js";
import { picture } from "./picture.js";
import { isOpen, testLine } from "./rules.js";
import { changed, state, tell } from "./state.js";
import { announce, button, failure, focusSoon, icon, status, when } from "./ui.js";

/** From here on somebody should ask whether it is this visit's, in milliseconds. */
const OLD = 12 * 3_600_000;

/** The measurement that is being settled, and the one of which it was asked whether it is to be ignored. */
const doing = { id: null, asked: null };

async function settle(measurement, work, told) {
  if (doing.id) return;
  doing.id = measurement.id;
  changed();
  const { id } = state.report;
  try {
    await queued(id, work);
    announce(told);
    tell("good", told);
    focusSoon("#tabs [aria-current]");
  } catch (error) {
    await failed(error, id);
  } finally {
    doing.id = null;
    doing.asked = null;
    changed();
  }
}

async function failed(error, id) {
  const isSettled = error instanceof Refused && (error.code === "already_settled" || error.code === "not_found");
  const text = isSettled ? t("banner.settled") : error instanceof Unreachable ? t("banner.unreachable") : failure(error);
  if (error.code !== "signed_out") {
    tell(isSettled ? "fair" : "bad", text);
    announce(text);
  }
  // Whatever it was, what the report is now says more.
  if (error instanceof Refused && error.code !== "signed_out") took(await api.report(id).catch(() => state.report.data));
}

export function applyMeasurement(measurement) {
  const { id } = state.report;
  const count = measurement.values.filter((value) => value.would_be).length;
  return settle(measurement, async () => {
    took(await api.apply(id, measurement.id));
    const form = testLine(state.report.data);
    if (form) location.hash = `#/reports/${id}/${form.template_code}`;
  }, t("banner.applied", { count, time: time(measurement.measured_at) }));
}

function ask(measurement) {
  doing.asked = measurement.id;
  changed();
  focusSoon("#really");
}

function notAsked() {
  doing.asked = null;
  changed();
  focusSoon("#ignore");
}

function discardMeasurement(measurement) {
  const { id } = state.report;
  return settle(measurement, async () => {
    await api.discard(measurement.id);
    took(await api.report(id));
  }, t("banner.ignored"));
}

export const newest = () => (state.report?.data && isOpen(state.report.data) ? state.report.data.waiting[0] : undefined);
export const askToIgnore = () => newest() && ask(newest());

export function banner(report) {
  if (!isOpen(report) || report.waiting.length === 0) return null;
  const [first, ...others] = report.waiting;
  return h("section", { class: "banner", key: "banner", "aria-labelledby": "banner-title" },
    h("div", { class: "banner-head" },
      icon("device"),
      h("div", null,
        h("h2", { id: "banner-title", tabindex: "-1" }, t("banner.title", { count: report.waiting.length })),
        h("p", null, t("banner.lead")))),
    measurement(report, first, true),
    others.length > 0 && h("details", { key: "older" },
      h("summary", null, t("banner.older", { count: others.length })),
      others.map((other) => measurement(report, other, false))));
}

function measurement(report, one, isNewest) {
  const isOld = Date.now() - new Date(one.measured_at).getTime() > OLD;
  return h("article", { class: "measurement", key: one.id, "aria-label": t("banner.of", { device: one.device_serial ?? t("banner.noSerial"), time: time(one.measured_at) }) },
    h("dl", { class: "facts" },
      h("div", null, h("dt", null, t("banner.device")), h("dd", null, one.device_serial ?? t("banner.noSerial"), one.partner && h("small", null, one.partner))),
      h("div", { class: isOld ? "old" : null }, h("dt", null, t("banner.measured")), h("dd", null, time(one.measured_at), h("small", null, isOld && icon("fair"), when(one.measured_at)))),
      h("div", null, h("dt", null, t("banner.received")), h("dd", null, time(one.received_at), h("small", null, when(one.received_at))))),
    isOld && h("p", { class: "note fair" }, icon("fair"), h("span", null, t("banner.old"))),
    h("div", { class: "beside" }, table(report, one), isNewest && picture(after(report, one), { title: t("banner.picture"), isSmall: true })),
    doing.asked === one.id ? really(one) : actions(one, isNewest));
}

function actions(one, isNewest) {
  const isBusy = doing.id !== null;
  const of = t("banner.of", { device: one.device_serial ?? t("banner.noSerial"), time: time(one.measured_at) });
  return h("div", { class: "actions", key: "actions" },
    button(doing.id === one.id ? t("banner.doing") : t("banner.apply"), () => applyMeasurement(one), {
      kind: "primary big", sign: "check", id: isNewest ? "apply" : null, "aria-disabled": isBusy ? "true" : null, "aria-keyshortcuts": isNewest ? "Alt+U" : null, "aria-description": of,
    }),
    button(t("banner.ignore"), () => ask(one), { kind: "big", sign: "close", id: isNewest ? "ignore" : null, "aria-disabled": isBusy ? "true" : null, "aria-keyshortcuts": isNewest ? "Alt+Y" : null, "aria-description": of }));
}

function really(one) {
  return h("div", { class: "actions asked", key: "asked", role: "group", "aria-labelledby": "asked" },
    h("p", { id: "asked" }, t("banner.really")),
    button(doing.id === one.id ? t("banner.doing") : t("banner.reallyIgnore"), () => discardMeasurement(one), { kind: "danger big", sign: "close", id: "really" }),
    button(t("cancel"), notAsked, { kind: "big" }));
}

/** The report's test line as it would be. */
function after(report, one) {
  const form = testLine(report);
  if (!form) return null;
  const values = new Map(one.values.filter((value) => value.would_be).map((value) => [value.code, value]));
  const points = form.points.map((point) => {
    const value = values.get(point.code);
    return value ? { ...point, numeric_value: value.value, status_code: value.would_be } : point;
  });
  return { ...form, points };
}

function table(report, one) {
  const points = new Map((testLine(report)?.points ?? []).map((point) => [point.code, point]));
  return h("table", null,
    h("caption", { class: "unseen" }, t("banner.values")),
    h("thead", null, h("tr", null, ["point", "today", "new", "becomes"].map((column) => h("th", { scope: "col", class: column }, t(`banner.${column}`))))),
    h("tbody", null, one.values.map((value) => {
      const point = points.get(value.code);
      const isOther = value.today !== null && value.today !== undefined && value.today !== value.value;
      return h("tr", { key: value.code, class: value.would_be ? null : "skipped" },
        h("th", { scope: "row" }, point?.name ?? value.code),
        h("td", { class: "today" }, value.today === null || value.today === undefined ? "—" : quantity(value.today, point?.unit)),
        h("td", { class: isOther ? "new other" : "new" }, quantity(value.value, point?.unit)),
        h("td", { class: "becomes" }, value.would_be ? status(value.would_be) : h("span", { class: "why" }, icon("none"), word("skipped", value.skipped_for))));
    })));
}
