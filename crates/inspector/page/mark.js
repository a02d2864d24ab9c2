// The dialog in which an inspector draws on a photo before it is sent, for example around a dent.

import { h } from "./dom.js";
import { t } from "./i18n.js";
import { changed, closeDialog, openDialog, state } from "./state.js";
import { button, dialog, subject } from "./ui.js";

const QUALITY = 0.9;
/** The width of a line, as a share of the photo's longer side. */
const LINE_WIDTH = 0.008;
const COLOR = "#e3231b";

/** Opens the dialog for a photo of a report. `save` is called with the file that has the lines. */
export function openMarking(report, file, save) {
  openDialog({ name: "mark", report, file, save, bitmap: null, lines: [] });
}

export function markDialog() {
  const { report, lines } = state.dialog;
  return dialog(
    "mark",
    t("mark.title"),
    closeDialog,
    subject(report, state.session),
    h("p", { class: "hint" }, t("mark.lead")),
    h("canvas", {
      key: "canvas",
      onmount: show,
      onpointerdown: begin,
      onpointermove: draw,
      onpointerup: end,
      onpointercancel: end,
    }),
    h(
      "div",
      { class: "actions" },
      button(t("mark.save"), save, { kind: "primary big", sign: "check", disabled: lines.length === 0 }),
      button(t("mark.undo"), undo, { kind: "big", disabled: lines.length === 0 }),
      button(t("cancel"), closeDialog, { kind: "big quiet" }),
    ),
  );
}

const canvas = () => document.querySelector("dialog.mark canvas");

async function show(node) {
  const marking = state.dialog;
  try {
    marking.bitmap = await createImageBitmap(marking.file);
  } catch {
    return state.dialog === marking && closeDialog();
  }
  if (state.dialog !== marking) return;
  node.width = marking.bitmap.width;
  node.height = marking.bitmap.height;
  redraw();
}

function redraw() {
  const { bitmap, lines } = state.dialog;
  const context = canvas().getContext("2d");
  context.drawImage(bitmap, 0, 0);
  Object.assign(context, {
    strokeStyle: COLOR,
    lineWidth: LINE_WIDTH * Math.max(bitmap.width, bitmap.height),
    lineCap: "round",
    lineJoin: "round",
  });
  for (const line of lines) {
    context.beginPath();
    for (const [x, y] of line) context.lineTo(x, y);
    context.stroke();
  }
}

/** The place of a pointer in the photo's pixels. */
function place({ clientX, clientY, currentTarget }) {
  const { left, top, width, height } = currentTarget.getBoundingClientRect();
  return [((clientX - left) / width) * currentTarget.width, ((clientY - top) / height) * currentTarget.height];
}

function begin(event) {
  if (!state.dialog.bitmap) return;
  event.preventDefault();
  event.currentTarget.setPointerCapture(event.pointerId);
  state.dialog.current = [place(event)];
  state.dialog.lines.push(state.dialog.current);
}

function draw(event) {
  if (!state.dialog?.current) return;
  state.dialog.current.push(place(event));
  redraw();
}

function end() {
  if (!state.dialog?.current) return;
  state.dialog.current = null;
  redraw();
  changed();
}

function undo() {
  state.dialog.lines.pop();
  redraw();
  changed();
}

async function save() {
  const marking = state.dialog;
  const { file, save: done } = marking;
  const blob = await new Promise((resolve) => {
    canvas().toBlob(resolve, "image/jpeg", QUALITY);
  });
  if (state.dialog !== marking) return;
  closeDialog();
  if (blob) done(new File([blob], file.name, { type: "image/jpeg" }));
}
