// The tab of a form: a status, a number and a note for each point, saved automatically.

import { takeBack } from "./banner.js";
import { car } from "./car.js";
import { h } from "./dom.js";
import { noteOf, savedAt, shownFields, typeNote, typePoint } from "./drafts.js";
import { number, quantity, time, unit } from "./format.js";
import { labelOf, t, word } from "./i18n.js";
import { readNumber } from "./numbers.js";
import { picture } from "./picture.js";
import { isEditable, offered, statusByThresholds, statusOf, tone } from "./rules.js";
import { changed, workOn } from "./state.js";
import { button, icon, status } from "./ui.js";

export function formTab(report, form) {
  const isLocked = !isEditable(report);
  return h(
    "div",
    { class: form.is_test_line ? "form test-line" : "form", key: form.template_code },
    form.is_test_line && (picture(form, t("picture.title")) ?? h("p", { class: "empty" }, t("form.noValues"))),
    h(
      "div",
      { class: "points-of" },
      panels(report, form, isLocked),
      !isLocked && !form.is_test_line && fillRest(report, form),
      h(
        "ol",
        { class: "points" },
        form.points.map((point) => row(report, form, point, isLocked)),
      ),
      general(report, form, isLocked),
    ),
  );
}

/** The drawing of the car, and the statuses of the panel that was chosen on it. */
function panels(report, form, isLocked) {
  const points = form.points.filter(({ place }) => place);
  if (points.length === 0) return null;
  const work = workOn(report.id);
  const chosen = points.find(({ place }) => place === work.panel);
  const choose = (place) => {
    work.panel = place;
    changed();
  };
  const drawn = points.map((point) => {
    const status = shownStatus(form, point, shownFields(report.id, form, point));
    return { place: point.place, name: point.name, status, label: status && labelOf(status), isSelected: point === chosen };
  });
  return h(
    "div",
    { class: "car-of", key: "car" },
    car(drawn, isLocked ? null : choose),
    !isLocked &&
      h("div", { class: "chosen-panel" }, chosen ? panel(report, form, chosen) : h("p", { class: "hint" }, t("car.choose"))),
  );
}

/** The statuses of the chosen panel, and a link to its number and note. */
function panel(report, form, point) {
  const draft = shownFields(report.id, form, point);
  return [
    h("h3", { key: "name" }, point.name, " ", status(shownStatus(form, point, draft))),
    segments(form, point, draft, (change) => typePoint(report.id, form, point, change), "car"),
    h("a", { key: "more", href: `#/reports/${report.id}/${form.template_code}/${point.code}` }, t("car.more"), icon("next")),
  ];
}

/** A button that gives all remaining points the best status. */
function fillRest(report, form) {
  const left = form.points.filter((point) => !point.unit && !shownFields(report.id, form, point).status);
  const [best] = form.statuses;
  if (left.length < 2 || tone(best) !== "good") return null;
  return h(
    "div",
    { class: "rest", key: "rest" },
    button(
      t("form.rest", { count: left.length, status: labelOf(best) }),
      () => {
        for (const point of left) typePoint(report.id, form, point, { status: best.code });
      },
      { sign: "check" },
    ),
  );
}

/** The status that a point has with its draft; `null` if it has none. */
function shownStatus(form, point, draft) {
  // A rejected value has no status.
  if (draft.state === "rejected" || draft.error) return null;
  const saved = draft.number === "" && !draft.isCleared ? point.status_code : null;
  const code = draft.status || statusByThresholds(readNumber(draft.number), point.bounds) || saved;
  return statusOf(form, code === point.status_code ? point : { status_code: code });
}

