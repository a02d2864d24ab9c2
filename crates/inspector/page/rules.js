// Rules that the page applies to the service's data, without asking the service. The statuses of points, their severities and the
// kinds of photos come from the organization's templates.

/** The statuses that thresholds determine (MEA-12). */
const [GOOD, BORDERLINE, OUT_OF_LIMIT] = ["GOOD", "BORDERLINE", "OUT_OF_LIMIT"];

const within = (value, min, max) =>
  (min !== null || max !== null) && (min === null || value >= min) && (max === null || value <= max);

/** The code of a number's status by its thresholds; `null` without thresholds or without a number. */
export function statusByThresholds(value, bounds) {
  if (!bounds || value === null || value === undefined) return null;
  if (within(value, bounds.good_min, bounds.good_max)) return GOOD;
  return within(value, bounds.borderline_min, bounds.borderline_max) ? BORDERLINE : OUT_OF_LIMIT;
}

/**
 * The status of an answer of a form, or of a computed value: that of the form's template, or for a code that it does not have (an
 * imported one) that of the answer; `null` without a status.
 */
export function statusOf(form, { status_code: code, status_label: label, severity, is_inspected }) {
  if (!code) return null;
  const known = form.statuses.find((status) => status.code === code);
  return known ? { ...known, severity: severity ?? known.severity } : { code, label: label ?? code, severity, is_inspected };
}

/**
 * The tone of a status, which determines its color and its icon: `good`, `fair`, `bad`, or `none` without a status or with one that
 * says that the point was not inspected.
 */
export function tone(status) {
  if (!status || status.is_inspected === false) return "none";
  return { NONE: "good", HIGH: "bad" }[status.severity] ?? "fair";
}

/** The most buttons of a form whose template marks no status as common. */
const MOST_BUTTONS = 4;

/** A form's statuses: those that are shown as buttons, and those in a list. */
export function offered({ statuses }) {
  const common = statuses.filter((status) => status.is_common);
  const buttons = common.length > 0 ? common : statuses.slice(0, MOST_BUTTONS);
  return [buttons, statuses.filter((status) => !buttons.includes(status))];
}

/** Whether a report's content can be edited. */
export const isEditable = (report) => ["DRAFT", "REVISION_REQUESTED"].includes(report.status);

/** The form that devices write into. */
export const testLine = (report) => report.forms.find((form) => form.is_test_line);

/** The number of a form's points that were inspected. */
export const answered = (form) => form.points.filter((point) => point.is_inspected).length;

/** The numbers of a report's inspected points and of all its points (INS-13). */
export function progress(report) {
  const sum = (count) => report.forms.reduce((total, form) => total + count(form), 0);
  return { inspected: sum(answered), all: sum((form) => form.points.length) };
}

/** The required points that were not inspected, each with its form. The report cannot be published without them. */
export function missing(report) {
  const isMissing = (point) => point.is_required && !point.is_inspected;
  return report.forms.flatMap((form) => form.points.filter(isMissing).map((point) => [form, point]));
}
