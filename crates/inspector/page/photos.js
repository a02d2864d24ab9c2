// Photos: chosen or dropped, sent one after the other, put into order.

import { api, Refused } from "./api.js";
import { h } from "./dom.js";
import { queued, took } from "./drafts.js";
import { t, word } from "./i18n.js";
import { isWritten } from "./rules.js";
import { changed, state, tell } from "./state.js";
import { announce, button, failure, focusSoon, icon } from "./ui.js";

const KINDS = ["EXTERIOR", "INTERIOR", "ENGINE", "UNDERBODY", "DAMAGE", "ODOMETER", "REGISTRATION", "OTOSICIL_PDF"];
const LARGEST = 10_485_760;
/** The small pictures of what is to be sent, in points. */
const PREVIEW = 160;

/** What is to be sent, by report: `{ key, file, kind, pointCode, caption, share, state, fault }`. */
const waiting = new Map();
const dragged = { id: null, isOver: false };
let last = 0;
let kindOfLast = "EXTERIOR";

const queueOf = (id) => waiting.get(id) ?? [];

/** Whether photos are chosen that the service does not have. */
export const isAnyPhotoUnsent = () => [...waiting.values()].some((queue) => queue.length > 0);

export function forgetPhotos() {
  waiting.clear();
  links.clear();
}

function choose(id, files) {
  const chosen = [...files].filter((file) => file.size > 0).map((file) => ({
    key: ++last, file, kind: kindOfLast, pointCode: "", caption: "", share: 0, state: "chosen",
    fault: !["image/jpeg", "image/png"].includes(file.type) ? "unsupported_photo" : file.size > LARGEST ? "payload_too_large" : null,
  }));
  waiting.set(id, [...queueOf(id), ...chosen]);
  changed();
  focusSoon("#send");
}

function drop(id, photo) {
  waiting.set(id, queueOf(id).filter((other) => other !== photo));
  changed();
}

/** Reports whose photos are being sent. */
const sending = new Set();
const isHopeless = ({ fault }) => ["unsupported_photo", "payload_too_large"].includes(fault);

async function sendAll(id) {
  if (sending.has(id)) return;
  sending.add(id);
  try {
    await sendEach(id);
  } finally {
    sending.delete(id);
    changed();
  }
}

async function sendEach(id) {
  for (const photo of queueOf(id).filter((photo) => !isHopeless(photo))) {
    // It may have been taken out meanwhile.
    if (!queueOf(id).includes(photo)) continue;
    Object.assign(photo, { state: "sending", share: 0, fault: null });
    changed();
    try {
      took(await api.addPhoto(id, photo, (share) => { photo.share = share; changed(); }));
      drop(id, photo);
      announce(t("photos.sent", { name: photo.file.name }));
    } catch (error) {
      photo.state = "chosen";
      photo.fault = error instanceof Refused ? error.code : "unreachable";
      photo.said = error;
      changed();
      if (!(error instanceof Refused) || error.code === "signed_out") return;
    }
  }
  if (queueOf(id).length === 0) focusSoon("#choose");
}

/** The photos in another order, which is shown at once. */
async function order(report, ids) {
  const isSame = ids.every((id, index) => report.photos[index].id === id);
  if (isSame) return;
  const place = new Map(ids.map((id, index) => [id, index]));
  state.report.data = { ...report, photos: [...report.photos].sort((left, right) => place.get(left.id) - place.get(right.id)) };
  changed();
  try {
    await queued(report.id, async () => {
      try {
        took(await api.orderPhotos(report.id, { version: state.report.data.version, photo_ids: ids }));
      } catch (error) {
        if (!(error instanceof Refused) || error.code !== "changed_meanwhile") throw error;
        // A device that wrote a value meanwhile says nothing against it; another photo does.
        const now = await api.report(report.id);
        const isOfSame = now.photos.length === ids.length && now.photos.every(({ id }) => place.has(id));
        took(isOfSame ? await api.orderPhotos(report.id, { version: now.version, photo_ids: ids }) : now);
        if (!isOfSame) tell("fair", t("photos.changedMeanwhile"));
      }
    });
  } catch (error) {
    if (state.report?.id === report.id && state.report.data) state.report.data = { ...state.report.data, photos: report.photos };
    tell("bad", failure(error));
  }
}

