// The page that opens a report.

import { api, Rejected, Unreachable, uuid } from "./api.js";
import { h } from "./dom.js";
import { t, word } from "./i18n.js";
import { listAddress } from "./list.js";
import { readAmount, readWhole } from "./numbers.js";
import { changed, notify, state } from "./state.js";
import { announce, button, failure, field, focusSoon, icon, note, when } from "./ui.js";
import { addRefusals, emptyVehicle, needed, readVehicle, textField, vehicleFields } from "./vehicle.js";

const STORAGE_KEY = "inspector.last";
const empty = () => ({
  branch_id: "",
  plate: "",
  package_name: "",
  base_price: "",
  mileage_km: "",
  vehicle: null,
  isOtherVehicle: false,
  known: null,
  errors: {},
  error: null,
  alreadyOpen: null,
  isSending: false,
});
let form = empty();
/** The last request and its report ID. The same ID in a retry prevents a second report. */
let attempt = { request: null, id: null };

/** Clears the form. */
export function forgetOpening() {
  form = empty();
  attempt = { request: null, id: null };
}

/** The branch, package and price of the last report, to start with. */
function remembered() {
  try {
    return JSON.parse(localStorage.getItem(STORAGE_KEY)) ?? {};
  } catch {
    return {};
  }
}

/** Resets the form unless something was typed. */
export function beginOpening() {
  const { branches } = state.session;
  if (form.plate || form.mileage_km) return;
  const last = remembered();
  const branch = branches.find(({ id }) => id === (state.list.branch || last.branch_id)) ?? branches[0];
  form = { ...empty(), branch_id: branch?.id ?? "", package_name: last.package_name ?? "", base_price: last.base_price ?? "" };
}

function readForm() {
  const errors = {};
  const need = (name, value) => needed(errors, name, value);
  const body = {
    branch_id: need("branch_id", form.branch_id),
    plate: need("plate", form.plate.trim()),
    package_name: need("package_name", form.package_name.trim()),
    base_price: need("base_price", readAmount(form.base_price)),
    mileage_km: need("mileage_km", readWhole(form.mileage_km)),
  };
  if (form.vehicle) body.vehicle = readVehicle(form.vehicle, errors);
  return { body, errors };
}

async function submit(event, isEvenIfOpen = false) {
  event.preventDefault();
  if (form.isSending) return;
  const { body, errors } = readForm();
  form.errors = errors;
  Object.assign(form, { error: null, alreadyOpen: null });
  if (Object.keys(errors).length > 0) return focusFirstError();
  form.isSending = true;
  changed();
  try {
    if (isEvenIfOpen) body.even_if_open = true;
    const text = JSON.stringify(body);
    if (attempt.request !== text) attempt = { request: text, id: uuid() };
    const report = await api.open({ id: attempt.id, ...body });
    try {
      localStorage.setItem(
        STORAGE_KEY,
        JSON.stringify({ branch_id: body.branch_id, package_name: form.package_name, base_price: form.base_price }),
      );
    } catch {
      /* Nothing is remembered. */
    }
    const wasNamed = form.known?.vin === report.vehicle.vin;
    form = empty();
    // The inspector may have left the form.
    if (state.route.view !== "new") return;
    state.report = { id: report.id, state: "loaded", data: report };
    // Following the address removes the notices, so this one comes afterwards.
    if (!body.vehicle && !wasNamed) window.addEventListener("hashchange", () => confirmVehicle(report), { once: true });
    location.hash = `#/reports/${report.id}`;
  } catch (error) {
    form.isSending = false;
    rejected(error);
  }
}

function rejected(error) {
  if (error instanceof Unreachable || error.code === "signed_out") {
    form.error = error instanceof Unreachable ? t("open.unreachable") : null;
    return changed();
  }
  if (error.code === "already_open") return showOpenReports();
  const isUnknownVehicle = error instanceof Rejected && !form.vehicle && error.isAbout("/vehicle");
  if (isUnknownVehicle) {
    form.vehicle = emptyVehicle();
    announce(t("open.unknownVehicle"));
    focusSoon("#vin");
    return changed();
  }
  addRefusals(error, form.errors, { ...form, ...form.vehicle });
  form.error = Object.keys(form.errors).length > 0 ? null : failure(error);
  focusFirstError();
}

/** Shows the reports that are already open for the plate, which the inspector probably wants. */
async function showOpenReports() {
  const isOpen = ({ status }) => ["DRAFT", "IN_REVIEW", "REVISION_REQUESTED"].includes(status);
  const { branch_id, plate } = form;
  const found = await api.list({ branch_id, search: plate.trim(), limit: 25 }).catch(() => ({ data: [] }));
  form.alreadyOpen = found.data.filter(isOpen);
  announce(t("open.already"));
  focusSoon("#already a, #already button");
  changed();
}

