// Rules that the page applies to the service's data, without asking the service.

export const GOOD = "GOOD";
export const BORDERLINE = "BORDERLINE";
export const OUT_OF_LIMIT = "OUT_OF_LIMIT";

const within = (value, min, max) => (min !== null || max !== null) && (min === null || value >= min) && (max === null || value <= max);

/** The status of a number by its thresholds (MEA-12); `null` without thresholds or without a number. */
export function statusByThresholds(value, bounds) {
  if (!bounds || value === null || value === undefined) return null;
  if (within(value, bounds.good_min, bounds.good_max)) return GOOD;
  return within(value, bounds.borderline_min, bounds.borderline_max) ? BORDERLINE : OUT_OF_LIMIT;
}

/** The severity of a status: `good`, `fair` or `bad`. It determines the color and the icon. */
export function severity(status) {
  if (["ORIGINAL", GOOD].includes(status)) return "good";
  if (["REPLACED", "FAULTY", "BROKEN", OUT_OF_LIMIT].includes(status)) return "bad";
  return "fair";
}

const MEASURED = [GOOD, BORDERLINE, OUT_OF_LIMIT];
const PAINT = ["ORIGINAL", "LOCAL_PAINT", "PAINTED", "REPLACED"];
const CONDITION = [GOOD, "WORN", "LOOSE", "LEAKING", "CORRODED", "MISSING", "FAULTY", "BROKEN"];

/** The statuses that a form's points offer, in groups; the most likely group comes first. */
export function offered(form) {
  if (form.is_test_line) return [MEASURED];
  const isPaint = form.points.some((point) => point.unit === "µm" || PAINT.includes(point.status_code));
  return isPaint ? [PAINT, CONDITION] : [CONDITION, PAINT];
}

/** The statuses of a form that are most often chosen, which have buttons; the others are in a list. */
export function common(form) {
  const [likely] = offered(form);
  return likely === CONDITION ? [GOOD, "WORN", "LEAKING", "FAULTY"] : likely;
}

/** Whether a report's content can be edited. */
export const isEditable = (report) => ["DRAFT", "REVISION_REQUESTED"].includes(report.status);

/** The form that devices write into. */
export const testLine = (report) => report.forms.find((form) => form.is_test_line);

/** The number of a form's points that have an answer. */
export const answered = (form) => form.points.filter((point) => point.status_code).length;

/** The numbers of a report's inspected points and of all its points (INS-13). */
export function progress(report) {
  const sum = (count) => report.forms.reduce((total, form) => total + count(form), 0);
  return { inspected: sum(answered), all: sum((form) => form.points.length) };
}

/** The required points without an answer, each with its form. The report cannot be published without them. */
export const missing = (report) => report.forms.flatMap((form) => form.points.filter((point) => point.is_required && !point.status_code).map((point) => [form, point]));
