// The inspectors' page: who is signed in, what the address names, and what is told of changes.

import { api, identity, onSignedOut, Refused } from "./api.js";
import { tellWhatCame } from "./banner.js";
import { h, render } from "./dom.js";
import { claimDrafts, flush, flushAll, forgetDrafts, isAnythingUnsent } from "./drafts.js";
import { watch } from "./events.js";
import { language, speak, t } from "./i18n.js";
import { listPage, readList } from "./list.js";
import { beginOpening, forgetOpening, openPage } from "./open.js";
import { forgetPhotos, isAnyPhotoUnsent } from "./photos.js";
import { arrived, isLeft, onTouch } from "./presence.js";
import { moveDialog, readReport, reportPage } from "./report.js";
import { signInAgain, signInPage } from "./sign-in.js";
import { changed, clearNotices, putAway, shownBy, state, tell } from "./state.js";
import { button, dialog, failure, focusSoon, icon, note } from "./ui.js";

/** How often what is shown is read anew though nothing was told of it, in milliseconds: not all old reports are watched. */
const ANYWAY = 60_000;
/** How often a published report is read until its PDF is drawn, in milliseconds: nothing tells of that. */
const DRAWING = 3_000;
/** How often what is told in words, such as "5 minutes ago", is told anew, in milliseconds. */
const TICK = 20_000;
/** Changes that come together are read together, in milliseconds. */
const TOGETHER = 150;

let stream = null;
let reread = null;

// Who is signed in.

async function begin() {
  try {
    signedIn(await api.session());
  } catch (error) {
    if (error instanceof Refused && error.code === "signed_out") { state.signIn = "first"; focusSoon("#token"); }
    else { state.failed = error; setTimeout(begin, 5_000); }
    changed();
  }
}

function signedIn(session) {
  const before = state.session;
  if (before && identity(before) !== identity(session)) forget();
  claimDrafts(identity(session));
  arrived();
  Object.assign(state, { session, signIn: null, failed: null });
  state.list.branch = session.branches.some(({ id }) => id === state.list.branch) ? state.list.branch : "";
  stream?.stop();
  stream = watch({
    open: () => { state.connection = "open"; read(); flushAll(); changed(); },
    lost: () => { state.connection = "lost"; changed(); },
    changed: (id) => isShown(id) && readSoon(),
    signedOut: ended,
  });
  if (before) focusSoon("#main");
  else follow();
  changed();
}

/** The session has ended: the page stays as it is, and what was typed in it. */
function ended() {
  if (!state.session || state.signIn) return;
  stream?.stop();
  Object.assign(state, { signIn: "ended", dialog: null, connection: "connecting" });
  focusSoon("#token");
  changed();
}

async function leave() {
  await flush(state.report?.id ?? "").catch(() => {});
  if ((isAnythingUnsent() || isAnyPhotoUnsent()) && !state.dialog) {
    state.dialog = { name: "leave" };
    return changed();
  }
  try {
    await api.signOut();
  } catch (error) {
    // Without the service's word the next person at this tablet would be signed in.
    if (!(error instanceof Refused)) return tell("bad", t("leave.unreachable"));
  }
  goodbye();
}

function goodbye() {
  stream?.stop();
  forget();
  Object.assign(state, { session: null, signIn: "left", dialog: null, connection: "connecting" });
  location.hash = "#/";
  focusSoon("#token");
  changed();
}

/** Forgets what belongs to who was here. */
function forget() {
  forgetDrafts();
  forgetPhotos();
  forgetOpening();
  clearNotices();
  Object.assign(state, { report: null, list: { items: [], next: null, state: "loading", branch: "", status: "" } });
}

onSignedOut(ended);

// What the address names.

function follow() {
  const [, view, id, tab] = /^#\/(new|reports)?(?:\/([0-9a-f-]{36}))?(?:\/([A-Za-z0-9_]+))?$/.exec(location.hash) ?? [];
  const before = state.route;
  state.route = view === "new" ? { view: "new" } : view === "reports" && id ? { view: "report", id, tab } : { view: "list" };
  if (!state.session) return changed();
  const isOther = before.view !== state.route.view || before.id !== id;
  if (state.route.view === "new") beginOpening();
  if (isOther) { state.notices = []; window.scrollTo(0, 0); focusSoon("#main"); }
  if (isOther || !hasRead) read();
  changed();
}

let hasRead = false;

/** Signs out where nobody has touched the page for long, and does not wait until the service does. What was typed stays. */
async function endIfLeft() {
  if (!state.session || state.signIn || !isLeft()) return;
  await flush(state.report?.id ?? "").catch(() => {});
  await api.signOut().catch(() => {});
  ended();
}

/** Reads what is shown. */
function read() {
  hasRead = true;
  if (state.signIn) return;
  if (state.route.view === "list") readList();
  if (state.route.view === "report") readReport();
}

const isBeingDrawn = () => state.route.view === "report" && state.connection === "open" && state.report?.data?.status === "PUBLISHED" && !state.report.data.pdf_sha256;

const isShown = (id) => state.route.view === "list" || (state.route.view === "report" && state.route.id === id);

function readSoon() {
  clearTimeout(reread);
  reread = setTimeout(read, TOGETHER);
}

