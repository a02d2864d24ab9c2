// The photos tab: choosing, uploading one at a time, and sorting.

import { api, Rejected } from "./api.js";
import { h } from "./dom.js";
import { enqueue, storeReport } from "./drafts.js";
import { t, word } from "./i18n.js";
import * as stored from "./photo-store.js";
import { reduced } from "./reduce.js";
import { isEditable } from "./rules.js";
import { changed, notify, state } from "./state.js";
import { announce, button, failure, focusSoon, icon } from "./ui.js";

const KINDS = ["EXTERIOR", "INTERIOR", "ENGINE", "UNDERBODY", "DAMAGE", "ODOMETER", "REGISTRATION", "OTOSICIL_PDF"];
/** The width of the previews of chosen photos, in pixels. */
const PREVIEW = 160;

/** Photos to upload, by report: `{ key, file, kind, pointCode, caption, share, state, errorCode, error }`. */
const waiting = new Map();
const dragged = { id: null, isOver: false };
let last = 0;
let kindOfLast = "EXTERIOR";

const queueOf = (id) => waiting.get(id) ?? [];

/** Whether there are photos that have not been uploaded. */
export const isAnyPhotoUnsent = () => [...waiting.values()].some((queue) => queue.length > 0);

export function forgetPhotos() {
  owner = null;
  waiting.clear();
  links.clear();
  captions.clear();
  stored.clear();
}

/** The identity of the inspector who chose the photos. */
let owner = null;

/** Shows the photos that the inspector chose before the page was reloaded. Those of another inspector are deleted. */
export async function claimPhotos(who) {
  if (owner === who) return;
  owner = who;
  for (const photo of await stored.load(who)) {
    const queue = queueOf(photo.report);
    if (owner !== who || queue.some(({ key }) => key === photo.key)) continue;
    waiting.set(photo.report, [...queue, { share: 0, state: "chosen", error: null, errorCode: null, ...photo }]);
  }
  changed();
}

const store = (report, { key, file, kind, pointCode, caption, errorCode }) => stored.put({ key, report, owner, file, kind, pointCode, caption, errorCode });

async function choose(id, files) {
  const chosen = [...files].map((file) => ({
    key: `${Date.now()}-${++last}`, file, kind: kindOfLast, pointCode: "", caption: "", share: 0, state: "chosen", error: null, errorCode: null,
  }));
  for (const photo of chosen) {
    // Reduced before it is stored and sent, because a camera's photo is larger than the service keeps.
    const { file, errorCode } = await reduced(photo.file);
    Object.assign(photo, { file, errorCode });
    waiting.set(id, [...queueOf(id), photo]);
    store(id, photo);
    changed();
  }
  focusSoon("#send");
}

function removePhoto(id, photo) {
  waiting.set(id, queueOf(id).filter((other) => other !== photo));
  stored.remove(photo.key);
  changed();
}

/** Reports whose photos are being uploaded. */
const sending = new Set();
const INVALID = ["unsupported_photo", "payload_too_large", "photo_truncated", "photo_too_large"];
const isInvalidFile = ({ errorCode }) => INVALID.includes(errorCode);
const sendable = (id) => queueOf(id).filter((photo) => !isInvalidFile(photo));

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
  for (const photo of sendable(id)) {
    // It may have been removed in the meantime.
    if (!queueOf(id).includes(photo)) continue;
    Object.assign(photo, { state: "sending", share: 0, errorCode: null });
    changed();
    try {
      storeReport(await api.addPhoto(id, photo, (share) => { photo.share = share; changed(); }));
      removePhoto(id, photo);
      announce(t("photos.sent", { name: photo.file.name }));
    } catch (error) {
      photo.state = "chosen";
      photo.errorCode = error instanceof Rejected ? error.code : "unreachable";
      photo.error = error;
      changed();
      if (!(error instanceof Rejected) || error.code === "signed_out") return;
    }
  }
  if (queueOf(id).length === 0) focusSoon("#choose");
}