function move(report, photo, steps) {
  const ids = report.photos.map(({ id }) => id);
  const from = ids.indexOf(photo.id);
  const to = Math.min(Math.max(from + steps, 0), ids.length - 1);
  ids.splice(to, 0, ...ids.splice(from, 1));
  announce(t("photos.moved", { place: to + 1, count: ids.length }));
  order(report, ids);
}

function put(report, onto) {
  const ids = report.photos.map(({ id }) => id).filter((id) => id !== dragged.id);
  const from = report.photos.findIndex(({ id }) => id === dragged.id);
  const to = report.photos.findIndex(({ id }) => id === onto.id);
  if (from < 0 || from === to) return;
  ids.splice(to, 0, dragged.id);
  order(report, ids);
}

export function photosTab(report) {
  const isLocked = !isWritten(report);
  const queue = queueOf(report.id);
  return h("div", { class: "photos", key: "photos" },
    !isLocked && chooser(report),
    queue.length > 0 && h("section", { class: "to-send", key: "to-send", "aria-label": t("photos.toSend") },
      h("ul", null, queue.map((photo) => unsent(report, photo))),
      button(t("photos.send", { count: queue.length }), () => sendAll(report.id), { kind: "primary big", sign: "up", id: "send", "aria-disabled": sending.has(report.id) ? "true" : null })),
    report.photos.length === 0 ? h("p", { class: "empty" }, t("photos.none")) :
    h("ol", { class: "gallery" }, report.photos.map((photo, index) => shown(report, photo, index, isLocked))));
}

function chooser(report) {
  const over = (isOver) => { if (dragged.isOver !== isOver) { dragged.isOver = isOver; changed(); } };
  const hasFiles = (event) => [...event.dataTransfer.types].includes("Files");
  return h("div", {
    class: dragged.isOver ? "drop over" : "drop", key: "drop",
    ondragover: (event) => { if (hasFiles(event)) { event.preventDefault(); over(true); } },
    ondragleave: () => over(false),
    ondrop: (event) => { event.preventDefault(); over(false); choose(report.id, event.dataTransfer.files); },
  },
    icon("photo"),
    h("p", null, t("photos.drop")),
    h("label", { class: "button", for: "choose" }, h("span", null, t("photos.choose"))),
    h("input", { id: "choose", type: "file", class: "unseen", accept: "image/jpeg,image/png", multiple: true, onchange: (event) => { choose(report.id, event.target.files); event.target.value = ""; } }),
    h("p", { class: "hint" }, t("photos.limits")));
}

/** A picture of a file, drawn: the page's policy allows no address of a file. */
async function preview(canvas, file) {
  try {
    const bitmap = await createImageBitmap(file, { resizeWidth: PREVIEW, resizeQuality: "medium" });
    canvas.width = bitmap.width;
    canvas.height = bitmap.height;
    canvas.getContext("2d").drawImage(bitmap, 0, 0);
  } catch { /* What is no picture has none. */ }
}

