// The list of reports at the inspector's branches: the open ones, or those that filters and a search find.

import { api } from "./api.js";
import { h } from "./dom.js";
import { t, word } from "./i18n.js";
import { changed, state } from "./state.js";
import { button, failure, icon, note, plate, stage, when } from "./ui.js";

const PAGE_SIZE = 25;
/** The largest page that the service returns. */
const MAX_PAGE_SIZE = 100;
const STATUSES = [
  "DRAFT",
  "IN_REVIEW",
  "REVISION_REQUESTED",
  "CANCEL_REQUESTED",
  "PUBLISHED",
  "ARCHIVED",
  "CANCELLED",
  "DISCARDED",
];

/** The name of the place in the session's storage. */
const STORAGE_KEY = "inspector.list";

let reading = 0;

const FILTERS = ["branch", "status", "search"];

/** The query of the list's filters, which is a part of its address, so that they survive Back and a reload. */
function queryOf({ branch, status, search }) {
  const query = new URLSearchParams(Object.entries({ branch, status, search }).filter(([, value]) => value)).toString();
  return query && `?${query}`;
}

/** The filters in the query of an address. */
function filtersIn(query) {
  const parameters = new URLSearchParams(query);
  return Object.fromEntries(FILTERS.map((name) => [name, parameters.get(name) ?? ""]));
}

/** The address of the list with its current filters. */
export const listAddress = () => `#/${queryOf(state.list)}`;

/**
 * Takes over the filters from the address, and the place in the list from the browser's history. A link back to the list makes a new
 * entry there, so the list itself remembers its last place.
 */
export function takeFilters(query) {
  const { list, session } = state;
  const taken = filtersIn(query);
  if (!session.branches.some(({ id }) => id === taken.branch)) taken.branch = "";
  if (FILTERS.some((name) => list[name] !== taken[name])) Object.assign(list, taken, { items: [], next: null, state: "loading" });
  const left = list.left?.address === listAddress() ? list.left : null;
  const { length = 0, scroll = 0 } = history.state ?? left ?? {};
  Object.assign(list, { length: Math.max(length, list.items.length), scroll });
}

/** Remembers the place in the list, in the browser's history and for links back to it, before the page leaves it. */
export function keepPlace() {
  const { list, route } = state;
  if (route.view !== "list" || list.state !== "loaded") return;
  const place = { length: list.items.length, scroll: window.scrollY };
  history.replaceState(place, "");
  list.left = { address: listAddress(), ...place };
  try {
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify({ owner, left: list.left }));
  } catch {
    /* Without storage, a reload forgets it. */
  }
}

/** The identity of the inspector whose place is remembered. */
let owner = null;

/** Takes over the place that an inspector left before the page was reloaded. */
export function claimPlace(who) {
  if (owner === who) return;
  owner = who;
  try {
    const stored = JSON.parse(sessionStorage.getItem(STORAGE_KEY));
    if (stored?.owner !== who) return sessionStorage.removeItem(STORAGE_KEY);
    Object.assign(state.list, filtersIn(stored.left.address.split("?")[1]), { left: stored.left });
  } catch {
    /* Without storage, or with the content of an earlier version, the list begins without filters. */
  }
}

/** Forgets the place of an inspector who signed out. */
export function forgetPlace() {
  owner = null;
  try {
    sessionStorage.removeItem(STORAGE_KEY);
  } catch {
    /* Without storage, there is nothing to remove. */
  }
}

const filtersOf = ({ branch, status, search }) => ({
  branch_id: branch,
  status,
  search: search.trim().length > 1 ? search.trim() : "",
});

/** Reloads the list in its current length, or in the length that is wanted next. The old items stay until the response arrives. */
export async function readList() {
  const { list } = state;
  const number = ++reading;
  if (list.state !== "loaded") list.state = "loading";
  changed();
  try {
    const length = Math.max(PAGE_SIZE, list.items.length, list.length ?? 0);
    const items = [];
    let cursor = null;
    do {
      const limit = Math.min(length - items.length, MAX_PAGE_SIZE);
      const { data, page } = await api.list({ ...filtersOf(list), limit, cursor });
      if (number !== reading) return;
      items.push(...data);
      cursor = page.next_cursor;
    } while (cursor && items.length < length);
    Object.assign(list, { items, length: 0, next: cursor, state: "loaded", error: null, isReadingMore: false });
    const { scroll } = list;
    if (scroll && state.route.view === "list") requestAnimationFrame(() => window.scrollTo(0, scroll));
    list.scroll = 0;
  } catch (error) {
    if (number !== reading) return;
    Object.assign(list, { error, isReadingMore: false });
    if (list.state === "loading") list.state = "failed";
  }
  changed();
}

