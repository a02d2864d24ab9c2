// The page's state. Code that changes it calls `changed`, which renders the page again.

/** The list before it is read, without filters. */
export function emptyList() {
  return { items: [], next: null, state: "loading", branch: "", status: "", search: "" };
}

export const state = {
  /** The session of the signed-in inspector; `null` before a sign-in. */
  session: null,
  /** Why a sign-in is needed: `first`, `ended` or `left`; `null` if none is. */
  signIn: null,
  /** `connecting`, `open` or `lost`. */
  connection: "connecting",
  /** The view that the address names: `{ view: "list" | "new" | "report", id, tab }`. */
  route: { view: "list" },
  list: emptyList(),
  /** The report on the page: `{ id, state, data }`, without `data` until it is loaded. */
  report: null,
  /** The notices at the top of the page: `{ id, kind, text, action }`, where `action` is `{ text, run }` or absent. */
  notices: [],
  /** The open dialog, or `null`: `{ name, address, … }`. It belongs to the address on which it was opened. */
  dialog: null,
  /** What awaits a confirmation in the page: `{ what, id }`, or `null`. It belongs to an address, as a dialog does. */
  toConfirm: null,
};

/** What the inspector is doing in each report, by its id. It lasts until another inspector signs in. */
const work = new Map();

/**
 * What the inspector is doing in a report: `correction` of the vehicle, the `panel` that was chosen on the drawing of the car, and
 * the measurement that is being applied or discarded (`settling`).
 */
export function workOn(id) {
  if (!work.has(id)) work.set(id, { correction: null, panel: null, settling: null });
  return work.get(id);
}

/** Forgets what an inspector was doing. */
export const forgetWork = () => work.clear();

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

/** Asks for a confirmation of `what` about `id` in the page, until the address changes. */
export function askToConfirm(what, id) {
  state.toConfirm = { what, id };
  changed();
}

export const isToConfirm = (what, id) => state.toConfirm?.what === what && state.toConfirm.id === id;

export function endConfirmation() {
  state.toConfirm = null;
  changed();
}

/** Removes all notices. */
export function clearNotices() {
  state.notices = [];
  changed();
}
