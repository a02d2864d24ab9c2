// The tab with a report's transitions, and the measurements whose application or discarding can be taken back.

import { api } from "./api.js";
import { h } from "./dom.js";
import { enqueue, readAgain, storeReport } from "./drafts.js";
import { time } from "./format.js";
import { t } from "./i18n.js";
import { isEditable } from "./rules.js";
import { notify } from "./state.js";
import { announce, button, failure, icon, stage } from "./ui.js";

/** Makes a measurement pending again. */
export async function undoMeasurement(id, measurement) {
  try {
    await enqueue(id, async () => {
      await api.undo(measurement);
      storeReport(await api.report(id));
    });
    notify("good", t("undo.done"));
    announce(t("undo.done"));
  } catch (error) {
    notify("bad", failure(error));
    await readAgain(id);
  }
}

export function history(report) {
  return h("div", { key: "history" }, transitions(report), plates(report), settled(report));
}

function transitions(report) {
  // An imported report has no transitions.
  if (report.transitions.length === 0) return h("p", null, t("history.opened", { time: time(report.created_at) }));
  return h(
    "ol",
    { class: "history" },
    [...report.transitions]
      .reverse()
      .map((one) =>
        h(
          "li",
          { key: one.at },
          h("div", null, one.from && [stage(one.from), icon("next")], stage(one.to)),
          h("p", null, h("b", null, one.by), " · ", time(one.at)),
          one.reason && h("blockquote", null, one.reason),
        ),
      ),
  );
}

function plates({ plate_corrections: corrections }) {
  if (corrections.length === 0) return null;
  const line = ({ from, to, by, at }) => h("li", { key: at }, t("history.plate", { from, to, who: by, time: time(at) }));
  return h("ul", { class: "plates", key: "plates" }, corrections.map(line));
}

function settled(report) {
  if (report.settled.length === 0) return null;
  return h(
    "section",
    { class: "settled", key: "settled" },
    h("h3", null, t("undo.title")),
    h(
      "ul",
      null,
      report.settled.map((one) => {
        const device = one.device_serial ?? t("banner.noSerial");
        const values = {
          device,
          measured: time(one.measured_at),
          time: time(one.settled_at),
          who: one.settled_by ?? t("undo.onArrival"),
        };
        const text = t(one.is_applied ? "undo.applied" : "undo.ignored", values);
        const isPossible = isEditable(report) || !one.is_applied;
        return h(
          "li",
          { key: one.id },
          h("p", null, text),
          isPossible &&
            button(t("undo.do"), () => undoMeasurement(report.id, one.id), {
              kind: "quiet",
              "data-undo": one.id,
              "aria-description": text,
            }),
        );
      }),
    ),
  );
}