function row(report, form, point, isLocked) {
  const draft = shownFields(report.id, form, point);
  const id = `${form.template_code}-${point.code}`;
  const typed = readNumber(draft.number);
  const isMeasured = point.unit || hasNumber(point);
  const isOurs = !isComputed(report, form, point, draft);
  const type = (change) => typePoint(report.id, form, point, change);
  return h(
    "li",
    { key: point.code, id, class: `point ${draft.error ? "invalid" : ""}` },
    h(
      "div",
      { class: "point-name" },
      h(
        "span",
        { id: `${id}-name` },
        point.name,
        point.is_required && !isLocked && h("small", { class: "required" }, t("form.required")),
      ),
      status(shownStatus(form, point, draft)),
    ),
    isLocked
      ? read(point)
      : h(
          "div",
          { class: "inputs" },
          // Where limits determine the status of a number, there is rarely something to choose.
          !point.bounds && segments(form, point, draft, type),
          isMeasured &&
            h(
              "div",
              { class: "number" },
              h("input", {
                value: shownNumber(draft),
                inputmode: "decimal",
                maxlength: 24,
                autocomplete: "off",
                id: `${id}-number`,
                readOnly: !isOurs,
                "aria-labelledby": `${id}-name ${id}-unit`,
                "aria-invalid": draft.error === "number" ? "true" : null,
                "aria-describedby": `${id}-state`,
                oninput: (event) => type({ number: event.target.value }),
              }),
              h("span", { class: "unit", id: `${id}-unit` }, unit(point.unit)),
            ),
          point.bounds &&
            h(
              "select",
              {
                value: draft.status,
                disabled: typeof typed === "number",
                "aria-label": t("form.statusOf", { point: point.name }),
                "aria-describedby": `${id}-state`,
                "aria-invalid": draft.error === "status" ? "true" : null,
                onchange: (event) => type({ status: event.target.value }),
              },
              choices(form, point, draft),
            ),
          h("input", {
            class: "note-of",
            value: draft.note,
            maxlength: 1000,
            autocomplete: "off",
            placeholder: t("form.note"),
            "aria-label": t("form.noteOf", { point: point.name }),
            "aria-describedby": `${id}-state`,
            oninput: (event) => type({ note: event.target.value }),
          }),
        ),
    !isLocked && point.replaced && replaced(report, form, point),
    !isLocked &&
      isOurs &&
      (point.status_code || draft.state) &&
      !draft.isCleared &&
      h(
        "div",
        { class: "clear", key: "clear" },
        button(t("form.clear"), () => type({ status: "", number: "", note: "", isCleared: true }), {
          kind: "quiet",
          sign: "close",
          "aria-label": t("form.clearOf", { point: point.name }),
        }),
      ),
    point.earlier && earlier(form, point),
    h(
      "p",
      { class: "state", id: `${id}-state`, "aria-live": "off" },
      isOurs || savedAt(report.id, `${form.template_code}/${point.code}`)
        ? stateOf(report.id, form, point, draft)
        : t("form.computed"),
    ),
  );
}

/** Large buttons for the common statuses, and a list of the others. `place` tells two groups for the same point apart. */
function segments(form, point, draft, type, place = "list") {
  const id = `${form.template_code}-${point.code}`;
  const [buttons, others] = offered(form);
  const isButton = buttons.some(({ code }) => code === draft.status);
  const choose = (event) => type({ status: event.target.value });
  const listed = withUnknown(form, point, draft, others, buttons);
  return h(
    "fieldset",
    { class: "segments statuses", key: `statuses-${point.code}`, "aria-describedby": `${id}-state` },
    h("legend", { class: "unseen" }, t("form.statusOf", { point: point.name })),
    buttons.map((one) =>
      h(
        "label",
        { key: one.code, class: tone(one) },
        h("input", {
          type: "radio",
          name: `${id}-status-${place}`,
          value: one.code,
          checked: draft.status === one.code,
          onchange: choose,
        }),
        h("span", null, labelOf(one)),
      ),
    ),
    listed.length > 0 &&
      h(
        "select",
        {
          key: "others",
          value: isButton ? "" : draft.status,
          "aria-label": t("form.otherStatusOf", { point: point.name }),
          onchange: choose,
        },
        h("option", { value: "", key: "", disabled: true }, t("form.others")),
        listed.map(option),
      ),
  );
}

const option = (one) => h("option", { value: one.code, key: one.code }, labelOf(one));

/** The statuses of a list, and the point's own if no list has it: an imported report may have one that inspectors cannot choose. */
function withUnknown(form, point, draft, listed, others = []) {
  const isKnown = [...listed, ...others].some(({ code }) => code === draft.status);
  return draft.status && !isKnown ? [...listed, statusOf(form, { ...point, status_code: draft.status })] : listed;
}

/** The replaced and removed answers of a point, the last one first. */
function earlier(form, point) {
  return h(
    "details",
    { class: "earlier-answers", key: "earlier" },
    h("summary", null, t("form.earlier", { count: point.earlier.length })),
    h(
      "ol",
      null,
      point.earlier.map((one) =>
        h(
          "li",
          { key: one.replaced_at + one.written_at },
          status(statusOf(form, one)),
          hasNumber(one) && h("b", null, quantity(one.numeric_value, point.unit)),
          one.note && h("span", null, one.note),
          h(
            "small",
            null,
            t("form.until", { who: writer(one.written_by), from: time(one.written_at), to: time(one.replaced_at) }),
          ),
        ),
      ),
    ),
  );
}

