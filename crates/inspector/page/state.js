// The page's state. Code that changes it calls `changed`, which renders the page again.

export const state = {
  /** The session of the signed-in inspector; `null` before a sign-in. */
  session: null,
  /** Why a sign-in is needed: `first`, `ended` or `left`; `null` if none is. */
  signIn: null,
  /** `connecting`, `open` or `lost`. */
  connection: "connecting",
  /** The view that the address names: `{ view: "list" | "new" | "report", id, tab }`. */
  route: { view: "list" },
  list: { items: [], next: null, state: "loading", branch: "", status: "", search: "" },
  /** The report on the page: `{ id, state, data }`, without `data` until it is loaded. */
  report: null,
  /** The notices at the top of the page: `{ id, kind, text, action }`, where `action` is `{ text, run }` or absent. */
  notices: [],
  /** The open dialog, or `null`: `{ name, address, … }`. It belongs to the address on which it was opened. */
  dialog: null,
};

let listener = () => {};
let isScheduled = false;

/** Sets the function that renders the page. */
export function onChange(render) {
  listener = render;
}

/** Schedules a rendering. Several changes in a row cause one rendering. */
export function changed() {
  if (isScheduled) return;
  isScheduled = true;
  queueMicrotask(() => {
    isScheduled = false;
    listener();
  });
}

let last = 0;

/** How long a `good` notice is shown, in milliseconds. */
const GOOD_NOTICE = 8_000;

/** Shows a notice. Only the newest `good` notice is shown, for a while; other notices stay until they are dismissed. */
export function notify(kind, text, action = null) {
  const id = ++last;
  const staysShown = (notice) => notice.text !== text && !(kind === "good" && notice.kind === "good");
  state.notices = [...state.notices.filter(staysShown).slice(-2), { id, kind, text, action }];
  if (kind === "good") setTimeout(() => dismiss(id), GOOD_NOTICE);
  changed();
}

export function dismiss(id) {
  state.notices = state.notices.filter((notice) => notice.id !== id);
  changed();
}

/** Opens a dialog, which closes when the address changes. */
export function openDialog(dialog) {
  state.dialog = { ...dialog, address: location.hash };
  changed();
}

export function closeDialog() {
  state.dialog = null;
  changed();
}

/** Removes all notices. */
export function clearNotices() {
  state.notices = [];
  changed();
}
