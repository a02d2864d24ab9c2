// Opening a report.

import { api, Refused, Unreachable } from "./api.js";
import { h } from "./dom.js";
import { readAmount, readNumber, readWhole } from "./format.js";
import { t } from "./i18n.js";
import { changed, state } from "./state.js";
import { announce, button, failure, field, focusSoon, icon, note } from "./ui.js";

const PLACE = "inspector.last";
/** What a vehicle's words mostly are; others are taken as well. */
const WORDS = {
  type: ["SEDAN", "HATCHBACK", "STATION_WAGON", "SUV", "COUPE", "CABRIO", "PICKUP", "VAN"],
  fuel_type: ["GASOLINE", "DIESEL", "LPG", "HYBRID", "ELECTRIC"],
  transmission: ["MANUAL", "AUTOMATIC", "SEMI_AUTOMATIC"],
};
const VEHICLE = ["vin", "brand", "model", "year", "color", "type", "fuel_type", "transmission", "factory_power_hp"];

const empty = () => ({ branch_id: "", plate: "", package_name: "", base_price: "", mileage_km: "", vehicle: null, faults: {}, fault: null, isSending: false });
let form = empty();
/** What was sent last, and the id that it is to have: sent again it opens nothing twice. */
let attempt = { said: null, id: null };

/** A random UUID; browsers have one of their own on pages with TLS alone. */
function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** Forgets what was typed. */
export function forgetOpening() { form = empty(); }

/** What is the same from car to car is remembered. */
function remembered() {
  try { return JSON.parse(localStorage.getItem(PLACE)) ?? {}; } catch { return {}; }
}

/** Begins anew unless something was typed. */
export function beginOpening() {
  const { branches } = state.session;
  if (form.plate || form.mileage_km) return;
  const last = remembered();
  const branch = branches.find(({ id }) => id === (state.list.branch || last.branch_id)) ?? branches[0];
  form = { ...empty(), branch_id: branch?.id ?? "", package_name: last.package_name ?? "", base_price: last.base_price ?? "" };
}

function said() {
  const faults = {};
  const need = (name, value) => {
    if (value === undefined || value === null || value === "") faults[name] = t(value === undefined ? `open.wrong.${name}` : "open.needed");
    return value;
  };
  const body = {
    branch_id: need("branch_id", form.branch_id),
    plate: need("plate", form.plate.trim()),
    package_name: need("package_name", form.package_name.trim()),
    base_price: need("base_price", readAmount(form.base_price)),
    mileage_km: need("mileage_km", readWhole(form.mileage_km)),
  };
  if (form.vehicle) {
    const { factory_power_hp: power, ...vehicle } = form.vehicle;
    for (const name of VEHICLE.slice(0, -1)) need(name, name === "year" ? readWhole(vehicle.year) : vehicle[name].trim());
    const hp = readNumber(power);
    if (hp === undefined) faults.factory_power_hp = t("open.wrong.factory_power_hp");
    body.vehicle = { ...vehicle, vin: vehicle.vin.trim().toUpperCase(), year: readWhole(vehicle.year), ...(hp && { factory_power_hp: hp.toFixed(2) }) };
  }
  return { body, faults };
}

async function submit(event) {
  event.preventDefault();
  if (form.isSending) return;
  const { body, faults } = said();
  form.faults = faults;
  form.fault = null;
  if (Object.keys(faults).length > 0) return toFirstFault();
  form.isSending = true;
  changed();
  try {
    const text = JSON.stringify(body);
    if (attempt.said !== text) attempt = { said: text, id: uuid() };
    const report = await api.open({ id: attempt.id, ...body });
    try { localStorage.setItem(PLACE, JSON.stringify({ branch_id: body.branch_id, package_name: form.package_name, base_price: form.base_price })); } catch { /* Asked again next time. */ }
    form = empty();
    state.report = { id: report.id, state: "there", data: report };
    location.hash = `#/reports/${report.id}`;
  } catch (error) {
    form.isSending = false;
    refused(error);
  }
}