/** A device's value beside the typed one that it replaced, and a button that writes the typed one again. */
function replaced(report, form, point) {
  const values = {
    now: quantity(point.numeric_value, point.unit),
    before: quantity(point.replaced.numeric_value, point.unit),
    who: point.replaced.written_by,
    time: time(point.written_at),
  };
  return h(
    "div",
    { class: "note fair replaced", key: "replaced" },
    icon("device"),
    h(
      "div",
      null,
      h("p", null, t("replaced.shown", values)),
      button(t("replaced.back", values), () => takeBack(report, form, point), { kind: "quiet" }),
    ),
  );
}

/** Whether the service computes the point's number (INS-12): a power ratio for which both powers are known. */
function isComputed(report, form, point, draft) {
  if (!form.is_test_line || point.code !== "DYNO_RATIO" || draft.state || !report.vehicle.factory_power_hp) return false;
  return hasNumber(point) && hasNumber(form.points.find(({ code }) => code === "DYNO_MEASURED_HP"));
}

const hasNumber = (point) => point?.numeric_value !== null && point?.numeric_value !== undefined;

const decimal = () => number(0.5).replace(/\d/g, "");

/** The number as it was typed, or the saved one in the page's notation. */
const shownNumber = (draft) => (draft.isNumberTyped ? draft.number : draft.number.replace(".", decimal()));

/** The statuses of a point with limits, for an answer without a number. */
function choices(form, point, draft) {
  return [
    h("option", { value: "", key: "follows" }, t("form.follows")),
    withUnknown(form, point, draft, form.statuses).map(option),
  ];
}

function read(point) {
  return h(
    "div",
    { class: "read" },
    hasNumber(point) && h("b", null, quantity(point.numeric_value, point.unit)),
    point.note && h("span", null, point.note),
  );
}

/** The state of the point's draft; without a draft, who wrote the saved answer and when. */
function stateOf(id, form, point, draft) {
  if (draft.error === "number") return errorText(t("form.badNumber"));
  if (draft.error === "status") return errorText(t("form.needsStatus"));
  if (draft.state === "rejected") return rejected(draft);
  if (draft.state === "sending") return t("saving.now");
  if (draft.state === "unsent") return [icon("fair"), t("saving.unsent")];
  if (draft.state === "typed") return t("saving.typed");
  const at = savedAt(id, `${form.template_code}/${point.code}`);
  if (at) return [icon("check"), t("saving.saved", { time: time(at) })];
  if (point.written_by) return t("form.by", { who: writer(point.written_by), time: time(point.written_at) });
  return null;
}

/** The author of an answer. The service names devices in English. */
const writer = (name) => name.replace(/^device\b/, t("form.device"));

/** Why the service rejected a draft, with its own words, which are English. */
function rejected({ error, message }) {
  return [
    errorText(error === "invalid_request" ? t("form.rejected") : word("failed", error)),
    message && h("small", { class: "details", lang: "en" }, message),
  ];
}

const errorText = (text) => h("span", { class: "error" }, icon("bad"), text);

function general(report, form, isLocked) {
  const draft = noteOf(report.id, form);
  const id = `${form.template_code}-note`;
  const at = savedAt(report.id, `${form.template_code}/`);
  if (isLocked) return form.general_note && h("p", { class: "general" }, form.general_note);
  return h(
    "div",
    { class: "field general" },
    h("label", { for: id }, t("form.general")),
    h("textarea", {
      id,
      rows: 2,
      maxlength: 4000,
      value: draft.value,
      "aria-describedby": `${id}-state`,
      oninput: (event) => typeNote(report.id, form, event.target.value),
    }),
    h(
      "p",
      { class: "state", id: `${id}-state` },
      draft.state ? saving(draft) : at && [icon("check"), t("saving.saved", { time: time(at) })],
    ),
  );
}

/** The state of a text's draft. */
export function saving(draft) {
  if (draft.state === "rejected") return rejected(draft);
  if (draft.state === "unsent") return [icon("fair"), t("saving.unsent")];
  return draft.state === "sending" ? t("saving.now") : t("saving.typed");
}
