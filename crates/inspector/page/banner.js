// Pending measurements for the report's plate: their values beside the report's, and buttons to apply or discard them.

import { api, Rejected, Unreachable } from "./api.js";
import { h } from "./dom.js";
import { enqueue, readAgain, storeReport, typePoint } from "./drafts.js";
import { quantity, time } from "./format.js";
import { undoMeasurement } from "./history.js";
import { t, word } from "./i18n.js";
import { picture } from "./picture.js";
import { isEditable, statusOf, testLine } from "./rules.js";
import { askToConfirm, changed, endConfirmation, isToConfirm, notify, state, workOn } from "./state.js";
import { announce, button, failure, focusSoon, icon, status, when } from "./ui.js";

/** The age from which a measurement is marked as old, in milliseconds: it may belong to another visit. */
const OLD = 12 * 3_600_000;

async function settle(id, measurement, request, message) {
  const work = workOn(id);
  if (work.settling) return;
  work.settling = measurement.id;
  changed();
  try {
    await enqueue(id, request);
    announce(message);
    notify("good", message, { text: t("undo.do"), run: () => undoMeasurement(id, measurement.id) });
    if (state.report?.id === id) focusSoon("#tabs [aria-current]");
  } catch (error) {
    await failed(error, id);
  } finally {
    work.settling = null;
    if (isToConfirm("ignore", measurement.id)) endConfirmation();
    changed();
  }
}

async function failed(error, id) {
  const isSettled = error instanceof Rejected && (error.code === "already_settled" || error.code === "not_found");
  const text = isSettled ? t("banner.settled") : error instanceof Unreachable ? t("banner.unreachable") : failure(error);
  if (error.code !== "signed_out") {
    notify(isSettled ? "fair" : "bad", text);
    announce(text);
  }
  // Show the report's current state, whatever the error was.
  if (error instanceof Rejected && error.code !== "signed_out") await readAgain(id);
}

function applyMeasurement(measurement) {
  if (!isEditable(state.report.data)) return;
  const { id } = state.report;
  const count = measurement.values.filter((value) => value.would_be).length;
  settle(
    id,
    measurement,
    async () => {
      const report = await api.apply(id, measurement.id);
      storeReport(report);
      const form = testLine(report);
      if (form && state.route.id === id) location.hash = `#/reports/${id}/${form.template_code}`;
    },
    t("banner.applied", { count, time: time(measurement.measured_at) }),
  );
}

function askToDiscard(measurement) {
  askToConfirm("ignore", measurement.id);
  focusSoon("#really");
}

function cancelDiscard() {
  endConfirmation();
  focusSoon("#ignore");
}

function discardMeasurement(measurement) {
  const { id } = state.report;
  settle(
    id,
    measurement,
    async () => {
      await api.discard(measurement.id);
      storeReport(await api.report(id));
    },
    t("banner.ignored"),
  );
}

/** The report that was rendered last, and the arrival time of its newest pending measurement then. */
let lastShown = { report: null, receivedAt: 0 };

/** Announces pending measurements to screen readers: those of a report that was just opened, and those that arrive later. */
export function announceMeasurements() {
  const report = state.report?.data ? state.report.id : null;
  const now = newest();
  const receivedAt = now ? new Date(now.received_at).getTime() : 0;
  const before = lastShown.report === report ? lastShown.receivedAt : 0;
  if (receivedAt > before) announce(t("banner.came", { count: state.report.data.waiting.length, time: time(now.measured_at) }));
  lastShown = { report, receivedAt: Math.max(receivedAt, before) };
}

/** The pending measurement that arrived last; the list begins with the one that was measured last. */
function newest() {
  const arrived = ({ received_at: at }) => new Date(at).getTime();
  const waiting = state.report?.data?.waiting ?? [];
  return waiting.reduce((last, one) => (last && arrived(last) >= arrived(one) ? last : one), undefined);
}

/** Announces the values that a device has written over typed ones since the report was read. */
export function announceReplaced(before, report) {
  const known = new Map((testLine(before)?.points ?? []).map((point) => [point.code, point]));
  for (const point of testLine(report)?.points ?? []) {
    const earlier = known.get(point.code);
    if (!point.replaced || earlier?.written_at === point.written_at) continue;
    const values = {
      point: point.name,
      now: quantity(point.numeric_value, point.unit),
      before: quantity(point.replaced.numeric_value, point.unit),
    };
    const text = t("replaced.came", values);
    const form = testLine(report);
    notify("fair", text, { text: t("replaced.back", values), run: () => takeBack(report, form, point) });
    announce(text);
  }
}

/** Writes the answer again that a device has replaced. */
export function takeBack(report, form, { code, name, replaced, bounds }) {
  const point = state.report?.data?.forms.flatMap(({ points }) => points).find((one) => one.code === code) ?? {
    code,
    name,
    bounds,
  };
  const number = replaced.numeric_value === null || replaced.numeric_value === undefined ? "" : String(replaced.numeric_value);
  typePoint(report.id, form, point, bounds && number !== "" ? { number } : { number, status: replaced.status_code });
}

/** Renders all pending measurements. With `isOpened`, the first one is shown with its values. */
export function banner(report, isOpened) {
  if (report.waiting.length === 0) return null;
  const [first, ...others] = report.waiting;
  return h(
    "section",
    { class: "banner", key: "banner", "aria-labelledby": "banner-title" },
    h(
      "div",
      { class: "banner-head" },
      icon("device"),
      h(
        "div",
        null,
        h("h2", { id: "banner-title", tabindex: "-1" }, t("banner.title", { count: report.waiting.length })),
        h("p", null, t("banner.lead")),
      ),
    ),
    measurement(report, first, true, isOpened),
    others.length > 0 &&
      h(
        "details",
        { key: "older" },
        h("summary", null, t("banner.older", { count: others.length })),
        others.map((other) => measurement(report, other, false, true)),
      ),
  );
}