/** Sorts the photos. The new order is shown at once and undone if the request fails. */
async function order(report, ids) {
  const isSame = ids.every((id, index) => report.photos[index].id === id);
  if (isSame) return;
  const place = new Map(ids.map((id, index) => [id, index]));
  state.report.data = { ...report, photos: [...report.photos].sort((left, right) => place.get(left.id) - place.get(right.id)) };
  changed();
  try {
    await enqueue(report.id, async () => {
      try {
        storeReport(await api.orderPhotos(report.id, { version: state.report.data.version, photo_ids: ids }));
      } catch (error) {
        if (!(error instanceof Rejected) || error.code !== "changed_meanwhile") throw error;
        // A value from a device does not affect the order, so retry. A new photo does.
        const now = await api.report(report.id);
        const isOfSame = now.photos.length === ids.length && now.photos.every(({ id }) => place.has(id));
        storeReport(isOfSame ? await api.orderPhotos(report.id, { version: now.version, photo_ids: ids }) : now);
        if (!isOfSame) notify("fair", t("photos.changedMeanwhile"));
      }
    });
  } catch (error) {
    if (state.report?.id === report.id && state.report.data) state.report.data = { ...state.report.data, photos: report.photos };
    notify("bad", failure(error));
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
  const isLocked = !isEditable(report);
  const queue = queueOf(report.id);
  return h("div", { class: "photos", key: "photos" },
    !isLocked && chooser(report),
    queue.length > 0 && h("section", { class: "to-send", key: "to-send", "aria-label": t("photos.toSend") },
      h("ul", null, queue.map((photo) => unsent(report, photo))),
      sendable(report.id).length > 0 && button(t("photos.send", { count: sendable(report.id).length }), () => sendAll(report.id), { kind: "primary big", sign: "up", id: "send", "aria-disabled": sending.has(report.id) ? "true" : null })),
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

/** Draws a preview on a canvas, because the page's content security policy allows no `blob:` images. */
async function preview(canvas, file) {
  try {
    const bitmap = await createImageBitmap(file, { resizeWidth: PREVIEW, resizeQuality: "medium" });
    canvas.width = bitmap.width;
    canvas.height = bitmap.height;
    canvas.getContext("2d").drawImage(bitmap, 0, 0);
  } catch { /* A file that is not an image has no preview. */ }
}

function unsent(report, photo) {
  const id = `photo-${photo.key}`;
  const set = (change) => { Object.assign(photo, change); store(report.id, photo); changed(); };
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
      photo.errorCode && h("p", { class: "error" }, icon("bad"), photo.error ? failure(photo.error) : word("failed", photo.errorCode))),
    button(t("photos.remove"), () => removePhoto(report.id, photo), { kind: "quiet", sign: "close", disabled: isSending, "aria-label": t("photos.removeOf", { name: photo.file.name }) }));
}

/** How long a link is reused, in milliseconds. A new link would reload the image. Links are valid for 15 minutes. */
const LINK_LIFETIME = 10 * 60_000;
const links = new Map();

/** A photo's links: the ones that were used before, as long as they are valid. */
function linksOf({ id, url, thumb_url: thumb }) {
  const known = links.get(id);
  if (known && Date.now() - known.at < LINK_LIFETIME) return known;
  const given = { url, thumb, at: Date.now() };
  links.set(id, given);
  return given;
}

/** Captions that are being typed, by photo. A rendering in the meantime keeps them. */
const captions = new Map();
/** The photo whose deletion awaits confirmation. */
let toDelete = null;

async function change(report, work, message) {
  try {
    storeReport(await enqueue(report.id, work));
    announce(message);
  } catch (error) {
    notify("bad", failure(error));
    await api.report(report.id).then(storeReport, () => {});
  }
}

async function remove(report, photo) {
  toDelete = null;
  await change(report, () => api.deletePhoto(report.id, photo.id), t("photos.deleted"));
  focusSoon("#choose");
}

/** The fields with which a photo is described, hidden or deleted. */
function edit(report, photo, name, index) {
  const id = `edit-${photo.id}`;
  const update = (body) => change(report, () => api.updatePhoto(report.id, photo.id, body), t("photos.changed"));
  const isNeverShown = ["REGISTRATION", "OTOSICIL_PDF"].includes(photo.kind);
  const kinds = KINDS.includes(photo.kind) ? KINDS : [photo.kind, ...KINDS];
  return h("details", { class: "edit" },
    h("summary", { "aria-label": t("photos.editOf", { place: index + 1, name }) }, t("photos.edit")),
    h("div", { class: "field" }, h("label", { for: `${id}-kind` }, t("photos.kind")),
      h("select", { id: `${id}-kind`, value: photo.kind, onchange: (event) => update({ kind: event.target.value }) },
        kinds.map((kind) => h("option", { value: kind, key: kind }, word("kind", kind))))),
    h("div", { class: "field" }, h("label", { for: `${id}-caption` }, t("photos.caption")),
      h("input", {
        id: `${id}-caption`, value: captions.get(photo.id) ?? photo.caption ?? "", maxlength: 300, autocomplete: "off",
        oninput: (event) => captions.set(photo.id, event.target.value),
        onchange: (event) => update({ caption: event.target.value }).finally(() => { captions.delete(photo.id); changed(); }),
      })),
    !isNeverShown && h("label", { class: "choice" },
      h("input", { type: "checkbox", checked: photo.is_shown, onchange: (event) => update({ is_shown: event.target.checked }) }), t("photos.show")),
    toDelete === photo.id ?
      h("div", { class: "actions" },
        button(t("photos.reallyDelete"), () => remove(report, photo), { kind: "danger", sign: "close" }),
        button(t("cancel"), () => { toDelete = null; changed(); }, { kind: "quiet" })) :
      button(t("photos.delete"), () => { toDelete = photo.id; changed(); }, { kind: "quiet", sign: "close", "aria-label": t("photos.deleteOf", { place: index + 1, name }) }));
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
    !isLocked && edit(report, photo, name, index),
    !isLocked && report.photos.length > 1 && h("div", { class: "order" },
      button(t("photos.earlier"), () => move(report, photo, -1), { kind: "quiet", sign: "back", "aria-label": t("photos.earlierOf", { name, place: index + 1 }), "aria-disabled": isFirst ? "true" : null }),
      button(t("photos.later"), () => move(report, photo, 1), { kind: "quiet", sign: "next", "aria-label": t("photos.laterOf", { name, place: index + 1 }), "aria-disabled": isLast ? "true" : null })));
}