// Keys. With Alt, so that nobody meets one by typing or by speaking.

const KEYS = {
  KeyN: () => { location.hash = "#/new"; },
  KeyL: () => { location.hash = "#/"; },
  KeyS: () => state.report && flush(state.report.id).catch((error) => tell("bad", failure(error))),
  // Of what is shown, whatever may have come since.
  KeyU: () => document.getElementById("apply")?.click(),
  KeyY: () => document.getElementById("ignore")?.click(),
  KeyK: () => { state.dialog = state.dialog ? null : { name: "keys" }; changed(); },
};
const KEYS_SHOWN = [["Alt+N", "keys.new"], ["Alt+L", "keys.list"], ["Alt+U", "keys.apply"], ["Alt+Y", "keys.ignore"], ["Alt+S", "keys.save"], ["Alt+K", "keys.these"]];

function pressed(event) {
  if (!event.altKey || event.ctrlKey || event.metaKey || !KEYS[event.code]) return;
  if (!state.session || state.signIn || (state.dialog && event.code !== "KeyK")) return;
  event.preventDefault();
  KEYS[event.code]();
}

function keysDialog() {
  const close = () => { state.dialog = null; changed(); };
  return dialog("keys", t("keys.title"), close, h("dl", { class: "keys" }, KEYS_SHOWN.map(([keys, text]) => h("div", null, h("dt", null, h("kbd", null, keys)), h("dd", null, t(text))))), button(t("close"), close, { kind: "big" }));
}

function leaveDialog() {
  const close = () => { state.dialog = null; changed(); };
  return dialog("leave", t("leave.title"), close, h("p", null, t("leave.lead")),
    h("div", { class: "actions" }, button(t("leave.do"), leave, { kind: "danger big" }), button(t("cancel"), close, { kind: "big" })));
}

// The page.

const DIALOGS = { move: moveDialog, keys: keysDialog, leave: leaveDialog };

function show() {
  const { session, signIn, route, dialog: asked } = state;
  const page = !session ? (signIn ? signInPage(signedIn) : waiting()) : route.view === "list" ? listPage() : route.view === "new" ? openPage() : reportPage();
  tellWhatCame();
  document.title = [route.view === "report" && state.report?.data?.plate, t("name")].filter(Boolean).join(" · ");
  render(document.getElementById("page"), [
    top(),
    session && state.connection === "lost" && h("div", { class: "lost", key: "lost", role: "status" }, icon("lost"), h("span", null, t("connection.lost")), button(t("connection.now"), () => stream?.now(), { kind: "quiet" })),
    state.notices.length > 0 && h("section", { class: "notices", key: "notices", "aria-label": t("notices") }, state.notices.map(({ id, kind, text }) => h("div", { class: `notice ${kind}`, key: id }, icon(kind), h("span", null, text), h("button", { type: "button", class: "quiet", "aria-label": t("close"), onclick: () => putAway(id) }, icon("close"))))),
    page,
    session && signIn === "ended" ? signInAgain(signedIn, goodbye) : asked && session && DIALOGS[asked.name](),
  ]);
}

function waiting() {
  return h("main", { id: "main", class: "door", tabindex: "-1" }, state.failed ? note("fair", t("failed.beginning")) : h("p", { role: "status" }, t("list.loading")));
}

function top() {
  const { session, signIn, connection } = state;
  return h("header", { class: "top", key: "top" },
    h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); document.getElementById("main")?.focus(); } }, t("skip")),
    h("a", { class: "name", href: "#/" }, icon("check"), h("span", null, t("name"))),
    session && !signIn && h("span", { class: `connection ${connection}`, title: t(`connection.${connection}.long`) }, icon(connection === "lost" ? "lost" : "open"), h("span", null, t(`connection.${connection}.short`))),
    h("div", { class: "who" },
      session && h("span", { class: "inspector" }, session.inspector),
      h("div", { class: "languages", role: "group", "aria-label": t("language") }, ["tr", "en"].map((one) => h("button", {
        type: "button", lang: one, "aria-pressed": String(language() === one), title: { tr: "Türkçe", en: "English" }[one], onclick: () => { speak(one); changed(); },
      }, one.toUpperCase()))),
      session && button(t("keys.short"), KEYS.KeyK, { kind: "quiet wide", "aria-keyshortcuts": "Alt+K" }),
      session && !signIn && button(t("leave.short"), leave, { kind: "quiet" })));
}

shownBy(show);
window.addEventListener("hashchange", follow);
window.addEventListener("keydown", pressed);
window.addEventListener("beforeunload", (event) => { if (isAnythingUnsent() || isAnyPhotoUnsent()) event.preventDefault(); });
// A tablet that was put away is looked at again.
document.addEventListener("visibilitychange", () => { if (!document.hidden && state.session && !state.signIn) { stream?.now(); read(); } });
setInterval(changed, TICK);
setInterval(() => { if (!document.hidden && state.connection === "open") read(); }, ANYWAY);
setInterval(() => { if (isBeingDrawn()) read(); }, DRAWING);
setInterval(endIfLeft, TICK);
onTouch(() => { if (state.session && !state.signIn) api.stay().catch(() => {}); });
follow();
begin();
