// A vehicle's fields: in the page that opens a report, and in the correction of a report's vehicle.

import { api } from "./api.js";
import { h } from "./dom.js";
import { enqueue, storeRead, storeReport } from "./drafts.js";
import { editable } from "./format.js";
import { t } from "./i18n.js";
import { readNumber, readWhole } from "./numbers.js";
import { isEditable } from "./rules.js";
import { changed, notify, state, workOn } from "./state.js";
import { announce, button, failure, field, focusSoon, icon } from "./ui.js";

/** The known values of the contract's vocabularies (INS-18). */
const WORDS = {
  type: ["SEDAN", "HATCHBACK", "STATION_WAGON", "SUV", "COUPE", "CABRIO", "PICKUP", "VAN", "OTHER"],
  fuel_type: ["GASOLINE", "DIESEL", "LPG", "HYBRID", "ELECTRIC", "OTHER"],
  transmission: ["MANUAL", "AUTOMATIC", "SEMI_AUTOMATIC", "OTHER"],
};
const REQUIRED = ["vin", "brand", "model", "year", "color", "type", "fuel_type", "transmission"];

export const emptyVehicle = () => Object.fromEntries([...REQUIRED, "factory_power_hp"].map((name) => [name, ""]));

/** Records an error for a value that is missing (`null` or empty) or invalid (`undefined`), and returns the value. */
export function needed(errors, name, value) {
  if (value === undefined) errors[name] = t(`open.wrong.${name}`);
  else if (value === null || value === "") errors[name] = t("open.needed");
  return value;
}

/** Returns the vehicle to send, and records the errors of its fields. */
export function readVehicle(typed, errors) {
  const { factory_power_hp: power, ...vehicle } = typed;
  const year = readWhole(vehicle.year);
  for (const name of REQUIRED) needed(errors, name, name === "year" ? year : vehicle[name].trim());
  const hp = readNumber(power);
  if (hp === undefined) errors.factory_power_hp = t("open.wrong.factory_power_hp");
  const isPowerKnown = typeof hp === "number";
  return { ...vehicle, vin: vehicle.vin.trim().toUpperCase(), year, ...(isPowerKnown && { factory_power_hp: hp.toFixed(2) }) };
}

/** Records the errors of the fields that the service has refused: how to fill them in, and the service's words, which are English. */
export function addRefusals(error, errors, fields) {
  for (const { field: pointer, message } of error.details ?? []) {
    const name = pointer?.split("/").pop();
    if (name in fields) errors[name] = [t(`open.wrong.${name}`), h("small", { class: "details", lang: "en" }, message)];
  }
}

/** A text field of a form, which keeps its values in `of` and its errors in `errors`. */
export function textField(name, of, errors, attributes = {}) {
  const oninput = (event) => {
    of[name] = event.target.value;
    delete errors[name];
    changed();
  };
  return field(name, t(`open.${name}`), h("input", { value: of[name], autocomplete: "off", oninput, ...attributes }), {
    error: errors[name],
    hint: attributes.hint,
  });
}

function choice(name, of, errors) {
  const onchange = (event) => {
    of[name] = event.target.value;
    delete errors[name];
    changed();
  };
  const options = [
    h("option", { value: "", key: "" }, t("open.choose")),
    WORDS[name].map((value) => h("option", { value, key: value }, t(`vehicle.${name}.${value}`))),
  ];
  return field(name, t(`open.${name}`), h("select", { value: of[name], onchange }, options), { error: errors[name] });
}

const VIN = /[A-HJ-NPR-Z0-9]{17}/;

/** A button that reads the VIN from a photo of its barcode, in browsers that can. */
function vinScanner(of, errors) {
  if (!("BarcodeDetector" in window)) return null;
  const read = async (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    const found = file
      ? await createImageBitmap(file)
          .then((bitmap) => new BarcodeDetector().detect(bitmap))
          .catch(() => [])
      : [];
    const vin = found.map(({ rawValue }) => VIN.exec(rawValue.toUpperCase())?.[0]).find(Boolean);
    if (vin) {
      of.vin = vin;
      delete errors.vin;
      announce(t("vin.read", { vin }));
    } else {
      errors.vin = t("vin.none");
    }
    focusSoon("#vin");
    changed();
  };
  return h(
    "div",
    { class: "field scanner", key: "scan" },
    button(t("vin.scan"), () => document.getElementById("scan").click(), { sign: "scan" }),
    h("input", {
      id: "scan",
      type: "file",
      class: "unseen",
      accept: "image/*",
      capture: "environment",
      tabindex: "-1",
      "aria-label": t("vin.scan"),
      onchange: read,
    }),
  );
}

export function vehicleFields(of, errors) {
  return h(
    "div",
    { class: "fields" },
    vinScanner(of, errors),
    textField("vin", of, errors, {
      maxlength: 17,
      autocapitalize: "characters",
      spellcheck: "false",
      class: "mono",
      hint: t("open.vinHint"),
    }),
    textField("brand", of, errors, { maxlength: 60 }),
    textField("model", of, errors, { maxlength: 60 }),
    textField("year", of, errors, { inputmode: "numeric", maxlength: 4 }),
    textField("color", of, errors, { maxlength: 30 }),
    Object.keys(WORDS).map((name) => choice(name, of, errors)),
    textField("factory_power_hp", of, errors, { inputmode: "decimal", maxlength: 8, hint: t("open.powerHint") }),
  );
}

