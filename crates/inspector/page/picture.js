// Draws the test line's values: for each axle, the left and right values against their limits.

import { h } from "./dom.js";
import { number, quantity } from "./format.js";
import { t } from "./i18n.js";
import { statusOf, tone } from "./rules.js";
import { icon, status } from "./ui.js";

/** The pairs of each axle: the kind of value, and the point's code without its side. */
const AXLES = [
  [
    "front",
    [
      ["susp", "SUSP_FRONT"],
      ["brake", "BRAKE_FRONT"],
    ],
    "SLIP_FRONT",
  ],
  [
    "rear",
    [
      ["susp", "SUSP_REAR"],
      ["brake", "BRAKE_REAR"],
      ["handbrake", "HANDBRAKE"],
    ],
    "SLIP_REAR",
  ],
];
/** The largest difference that is drawn, in percent. */
const MAX_DIFFERENCE = 50;

const hasNumber = (point) => point && point.numeric_value !== null && point.numeric_value !== undefined;

/** Draws a test-line form's values; returns `null` if it has none. */
export function picture(form, title) {
  if (!form || !form.points.some(hasNumber)) return null;
  const points = new Map(form.points.map((point) => [point.code, { ...point, status: statusOf(form, point) }]));
  // The service computes sums and differences by the rule of the PDF, so that both show the same.
  const computed = new Map((form.computed ?? []).map((value) => [value.code, { ...value, status: statusOf(form, value) }]));
  const axles = AXLES.map(([name, pairs, slip]) => axle(name, pairs, slip, points, computed)).filter(Boolean);
  const power = dyno(points);
  if (axles.length === 0 && !power) return null;
  return h(
    "figure",
    { class: "picture", key: "picture" },
    h("figcaption", null, title),
    axles.length > 0 &&
      h(
        "div",
        { class: "sides", "aria-hidden": "true" },
        h("span", null, t("picture.left")),
        h("span", null),
        h("span", null, t("picture.right")),
      ),
    axles,
    power,
    h(
      "p",
      { class: "legend" },
      form.statuses.map((one) => h("span", { class: `zone ${tone(one)}` }, status(one))),
    ),
  );
}

function axle(name, pairs, slipCode, points, computed) {
  const rows = pairs.map(([kind, stem]) => pair(kind, stem, points, computed)).filter(Boolean);
  const slip = slide(points.get(slipCode));
  if (rows.length === 0 && !slip) return null;
  return h("section", { class: `axle ${name}`, key: name }, h("h3", null, wheels(name), t(`picture.${name}`)), rows, slip);
}

/** The car from above, with the axle's wheels filled. */
function wheels(axle) {
  const wheel = (x, y, isOf) => h("rect", { x, y, width: 4, height: 8, rx: 1.5, class: isOf ? "of" : null });
  return h(
    "svg",
    { class: "car", viewBox: "0 0 24 36", "aria-hidden": "true" },
    h("path", {
      d: "M7 3h10q2 0 2.4 3L20 12v14l-.6 5q-.4 2-2.4 2H7q-2 0-2.4-2L4 26V12l.6-6Q5 3 7 3zM6.5 12q5.5-2.5 11 0M7 25h10",
    }),
    wheel(1.5, 6, axle === "front"),
    wheel(18.5, 6, axle === "front"),
    wheel(1.5, 23, axle === "rear"),
    wheel(18.5, 23, axle === "rear"),
  );
}

/** The value at a bar's full length. All bars of a kind share one scale, so that axles can be compared. */
function scaleOf(kind, points) {
  if (kind === "susp") return 100;
  const begin = kind === "brake" ? "BRAKE_" : "HANDBRAKE_";
  const of = [...points.values()].filter((point) => point.code.startsWith(begin));
  const greatest = of.flatMap((point) => [
    Math.abs(point.numeric_value ?? 0),
    (point.bounds?.good_min ?? 0) * 1.6,
    point.bounds?.good_max ?? 0,
  ]);
  return niceAbove(Math.max(...greatest, 0.1));
}

/** The next round number that is not less than `value`. */
function niceAbove(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((nice) => nice >= value) ?? 10 * power;
}

