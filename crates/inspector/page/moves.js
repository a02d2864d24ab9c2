// The dialog that moves a report to another status. It belongs to one report, in the version that the inspector sees.

import { api } from "./api.js";
import { h } from "./dom.js";
import { enqueue, flush, readAgain, storeReport, unsent } from "./drafts.js";
import { t, word } from "./i18n.js";
import { listAddress } from "./list.js";
import { answered, missing, progress } from "./rules.js";
import { changed, closeDialog, notify, openDialog, state } from "./state.js";
import { announce, button, dialog, failure, field, focusSoon, icon, note, subject } from "./ui.js";

/** Whether a transition needs a reason (INS-6). */
const needsReason = (from, to) =>
  ["REVISION_REQUESTED", "CANCEL_REQUESTED"].includes(to) || (to === "ARCHIVED" && from === "PUBLISHED");

const isBack = (report, to) => report.status === "CANCEL_REQUESTED" && to !== "CANCELLED";

export const kindOf = (to) =>
  to === "PUBLISHED" ? "primary" : ["CANCELLED", "CANCEL_REQUESTED", "DISCARDED"].includes(to) ? "danger" : "";

/** The button's label. The way back from a requested cancellation is not called a publication. */
export const label = (report, to) => (isBack(report, to) ? t("move.back", { stage: word("stage", to) }) : word("move", to));

export function askToMove(to) {
  const { id } = state.report;
  openDialog({ name: "move", report: id, to, reason: "", error: null, isSending: false });
}

/** Closes the dialog because somebody else has changed the report: what the inspector was about to confirm is outdated. */
export function closeMoveDialog(report) {
  const open = state.dialog;
  if (open?.name !== "move" || open.report !== report.id) return;
  closeDialog();
  notify("fair", t("move.outdated"));
  announce(t("move.outdated"));
}

export function moveDialog() {
  const { report: id, to, reason, error, isSending } = state.dialog;
  const report = state.report?.data;
  if (report?.id !== id) return null;
  const isNeeded = needsReason(report.status, to);
  const isPublishing = to === "PUBLISHED" && report.status !== "CANCEL_REQUESTED";
  const isBlocked = isPublishing && (missing(report).length > 0 || progress(report).inspected === 0);
  const type = (event) => {
    Object.assign(state.dialog, { reason: event.target.value, error: null });
    changed();
  };
  return dialog(
    "move",
    label(report, to),
    closeDialog,
    h(
      "form",
      {
        novalidate: true,
        onsubmit: (event) => {
          event.preventDefault();
          move();
        },
      },
      subject(report, state.session),
      h("p", null, lead(report, to)),
      isPublishing && [assessment(report), required(report), !isBlocked && lacking(report)],
      isNeeded &&
        field("reason", t("move.reason"), h("textarea", { rows: 3, maxlength: 1000, value: reason, oninput: type }), { error }),
      !isNeeded && error && note("bad", error),
      h(
        "div",
        { class: "actions" },
        !isBlocked &&
          h(
            "button",
            { type: "submit", class: `big ${kindOf(to) || "primary"}`, "aria-disabled": isSending ? "true" : null },
            h("span", null, isSending ? t("move.sending") : label(report, to)),
          ),
        button(t("cancel"), closeDialog, { kind: "big quiet" }),
      ),
    ),
  );
}

function lead(report, to) {
  if (isBack(report, to)) return t("move.backLead");
  if (to === "REVISION_REQUESTED" && report.status === "PUBLISHED") return t("move.reviseLead");
  return word("moveLead", to);
}

/** The score that the publication gives, and how much was inspected. */
function assessment({ assessment: { score, inspected, points } }) {
  if (!inspected) return null;
  return h("p", { class: "assessment" }, t("move.assessment", { score, inspected, points }));
}

/** The missing points that are listed at once; the others unfold. */
const MOST_LINKS = 20;

/** Lists the points without which the report is not published, as links to them. */
function required(report) {
  const { inspected } = progress(report);
  const points = missing(report);
  if (points.length === 0) return inspected === 0 && note("bad", t("move.nothing"));
  return h(
    "div",
    { class: "note bad required", role: "alert" },
    icon("bad"),
    h(
      "div",
      null,
      h("p", null, t("move.required", { count: points.length })),
      links(report, points.slice(0, MOST_LINKS)),
      points.length > MOST_LINKS &&
        h(
          "details",
          null,
          h("summary", null, t("move.more", { count: points.length - MOST_LINKS })),
          links(report, points.slice(MOST_LINKS)),
        ),
    ),
  );
}

const links = (report, points) =>
  h(
    "ul",
    null,
    points.map(([form, point]) =>
      h(
        "li",
        { key: `${form.template_code}-${point.code}` },
        h("a", { href: `#/reports/${report.id}/${form.template_code}/${point.code}` }, `${form.name}: ${point.name}`),
      ),
    ),
  );

/** Lists what else may have been forgotten. */
function lacking(report) {
  const open = report.forms.map((form) => [form, form.points.length - answered(form)]).filter(([, left]) => left > 0);
  const lines = [
    report.waiting.length > 0 && t("move.waiting", { count: report.waiting.length }),
    ...open.map(([form, left]) => t("move.unanswered", { form: form.name, count: left })),
    report.photos.length === 0 && t("move.noPhotos"),
    !report.summary.trim() && t("move.noSummary"),
  ].filter(Boolean);
  return (
    lines.length > 0 &&
    h(
      "div",
      { class: "note fair" },
      icon("fair"),
      h(
        "div",
        null,
        h("p", null, t("move.lacking")),
        h(
          "ul",
          null,
          lines.map((line) => h("li", null, line)),
        ),
      ),
    )
  );
}

/**
 * Sends the transition, unless the dialog was closed while the report's drafts were sent: a colleague's change, which the response to
 * the drafts may be the first to have, closes it.
 */
async function move() {
  const transition = state.dialog;
  const { report: id, to } = transition;
  if (transition.isSending) return;
  if (needsReason(state.report.data.status, to) && !transition.reason.trim()) {
    transition.error = t("move.reasonNeeded");
    focusSoon("#reason");
    return changed();
  }
  Object.assign(transition, { isSending: true, error: null });
  changed();
  try {
    await flush(id);
    if (unsent(id) > 0) throw new Error(t("move.unsent"));
    const reason = transition.reason.trim();
    const moved = await enqueue(id, async () => {
      if (state.dialog !== transition || state.report?.id !== id) return null;
      return api.move(id, { version: state.report.data.version, to, ...(reason && { reason }) });
    });
    if (moved) done(moved, transition);
  } catch (error) {
    transition.isSending = false;
    const text = error.constructor === Error ? error.message : failure(error);
    // The version that the page has then closes the dialog if it is a colleague's.
    const isOutdated = ["changed_meanwhile", "transition_rejected", "report_incomplete"].includes(error.code);
    if (isOutdated) await readAgain(id);
    if (state.dialog === transition) transition.error = text;
    else if (!isOutdated) notify("bad", text);
  }
  changed();
}

function done(report, transition) {
  const { to } = transition;
  const isShown = state.dialog === transition;
  // Closed first, because the response may have a colleague's change as well.
  if (isShown) closeDialog();
  storeReport(report);
  const message = t("move.done", { stage: word("stage", to) });
  notify("good", message);
  announce(message);
  if (!isShown) return;
  if (to === "DISCARDED") location.hash = listAddress();
  focusSoon("#main");
}
