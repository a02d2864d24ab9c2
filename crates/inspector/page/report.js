// A report's page: its pending measurements, forms, photos and texts, and its transitions.

import { api, Rejected } from "./api.js";
import { announceReplaced, banner } from "./banner.js";
import { detailsTab } from "./details.js";
import { h } from "./dom.js";
import { enqueue, flush, onOthersChange, storeRead, unsent } from "./drafts.js";
import { number, time } from "./format.js";
import { formTab } from "./form.js";
import { t } from "./i18n.js";
import { history } from "./history.js";
import { listAddress } from "./list.js";
import { askToMove, closeMoveDialog, kindOf, label } from "./moves.js";
import { photosTab } from "./photos.js";
import { answered, progress } from "./rules.js";
import { changed, notify, state } from "./state.js";
import { announce, button, failure, icon, note, plate, stage, when } from "./ui.js";

/** Reloads the report of the address. The old data stays until the response arrives. */
export async function readReport() {
  const { id } = state.route;
  if (state.report?.id !== id) state.report = { id, state: "loading" };
  changed();
  try {
    // Queued behind changes in progress, because an older response would undo them on the page.
    const report = await enqueue(id, () => api.report(id));
    storeRead(report);
  } catch (error) {
    // While the page asks for a new sign-in, it keeps its data.
    if (state.report?.id !== id || (state.signIn && state.report.data)) return;
    if (error instanceof Rejected && error.status < 500 && error.code !== "signed_out") {
      // For example, the inspector's branches have changed.
      Object.assign(state, { report: { id, state: "missing", error }, dialog: null });
    } else if (!state.report.data) state.report = { id, state: "failed", error };
  }
  changed();
}

onOthersChange((before, report) => {
  closeMoveDialog(report);
  announceReplaced(before, report);
});

export function reportPage() {
  const { report } = state;
  if (report?.data)
    return h(
      "main",
      { id: "main", class: "report", tabindex: "-1", key: report.id },
      head(report.data),
      banner(report.data, current(report.data).isTestLine),
      published(report.data),
      tabs(report.data),
    );
  return h(
    "main",
    { id: "main", class: "report", tabindex: "-1" },
    back(),
    report?.state === "missing"
      ? h("div", { class: "empty" }, h("h1", null, t("report.missing")), h("p", null, t("report.missingLead")))
      : report?.state === "failed"
        ? h("div", { class: "empty" }, note("bad", failure(report.error)), button(t("again"), readReport))
        : h("p", { class: "empty", role: "status" }, t("list.loading")),
  );
}

/** Whether only another inspector can publish the report, after a review (INS-20). */
const isForAnother = ({ needs_review: isNeeded, may_become: next, status }) =>
  isNeeded && !next.includes("PUBLISHED") && ["DRAFT", "IN_REVIEW", "REVISION_REQUESTED"].includes(status);

const back = () => h("a", { class: "back", href: listAddress(), "aria-keyshortcuts": "Alt+L" }, icon("back"), t("back"));

function head(report) {
  const { vehicle } = report;
  const branch = state.session.branches.find(({ id }) => id === report.branch_id);
  const count = unsent(report.id);
  return h(
    "header",
    { class: "report-head", key: "head" },
    back(),
    h(
      "div",
      { class: "title" },
      plate(report.plate),
      h(
        "div",
        null,
        h("h1", null, `${vehicle.brand} ${vehicle.model}`, h("small", null, vehicle.year), stage(report.status)),
        h(
          "p",
          { class: "about" },
          h("span", null, report.report_number),
          h("span", { class: "mono" }, vehicle.vin),
          branch && h("span", null, branch.name),
          h("span", null, t("report.opened"), " ", when(report.created_at)),
          vehicle.factory_power_hp && h("span", null, t("report.power", { value: number(Number(vehicle.factory_power_hp)) })),
          vehicle.plate !== report.plate && h("span", null, t("report.plateToday", { plate: vehicle.plate })),
        ),
      ),
    ),
    h(
      "div",
      { class: "moves" },
      count > 0 && h("span", { class: "unsent" }, icon("fair"), t("saving.count", { count })),
      count > 0 &&
        button(t("saving.do"), () => flush(report.id).catch((error) => notify("bad", failure(error))), {
          kind: "quiet",
          "aria-keyshortcuts": "Alt+S",
        }),
      isForAnother(report) &&
        h("span", { class: "hint", key: "review" }, t(report.status === "IN_REVIEW" ? "review.byAnother" : "review.needed")),
      report.may_become.map((to) => button(label(report, to), () => askToMove(to), { kind: kindOf(to), key: to, "data-to": to })),
    ),
  );
}

// Publication.

