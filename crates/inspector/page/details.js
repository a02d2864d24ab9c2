// The tab with a report's texts, mileage and price.

import { h } from "./dom.js";
import { decide, fieldOf, savedAt, setFieldReader, typeField } from "./drafts.js";
import { amount, money, time, whole } from "./format.js";
import { t, word } from "./i18n.js";
import { saving } from "./form.js";
import { readAmount, readNumber, readWhole } from "./numbers.js";
import { isEditable } from "./rules.js";
import { button, icon } from "./ui.js";
import { vehicleSection } from "./vehicle.js";

const percent = (text) => {
  const value = readNumber(text.replace("%", ""));
  return value === null || value === undefined || value < 0 || value > 100 ? undefined : value.toFixed(2);
};
const text = (value) => value;
const PAYMENTS = ["CASH", "CARD", "TRANSFER"];

/** For each field: how to read it from the report, how to show it, and how to parse the input into the value to send. */
const FIELDS = {
  summary: { read: (report) => report.summary, shown: text, parse: text },
  recommendation: { read: (report) => report.recommendation, shown: text, parse: text },
  mileage_km: { read: (report) => report.mileage_km, shown: whole, parse: readWhole },
  base_price: { read: (report) => report.pricing.base_price, shown: amount, parse: readAmount },
  discount_percent: { read: (report) => report.pricing.discount_percent, shown: amount, parse: percent },
  discount_name: { read: (report) => report.pricing.discount_name, shown: text, parse: text },
  payment_type: { read: (report) => report.pricing.payment_type, shown: text, parse: text },
};

setFieldReader((report, name) => FIELDS[name].read(report));

export function detailsTab(report) {
  const isLocked = !isEditable(report);
  const { pricing } = report;
  return h(
    "div",
    { class: "details", key: "details" },
    vehicleSection(report),
    h(
      "section",
      null,
      h("h3", null, t("details.texts")),
      one(report, "summary", isLocked, (attributes) => h("textarea", { rows: 5, maxlength: 4000, ...attributes })),
      one(report, "recommendation", isLocked, (attributes) => h("textarea", { rows: 3, maxlength: 4000, ...attributes })),
      one(report, "mileage_km", isLocked, (attributes) => h("input", { inputmode: "numeric", maxlength: 12, ...attributes })),
    ),
    h(
      "section",
      null,
      h("h3", null, t("details.pricing")),
      h("p", { class: "package" }, pricing.package_name),
      h(
        "div",
        { class: "fields" },
        one(report, "base_price", isLocked, (attributes) => h("input", { inputmode: "decimal", maxlength: 16, ...attributes })),
        one(report, "discount_percent", isLocked, (attributes) =>
          h("input", { inputmode: "decimal", maxlength: 8, ...attributes }),
        ),
        one(report, "discount_name", isLocked, (attributes) => h("input", { maxlength: 120, ...attributes })),
        one(report, "payment_type", isLocked, ({ oninput, ...attributes }) =>
          h(
            "select",
            { onchange: oninput, ...attributes },
            payments(pricing).map((value) => h("option", { value, key: value }, word("payment", value))),
          ),
        ),
      ),
      h("p", { class: "total" }, t("details.total"), h("b", null, money(pricing.final_price, pricing.currency))),
    ),
  );
}

const payments = ({ payment_type: now }) => (PAYMENTS.includes(now) ? PAYMENTS : [now, ...PAYMENTS].filter(Boolean));

function one(report, name, isLocked, control) {
  const { parse } = FIELDS[name];
  const saved = FIELDS[name].shown(FIELDS[name].read(report));
  const draft = fieldOf(report.id, name, saved);
  const id = `field-${name}`;
  const isWrong = draft.error === "number";
  const at = savedAt(report.id, name);
  const attributes = {
    id,
    value: draft.value,
    disabled: isLocked,
    autocomplete: "off",
    "aria-describedby": `${id}-state`,
    "aria-invalid": isWrong ? "true" : null,
    oninput: (event) => typeField(report.id, name, event.target.value, report, parse(event.target.value)),
  };
  return h(
    "div",
    { class: "field", key: id },
    h("label", { for: id }, t(`details.${name}`)),
    control(attributes),
    h(
      "p",
      { class: "state", id: `${id}-state` },
      isWrong
        ? h("span", { class: "error" }, icon("bad"), t("form.badNumber"))
        : draft.error === "changed_meanwhile"
          ? null
          : draft.state
            ? saving(draft)
            : at && [icon("check"), t("saving.saved", { time: time(at) })],
    ),
    draft.error === "changed_meanwhile" &&
      h(
        "div",
        { class: "note fair", role: "alert" },
        icon("fair"),
        h(
          "div",
          null,
          h("p", null, t("details.meanwhile")),
          h("blockquote", null, saved || "—"),
          h(
            "div",
            { class: "actions" },
            button(t("details.ours"), () => decide(report.id, name, true, report)),
            button(t("details.theirs"), () => decide(report.id, name, false, report), { kind: "quiet" }),
          ),
        ),
      ),
  );
}