function unsent(report, photo) {
  const id = `photo-${photo.key}`;
  const set = (change) => { Object.assign(photo, change); changed(); };
  const isSending = photo.state === "sending";
  const points = report.forms.flatMap((form) => form.points.map((point) => [form, point]));
  return h("li", { key: photo.key },
    h("canvas", { onmount: (canvas) => preview(canvas, photo.file), "aria-hidden": "true", width: PREVIEW, height: PREVIEW * 0.75 }),
    h("div", { class: "fields" },
      h("p", { class: "name" }, photo.file.name),
      h("div", { class: "field" }, h("label", { for: `${id}-kind` }, t("photos.kind")),
        h("select", { id: `${id}-kind`, value: photo.kind, disabled: isSending, onchange: (event) => { kindOfLast = event.target.value; set({ kind: event.target.value }); } },
          KINDS.map((kind) => h("option", { value: kind, key: kind }, word("kind", kind))))),
      h("div", { class: "field" }, h("label", { for: `${id}-point` }, t("photos.point")),
        h("select", { id: `${id}-point`, value: photo.pointCode, disabled: isSending, onchange: (event) => set({ pointCode: event.target.value }) },
          h("option", { value: "" }, t("photos.noPoint")),
          points.map(([form, point]) => h("option", { value: point.code, key: `${form.template_code}-${point.code}` }, `${form.name}: ${point.name}`)))),
      h("div", { class: "field" }, h("label", { for: `${id}-caption` }, t("photos.caption")),
        h("input", { id: `${id}-caption`, value: photo.caption, maxlength: 300, disabled: isSending, oninput: (event) => set({ caption: event.target.value }) })),
      isSending && h("progress", { max: 1, value: photo.share, "aria-label": t("photos.sending", { name: photo.file.name }) }),
      photo.fault && h("p", { class: "fault" }, icon("bad"), photo.said ? failure(photo.said) : word("failed", photo.fault))),
    button(t("photos.remove"), () => drop(report.id, photo), { kind: "quiet", sign: "close", disabled: isSending, "aria-label": t("photos.removeOf", { name: photo.file.name }) }));
}

/** How long a link that was given is used, in milliseconds: with another one, a picture would be loaded anew. They are good for 15 minutes. */
const LINK = 10 * 60_000;
const links = new Map();

/** A photo's links: those that were used before, as long as they are good. */
function linksOf({ id, url, thumb_url: thumb }) {
  const known = links.get(id);
  if (known && Date.now() - known.at < LINK) return known;
  const given = { url, thumb, at: Date.now() };
  links.set(id, given);
  return given;
}

function shown(report, photo, index, isLocked) {
  const { url, thumb } = linksOf(photo);
  const name = photo.caption || word("kind", photo.kind);
  const point = report.forms.flatMap((form) => form.points).find(({ code }) => code === photo.point_code);
  const isFirst = index === 0;
  const isLast = index === report.photos.length - 1;
  return h("li", {
    key: photo.id, draggable: isLocked ? null : "true",
    ondragstart: (event) => { dragged.id = photo.id; event.dataTransfer.effectAllowed = "move"; event.dataTransfer.setData("text/plain", photo.id); },
    ondragover: (event) => { if (dragged.id) event.preventDefault(); },
    ondrop: (event) => { if (!dragged.id) return; event.preventDefault(); put(report, photo); dragged.id = null; },
    ondragend: () => { dragged.id = null; },
  },
    h("figure", null,
      h("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, h("img", { src: thumb, alt: t("photos.alt", { name, place: index + 1 }), loading: "lazy", draggable: "false" })),
      h("figcaption", null,
        h("b", null, word("kind", photo.kind)), point && h("span", null, point.name), photo.caption && h("span", null, photo.caption),
        !photo.is_shown && h("span", { class: "not-shown" }, icon("hidden"), t("photos.notShown")))),
    !isLocked && report.photos.length > 1 && h("div", { class: "order" },
      button(t("photos.earlier"), () => move(report, photo, -1), { kind: "quiet", sign: "back", "aria-label": t("photos.earlierOf", { name, place: index + 1 }), "aria-disabled": isFirst ? "true" : null }),
      button(t("photos.later"), () => move(report, photo, 1), { kind: "quiet", sign: "next", "aria-label": t("photos.laterOf", { name, place: index + 1 }), "aria-disabled": isLast ? "true" : null })));
}