/** Renders one measurement; with `isOpened` with its values, otherwise with a link to them. */
function measurement(report, one, isNewest, isOpened) {
  const isOld = Date.now() - new Date(one.measured_at).getTime() > OLD;
  return h(
    "article",
    {
      class: "measurement",
      key: one.id,
      "aria-label": t("banner.of", { device: one.device_serial ?? t("banner.noSerial"), time: time(one.measured_at) }),
    },
    h(
      "div",
      { class: "measured" },
      h(
        "dl",
        { class: "facts" },
        h(
          "div",
          null,
          h("dt", null, t("banner.device")),
          h("dd", null, one.device_serial ?? t("banner.noSerial"), one.partner && h("small", null, one.partner)),
        ),
        h(
          "div",
          { class: isOld ? "old" : null },
          h("dt", null, t("banner.measured")),
          h("dd", null, time(one.measured_at), h("small", null, isOld && icon("fair"), when(one.measured_at))),
        ),
        h(
          "div",
          null,
          h("dt", null, t("banner.received")),
          h("dd", null, time(one.received_at), h("small", null, when(one.received_at))),
        ),
      ),
      isToConfirm("ignore", one.id) ? confirmation(report, one) : actions(report, one, isNewest),
    ),
    isOld && h("p", { class: "note fair" }, icon("fair"), h("span", null, t("banner.old"))),
    isOpened
      ? h(
          "div",
          { class: "beside", key: "beside" },
          isNewest && picture(preview(report, one), t("banner.picture")),
          table(report, one),
        )
      : h(
          "a",
          { key: "look", class: "look", href: `#/reports/${report.id}/${testLine(report)?.template_code ?? ""}` },
          t("banner.look"),
          icon("next"),
        ),
  );
}

function actions(report, one, isNewest) {
  const { settling } = workOn(report.id);
  const isBusy = settling !== null;
  const of = t("banner.of", { device: one.device_serial ?? t("banner.noSerial"), time: time(one.measured_at) });
  return h(
    "div",
    { class: "actions", key: "actions" },
    !isEditable(report)
      ? h("p", { class: "hint" }, t("banner.notNow", { stage: word("stage", report.status) }))
      : button(settling === one.id ? t("banner.doing") : t("banner.apply"), () => applyMeasurement(one), {
          kind: "primary big",
          sign: "check",
          id: isNewest ? "apply" : null,
          "aria-disabled": isBusy ? "true" : null,
          "aria-keyshortcuts": isNewest ? "Alt+U" : null,
          "aria-description": of,
        }),
    button(t("banner.ignore"), () => askToDiscard(one), {
      kind: "big",
      sign: "close",
      id: isNewest ? "ignore" : null,
      "aria-disabled": isBusy ? "true" : null,
      "aria-keyshortcuts": isNewest ? "Alt+Y" : null,
      "aria-description": of,
    }),
  );
}

function confirmation(report, one) {
  return h(
    "div",
    { class: "actions confirmation", key: "confirmation", role: "group", "aria-labelledby": "confirmation" },
    h("p", { id: "confirmation" }, t("banner.really")),
    button(workOn(report.id).settling === one.id ? t("banner.doing") : t("banner.reallyIgnore"), () => discardMeasurement(one), {
      kind: "danger big",
      sign: "close",
      id: "really",
    }),
    button(t("cancel"), cancelDiscard, { kind: "big" }),
  );
}

/** The report's test-line form as it would be after the measurement is applied. */
function preview(report, one) {
  const form = testLine(report);
  if (!form) return null;
  const values = new Map(one.values.filter((value) => value.would_be).map((value) => [value.code, value]));
  const points = form.points.map((point) => {
    const value = values.get(point.code);
    return value
      ? {
          code: point.code,
          name: point.name,
          unit: point.unit,
          bounds: point.bounds,
          numeric_value: value.value,
          status_code: value.would_be,
        }
      : point;
  });
  return { ...form, points, computed: one.computed };
}

function table(report, one) {
  const form = testLine(report);
  const points = new Map((form?.points ?? []).map((point) => [point.code, point]));
  const order = [...points.keys()];
  const place = ({ code }) => (order.includes(code) ? order.indexOf(code) : order.length);
  const values = [...one.values].sort((left, right) => place(left) - place(right));
  const isNew = values.every(({ today }) => today === null || today === undefined);
  const columns = ["point", !isNew && "today", "new", "becomes"].filter(Boolean);
  return h(
    "table",
    null,
    h("caption", { class: "unseen" }, t("banner.values")),
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        columns.map((column) => h("th", { scope: "col", class: column, key: column }, h("span", null, t(`banner.${column}`)))),
      ),
    ),
    h(
      "tbody",
      null,
      values.map((value) => {
        const point = points.get(value.code);
        const isOther = value.today !== null && value.today !== undefined && value.today !== value.value;
        return h(
          "tr",
          { key: value.code, class: value.would_be ? null : "skipped" },
          h("th", { scope: "row" }, point?.name ?? value.code),
          !isNew &&
            h(
              "td",
              { class: "today" },
              value.today === null || value.today === undefined ? "—" : quantity(value.today, point?.unit),
            ),
          h("td", { class: isOther ? "new other" : "new" }, quantity(value.value, point?.unit)),
          h(
            "td",
            { class: "becomes" },
            value.would_be
              ? status(statusOf(form ?? { statuses: [] }, { status_code: value.would_be }))
              : h("span", { class: "why" }, icon("none"), word("skipped", value.skipped_for)),
          ),
        );
      }),
    ),
  );
}