function alreadyOpen() {
  return h(
    "div",
    { class: "note fair", id: "already", key: "already" },
    icon("fair"),
    h(
      "div",
      null,
      h("p", null, t("open.already")),
      h(
        "ul",
        null,
        form.alreadyOpen.map(({ id, report_number: number, status, created_at: at }) =>
          h("li", { key: id }, h("a", { href: `#/reports/${id}` }, number), " ", word("stage", status), " · ", when(at)),
        ),
      ),
      button(t("open.evenIfOpen"), (event) => submit(event, true), { kind: "quiet" }),
    ),
  );
}

/** Enters another vehicle than the one that is known for the plate. */
function otherVehicle() {
  Object.assign(form, { vehicle: emptyVehicle(), isOtherVehicle: true });
  focusSoon("#vin");
  changed();
}

function sameVehicle() {
  Object.assign(form, { vehicle: null, isOtherVehicle: false });
  focusSoon("#other-vehicle");
  changed();
}

/** Finds the vehicle of the plate's last report at the inspector's branches, which the inspector compares before opening a new one. */
async function lookUp() {
  const typing = form;
  const plate = compact(typing.plate);
  typing.known = null;
  changed();
  if (plate.length < 2) return;
  try {
    const { data } = await api.list({ search: plate, limit: 25 });
    const last = data.find((report) => compact(report.plate) === plate);
    const vehicle = last && (await api.report(last.id)).vehicle;
    // The vehicle may have another plate by now, and another plate may have been typed.
    if (!vehicle || compact(vehicle.plate) !== plate || compact(typing.plate) !== plate) return;
    typing.known = vehicle;
    announce(knownVehicle(vehicle));
    changed();
  } catch {
    // The vehicle is then named when the report is opened.
  }
}

/** A plate without its spaces. */
const compact = (plate) => plate.replace(/\s/g, "").toUpperCase();

const knownVehicle = ({ brand, model, year, vin }) => t("open.confirm", { vehicle: `${brand} ${model} ${year}`, vin });

/** Names the known vehicle of the plate, because the plate may be on another one by now. */
function confirmVehicle({ id, vehicle }) {
  const text = knownVehicle(vehicle);
  notify("fair", text, {
    text: t("vehicle.correct"),
    run: () => {
      location.hash = `#/reports/${id}/details`;
    },
  });
  announce(text);
}

function focusFirstError() {
  focusSoon('[aria-invalid="true"]');
  changed();
}

function leave() {
  form = empty();
  location.hash = listAddress();
}

const input = (name, of, attributes) => textField(name, of, form.errors, attributes);

export function openPage() {
  const { branches } = state.session;
  return h(
    "main",
    { id: "main", class: "open", tabindex: "-1" },
    h("a", { class: "back", href: listAddress() }, icon("back"), t("back")),
    h("h1", null, t("open.title")),
    h(
      "form",
      { novalidate: true, onsubmit: submit },
      h(
        "div",
        { class: "fields" },
        input("plate", form, {
          class: "as-plate",
          maxlength: 20,
          autocapitalize: "characters",
          spellcheck: "false",
          placeholder: "34 ABC 123",
          onchange: lookUp,
        }),
        branches.length > 1 &&
          field(
            "branch_id",
            t("open.branch_id"),
            h(
              "select",
              {
                value: form.branch_id,
                onchange: (event) => {
                  form.branch_id = event.target.value;
                  changed();
                },
              },
              branches.map((branch) => h("option", { value: branch.id, key: branch.id }, `${branch.name} (${branch.code})`)),
            ),
            { error: form.errors.branch_id },
          ),
        input("mileage_km", form, { inputmode: "numeric", maxlength: 12, hint: t("open.mileageHint") }),
        input("package_name", form, { maxlength: 120 }),
        input("base_price", form, { inputmode: "decimal", maxlength: 16, hint: t("open.priceHint") }),
      ),
      form.vehicle
        ? h(
            "fieldset",
            { class: "vehicle", key: "vehicle" },
            h("legend", null, t("open.vehicle")),
            form.isOtherVehicle
              ? button(t("open.sameVehicle"), sameVehicle, { kind: "quiet" })
              : note("fair", t("open.unknownVehicle")),
            vehicleFields(form.vehicle, form.errors),
          )
        : h(
            "div",
            { key: "other", class: "known" },
            // Before the note, which may appear while the button is pressed and would move it away from the pointer.
            button(t("open.otherVehicle"), otherVehicle, { kind: "quiet", id: "other-vehicle" }),
            form.known && note("fair", knownVehicle(form.known)),
          ),
      form.alreadyOpen && alreadyOpen(),
      form.error && note("bad", form.error),
      h(
        "div",
        { class: "actions" },
        h(
          "button",
          { type: "submit", class: "primary", "aria-disabled": form.isSending ? "true" : null },
          icon("check"),
          h("span", null, form.isSending ? t("open.sending") : t("open.do")),
        ),
        button(t("cancel"), leave, { kind: "quiet" }),
      ),
    ),
  );
}
