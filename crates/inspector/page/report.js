// A report: what waits for it, its forms, photos, texts, and where it goes from here.

import { api, Refused } from "./api.js";
import { banner } from "./banner.js";
import { detailsTab } from "./details.js";
import { h } from "./dom.js";
import { flush, queued, took, unsent } from "./drafts.js";
import { number, time } from "./format.js";
import { formTab } from "./form.js";
import { t, word } from "./i18n.js";
import { photosTab } from "./photos.js";
import { answered } from "./rules.js";
import { changed, state, tell } from "./state.js";
import { announce, button, dialog, failure, field, focusSoon, icon, note, plate, stage, when } from "./ui.js";

const NEEDS_REASON = ["REVISION_REQUESTED", "CANCEL_REQUESTED"];

/** Reads the report of the address anew; what is there stays until it is known. */
export async function readReport() {
  const { id } = state.route;
  if (state.report?.id !== id) state.report = { id, state: "loading" };
  changed();
  try {
    // In its turn: an answer that is older than a change under way would take it back.
    const report = await queued(id, () => api.report(id));
    if (state.report?.id !== id) return;
    state.report = { id, state: "there", data: report };
  } catch (error) {
    // Who signs in again finds what was there.
    if (state.report?.id !== id || (state.signIn && state.report.data)) return;
    if (error instanceof Refused && error.status < 500 && error.code !== "signed_out") state.report = { id, state: "missing", fault: error };
    else if (!state.report.data) state.report = { id, state: "failed", fault: error };
  }
  changed();
}

export function reportPage() {
  const { report } = state;
  if (report?.data) return h("main", { id: "main", class: "report", tabindex: "-1", key: report.id }, head(report.data), banner(report.data, current(report.data).isTestLine), published(report.data), tabs(report.data));
  return h("main", { id: "main", class: "report", tabindex: "-1" }, back(),
    report?.state === "missing" ? h("div", { class: "empty" }, h("h1", null, t("report.missing")), h("p", null, t("report.missingLead"))) :
    report?.state === "failed" ? h("div", { class: "empty" }, note("bad", failure(report.fault)), button(t("again"), readReport)) :
    h("p", { class: "empty", role: "status" }, t("list.loading")));
}

const back = () => h("a", { class: "back", href: "#/", "aria-keyshortcuts": "Alt+L" }, icon("back"), t("back"));

function head(report) {
  const { vehicle } = report;
  const branch = state.session.branches.find(({ id }) => id === report.branch_id);
  const count = unsent(report.id);
  return h("header", { class: "report-head", key: "head" },
    back(),
    h("div", { class: "title" },
      plate(report.plate),
      h("div", null,
        h("h1", null, `${vehicle.brand} ${vehicle.model}`, h("small", null, vehicle.year), stage(report.status)),
        h("p", { class: "about" },
          h("span", null, report.report_number), h("span", { class: "mono" }, vehicle.vin), branch && h("span", null, branch.name), h("span", null, t("report.opened"), " ", when(report.created_at)),
          vehicle.factory_power_hp && h("span", null, t("report.power", { value: number(Number(vehicle.factory_power_hp)) })),
          vehicle.plate !== report.plate && h("span", null, t("report.plateToday", { plate: vehicle.plate }))))),
    h("div", { class: "moves" },
      count > 0 && h("span", { class: "unsent" }, icon("fair"), t("saving.count", { count })),
      count > 0 && button(t("saving.do"), () => flush(report.id).catch((error) => tell("bad", failure(error))), { kind: "quiet", "aria-keyshortcuts": "Alt+S" }),
      report.may_become.map((to) => button(label(report, to), () => ask(to), { kind: kindOf(to), key: to, "data-to": to }))));
}

const kindOf = (to) => (to === "PUBLISHED" ? "primary" : ["CANCELLED", "CANCEL_REQUESTED"].includes(to) ? "danger" : "");

