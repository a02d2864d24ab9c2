// The inspectors' page: sign-in, routing, keyboard shortcuts, and reloading what has changed.

import { api, identity, onSignedOut, Rejected } from "./api.js";
import { announceMeasurements } from "./banner.js";
import { h, render } from "./dom.js";
import { claimDrafts, flush, flushAll, forgetDrafts, platesUnsent } from "./drafts.js";
import { watch } from "./events.js";
import { language, setLanguage, t } from "./i18n.js";
import { claimPlace, forgetPlace, keepPlace, listAddress, listPage, readList, takeFilters } from "./list.js";
import { beginOpening, forgetOpening, openPage } from "./open.js";
import { markDialog } from "./mark.js";
import { moveDialog } from "./moves.js";
import { claimPhotos, forgetPhotos, platesOfPhotos, sendQueued } from "./photos.js";
import { isIdle, markPresent, onTouch } from "./presence.js";
import { readReport, reportPage } from "./report.js";
import { signInAgain, signInPage } from "./sign-in.js";
import {
  changed,
  clearNotices,
  closeDialog,
  dismiss,
  emptyList,
  forgetWork,
  notify,
  onChange,
  openDialog,
  state,
} from "./state.js";
import { button, dialog, failure, focusSoon, icon, note, spaced } from "./ui.js";

/** The interval at which the view is reloaded without an event, in milliseconds. Changes of old reports send no events. */
const RELOAD_INTERVAL = 60_000;
/** The interval at which a published report is reloaded until its PDF is rendered, in milliseconds. Rendering sends no event. */
const RENDERING_INTERVAL = 3_000;
/** The interval at which relative times, such as "5 minutes ago", are updated, in milliseconds. */
const TICK = 20_000;
/** Events within this time cause one reload, in milliseconds. */
const DEBOUNCE = 150;

let stream = null;
let readTimer = null;

// The session.

async function begin() {
  try {
    signedIn(await api.session());
  } catch (error) {
    if (error instanceof Rejected && error.code === "signed_out") {
      state.signIn = "first";
      focusSoon("#token");
    } else {
      state.failed = error;
      setTimeout(begin, 5_000);
    }
    changed();
  }
}

function signedIn(session) {
  const before = state.session;
  if (before && identity(before) !== identity(session)) forget();
  claimDrafts(identity(session));
  claimPhotos(identity(session));
  claimPlace(identity(session));
  markPresent();
  Object.assign(state, { session, signIn: null, failed: null });
  state.list.branch = session.branches.some(({ id }) => id === state.list.branch) ? state.list.branch : "";
  stream?.stop();
  stream = watch({
    open: () => {
      state.connection = "open";
      read();
      flushAll();
      sendQueued();
      changed();
    },
    lost: () => {
      state.connection = "lost";
      changed();
    },
    changed: (id) => isShown(id) && scheduleRead(),
    signedOut: sessionEnded,
  });
  if (before) focusSoon("#main");
  else followAddress();
  changed();
}

/** Asks for a new sign-in after the session has ended. The page and its drafts stay. */
function sessionEnded() {
  if (!state.session || state.signIn) return;
  stream?.stop();
  Object.assign(state, { signIn: "ended", dialog: null, toConfirm: null, connection: "connecting" });
  focusSoon("#token");
  changed();
}

/** The plates of the reports with input or photos that the service does not have, by report. */
const unsentPlates = () => new Map([...platesUnsent(), ...platesOfPhotos()]);

async function leave() {
  await flush(state.report?.id ?? "").catch(() => {});
  if (unsentPlates().size > 0 && state.dialog?.name !== "leave") return openDialog({ name: "leave" });
  try {
    await api.signOut();
  } catch (error) {
    // If the service was not reached, the session still exists, and the next person at this tablet would be signed in.
    if (!(error instanceof Rejected)) return notify("bad", t("leave.unreachable"));
  }
  clearSession();
}

function clearSession() {
  stream?.stop();
  forget();
  Object.assign(state, { session: null, signIn: "left", dialog: null, connection: "connecting" });
  location.hash = "#/";
  focusSoon("#token");
  changed();
}

/** Deletes the previous inspector's data. */
function forget() {
  forgetDrafts();
  forgetPhotos();
  forgetOpening();
  forgetPlace();
  forgetWork();
  clearNotices();
  Object.assign(state, { report: null, toConfirm: null, list: emptyList() });
}

