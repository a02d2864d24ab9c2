// The open reports of the inspector's branches.

import { api, Refused } from "./api.js";
import { h } from "./dom.js";
import { t, word } from "./i18n.js";
import { changed, state } from "./state.js";
import { button, failure, icon, note, plate, stage, when } from "./ui.js";

const PAGE = 25;
/** The most that the service gives at once. */
const MOST = 100;
const STATUSES = ["DRAFT", "IN_REVIEW", "REVISION_REQUESTED", "CANCEL_REQUESTED"];

let reading = 0;

/** Reads the list anew, as long as it was; what is there stays until it is known. */
export async function readList() {
  const { list } = state;
  const number = ++reading;
  if (list.state !== "there") list.state = "loading";
  changed();
  try {
    const limit = Math.min(Math.max(PAGE, list.items.length), MOST);
    const { data, page } = await api.list({ branch_id: list.branch, status: list.status, limit });
    if (number !== reading) return;
    Object.assign(list, { items: data, next: page.next_cursor, state: "there", fault: null });
  } catch (error) {
    if (number !== reading) return;
    list.fault = error;
    if (list.state === "loading") list.state = "failed";
  }
  changed();
}

async function readMore() {
  const { list } = state;
  const number = ++reading;
  list.isReadingMore = true;
  changed();
  try {
    const { data, page } = await api.list({ branch_id: list.branch, status: list.status, limit: PAGE, cursor: list.next });
    if (number !== reading) return;
    const known = new Set(list.items.map(({ id }) => id));
    Object.assign(list, { items: [...list.items, ...data.filter(({ id }) => !known.has(id))], next: page.next_cursor, fault: null });
  } catch (error) {
    list.fault = error;
    // A cursor of another day says nothing to the service any more.
    if (error instanceof Refused && error.code === "invalid_request") readList();
  } finally {
    list.isReadingMore = false;
    changed();
  }
}

function filter(change) {
  Object.assign(state.list, change, { items: [], next: null, state: "loading" });
  readList();
}

export function listPage() {
  const { list, session } = state;
  const isOfMany = session.branches.length > 1;
  return h("main", { id: "main", class: "list", tabindex: "-1" },
    h("div", { class: "head" },
      h("h1", null, t("list.title")),
      h("a", { class: "button primary", href: "#/new", "aria-keyshortcuts": "Alt+N" }, icon("plus"), h("span", null, t("list.new")))),
    h("div", { class: "filters" },
      isOfMany && h("div", { class: "filter" },
        h("label", { for: "branch" }, t("list.branch")),
        h("select", { id: "branch", value: list.branch, onchange: (event) => filter({ branch: event.target.value }) },
          h("option", { value: "" }, t("list.allBranches")),
          session.branches.map((branch) => h("option", { value: branch.id, key: branch.id }, branch.name)))),
      h("fieldset", { class: "filter segments" },
        h("legend", null, t("list.status")),
        ["", ...STATUSES].map((status) => h("label", { key: `status-${status}` },
          h("input", { type: "radio", name: "status", value: status, checked: list.status === status, onchange: () => filter({ status }) }),
          h("span", null, status ? word("stage", status) : t("list.all")))))),
    list.fault && list.state === "there" && note("fair", failure(list.fault)),
    contents(list, isOfMany));
}

function contents(list, isOfMany) {
  if (list.state === "loading") return h("p", { class: "empty", role: "status" }, t("list.loading"));
  if (list.state === "failed") return h("div", { class: "empty" }, note("bad", failure(list.fault)), button(t("again"), readList));
  if (list.items.length === 0) return h("div", { class: "empty" }, h("p", null, list.status || list.branch ? t("list.noneOfFilter") : t("list.none")));
  return h("div", null,
    h("ul", { class: "reports" }, list.items.map((item) => line(item, isOfMany))),
    list.next && button(list.isReadingMore ? t("list.loading") : t("list.more"), readMore, { kind: "more", "aria-disabled": list.isReadingMore ? "true" : null }));
}

function line(item, isOfMany) {
  const branch = state.session.branches.find(({ id }) => id === item.branch_id);
  return h("li", { key: item.id },
    h("a", { href: `#/reports/${item.id}`, class: item.waiting > 0 ? "waits" : null },
      plate(item.plate),
      h("span", { class: "what" }, h("b", null, item.vehicle), h("small", null, [item.report_number, isOfMany && branch?.name].filter(Boolean).join(" · "))),
      h("span", { class: "signs" },
        item.waiting > 0 && h("span", { class: "waiting" }, icon("device"), t("list.waiting", { count: item.waiting })),
        stage(item.status)),
      h("span", { class: "age" }, when(item.created_at)),
      icon("next")));
}