function pair(kind, stem, points, computed) {
  const [left, right] = [points.get(`${stem}_LEFT`), points.get(`${stem}_RIGHT`)];
  if (!hasNumber(left) && !hasNumber(right)) return null;
  const scale = scaleOf(kind, points);
  const [apart, sum] = [computed.get(`${stem}_DIFFERENCE`), computed.get(`${stem}_SUM`)];
  return h(
    "div",
    { class: "pair", key: kind, role: "group", "aria-label": t(`picture.${kind}`) },
    side(left, scale, true),
    h(
      "div",
      { class: "middle" },
      h("b", null, t(`picture.${kind}`)),
      apart
        ? h("span", { class: "apart" }, tilt(left, right, apart.value), h("small", null, weaker(left, right, apart.value)))
        : h("small", null, "—"),
    ),
    side(right, scale, false),
    (apart || sum) &&
      h(
        "p",
        { class: "sums" },
        apart &&
          h(
            "span",
            { class: "of-axle", "data-code": apart.code },
            t("picture.difference", { value: quantity(apart.value, apart.unit) }),
            apart.status && status(apart.status),
          ),
        sum &&
          h(
            "span",
            { class: "of-axle", "data-code": sum.code },
            t("picture.sum", { value: quantity(sum.value, sum.unit) }),
            sum.status && status(sum.status),
          ),
      ),
  );
}

/** The weaker side and the difference in words. */
function weaker(left, right, apart) {
  if (apart === 0) return t("picture.equal");
  return t(left.numeric_value < right.numeric_value ? "picture.leftWeaker" : "picture.rightWeaker", { value: number(apart) });
}

/** Draws which side is weaker, and by how much. */
function tilt(left, right, apart) {
  const share = (Math.min(apart, MAX_DIFFERENCE) / MAX_DIFFERENCE / 2) * 100;
  const isLeftWeaker = left.numeric_value < right.numeric_value;
  return h(
    "svg",
    { class: "tilt", width: "100%", height: 8, "aria-hidden": "true" },
    h("line", { x1: "0%", x2: "100%", y1: 4, y2: 4 }),
    h("rect", { x: isLeftWeaker ? `${50 - share}%` : "50%", width: `${share}%`, y: 1.5, height: 5, rx: 1.5 }),
    h("line", { class: "center", x1: "50%", x2: "50%", y1: 0, y2: 8 }),
  );
}

function side(point, scale, isLeft) {
  const name = t(isLeft ? "picture.left" : "picture.right");
  if (!hasNumber(point))
    return h(
      "div",
      { class: `side ${isLeft ? "left" : "right"} lacking` },
      h("span", { class: "value" }, h("span", { class: "unseen" }, `${name}: `), "—"),
    );
  return h(
    "div",
    { class: `side ${isLeft ? "left" : "right"}` },
    h(
      "span",
      { class: "value" },
      h("span", { class: "unseen" }, `${name}: `),
      quantity(point.numeric_value, point.unit),
      status(point.status),
    ),
    bar(point, 0, scale, isLeft),
  );
}

/** The sections of a scale by the status of their values: `[from, to, kind]`. */
function zones(bounds, low, high) {
  if (!bounds) return [];
  const clamp = (value, open) => Math.min(Math.max(value ?? open, low), high);
  const range = (min, max) => (min === null && max === null ? null : [clamp(min, low), clamp(max, high)]);
  const good = range(bounds.good_min, bounds.good_max);
  const fair = range(bounds.borderline_min, bounds.borderline_max);
  return [[low, high, "bad"], fair && [...fair, "fair"], good && [...good, "good"]].filter(Boolean);
}

