// A vehicle's fields: in the page that opens a report, and in the correction of a report's vehicle.

import { api } from "./api.js";
import { h } from "./dom.js";
import { enqueue, storeReport } from "./drafts.js";
import { editable } from "./format.js";
import { t } from "./i18n.js";
import { readNumber, readWhole } from "./numbers.js";
import { isEditable } from "./rules.js";
import { changed, notify, state } from "./state.js";
import { announce, button, failure, field, focusSoon } from "./ui.js";

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
  return { ...vehicle, vin: vehicle.vin.trim().toUpperCase(), year, ...(hp && { factory_power_hp: hp.toFixed(2) }) };
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

/**
 * The correction that is being typed: `{ report, typed, errors, openPlate, isSending }`, or `null`. `openPlate` is a plate with another
 * open report, which is sent again only on request.
 */
let correction = null;

function begin({ id, plate, vehicle }) {
  const typed = Object.fromEntries(Object.keys(emptyVehicle()).map((name) => [name, String(vehicle[name] ?? "")]));
  // The power is shown in the page's notation, in which it is read again.
  if (vehicle.factory_power_hp) typed.factory_power_hp = editable(Number(vehicle.factory_power_hp));
  correction = { report: id, typed: { ...typed, plate }, errors: {}, openPlate: null, isSending: false };
  focusSoon("#plate");
  changed();
}

function end() {
  correction = null;
  changed();
}

async function send(event) {
  event.preventDefault();
  const sent = correction;
  if (sent.isSending) return;
  sent.errors = {};
  const { plate: typedPlate, ...fields } = sent.typed;
  const plate = needed(sent.errors, "plate", typedPlate.trim());
  const vehicle = readVehicle(fields, sent.errors);
  if (Object.keys(sent.errors).length > 0) {
    focusSoon('[aria-invalid="true"]');
    return changed();
  }
  sent.isSending = true;
  changed();
  try {
    const evenIfOpen = plate === sent.openPlate && { even_if_open: true };
    storeReport(
      await enqueue(sent.report, () =>
        api.correctVehicle(sent.report, { version: state.report.data.version, plate, vehicle, ...evenIfOpen }),
      ),
    );
    if (correction === sent) end();
    announce(t("vehicle.corrected"));
    notify("good", t("vehicle.corrected"));
  } catch (error) {
    sent.isSending = false;
    if (error.code === "already_open") {
      sent.openPlate = plate;
      announce(t("vehicle.already"));
      notify("fair", t("vehicle.already"));
      return changed();
    }
    for (const { field: pointer } of error.details ?? []) {
      const name = pointer?.split("/").pop();
      if (name in sent.typed) sent.errors[name] = t(`open.wrong.${name}`);
    }
    if (Object.keys(sent.errors).length === 0) notify("bad", failure(error));
    changed();
  }
}

/** The section with a report's vehicle. */
export function vehicleSection(report) {
  const { vehicle } = report;
  if (correction?.report === report.id && isEditable(report)) {
    return h(
      "section",
      { class: "vehicle", key: "vehicle" },
      h("h3", null, t("open.vehicle")),
      h(
        "form",
        { novalidate: true, onsubmit: send },
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
          button(t("cancel"), end, { kind: "quiet" }),
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
