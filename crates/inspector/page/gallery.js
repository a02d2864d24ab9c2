// The gallery of a report's photos: their order, and the fields with which they are described, hidden and deleted.

import { api, Rejected } from "./api.js";
import { h } from "./dom.js";
import { enqueue, readAgain, storeRead, storeReport } from "./drafts.js";
import { labelOf, t } from "./i18n.js";
import { isEditable } from "./rules.js";
import { askToConfirm, changed, endConfirmation, isToConfirm, notify, state } from "./state.js";
import { announce, button, failure, focusSoon, icon } from "./ui.js";

/** The photo that is being dragged. */
const dragged = { id: null };

/** The label of a kind of photo. An imported photo may have one that no template has. */
export function kindLabel(report, code) {
  const kind = report.photo_kinds.find((one) => one.code === code);
  return kind ? labelOf(kind) : code;
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
        storeRead(now);
        if (isOfSame) storeReport(await api.orderPhotos(report.id, { version: now.version, photo_ids: ids }));
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

/** Forgets the photos of the inspector who signed out. */
export function forgetGallery() {
  links.clear();
  captions.clear();
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

async function change(report, work, message) {
  try {
    storeReport(await enqueue(report.id, work));
    announce(message);
  } catch (error) {
    notify("bad", failure(error));
    await readAgain(report.id);
  }
}

async function remove(report, photo) {
  endConfirmation();
  await change(report, () => api.deletePhoto(report.id, photo.id), t("photos.deleted"));
  focusSoon("#choose");
}

/** The fields with which a photo is described, hidden or deleted. */
function edit(report, photo, name, index) {
  const id = `edit-${photo.id}`;
  const update = (body) => change(report, () => api.updatePhoto(report.id, photo.id, body), t("photos.changed"));
  const known = report.photo_kinds.map(({ code }) => code);
  const kinds = known.includes(photo.kind) ? known : [photo.kind, ...known];
  return h(
    "details",
    { class: "edit" },
    h("summary", { "aria-label": t("photos.editOf", { place: index + 1, name }) }, t("photos.edit")),
    h(
      "div",
      { class: "field" },
      h("label", { for: `${id}-kind` }, t("photos.kind")),
      h(
        "select",
        { id: `${id}-kind`, value: photo.kind, onchange: (event) => update({ kind: event.target.value }) },
        kinds.map((kind) => h("option", { value: kind, key: kind }, kindLabel(report, kind))),
      ),
    ),
    h(
      "div",
      { class: "field" },
      h("label", { for: `${id}-caption` }, t("photos.caption")),
      h("input", {
        id: `${id}-caption`,
        value: captions.get(photo.id) ?? photo.caption ?? "",
        maxlength: 300,
        autocomplete: "off",
        oninput: (event) => captions.set(photo.id, event.target.value),
        onchange: (event) =>
          update({ caption: event.target.value }).finally(() => {
            captions.delete(photo.id);
            changed();
          }),
      }),
    ),
    photo.may_be_shown &&
      h(
        "label",
        { class: "choice" },
        h("input", {
          type: "checkbox",
          checked: photo.is_shown,
          onchange: (event) => update({ is_shown: event.target.checked }),
        }),
        t("photos.show"),
      ),
    isToConfirm("delete-photo", photo.id)
      ? h(
          "div",
          { class: "actions" },
          button(t("photos.reallyDelete"), () => remove(report, photo), { kind: "danger", sign: "close" }),
          button(t("cancel"), endConfirmation, { kind: "quiet" }),
        )
      : button(t("photos.delete"), () => askToConfirm("delete-photo", photo.id), {
          kind: "quiet",
          sign: "close",
          "aria-label": t("photos.deleteOf", { place: index + 1, name }),
        }),
  );
}

function shown(report, photo, index, isLocked) {
  const { url, thumb } = linksOf(photo);
  const name = photo.caption || kindLabel(report, photo.kind);
  const point = report.forms.flatMap((form) => form.points).find(({ code }) => code === photo.point_code);
  const isFirst = index === 0;
  const isLast = index === report.photos.length - 1;
  return h(
    "li",
    {
      key: photo.id,
      draggable: isLocked ? null : "true",
      ondragstart: (event) => {
        dragged.id = photo.id;
        event.dataTransfer.effectAllowed = "move";
        event.dataTransfer.setData("text/plain", photo.id);
      },
      ondragover: (event) => {
        if (dragged.id) event.preventDefault();
      },
      ondrop: (event) => {
        if (!dragged.id) return;
        event.preventDefault();
        put(report, photo);
        dragged.id = null;
      },
      ondragend: () => {
        dragged.id = null;
      },
    },
    h(
      "figure",
      null,
      h(
        "a",
        { href: url, target: "_blank", rel: "noopener noreferrer" },
        h("img", { src: thumb, alt: t("photos.alt", { name, place: index + 1 }), loading: "lazy", draggable: "false" }),
      ),
      h(
        "figcaption",
        null,
        h("b", null, kindLabel(report, photo.kind)),
        point && h("span", null, point.name),
        photo.caption && h("span", null, photo.caption),
        !photo.is_shown && h("span", { class: "not-shown" }, icon("hidden"), t("photos.notShown")),
      ),
    ),
    !isLocked && edit(report, photo, name, index),
    !isLocked &&
      report.photos.length > 1 &&
      h(
        "div",
        { class: "order" },
        button(t("photos.earlier"), () => move(report, photo, -1), {
          kind: "quiet",
          sign: "back",
          "aria-label": t("photos.earlierOf", { name, place: index + 1 }),
          "aria-disabled": isFirst ? "true" : null,
        }),
        button(t("photos.later"), () => move(report, photo, 1), {
          kind: "quiet",
          sign: "next",
          "aria-label": t("photos.laterOf", { name, place: index + 1 }),
          "aria-disabled": isLast ? "true" : null,
        }),
      ),
  );
}

/** The report's photos, in order. */
export function gallery(report) {
  if (report.photos.length === 0) return h("p", { class: "empty" }, t("photos.none"));
  const isLocked = !isEditable(report);
  return h(
    "ol",
    { class: "gallery" },
    report.photos.map((photo, index) => shown(report, photo, index, isLocked)),
  );
}
