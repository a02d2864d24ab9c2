// The photos tab: choosing photos, marking them, and uploading one at a time.

import { api, Rejected, uuid } from "./api.js";
import { h } from "./dom.js";
import { storeReport } from "./drafts.js";
import { forgetGallery, gallery, kindLabel } from "./gallery.js";
import { labelOf, t, word } from "./i18n.js";
import { openMarking } from "./mark.js";
import * as stored from "./photo-store.js";
import { reduced } from "./reduce.js";
import { isEditable } from "./rules.js";
import { changed } from "./state.js";
import { announce, button, failure, focusSoon, icon } from "./ui.js";

/** The width of the previews of chosen photos, in pixels. */
const PREVIEW = 160;

/** The pause after which uploads are tried again, in milliseconds. */
const RETRY = 5_000;

/**
 * Photos to upload, by report: `{ key, uploadId, plate, file, kind, pointCode, caption, isQueued, isSending, share,
 * errorCode, error }`. The
 * inspector has asked to send those that are queued: without a connection they wait for it, also over a reload.
 */
const waiting = new Map();
const UNSENT = { isQueued: false, isSending: false, share: 0, error: null, errorCode: null };
/** Whether files are being dragged over the field for them. */
let isDraggedOver = false;
let last = 0;
/** The kind of the next photos: that of the last one whose kind was chosen. */
let kindOfLast = null;

const queueOf = (id) => waiting.get(id) ?? [];

/** The plates of the reports with photos that have not been uploaded, by report. */
export const platesOfPhotos = () =>
  new Map([...waiting].filter(([, queue]) => queue.length > 0).map(([id, [{ plate }]]) => [id, plate]));

export function forgetPhotos() {
  owner = null;
  waiting.clear();
  forgetGallery();
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
    waiting.set(photo.report, [...queue, { ...UNSENT, ...photo }]);
  }
  changed();
  sendQueued();
}

const store = (report, { key, uploadId, plate, file, kind, pointCode, caption, isQueued, errorCode }) =>
  stored.put({ key, report, owner, uploadId, plate, file, kind, pointCode, caption, isQueued, errorCode });

async function choose({ id, plate, photo_kinds: kinds }, files) {
  const kind = kinds.some(({ code }) => code === kindOfLast) ? kindOfLast : kinds[0]?.code;
  const chosen = [...files].map((file) => ({
    // In the order in which they were chosen, which IndexedDB keeps.
    key: `${Date.now()}-${++last}`,
    uploadId: uuid(),
    plate,
    file,
    kind,
    pointCode: "",
    caption: "",
    ...UNSENT,
  }));
  const who = owner;
  for (const photo of chosen) {
    // Reduced before it is stored and sent, because a camera's photo is larger than the service keeps.
    const { file, errorCode } = await reduced(photo.file);
    // Another inspector may have signed in.
    if (owner !== who) return;
    Object.assign(photo, { file, errorCode });
    waiting.set(id, [...queueOf(id), photo]);
    store(id, photo);
    changed();
  }
  focusSoon("#send");
}

function removePhoto(id, photo) {
  waiting.set(
    id,
    queueOf(id).filter((other) => other !== photo),
  );
  stored.remove(photo.key);
  changed();
}

/** Reports whose photos are being uploaded. */
const sending = new Set();
let retry = null;
const INVALID = ["unsupported_photo", "payload_too_large", "photo_truncated", "photo_too_large"];
const isInvalidFile = ({ errorCode }) => INVALID.includes(errorCode);
const sendable = (id) => queueOf(id).filter((photo) => !isInvalidFile(photo));

function sendAll(id) {
  for (const photo of sendable(id)) {
    photo.isQueued = true;
    store(id, photo);
  }
  send(id);
}

/** Sends the queued photos of all reports, after the connection or the session is back, or the page was reloaded. */
export function sendQueued() {
  for (const id of waiting.keys()) send(id);
}

async function send(id) {
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
  for (;;) {
    // Found anew each time, because photos are queued and removed in the meantime.
    const photo = queueOf(id).find(({ isQueued }) => isQueued);
    if (!photo) break;
    Object.assign(photo, { isSending: true, share: 0, errorCode: null });
    changed();
    try {
      storeReport(
        await api.addPhoto(id, photo, (share) => {
          photo.share = share;
          changed();
        }),
      );
      removePhoto(id, photo);
      announce(t("photos.sent", { name: photo.file.name }));
    } catch (error) {
      const isLater = !(error instanceof Rejected) || error.code === "signed_out";
      const errorCode = error instanceof Rejected ? error.code : "unreachable";
      Object.assign(photo, { isSending: false, isQueued: isLater, errorCode, error });
      store(id, photo);
      changed();
      if (!isLater) continue;
      clearTimeout(retry);
      if (errorCode === "unreachable") retry = setTimeout(sendQueued, RETRY);
      return;
    }
  }
  // Photos are also sent while the inspector types elsewhere.
  if (queueOf(id).length === 0 && !document.activeElement?.matches("input, select, textarea")) focusSoon("#choose");
}

export function photosTab(report) {
  const isLocked = !isEditable(report);
  const queue = queueOf(report.id);
  return h(
    "div",
    { class: "photos", key: "photos" },
    !isLocked && chooser(report),
    !isLocked && expected(report, queue),
    queue.length > 0 &&
      h(
        "section",
        { class: "to-send", key: "to-send", "aria-label": t("photos.toSend") },
        h(
          "ul",
          null,
          queue.map((photo) => unsent(report, photo)),
        ),
        sendable(report.id).length > 0 &&
          button(t("photos.send", { count: sendable(report.id).length }), () => sendAll(report.id), {
            kind: "primary big",
            sign: "up",
            id: "send",
            "aria-disabled": sending.has(report.id) ? "true" : null,
          }),
      ),
    gallery(report),
  );
}