/** Draws a bar from zero in front of the zones of its limits. The bars of the left side grow to the left. */
function bar(point, low, high, isMirrored) {
  const at = (value) => ((Math.min(Math.max(value, low), high) - low) / (high - low)) * 100;
  const place = (from, to) => ({ x: `${isMirrored ? 100 - at(to) : at(from)}%`, width: `${at(to) - at(from)}%` });
  const kind = tone(point.status);
  const limits = [
    point.bounds?.good_min,
    point.bounds?.good_max,
    point.bounds?.borderline_min,
    point.bounds?.borderline_max,
  ].filter((limit) => limit !== null && limit !== undefined && limit > low && limit < high);
  const from = Math.max(low, Math.min(0, high));
  const [start, end] = [Math.min(from, point.numeric_value), Math.max(from, point.numeric_value)];
  return h(
    "svg",
    { class: "bar", width: "100%", height: 26, "aria-hidden": "true" },
    zones(point.bounds, low, high).map(([zoneFrom, zoneTo, zone]) =>
      h("rect", { class: `zone ${zone}`, ...place(zoneFrom, zoneTo), y: 0, height: 26 }),
    ),
    zones(point.bounds, low, high).length === 0 && h("rect", { class: "zone none", x: "0%", width: "100%", y: 0, height: 26 }),
    h("rect", { class: `fill ${kind}`, ...place(start, end), y: 7, height: 12, rx: 2 }),
    limits.map((limit) =>
      h("line", {
        class: "limit",
        x1: `${isMirrored ? 100 - at(limit) : at(limit)}%`,
        x2: `${isMirrored ? 100 - at(limit) : at(limit)}%`,
        y1: 0,
        y2: 26,
      }),
    ),
  );
}

/** Draws a signed value as a mark on a scale around zero. */
function slide(point) {
  if (!hasNumber(point)) return null;
  const { bounds } = point;
  const far = Math.max(
    Math.abs(point.numeric_value),
    ...[bounds?.borderline_min, bounds?.borderline_max, bounds?.good_min, bounds?.good_max].map((limit) => Math.abs(limit ?? 0)),
  );
  const reach = niceAbove(Math.max(far * 1.25, 1));
  const at = (value) => `${((Math.min(Math.max(value, -reach), reach) + reach) / (2 * reach)) * 100}%`;
  const width = (from, to) => `${((to - from) / (2 * reach)) * 100}%`;
  const kind = tone(point.status);
  const all = zones(bounds, -reach, reach);
  return h(
    "div",
    { class: "slide", key: "slip", role: "group", "aria-label": t("picture.slip") },
    h(
      "div",
      { class: "line" },
      h("b", null, t("picture.slip")),
      h("span", { class: "value" }, quantity(point.numeric_value, point.unit), status(point.status)),
    ),
    h(
      "svg",
      { class: "bar", width: "100%", height: 26, "aria-hidden": "true" },
      all.length === 0 && h("rect", { class: "zone none", x: "0%", width: "100%", y: 5, height: 16 }),
      all.map(([from, to, zone]) => h("rect", { class: `zone ${zone}`, x: at(from), width: width(from, to), y: 5, height: 16 })),
      h("line", { class: "zero", x1: "50%", x2: "50%", y1: 0, y2: 26 }),
      [bounds?.good_min, bounds?.good_max, bounds?.borderline_min, bounds?.borderline_max]
        .filter((limit) => limit !== null && limit !== undefined)
        .map((limit) => h("line", { class: "limit", x1: at(limit), x2: at(limit), y1: 5, y2: 21 })),
      h("circle", { class: `mark ${kind}`, cx: at(point.numeric_value), cy: 13, r: 8 }),
    ),
    h(
      "div",
      { class: "ends", "aria-hidden": "true" },
      h("span", null, number(-reach)),
      h("span", null, "0"),
      h("span", null, number(reach)),
    ),
  );
}

/** Draws the measured and the registered power, and their ratio against its limits. */
function dyno(points) {
  const [factory, measured, ratio] = ["DYNO_FACTORY_HP", "DYNO_MEASURED_HP", "DYNO_RATIO"].map((code) => points.get(code));
  if (![factory, measured, ratio].some(hasNumber)) return null;
  const greatest = niceAbove(Math.max(factory?.numeric_value ?? 0, measured?.numeric_value ?? 0, 1));
  const line = (point, name) =>
    hasNumber(point) &&
    h(
      "div",
      { class: "line-of", key: name },
      h(
        "div",
        { class: "line" },
        h("b", null, t(`picture.${name}`)),
        h("span", { class: "value" }, quantity(point.numeric_value, point.unit), status(point.status)),
      ),
      bar(point, 0, name === "ratio" ? Math.max(120, niceAbove(point.numeric_value)) : greatest, false),
    );
  return h(
    "section",
    { class: "axle dyno", key: "dyno" },
    h("h3", null, icon("device"), t("picture.dyno")),
    line(measured, "measured"),
    line(factory, "factory"),
    line(ratio, "ratio"),
  );
}