/** A report's vehicle and plate as the fields show them. */
function asTyped({ plate, vehicle }) {
  const typed = Object.fromEntries(Object.keys(emptyVehicle()).map((name) => [name, String(vehicle[name] ?? "")]));
  // The power is shown in the page's notation, in which it is read again.
  if (vehicle.factory_power_hp) typed.factory_power_hp = editable(Number(vehicle.factory_power_hp));
  return { ...typed, plate };
}

/**
 * Begins a correction: what is `typed`, and the vehicle that the inspector saw (`base`). `openPlate` is a plate with another open
 * report, which is sent again only on request.
 */
function begin(report) {
  const base = asTyped(report);
  workOn(report.id).correction = { typed: { ...base }, base, theirs: [], errors: {}, openPlate: null, isSending: false };
  focusSoon("#plate");
  changed();
}

function end(id) {
  workOn(id).correction = null;
  changed();
}

/**
 * Compares the vehicle with the one that the inspector saw. Takes over what a colleague has changed since, except where the inspector
 * has typed something, and returns whether there is any such change.
 */
function takeTheirs(correction, report) {
  const { typed, base } = correction;
  const now = asTyped(report);
  const theirs = Object.keys(now).filter((name) => now[name] !== base[name]);
  for (const name of theirs) if (typed[name] === base[name]) typed[name] = now[name];
  Object.assign(correction, { base: now, theirs: theirs.map((name) => ({ name, value: now[name] })) });
  return theirs.length > 0;
}

/** Sends a correction. Returns `null` if a colleague has changed the vehicle, which the inspector has to see first. */
async function correct(id, correction, body) {
  for (;;) {
    const report = state.report?.data?.id === id ? state.report.data : await api.report(id);
    if (takeTheirs(correction, report)) return null;
    try {
      return await api.correctVehicle(id, { version: report.version, ...body });
    } catch (error) {
      if (error.code !== "changed_meanwhile") throw error;
      storeRead(await api.report(id));
    }
  }
}

async function send(event, id) {
  event.preventDefault();
  const { correction } = workOn(id);
  if (correction.isSending) return;
  correction.errors = {};
  const { plate: typedPlate, ...fields } = correction.typed;
  const plate = needed(correction.errors, "plate", typedPlate.trim());
  const vehicle = readVehicle(fields, correction.errors);
  if (Object.keys(correction.errors).length > 0) {
    focusSoon('[aria-invalid="true"]');
    return changed();
  }
  correction.isSending = true;
  changed();
  try {
    const evenIfOpen = plate === correction.openPlate && { even_if_open: true };
    const report = await enqueue(id, () => correct(id, correction, { plate, vehicle, ...evenIfOpen }));
    if (!report) {
      focusSoon("#their-vehicle");
      return;
    }
    storeReport(report);
    if (workOn(id).correction === correction) end(id);
    announce(t("vehicle.corrected"));
    notify("good", t("vehicle.corrected"));
  } catch (error) {
    if (error.code === "already_open") {
      correction.openPlate = plate;
      announce(t("vehicle.already"));
      notify("fair", t("vehicle.already"));
      return;
    }
    addRefusals(error, correction.errors, correction.typed);
    if (Object.keys(correction.errors).length === 0) notify("bad", failure(error));
    else focusSoon('[aria-invalid="true"]');
  } finally {
    correction.isSending = false;
    changed();
  }
}

/** What a colleague has changed while the correction was typed. */
function theirChanges({ theirs }) {
  const shown = ({ name, value }) => (name in WORDS ? t(`vehicle.${name}.${value}`) : value) || "—";
  return h(
    "div",
    { class: "note fair", id: "their-vehicle", key: "theirs", role: "alert", tabindex: "-1" },
    icon("fair"),
    h(
      "div",
      null,
      h("p", null, t("vehicle.meanwhile")),
      h(
        "ul",
        null,
        theirs.map((change) => h("li", { key: change.name }, t(`open.${change.name}`), ": ", h("b", null, shown(change)))),
      ),
    ),
  );
}

/** The section with a report's vehicle. */
export function vehicleSection(report) {
  const { vehicle } = report;
  const { correction } = workOn(report.id);
  if (correction && isEditable(report)) {
    return h(
      "section",
      { class: "vehicle", key: "vehicle" },
      h("h3", null, t("open.vehicle")),
      h(
        "form",
        { novalidate: true, onsubmit: (event) => send(event, report.id) },
        correction.theirs.length > 0 && theirChanges(correction),
        textField("plate", correction.typed, correction.errors, {
          class: "as-plate",
          maxlength: 20,
          autocapitalize: "characters",
          spellcheck: "false",
        }),
        vehicleFields(correction.typed, correction.errors),
        h(
          "div",
          { class: "actions" },
          h(
            "button",
            { type: "submit", class: "primary", "aria-disabled": correction.isSending ? "true" : null },
            h("span", null, t("vehicle.save")),
          ),
          button(t("cancel"), () => end(report.id), { kind: "quiet" }),
        ),
      ),
    );
  }
  const words = Object.keys(WORDS).map((name) => t(`vehicle.${name}.${vehicle[name]}`));
  return h(
    "section",
    { class: "vehicle", key: "vehicle" },
    h("h3", null, t("open.vehicle")),
    h("p", null, [vehicle.brand, vehicle.model, vehicle.year, vehicle.color, ...words].join(" · ")),
    h("p", { class: "mono" }, vehicle.vin),
    isEditable(report) && button(t("vehicle.correct"), () => begin(report), { kind: "quiet", id: "correct-vehicle" }),
  );
}
