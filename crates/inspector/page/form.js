// A form's points: a status, a number, a note each, saved by themselves.

import { h } from "./dom.js";
import { noteOf, savedAt, shownOf, typeNote, typePoint } from "./drafts.js";
import { number, quantity, readNumber, time, unit } from "./format.js";
import { t, word } from "./i18n.js";
import { picture } from "./picture.js";
import { isWritten, judged, offered } from "./rules.js";
import { button, icon, status } from "./ui.js";

export function formTab(report, form) {
  const isLocked = !isWritten(report);
  return h("div", { class: form.is_test_line ? "form test-line" : "form", key: form.template_code },
    form.is_test_line && (picture(form, t("picture.title")) ?? h("p", { class: "empty" }, t("form.noValues"))),
    h("div", { class: "points-of" },
      !isLocked && !form.is_test_line && rest(report, form),
      h("ol", { class: "points" }, form.points.map((point) => row(report, form, point, isLocked))),
      general(report, form, isLocked)));
}

/** What most points of most cars are, with one touch. */
function rest(report, form) {
  const left = form.points.filter((point) => !point.unit && !shownOf(report.id, form, point).status);
  const [[best]] = offered(form);
  if (left.length < 2) return null;
  return h("div", { class: "rest", key: "rest" }, button(t("form.rest", { count: left.length, status: word("status", best) }), () => {
    for (const point of left) typePoint(report.id, form, point, { status: best });
  }, { sign: "check" }));
}

function row(report, form, point, isLocked) {
  const draft = shownOf(report.id, form, point);
  const id = `${form.template_code}-${point.code}`;
  const typed = readNumber(draft.number);
  const follows = judged(typed, point.bounds);
  const shown = draft.status || follows || (draft.number === "" ? point.status_code : null);
  const isMeasured = point.unit || hasNumber(point);
  const isOurs = !isComputed(report, form, point, draft);
  const type = (change) => typePoint(report.id, form, point, change);
  return h("li", { key: point.code, class: `point ${draft.fault ? "faulty" : ""}` },
    h("div", { class: "point-name" }, h("span", { id: `${id}-name` }, point.name), status(shown)),
    isLocked ? read(point) : h("div", { class: "inputs" },
      isMeasured && h("div", { class: "number" },
        h("input", {
          value: draft.number.replace(".", decimal()), inputmode: "decimal", maxlength: 24, autocomplete: "off", id: `${id}-number`, readOnly: !isOurs,
          "aria-labelledby": `${id}-name ${id}-unit`, "aria-invalid": ["number", "emptied"].includes(draft.fault) ? "true" : null, "aria-describedby": `${id}-state`,
          oninput: (event) => type({ number: event.target.value.replace(",", ".") }),
        }),
        h("span", { class: "unit", id: `${id}-unit` }, unit(point.unit))),
      h("select", {
        value: draft.status, disabled: Boolean(point.bounds && typed), "aria-label": t("form.statusOf", { point: point.name }), "aria-describedby": `${id}-state`, "aria-invalid": draft.fault === "status" ? "true" : null,
        onchange: (event) => type({ status: event.target.value }),
      }, choices(form, point, draft)),
      h("input", {
        class: "note-of", value: draft.note, maxlength: 1000, autocomplete: "off", placeholder: t("form.note"), "aria-label": t("form.noteOf", { point: point.name }), "aria-describedby": `${id}-state`,
        oninput: (event) => type({ note: event.target.value }),
      })),
    h("p", { class: "state", id: `${id}-state`, "aria-live": "off" }, isOurs || savedAt(report.id, `${form.template_code}/${point.code}`) ? stateOf(report.id, form, point, draft) : t("form.computed")));
}

/** Whether a number is the service's own (INS-12): of a measured power, where the registered one is known. */
function isComputed(report, form, point, draft) {
  if (!form.is_test_line || point.code !== "DYNO_RATIO" || draft.state || !report.vehicle.factory_power_hp) return false;
  return hasNumber(point) && hasNumber(form.points.find(({ code }) => code === "DYNO_MEASURED_HP"));
}

const hasNumber = (point) => point?.numeric_value !== null && point?.numeric_value !== undefined;

const decimal = () => number(0.5).replace(/\d/g, "");

function choices(form, point, draft) {
  const [likely, ...others] = offered(form);
  const all = (codes) => codes.map((code) => h("option", { value: code, key: code }, word("status", code)));
  const known = [likely, ...others].flat();
  return [
    h("option", { value: "", key: "follows", disabled: !point.bounds && Boolean(point.status_code) },
      t(point.bounds ? "form.follows" : "form.choose")),
    all(likely),
    others.map((codes) => h("optgroup", { key: codes[0], label: t("form.others") }, all(codes.filter((code) => !likely.includes(code))))),
    draft.status && !known.includes(draft.status) && h("option", { value: draft.status, key: draft.status }, word("status", draft.status)),
  ];
}

function read(point) {
  return h("div", { class: "read" }, hasNumber(point) && h("b", null, quantity(point.numeric_value, point.unit)), point.note && h("span", null, point.note));
}

/** What became of what was typed, and who wrote what is there. */
function stateOf(id, form, point, draft) {
  if (draft.fault === "number") return fault(t("form.badNumber"));
  if (draft.fault === "emptied") return fault(t("form.emptied"));
  if (draft.fault === "status") return fault(t("form.needsStatus"));
  if (draft.state === "refused") return fault(draft.fault === "invalid_request" ? t("form.refused") : word("failed", draft.fault));
  if (draft.state === "sending") return t("saving.now");
  if (draft.state === "unsent") return [icon("fair"), t("saving.unsent")];
  if (draft.state === "typed") return t("saving.typed");
  const at = savedAt(id, `${form.template_code}/${point.code}`);
  if (at) return [icon("check"), t("saving.saved", { time: time(at) })];
  if (point.written_by) return t("form.by", { who: writer(point.written_by), time: time(point.written_at) });
  return null;
}

/** Who wrote an answer: devices are named in English by the service. */
const writer = (name) => name.replace(/^device\b/, t("form.device"));

const fault = (text) => h("span", { class: "fault" }, icon("bad"), text);

function general(report, form, isLocked) {
  const draft = noteOf(report.id, form);
  const id = `${form.template_code}-note`;
  const at = savedAt(report.id, `${form.template_code}/`);
  if (isLocked) return form.general_note && h("p", { class: "general" }, form.general_note);
  return h("div", { class: "field general" },
    h("label", { for: id }, t("form.general")),
    h("textarea", { id, rows: 2, maxlength: 4000, value: draft.value, "aria-describedby": `${id}-state`, oninput: (event) => typeNote(report.id, form, event.target.value) }),
    h("p", { class: "state", id: `${id}-state` }, draft.state ? saving(draft) : at && [icon("check"), t("saving.saved", { time: time(at) })]));
}

/** The same of a text. */
export function saving(draft) {
  if (draft.state === "refused") return fault(draft.fault === "invalid_request" ? t("form.refused") : word("failed", draft.fault));
  if (draft.state === "unsent") return [icon("fair"), t("saving.unsent")];
  return draft.state === "sending" ? t("saving.now") : t("saving.typed");
}
