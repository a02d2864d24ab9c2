// Measurements that wait for the report's plate: what they say, beside what the report has, and what is to become of them.

import { api, Refused, Unreachable } from "./api.js";
import { h } from "./dom.js";
import { queued, took } from "./drafts.js";
import { quantity, time } from "./format.js";
import { t, word } from "./i18n.js";
import { picture } from "./picture.js";
import { isWritten, testLine } from "./rules.js";
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
  if (error instanceof Refused && error.code !== "signed_out") await api.report(id).then(took, () => {});
}

function applyMeasurement(measurement) {
  if (!isWritten(state.report.data)) return;
  const { id } = state.report;
  const count = measurement.values.filter((value) => value.would_be).length;
  settle(measurement, async () => {
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
  settle(measurement, async () => {
    await api.discard(measurement.id);
    took(await api.report(id));
  }, t("banner.ignored"));
}

/** The report that was looked at last, and when the newest came that waited for it then. */
let looked = { report: null, came: 0 };

/** Tells who does not see the page of a measurement that waits, and of one that comes while its report is there. */
export function tellWhatCame() {
  const report = state.report?.data ? state.report.id : null;
  const now = newest();
  const came = now ? new Date(now.received_at).getTime() : 0;
  const before = looked.report === report ? looked.came : 0;
  if (came > before) announce(t("banner.came", { count: state.report.data.waiting.length, time: time(now.measured_at) }));
  looked = { report, came: Math.max(came, before) };
}

const newest = () => state.report?.data?.waiting[0];

/** All that waits; the newest with its values where `isOpened`. */
export function banner(report, isOpened) {
  if (report.waiting.length === 0) return null;
  const [first, ...others] = report.waiting;
  return h("section", { class: "banner", key: "banner", "aria-labelledby": "banner-title" },
    h("div", { class: "banner-head" },
      icon("device"),
      h("div", null,
        h("h2", { id: "banner-title", tabindex: "-1" }, t("banner.title", { count: report.waiting.length })),
        h("p", null, t("banner.lead")))),
    measurement(report, first, true, isOpened),
    others.length > 0 && h("details", { key: "older" },
      h("summary", null, t("banner.older", { count: others.length })),
      others.map((other) => measurement(report, other, false, true))));
}

/** `isOpened`: with its values, rather than a link to them. */
function measurement(report, one, isNewest, isOpened) {
  const isOld = Date.now() - new Date(one.measured_at).getTime() > OLD;
  return h("article", { class: "measurement", key: one.id, "aria-label": t("banner.of", { device: one.device_serial ?? t("banner.noSerial"), time: time(one.measured_at) }) },
    h("div", { class: "measured" },
      h("dl", { class: "facts" },
        h("div", null, h("dt", null, t("banner.device")), h("dd", null, one.device_serial ?? t("banner.noSerial"), one.partner && h("small", null, one.partner))),
        h("div", { class: isOld ? "old" : null }, h("dt", null, t("banner.measured")), h("dd", null, time(one.measured_at), h("small", null, isOld && icon("fair"), when(one.measured_at)))),
        h("div", null, h("dt", null, t("banner.received")), h("dd", null, time(one.received_at), h("small", null, when(one.received_at))))),
      doing.asked === one.id ? really(one) : actions(report, one, isNewest)),
    isOld && h("p", { class: "note fair" }, icon("fair"), h("span", null, t("banner.old"))),
    isOpened ? h("div", { class: "beside", key: "beside" }, isNewest && picture(after(report, one), t("banner.picture")), table(report, one)) :
    h("a", { key: "look", class: "look", href: `#/reports/${report.id}/${testLine(report)?.template_code ?? ""}` }, t("banner.look"), icon("next")));
}

function actions(report, one, isNewest) {
  const isBusy = doing.id !== null;
  const of = t("banner.of", { device: one.device_serial ?? t("banner.noSerial"), time: time(one.measured_at) });
  return h("div", { class: "actions", key: "actions" },
    !isWritten(report) ? h("p", { class: "hint" }, t("banner.notNow", { stage: word("stage", report.status) })) :
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
  const order = [...points.keys()];
  const place = ({ code }) => (order.includes(code) ? order.indexOf(code) : order.length);
  const values = [...one.values].sort((left, right) => place(left) - place(right));
  const isNew = values.every(({ today }) => today === null || today === undefined);
  const columns = ["point", !isNew && "today", "new", "becomes"].filter(Boolean);
  return h("table", null,
    h("caption", { class: "unseen" }, t("banner.values")),
    h("thead", null, h("tr", null, columns.map((column) => h("th", { scope: "col", class: column, key: column }, h("span", null, t(`banner.${column}`)))))),
    h("tbody", null, values.map((value) => {
      const point = points.get(value.code);
      const isOther = value.today !== null && value.today !== undefined && value.today !== value.value;
      return h("tr", { key: value.code, class: value.would_be ? null : "skipped" },
        h("th", { scope: "row" }, point?.name ?? value.code),
        !isNew && h("td", { class: "today" }, value.today === null || value.today === undefined ? "—" : quantity(value.today, point?.unit)),
        h("td", { class: isOther ? "new other" : "new" }, quantity(value.value, point?.unit)),
        h("td", { class: "becomes" }, value.would_be ? status(value.would_be) : h("span", { class: "why" }, icon("none"), word("skipped", value.skipped_for))));
    })));
}
