// What the page knows. Whoever changes it calls `changed`, and the page is shown anew.

export const state = {
  /** Who is signed in; `null` before anybody is. */
  session: null,
  /** Why somebody has to sign in before going on: `first`, `ended` or `left`. */
  signIn: null,
  /** `connecting`, `open` or `lost`. */
  connection: "connecting",
  /** What the address names: `{ view: "list" | "new" | "report", id, tab }`. */
  route: { view: "list" },
  list: { items: [], next: null, state: "loading", branch: "", status: "" },
  /** The report on the page, or `{ id, state }` while there is none. */
  report: null,
  /** What was told at the page's head: `{ id, kind, text }`. */
  notices: [],
  /** A question over the page, or `null`. */
  dialog: null,
};

let listener = () => {};
let asked = false;

/** Sets what shows the page. */
export function shownBy(render) { listener = render; }

/** Shows the page anew, once for all that has changed until the browser comes to it. */
export function changed() {
  if (asked) return;
  asked = true;
  queueMicrotask(() => { asked = false; listener(); });
}

let last = 0;

/** How long what went well is told, in milliseconds: the page shows it as well. */
const WELL = 8_000;

/** Tells something at the page's head: what went well for a while, the newest alone; else until it is put away. */
export function tell(kind, text) {
  const id = ++last;
  const isLeft = (notice) => notice.text !== text && !(kind === "good" && notice.kind === "good");
  state.notices = [...state.notices.filter(isLeft).slice(-2), { id, kind, text }];
  if (kind === "good") setTimeout(() => putAway(id), WELL);
  changed();
}

export function putAway(id) {
  state.notices = state.notices.filter((notice) => notice.id !== id);
  changed();
}

/** What was said to be overcome is so no longer. */
export function clearNotices() {
  state.notices = [];
  changed();
}