/** Back from a cancellation is no publication. */
function label(report, to) {
  const isBack = report.status === "CANCEL_REQUESTED" && to !== "CANCELLED";
  return isBack ? t("move.back", { stage: word("stage", to) }) : word("move", to);
}

// Moving to another status.

function ask(to) {
  state.dialog = { name: "move", to, reason: "", fault: null, isSending: false };
  changed();
}

function close() {
  state.dialog = null;
  changed();
}

export function moveDialog() {
  const { to, reason, fault, isSending } = state.dialog;
  const report = state.report.data;
  const isNeeded = NEEDS_REASON.includes(to);
  return dialog("move", label(report, to), close,
    h("form", { novalidate: true, onsubmit: (event) => { event.preventDefault(); move(); } },
      h("p", null, report.status === "CANCEL_REQUESTED" && to !== "CANCELLED" ? t("move.backLead") : word("moveLead", to)),
      to === "PUBLISHED" && report.status !== "CANCEL_REQUESTED" && lacking(report),
      isNeeded && field("reason", t("move.reason"), h("textarea", { rows: 3, maxlength: 1000, value: reason, oninput: (event) => { Object.assign(state.dialog, { reason: event.target.value, fault: null }); changed(); } }), { fault }),
      !isNeeded && fault && note("bad", fault),
      h("div", { class: "actions" },
        h("button", { type: "submit", class: `big ${kindOf(to) || "primary"}`, "aria-disabled": isSending ? "true" : null }, h("span", null, isSending ? t("move.sending") : label(report, to))),
        button(t("cancel"), close, { kind: "big quiet" }))));
}

/** What somebody who publishes in a hurry has forgotten. */
function lacking(report) {
  const open = report.forms.map((form) => [form, form.points.length - answered(form)]).filter(([, left]) => left > 0);
  const lines = [
    report.waiting.length > 0 && t("move.waiting", { count: report.waiting.length }),
    ...open.map(([form, left]) => t("move.unanswered", { form: form.name, count: left })),
    report.photos.length === 0 && t("move.noPhotos"),
    !report.summary.trim() && t("move.noSummary"),
  ].filter(Boolean);
  return lines.length > 0 && h("div", { class: "note fair" }, icon("fair"), h("div", null, h("p", null, t("move.lacking")), h("ul", null, lines.map((line) => h("li", null, line)))));
}

async function move() {
  const asked = state.dialog;
  const { id } = state.report;
  if (asked.isSending) return;
  if (NEEDS_REASON.includes(asked.to) && !asked.reason.trim()) {
    asked.fault = t("move.reasonNeeded");
    focusSoon("#reason");
    return changed();
  }
  Object.assign(asked, { isSending: true, fault: null });
  changed();
  try {
    await flush(id);
    if (unsent(id) > 0) throw new Error(t("move.unsent"));
    const reason = asked.reason.trim();
    took(await queued(id, () => api.move(id, { version: state.report.data.version, to: asked.to, ...(reason && { reason }) })));
    state.dialog = null;
    const told = t("move.done", { stage: word("stage", asked.to) });
    tell("good", told);
    announce(told);
    focusSoon("#main");
  } catch (error) {
    asked.isSending = false;
    const isMeanwhile = error instanceof Refused && ["changed_meanwhile", "transition_refused"].includes(error.code);
    asked.fault = error instanceof Refused ? failure(error) : error.constructor === Error ? error.message : t("failed.unreachable");
    if (isMeanwhile) await readReport();
  }
  changed();
}

// What it has become.

function published(report) {
  if (!report.published_at) return null;
  const score = report.overall_score;
  return h("section", { class: "published", key: "published", "aria-label": t("published.title") },
    score !== null && score !== undefined && h("div", { class: "score" }, ring(score), h("span", null, t("published.score"))),
    h("dl", null,
      h("div", null, h("dt", null, t("published.at")), h("dd", null, time(report.published_at))),
      report.public_slug && h("div", null, h("dt", null, t("published.slug")), h("dd", null, copied(report.public_slug))),
      h("div", null, h("dt", null, t("published.sha256")), h("dd", null, report.pdf_sha256 ? copied(report.pdf_sha256) : h("span", { class: "drawing" }, t("published.drawing"))))));
}