/** Reads one more page, and the pages before it again. If another reload replaces this one, it reads the additional page, too. */
function readMore() {
  const { list } = state;
  Object.assign(list, { length: list.items.length + PAGE_SIZE, isReadingMore: true });
  return readList();
}

function filter(change) {
  Object.assign(state.list, change, { items: [], next: null, state: "loading", length: 0, scroll: 0, isReadingMore: false });
  history.replaceState(null, "", listAddress());
  readList();
}

/** The pause in typing after which a search is sent, in milliseconds. */
const PAUSE = 300;
let searchTimer = null;

function search(text) {
  state.list.search = text;
  clearTimeout(searchTimer);
  searchTimer = setTimeout(() => {
    // The inspector may have left the list.
    if (state.route.view === "list") filter({ search: text });
  }, PAUSE);
  changed();
}

export function listPage() {
  const { list, session } = state;
  const hasManyBranches = session.branches.length > 1;
  return h(
    "main",
    { id: "main", class: "list", tabindex: "-1" },
    h(
      "div",
      { class: "head" },
      h("h1", null, t("list.title")),
      h(
        "a",
        { class: "button primary", href: "#/new", "aria-keyshortcuts": "Alt+N" },
        icon("plus"),
        h("span", null, t("list.new")),
      ),
    ),
    h(
      "div",
      { class: "filters" },
      h(
        "div",
        { class: "filter search" },
        h("label", { for: "search" }, t("list.search")),
        h("input", {
          id: "search",
          type: "search",
          value: list.search,
          maxlength: 60,
          autocomplete: "off",
          spellcheck: "false",
          placeholder: t("list.searchHint"),
          oninput: (event) => search(event.target.value),
        }),
      ),
      hasManyBranches &&
        h(
          "div",
          { class: "filter" },
          h("label", { for: "branch" }, t("list.branch")),
          h(
            "select",
            { id: "branch", value: list.branch, onchange: (event) => filter({ branch: event.target.value }) },
            h("option", { value: "" }, t("list.allBranches")),
            session.branches.map((branch) => h("option", { value: branch.id, key: branch.id }, branch.name)),
          ),
        ),
      h(
        "fieldset",
        { class: "filter segments" },
        h("legend", null, t("list.status")),
        ["", ...STATUSES].map((status) =>
          h(
            "label",
            { key: `status-${status}` },
            h("input", {
              type: "radio",
              name: "status",
              value: status,
              checked: list.status === status,
              onchange: () => filter({ status }),
            }),
            h("span", null, status ? word("stage", status) : t("list.all")),
          ),
        ),
      ),
    ),
    list.error && list.state === "loaded" && note("fair", failure(list.error)),
    contents(list, hasManyBranches),
  );
}

function contents(list, hasManyBranches) {
  if (list.state === "loading") return h("p", { class: "empty", role: "status" }, t("list.loading"));
  if (list.state === "failed")
    return h("div", { class: "empty" }, note("bad", failure(list.error)), button(t("again"), readList));
  if (list.items.length === 0)
    return h(
      "div",
      { class: "empty" },
      h("p", null, list.status || list.branch || list.search ? t("list.noneOfFilter") : t("list.none")),
    );
  return h(
    "div",
    null,
    h(
      "ul",
      { class: "reports" },
      list.items.map((item) => line(item, hasManyBranches)),
    ),
    list.next &&
      button(list.isReadingMore ? t("list.loading") : t("list.more"), readMore, {
        kind: "more",
        "aria-disabled": list.isReadingMore ? "true" : null,
      }),
  );
}

function line(item, hasManyBranches) {
  const branch = state.session.branches.find(({ id }) => id === item.branch_id);
  return h(
    "li",
    { key: item.id },
    h(
      "a",
      { href: `#/reports/${item.id}`, class: item.waiting > 0 ? "waits" : null },
      plate(item.plate),
      h(
        "span",
        { class: "what" },
        h("b", null, item.vehicle),
        h("small", null, [item.report_number, hasManyBranches && branch?.name].filter(Boolean).join(" · ")),
      ),
      h(
        "span",
        { class: "signs" },
        item.waiting > 0 && h("span", { class: "waiting" }, icon("device"), t("list.waiting", { count: item.waiting })),
        stage(item.status),
      ),
      h("span", { class: "age" }, when(item.created_at)),
      icon("next"),
    ),
  );
}
