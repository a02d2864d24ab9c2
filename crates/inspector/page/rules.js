// What the page works out of what the service said.

export const GOOD = "GOOD";
export const BORDERLINE = "BORDERLINE";
export const OUT_OF_LIMIT = "OUT_OF_LIMIT";

const within = (value, min, max) => (min !== null || max !== null) && (min === null || value >= min) && (max === null || value <= max);

/** The status that thresholds give a number (MEA-12); `null` where there are none, or no number. */
export function judged(value, bounds) {
  if (!bounds || value === null || value === undefined) return null;
  if (within(value, bounds.good_min, bounds.good_max)) return GOOD;
  return within(value, bounds.borderline_min, bounds.borderline_max) ? BORDERLINE : OUT_OF_LIMIT;
}

/** How bad a status is: `good`, `fair` or `bad`, which give the colour and the sign. */
export function severity(status) {
  if (["ORIGINAL", GOOD].includes(status)) return "good";
  if (["REPLACED", "FAULTY", "BROKEN", OUT_OF_LIMIT].includes(status)) return "bad";
  return "fair";
}

const MEASURED = [GOOD, BORDERLINE, OUT_OF_LIMIT];
const PAINT = ["ORIGINAL", "LOCAL_PAINT", "PAINTED", "REPLACED"];
const CONDITION = [GOOD, "WORN", "LOOSE", "LEAKING", "CORRODED", "MISSING", "FAULTY", "BROKEN"];

/** The statuses that are offered for a form's points, the likeliest group first. */
export function offered(form) {
  if (form.is_test_line) return [MEASURED];
  const isPaint = form.points.some((point) => point.unit === "µm" || PAINT.includes(point.status_code));
  return isPaint ? [PAINT, CONDITION] : [CONDITION, PAINT];
}

/** Whether a report may be written in. */
export const isWritten = (report) => ["DRAFT", "REVISION_REQUESTED"].includes(report.status);

/** The form that devices write into. */
export const testLine = (report) => report.forms.find((form) => form.is_test_line);

/** How many points of a form are answered. */
export const answered = (form) => form.points.filter((point) => point.status_code).length;

/** The difference of two sides in percent of the greater one; `null` where one is missing. */
export function difference(left, right) {
  if (left === null || left === undefined || right === null || right === undefined) return null;
  const greater = Math.max(Math.abs(left), Math.abs(right));
  return greater === 0 ? 0 : (Math.abs(left - right) / greater) * 100;
}