const copied = (text) => h("span", { class: "copied" }, h("code", null, text), button(t("copy"), async () => {
  try {
    await navigator.clipboard.writeText(text);
    announce(t("copied"));
    tell("good", t("copied"));
  } catch { /* It can be marked and copied by hand. */ }
}, { kind: "quiet", sign: "copy", "aria-label": t("copyOf", { text: text.slice(0, 12) }) }));

function ring(score) {
  const around = 2 * Math.PI * 20;
  return h("svg", { class: "ring", viewBox: "0 0 48 48", role: "img", "aria-label": `${score} / 100` },
    h("circle", { cx: 24, cy: 24, r: 20 }),
    h("circle", { class: "of", cx: 24, cy: 24, r: 20, "stroke-dasharray": `${(score / 100) * around} ${around}`, transform: "rotate(-90 24 24)" }),
    h("text", { x: 24, y: 25, "text-anchor": "middle", "dominant-baseline": "middle" }, String(score)));
}

// The parts of a report.

/** The parts, by the last word of the address. */
function parts(report) {
  // What devices write comes first: it is what changes while somebody looks.
  const forms = [...report.forms].sort((left, right) => Number(right.is_test_line) - Number(left.is_test_line));
  return [
    ...forms.map((form) => ({ name: form.template_code, title: form.name, isTestLine: form.is_test_line, count: `${answered(form)}/${form.points.length}`, isWhole: answered(form) === form.points.length, show: () => formTab(report, form) })),
    { name: "photos", title: t("tab.photos"), count: String(report.photos.length), show: () => photosTab(report) },
    { name: "details", title: t("tab.details"), show: () => detailsTab(report) },
    { name: "history", title: t("tab.history"), show: () => history(report) },
  ];
}

/** The part that the address names, else the first. */
function current(report) {
  const all = parts(report);
  return all.find(({ name }) => name === state.route.tab) ?? all[0];
}

/** Moves the row of parts to its current one, and nothing else of the page. */
function inView() {
  const row = document.getElementById("tabs");
  const link = row?.querySelector("[aria-current]");
  if (link) row.scrollLeft = link.offsetLeft - (row.clientWidth - link.offsetWidth) / 2;
}

function tabs(report) {
  const all = parts(report);
  const { name: shown, title: heading, show } = current(report);
  return h("div", { class: "parts", key: "parts" },
    h("nav", { id: "tabs", "aria-label": t("tab.all"), onkeydown: sideways }, all.map(({ name, title, count, isWhole }) => h("a", {
      href: `#/reports/${report.id}/${name}`, key: name, "aria-current": name === shown ? "page" : null,
    }, h("span", null, title), count && h("small", { class: isWhole ? "whole" : null }, isWhole && icon("check"), count)))),
    h("section", { class: "part", key: shown, "aria-labelledby": "part-title", onmount: inView }, h("h2", { id: "part-title" }, heading), show()));
}

/** Left and right lead along, as well as the tab key does. */
function sideways(event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step) return;
  const links = [...event.currentTarget.querySelectorAll("a")];
  const next = links[links.indexOf(document.activeElement) + step];
  if (next) { event.preventDefault(); next.focus(); }
}

function history(report) {
  // What was brought in from elsewhere has no moves of its own.
  if (report.transitions.length === 0) return h("p", { key: "history" }, t("history.opened", { time: time(report.created_at) }));
  return h("ol", { class: "history", key: "history" }, [...report.transitions].reverse().map((one) => h("li", { key: one.at },
    h("div", null, one.from && [stage(one.from), icon("next")], stage(one.to)),
    h("p", null, h("b", null, one.by), " · ", time(one.at)),
    one.reason && h("blockquote", null, one.reason))));
}