function chooser(report) {
  const over = (isOver) => {
    if (isDraggedOver !== isOver) {
      isDraggedOver = isOver;
      changed();
    }
  };
  const hasFiles = (event) => [...event.dataTransfer.types].includes("Files");
  return h(
    "div",
    {
      class: isDraggedOver ? "drop over" : "drop",
      key: "drop",
      ondragover: (event) => {
        if (hasFiles(event)) {
          event.preventDefault();
          over(true);
        }
      },
      ondragleave: () => over(false),
      ondrop: (event) => {
        event.preventDefault();
        over(false);
        choose(report, event.dataTransfer.files);
      },
    },
    icon("photo"),
    h("p", null, t("photos.drop")),
    h("label", { class: "button", for: "choose" }, h("span", null, t("photos.choose"))),
    h("input", {
      id: "choose",
      type: "file",
      class: "unseen",
      accept: "image/jpeg,image/png",
      multiple: true,
      onchange: (event) => {
        choose(report, event.target.files);
        event.target.value = "";
      },
    }),
    h("p", { class: "hint" }, t("photos.limits")),
  );
}

/** The kinds of photos that the templates expect, with the number of those that the report has, as buttons that add one. */
function expected(report, queue) {
  const kinds = report.photo_kinds.filter((kind) => kind.expected > 0);
  if (kinds.length === 0) return null;
  const chooseOf = (code) => {
    kindOfLast = code;
    document.getElementById("choose").click();
  };
  return h(
    "section",
    { class: "expected", key: "expected", "aria-labelledby": "expected-title" },
    h("h3", { id: "expected-title" }, t("photos.expected")),
    h(
      "ul",
      null,
      kinds.map((kind) => {
        const count = [...report.photos, ...queue].filter((photo) => photo.kind === kind.code).length;
        const isEnough = count >= kind.expected;
        return h(
          "li",
          { key: kind.code },
          button(t("photos.expectedOf", { kind: labelOf(kind), count, expected: kind.expected }), () => chooseOf(kind.code), {
            kind: isEnough ? "enough" : "",
            sign: isEnough ? "check" : "photo",
            "data-kind": kind.code,
          }),
        );
      }),
    ),
  );
}

/** Draws a preview on a canvas, because the page's content security policy allows no `blob:` images. */
async function preview(canvas, file) {
  try {
    const bitmap = await createImageBitmap(file, { resizeWidth: PREVIEW, resizeQuality: "medium" });
    canvas.width = bitmap.width;
    canvas.height = bitmap.height;
    canvas.getContext("2d").drawImage(bitmap, 0, 0);
  } catch {
    /* A file that is not an image has no preview. */
  }
}

function unsent(report, photo) {
  const id = `photo-${photo.key}`;
  const set = (change) => {
    Object.assign(photo, change);
    store(report.id, photo);
    changed();
  };
  const { isSending } = photo;
  const points = report.forms.flatMap((form) => form.points.map((point) => [form, point]));
  return h(
    "li",
    { key: photo.key },
    // A marked photo is another file, with a new preview.
    h("canvas", {
      key: `${photo.file.size}-${photo.file.lastModified}`,
      onmount: (canvas) => preview(canvas, photo.file),
      "aria-hidden": "true",
      width: PREVIEW,
      height: PREVIEW * 0.75,
    }),
    h(
      "div",
      { class: "fields" },
      h("p", { class: "name" }, photo.file.name),
      h(
        "div",
        { class: "field" },
        h("label", { for: `${id}-kind` }, t("photos.kind")),
        h(
          "select",
          {
            id: `${id}-kind`,
            value: photo.kind,
            disabled: isSending,
            onchange: (event) => {
              kindOfLast = event.target.value;
              set({ kind: event.target.value });
            },
          },
          report.photo_kinds.map(({ code }) => h("option", { value: code, key: code }, kindLabel(report, code))),
        ),
      ),
      h(
        "div",
        { class: "field" },
        h("label", { for: `${id}-point` }, t("photos.point")),
        h(
          "select",
          {
            id: `${id}-point`,
            value: photo.pointCode,
            disabled: isSending,
            onchange: (event) => set({ pointCode: event.target.value }),
          },
          h("option", { value: "" }, t("photos.noPoint")),
          points.map(([form, point]) =>
            h("option", { value: point.code, key: `${form.template_code}-${point.code}` }, `${form.name}: ${point.name}`),
          ),
        ),
      ),
      h(
        "div",
        { class: "field" },
        h("label", { for: `${id}-caption` }, t("photos.caption")),
        h("input", {
          id: `${id}-caption`,
          value: photo.caption,
          maxlength: 300,
          disabled: isSending,
          oninput: (event) => set({ caption: event.target.value }),
        }),
      ),
      isSending && h("progress", { max: 1, value: photo.share, "aria-label": t("photos.sending", { name: photo.file.name }) }),
      photo.errorCode &&
        h("p", { class: "error" }, icon("bad"), photo.error ? failure(photo.error) : word("failed", photo.errorCode)),
    ),
    h(
      "div",
      { class: "actions" },
      !isInvalidFile(photo) &&
        button(t("mark.do"), () => openMarking(report, photo.file, (file) => set({ file, uploadId: uuid() })), {
          kind: "quiet",
          sign: "pen",
          disabled: isSending,
          "aria-label": t("mark.doOf", { name: photo.file.name }),
        }),
      button(t("photos.remove"), () => removePhoto(report.id, photo), {
        kind: "quiet",
        sign: "close",
        disabled: isSending,
        "aria-label": t("photos.removeOf", { name: photo.file.name }),
      }),
    ),
  );
}