function published(report) {
  if (!report.published_at) return null;
  const score = report.overall_score;
  const { inspected, all } = progress(report);
  const earlier = report.published_pdfs.filter(({ sha256 }) => sha256 !== report.pdf_sha256);
  const digest = report.pdf_sha256
    ? copied(report.pdf_sha256)
    : report.status === "PUBLISHED"
      ? h("span", { class: "drawing" }, t("published.rendering"))
      : "—";
  return h(
    "section",
    { class: "published", key: "published", "aria-label": t("published.title") },
    score !== null &&
      score !== undefined &&
      h(
        "div",
        { class: "score" },
        inspected > 0 && ring(score),
        h("span", null, inspected > 0 ? t("published.score") : t("progress.nothing")),
      ),
    h(
      "dl",
      null,
      inspected < all && fact(t("progress.title"), t("progress.of", { inspected, all, left: all - inspected })),
      fact(t("published.at"), time(report.published_at)),
      report.public_slug && fact(t("published.slug"), copied(report.public_slug)),
      fact(t("published.sha256"), digest),
      report.pdf_sha256 &&
        fact(
          t("published.pdf"),
          h(
            "div",
            { class: "actions" },
            h(
              "a",
              { class: "button primary", id: "open-pdf", href: api.pdf(report.id), target: "_blank", rel: "noopener" },
              icon("open-file"),
              h("span", null, t("published.open")),
            ),
            button(t("published.print"), () => print(report.id), { sign: "print", id: "print-pdf" }),
          ),
        ),
      earlier.length > 0 &&
        fact(
          t("published.earlier"),
          h(
            "ul",
            { class: "earlier" },
            earlier.map(({ sha256, published_at: at, revised_for: reason }) =>
              h("li", { key: sha256 }, time(at), " ", copied(sha256), reason && h("blockquote", null, reason)),
            ),
          ),
        ),
    ),
  );
}

/** Prints the PDF from a hidden frame; a browser that cannot opens it in a tab. */
function print(id) {
  document.getElementById("printed")?.remove();
  const frame = document.createElement("iframe");
  Object.assign(frame, { id: "printed", className: "unseen", title: t("published.print"), src: api.pdf(id) });
  frame.onload = () => {
    // The PDF may have become outdated since the page was read: the response is then an error.
    if (frame.contentDocument?.contentType === "application/json") return notify("bad", t("published.outdated"));
    try {
      frame.contentWindow.focus();
      frame.contentWindow.print();
    } catch {
      window.open(api.pdf(id), "_blank", "noopener");
    }
  };
  document.body.append(frame);
}

const fact = (name, value) => h("div", { key: name }, h("dt", null, name), h("dd", null, value));

const copied = (text) =>
  h(
    "span",
    { class: "copied" },
    h("code", null, text),
    button(
      t("copy"),
      async () => {
        try {
          await navigator.clipboard.writeText(text);
          announce(t("copied"));
          notify("good", t("copied"));
        } catch {
          /* The text can be selected and copied by hand. */
        }
      },
      { kind: "quiet", sign: "copy", "aria-label": t("copyOf", { text: text.slice(0, 12) }) },
    ),
  );

function ring(score) {
  const around = 2 * Math.PI * 20;
  return h(
    "svg",
    { class: "ring", viewBox: "0 0 48 48", role: "img", "aria-label": `${score} / 100` },
    h("circle", { cx: 24, cy: 24, r: 20 }),
    h("circle", {
      class: "of",
      cx: 24,
      cy: 24,
      r: 20,
      "stroke-dasharray": `${(score / 100) * around} ${around}`,
      transform: "rotate(-90 24 24)",
    }),
    h("text", { x: 24, y: 25, "text-anchor": "middle", "dominant-baseline": "middle" }, String(score)),
  );
}

// The report's tabs.

/** The tabs, by the last segment of the address. */
function parts(report) {
  // The test line comes first, because devices change it while the report is open.
  const forms = [...report.forms].sort((left, right) => Number(right.is_test_line) - Number(left.is_test_line));
  return [
    ...forms.map((form) => ({
      name: form.template_code,
      title: form.name,
      isTestLine: form.is_test_line,
      count: `${answered(form)}/${form.points.length}`,
      isWhole: answered(form) === form.points.length,
      show: () => formTab(report, form),
    })),
    { name: "photos", title: t("tab.photos"), count: String(report.photos.length), show: () => photosTab(report) },
    { name: "details", title: t("tab.details"), show: () => detailsTab(report) },
    { name: "history", title: t("tab.history"), show: () => history(report) },
  ];
}

/** The tab that the address names, or the first one. */
function current(report) {
  const all = parts(report);
  return all.find(({ name }) => name === state.route.tab) ?? all[0];
}

/** Scrolls the row of tabs to the current one without scrolling the page. */
function scrollToTab() {
  const row = document.getElementById("tabs");
  const link = row?.querySelector("[aria-current]");
  if (link) row.scrollLeft = link.offsetLeft - (row.clientWidth - link.offsetWidth) / 2;
}

function tabs(report) {
  const all = parts(report);
  const { name: shown, title: heading, show } = current(report);
  return h(
    "div",
    { class: "parts", key: "parts" },
    h(
      "nav",
      { id: "tabs", "aria-label": t("tab.all"), onkeydown: onArrowKey },
      all.map(({ name, title, count, isWhole }) =>
        h(
          "a",
          {
            href: `#/reports/${report.id}/${name}`,
            key: name,
            "aria-current": name === shown ? "page" : null,
          },
          h("span", null, title),
          count && h("small", { class: isWhole ? "whole" : null }, isWhole && icon("check"), count),
        ),
      ),
    ),
    h(
      "section",
      { class: "part", key: shown, "aria-labelledby": "part-title", onmount: scrollToTab },
      h("h2", { id: "part-title" }, heading),
      show(),
    ),
  );
}

/** The left and right arrow keys move between tabs, as the tab key does. */
function onArrowKey(event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step) return;
  const links = [...event.currentTarget.querySelectorAll("a")];
  const next = links[links.indexOf(document.activeElement) + step];
  if (next) {
    event.preventDefault();
    next.focus();
  }
}