onSignedOut(sessionEnded);

// Routing by the address.

/** The route that the address names, and the point whose fields are to be focused. */
function routeOf(address) {
  const [path, query] = address.replace(/^#/, "").split("?");
  const [, view, id, tab, point] =
    /^\/(new|reports)?(?:\/([0-9a-f-]{36}))?(?:\/([A-Za-z0-9_]+))?(?:\/([A-Z0-9_]+))?$/.exec(path) ?? [];
  if (view === "new") return { view: "new" };
  if (view === "reports" && id) return { view: "report", id, tab, point };
  return { view: "list", query: query ?? "" };
}

function followAddress() {
  const before = state.route;
  state.route = routeOf(location.hash);
  const { view, id, tab, point, query } = state.route;
  // A dialog and a confirmation belong to the address on which they were opened.
  if (state.dialog?.address !== location.hash) state.dialog = null;
  state.toConfirm = null;
  if (!state.session) return changed();
  const isOther = before.view !== view || before.id !== id;
  if (view === "new") beginOpening();
  if (view === "list") takeFilters(query);
  if (isOther) {
    state.notices = [];
    window.scrollTo(0, 0);
    focusSoon(point ? `#${tab}-${point} :is(input, select)` : "#main");
  } else if (point) {
    focusSoon(`#${tab}-${point} :is(input, select)`);
  }
  if (isOther || !hasRead) read();
  changed();
}

let hasRead = false;

/** Signs out when nobody has touched the page for long, without waiting for the service to do so. Drafts stay. */
async function signOutIfIdle() {
  if (!state.session || state.signIn || !isIdle()) return;
  await flush(state.report?.id ?? "").catch(() => {});
  await api.signOut().catch(() => {});
  sessionEnded();
}

/** Reloads the data of the current view. */
function read() {
  hasRead = true;
  if (state.signIn) return;
  if (state.route.view === "list") readList();
  if (state.route.view === "report") readReport();
}

const isRendering = () =>
  state.route.view === "report" &&
  state.connection === "open" &&
  state.report?.data?.status === "PUBLISHED" &&
  !state.report.data.pdf_sha256;

const isShown = (id) => state.route.view === "list" || (state.route.view === "report" && state.route.id === id);

function scheduleRead() {
  clearTimeout(readTimer);
  readTimer = setTimeout(read, DEBOUNCE);
}

// Keyboard shortcuts. All of them use Alt, so that typing and dictation cannot trigger one by accident.

const KEYS = {
  KeyN: () => {
    location.hash = "#/new";
  },
  KeyL: () => {
    location.hash = listAddress();
  },
  KeyS: () => state.report && flush(state.report.id).catch((error) => notify("bad", failure(error))),
  // These click the visible buttons, so they act on what the inspector sees.
  KeyU: () => document.getElementById("apply")?.click(),
  KeyY: () => document.getElementById("ignore")?.click(),
  KeyK: () => (state.dialog ? closeDialog() : openDialog({ name: "keys" })),
};
const KEYS_SHOWN = [
  ["Alt+N", "keys.new"],
  ["Alt+L", "keys.list"],
  ["Alt+U", "keys.apply"],
  ["Alt+Y", "keys.ignore"],
  ["Alt+S", "keys.save"],
  ["Alt+K", "keys.these"],
];

function onKey(event) {
  if (!event.altKey || event.ctrlKey || event.metaKey || !KEYS[event.code]) return;
  if (!state.session || state.signIn || (state.dialog && event.code !== "KeyK")) return;
  event.preventDefault();
  keepPlace();
  KEYS[event.code]();
}

function keysDialog() {
  return dialog(
    "keys",
    t("keys.title"),
    closeDialog,
    h(
      "dl",
      { class: "keys" },
      KEYS_SHOWN.map(([keys, text]) => h("div", null, h("dt", null, h("kbd", null, keys)), h("dd", null, t(text)))),
    ),
    button(t("close"), closeDialog, { kind: "big" }),
  );
}

function leaveDialog() {
  const plates = [...unsentPlates().values()].filter(Boolean).map(spaced);
  return dialog(
    "leave",
    t("leave.title"),
    closeDialog,
    plates.length > 0 && h("p", { class: "subject" }, h("b", null, plates.join(", "))),
    h("p", null, t("leave.lead")),
    h(
      "div",
      { class: "actions" },
      button(t("leave.do"), leave, { kind: "danger big" }),
      button(t("cancel"), closeDialog, { kind: "big" }),
    ),
  );
}

// Rendering.

const DIALOGS = { mark: markDialog, move: moveDialog, keys: keysDialog, leave: leaveDialog };

function show() {
  const { session, signIn, route, dialog: openDialog } = state;
  const page = !session
    ? signIn
      ? signInPage(signedIn)
      : loadingPage()
    : route.view === "list"
      ? listPage()
      : route.view === "new"
        ? openPage()
        : reportPage();
  announceMeasurements();
  document.title = [route.view === "report" && state.report?.data?.plate, t("name")].filter(Boolean).join(" · ");
  render(document.getElementById("page"), [
    top(),
    session &&
      state.connection === "lost" &&
      h(
        "div",
        { class: "lost", key: "lost", role: "status" },
        icon("lost"),
        h("span", null, t("connection.lost")),
        button(t("connection.now"), () => stream?.now(), { kind: "quiet" }),
      ),
    state.notices.length > 0 &&
      h(
        "section",
        { class: "notices", key: "notices", "aria-label": t("notices") },
        state.notices.map(({ id, kind, text, action }) =>
          h(
            "div",
            { class: `notice ${kind}`, key: id },
            icon(kind),
            h("span", null, text),
            action &&
              button(
                action.text,
                () => {
                  dismiss(id);
                  action.run();
                },
                { kind: "quiet" },
              ),
            h("button", { type: "button", class: "quiet", "aria-label": t("close"), onclick: () => dismiss(id) }, icon("close")),
          ),
        ),
      ),
    page,
    session && signIn === "ended" ? signInAgain(signedIn, clearSession) : openDialog && session && DIALOGS[openDialog.name](),
  ]);
}

function loadingPage() {
  return h(
    "main",
    { id: "main", class: "door", tabindex: "-1" },
    state.failed ? note("fair", t("failed.beginning")) : h("p", { role: "status" }, t("list.loading")),
  );
}

function top() {
  const { session, signIn, connection } = state;
  return h(
    "header",
    { class: "top", key: "top" },
    h(
      "a",
      {
        class: "skip",
        href: "#main",
        onclick: (event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        },
      },
      t("skip"),
    ),
    h("a", { class: "name", href: listAddress() }, icon("check"), h("span", null, t("name"))),
    session &&
      !signIn &&
      h(
        "span",
        { class: `connection ${connection}`, title: t(`connection.${connection}.long`) },
        icon(connection === "lost" ? "lost" : "open"),
        h("span", null, t(`connection.${connection}.short`)),
      ),
    h(
      "div",
      { class: "who" },
      session && h("span", { class: "inspector" }, session.inspector),
      h(
        "div",
        { class: "languages", role: "group", "aria-label": t("language") },
        ["tr", "en"].map((one) =>
          h(
            "button",
            {
              type: "button",
              lang: one,
              "aria-pressed": String(language() === one),
              title: { tr: "Türkçe", en: "English" }[one],
              onclick: () => {
                setLanguage(one);
                changed();
              },
            },
            one.toUpperCase(),
          ),
        ),
      ),
      session && button(t("keys.short"), KEYS.KeyK, { kind: "quiet wide", "aria-keyshortcuts": "Alt+K" }),
      session && !signIn && button(t("leave.short"), leave, { kind: "quiet" }),
    ),
  );
}

onChange(show);
window.addEventListener("hashchange", followAddress);
window.addEventListener("pagehide", keepPlace);
document.addEventListener("click", keepPlace, true);
window.addEventListener("keydown", onKey);
window.addEventListener("beforeunload", (event) => {
  if (unsentPlates().size > 0) event.preventDefault();
});
// The inspector has returned to the page.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && state.session && !state.signIn) {
    stream?.now();
    read();
  }
});
setInterval(changed, TICK);
setInterval(() => {
  if (!document.hidden && state.connection === "open") read();
}, RELOAD_INTERVAL);
setInterval(() => {
  if (isRendering()) read();
}, RENDERING_INTERVAL);
setInterval(signOutIfIdle, TICK);
onTouch(() => {
  if (state.session && !state.signIn) api.keepAlive().catch(() => {});
});
followAddress();
begin();