function refused(error) {
  if (error instanceof Unreachable || error.code === "signed_out") {
    form.fault = error instanceof Unreachable ? t("open.unreachable") : null;
    return changed();
  }
  const isUnknownVehicle = error instanceof Refused && !form.vehicle && error.isAbout("/vehicle");
  if (isUnknownVehicle) {
    form.vehicle = Object.fromEntries(VEHICLE.map((name) => [name, ""]));
    announce(t("open.unknownVehicle"));
    focusSoon("#vin");
    return changed();
  }
  for (const { field: pointer } of error.details ?? []) {
    const name = pointer?.split("/").pop();
    if (name in form || name in (form.vehicle ?? {})) form.faults[name] = t(`open.wrong.${name}`);
  }
  form.fault = Object.keys(form.faults).length > 0 ? null : failure(error);
  toFirstFault();
}

function toFirstFault() {
  focusSoon('[aria-invalid="true"]');
  changed();
}

function leave() {
  form = empty();
  location.hash = "#/";
}

function input(name, of, attributes = {}) {
  return field(name, t(`open.${name}`), h("input", {
    value: of[name], autocomplete: "off", oninput: (event) => { of[name] = event.target.value; delete form.faults[name]; changed(); }, ...attributes,
  }), { fault: form.faults[name], hint: attributes.hint });
}

export function openPage() {
  const { branches } = state.session;
  return h("main", { id: "main", class: "open", tabindex: "-1" },
    h("a", { class: "back", href: "#/" }, icon("back"), t("back")),
    h("h1", null, t("open.title")),
    h("form", { novalidate: true, onsubmit: submit },
      h("div", { class: "fields" },
        input("plate", form, { class: "as-plate", maxlength: 20, autocapitalize: "characters", spellcheck: "false", placeholder: "34 ABC 123" }),
        branches.length > 1 && field("branch_id", t("open.branch_id"), h("select", { value: form.branch_id, onchange: (event) => { form.branch_id = event.target.value; changed(); } },
          branches.map((branch) => h("option", { value: branch.id, key: branch.id }, `${branch.name} (${branch.code})`))), { fault: form.faults.branch_id }),
        input("mileage_km", form, { inputmode: "numeric", maxlength: 12, hint: t("open.mileageHint") }),
        input("package_name", form, { maxlength: 120 }),
        input("base_price", form, { inputmode: "decimal", maxlength: 16, hint: t("open.priceHint") })),
      form.vehicle && vehicle(form.vehicle),
      form.fault && note("bad", form.fault),
      h("div", { class: "actions" },
        h("button", { type: "submit", class: "primary", "aria-disabled": form.isSending ? "true" : null }, icon("check"), h("span", null, form.isSending ? t("open.sending") : t("open.do"))),
        button(t("cancel"), leave, { kind: "quiet" }))));
}

function vehicle(of) {
  const words = (name) => [
    input(name, of, { maxlength: 30, list: `${name}-words` }),
    h("datalist", { id: `${name}-words`, key: `${name}-words` }, WORDS[name].map((value) => h("option", { value }))),
  ];
  return h("fieldset", { class: "vehicle", key: "vehicle" },
    h("legend", null, t("open.vehicle")),
    note("fair", t("open.unknownVehicle")),
    h("div", { class: "fields" },
      input("vin", of, { maxlength: 17, autocapitalize: "characters", spellcheck: "false", class: "mono", hint: t("open.vinHint") }),
      input("brand", of, { maxlength: 60 }), input("model", of, { maxlength: 60 }),
      input("year", of, { inputmode: "numeric", maxlength: 4 }), input("color", of, { maxlength: 30 }),
      words("type"), words("fuel_type"), words("transmission"),
      input("factory_power_hp", of, { inputmode: "decimal", maxlength: 8, hint: t("open.powerHint") })));
}
