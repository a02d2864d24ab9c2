// Drafts: input that the service has not saved yet. Drafts are sent automatically, one request at a time for each report. They
// survive a lost connection, the end of a session, and a reload of the page.

import { api, Rejected, Unreachable } from "./api.js";
import { readNumber } from "./numbers.js";
import { statusByThresholds } from "./rules.js";
import { changed, state } from "./state.js";

const STORAGE_KEY = "inspector.drafts";
/** The pause in typing after which drafts are sent, in milliseconds. */
const PAUSE = 900;
const RETRY = 5_000;

/**
 * The drafts by report. `points` are by form and point: `{ change, state, error }`, where `change` has the edited ones of status,
 * number and note. `notes` are by form. `fields` are those of the report: `{ value, base, state, error }`. `state` is `typed`,
 * `sending`, `unsent` or `rejected`. `base` is the report's value before the edit.
 */
let drafts = {};
/** The time of the last save, by report and place; shown beside the field. */
const saved = new Map();
const queues = new Map();
const timers = new Map();

/** The identity of the inspector who typed the drafts. */
let owner = null;

try {
  ({ owner, drafts } = JSON.parse(sessionStorage.getItem(STORAGE_KEY)) ?? { owner, drafts });
} catch {
  /* No drafts were stored. */
}

/** Keeps the stored drafts if they are those of `who`, and deletes them otherwise. */
export function claimDrafts(who) {
  if (owner !== who) forgetDrafts();
  owner = who;
  persist();
}

function persist() {
  try {
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify({ owner, drafts }));
  } catch {
    /* The drafts then last as long as the page is open. */
  }
  changed();
}

/** The drafts of a report, with its plate, so that the page can name the car after the inspector has left the report. */
function of(id) {
  const kept = (drafts[id] ??= { points: {}, notes: {}, fields: {} });
  if (state.report?.data?.id === id) kept.plate = state.report.data.plate;
  return kept;
}

/** Deletes all drafts, because another inspector has signed in. */
export function forgetDrafts() {
  drafts = {};
  saved.clear();
  for (const timer of timers.values()) clearTimeout(timer);
  timers.clear();
  persist();
}

/** The number of a report's drafts. */
export function unsent(id) {
  const { points, notes, fields } = drafts[id] ?? { points: {}, notes: {}, fields: {} };
  return (
    Object.values(points).reduce((sum, form) => sum + Object.keys(form).length, 0) +
    Object.keys(notes).length +
    Object.keys(fields).length
  );
}

/** The plates of the reports with drafts, by report. */
export const platesUnsent = () => new Map(Object.keys(drafts).filter((id) => unsent(id) > 0).map((id) => [id, drafts[id].plate]));

/** The time at which `place` was last saved, or `undefined`. */
export const savedAt = (id, place) => saved.get(`${id}/${place}`);

/** Runs `work` after the report's earlier requests, because each request builds on the result of the previous one. */
export function enqueue(id, work) {
  const done = (queues.get(id) ?? Promise.resolve()).then(work);
  queues.set(
    id,
    done.catch(() => {}),
  );
  return done;
}

let othersChanged = () => {};

/** Calls `listener` with a report before and after changes by somebody else. */
export function onOthersChange(listener) {
  othersChanged = listener;
}

/**
 * Stores the report of a response if it is the one on the page and not older than the stored version. Each request raises the version
 * by one at most, so a higher one has changes by somebody else, of which no event may have arrived yet.
 */
export const storeReport = (report) => store(report, 1);

/** Stores a report that was only read, so that every new version is somebody else's. */
export const storeRead = (report) => store(report, 0);

function store(report, ours) {
  const { id, data: before } = state.report ?? {};
  if (id === report.id && report.version >= (before?.version ?? 0)) {
    state.report = { id, state: "loaded", data: report };
    if (before && report.version > before.version + ours) othersChanged(before, report);
  }
  changed();
}

/** Reads a report again, after a request about it was rejected. */
export const readAgain = (id) => api.report(id).then(storeRead, () => {});

// Points.

/** The content of a point's fields: the report's values with the draft's changes. A status from the thresholds is left empty. */
export function shownFields(id, form, point) {
  const draft = drafts[id]?.points[form.template_code]?.[point.code];
  const isNumberTyped = draft?.change.number !== undefined;
  return {
    ...savedFields(point),
    ...draft?.change,
    isNumberTyped,
    state: draft?.state ?? null,
    error: draft?.error ?? null,
    message: draft?.message ?? null,
  };
}

function savedFields(point) {
  const follows = point.status_code && statusByThresholds(point.numeric_value, point.bounds) === point.status_code;
  return {
    status: follows ? "" : (point.status_code ?? ""),
    number: point.numeric_value === null || point.numeric_value === undefined ? "" : String(point.numeric_value),
    note: point.note ?? "",
  };
}

/** Records an edit of a point's fields, and sends it when typing pauses. Fields that were not edited are not sent. */
export function typePoint(id, form, point, typed) {
  const points = (of(id).points[form.template_code] ??= {});
  // Text that is typed after clearing is a new answer, because `isCleared` stays.
  const change = { ...points[point.code]?.change, ...typed };
  // With thresholds, the number alone determines the status.
  if (typed.number && point.bounds) change.status = "";
  const read = savedFields(point);
  const isSending = points[point.code]?.state === "sending";
  // A saved number has a point before its decimals.
  const isSaved = (name) => (name === "number" ? change.number.replace(",", ".") : change[name]) === read[name];
  if (!isSending && !change.isCleared) for (const name of Object.keys(change)) if (isSaved(name)) delete change[name];
  if (Object.keys(change).length === 0) delete points[point.code];
  else points[point.code] = { change, state: "typed", error: null };
  saved.delete(`${id}/${form.template_code}/${point.code}`);
  persist();
  flushSoon(id);
}

/**
 * Returns what to send for a draft: `answer` to write it, `clear` to remove the answer first, or in `lacks` what prevents sending it:
 * `number` or `status`.
 */
export function toAnswer(change, point) {
  const { isCleared = false, ...edited } = change;
  const whole = { ...(isCleared ? savedFields({}) : savedFields(point)), ...edited };
  const number = readNumber(whole.number);
  if (number === undefined) return { lacks: "number" };
  const hadNumber = point.numeric_value !== null && point.numeric_value !== undefined;
  const isEmptied = isCleared || (number === null && hadNumber);
  const isJudged = number !== null && Boolean(point.bounds);
  // Without a number and a status there is no answer.
  if (number === null && !whole.status && point.status_code && isEmptied) return { clear: true };
  if (!isJudged && !whole.status) return isCleared && !point.status_code && !whole.note ? {} : { lacks: "status" };
  // A number without thresholds is sent together with the chosen status. An answer that replaces a cleared one is sent whole.
  const isValueNew = isEmptied || "number" in edited || "status" in edited || !point.status_code;
  return {
    clear: isEmptied && Boolean(point.status_code),
    answer: {
      point_code: point.code,
      ...(isValueNew && number !== null && { numeric_value: number }),
      ...(isValueNew && !isJudged && { status_code: whole.status }),
      ...(("note" in edited || (isEmptied && whole.note)) && { note: whole.note }),
    },
  };
}

/** The most points of a request (`FillForm`). */
const MAX_POINTS = 1000;

async function sendForm(id, code, report) {
  const form = report.forms.find((form) => form.template_code === code);
  const sent = new Map();
  for (const [pointCode, draft] of Object.entries(of(id).points[code] ?? {})) {
    if (draft.state === "rejected" || sent.size === MAX_POINTS) continue;
    const point = form?.points.find((point) => point.code === pointCode);
    const { answer, clear, lacks } = point ? toAnswer(draft.change, point) : { lacks: "status" };
    if (lacks) Object.assign(draft, { state: "typed", error: lacks });
    else if (!answer && !clear) delete of(id).points[code][pointCode];
    else {
      Object.assign(draft, { state: "sending", error: null });
      sent.set(pointCode, { change: draft.change, answer, clear });
    }
  }
  const note = of(id).notes[code];
  const isNoteSent = Boolean(note && note.state !== "rejected");
  if (isNoteSent) note.state = "sending";
  persist();
  if (sent.size === 0 && !isNoteSent) return;
  const answers = [...sent.values()].map(({ answer }) => answer).filter(Boolean);
  const clear = [...sent].filter(([, { clear }]) => clear).map(([pointCode]) => pointCode);
  const noteSent = isNoteSent ? note.value : undefined;
  const body = {
    ...(answers.length > 0 && { answers }),
    ...(clear.length > 0 && { clear }),
    ...(isNoteSent && { general_note: noteSent }),
  };
  try {
    const after = await api.fill(id, code, body);
    const now = Date.now();
    for (const [pointCode, { change }] of sent) {
      settle(of(id).points[code], pointCode, (current) => JSON.stringify(current.change) === JSON.stringify(change));
      saved.set(`${id}/${code}/${pointCode}`, now);
    }
    if (isNoteSent) {
      settle(of(id).notes, code, (current) => current.value === noteSent);
      saved.set(`${id}/${code}/`, now);
    }
    storeReport(after);
  } catch (error) {
    const places = (pointCode) => [
      `/answers/${answers.findIndex((answer) => answer.point_code === pointCode)}`,
      `/clear/${clear.indexOf(pointCode)}`,
    ];
    const messages = new Map(
      [...sent.keys()].map((pointCode) => [pointCode, messageAt(error, places(pointCode))]).filter(([, message]) => message),
    );
    const isNoteInvalid = Boolean(messageAt(error, ["/general_note"]));
    const isKnown = messages.size > 0 || isNoteInvalid;
    for (const pointCode of sent.keys())
      fail(of(id).points[code]?.[pointCode], error, isKnown && !messages.has(pointCode), messages.get(pointCode));
    if (isNoteSent) fail(of(id).notes[code], error, isKnown && !isNoteInvalid);
    persist();
    if (isKnown) flushSoon(id);
    throw error;
  }
}

/** The service's message about one of these places of a request, or below it. */
function messageAt(error, places) {
  if (!(error instanceof Rejected)) return undefined;
  const isAt = ({ field }) => places.some((place) => field === place || field?.startsWith(`${place}/`));
  return error.details.find(isAt)?.message;
}

/** Removes a draft that was saved, unless it was edited again in the meantime. */
function settle(all, key, isSame) {
  const current = all?.[key];
  if (!current) return;
  if (isSame(current)) delete all[key];
  else current.state = "typed";
}

function fail(draft, error, isUnaffected, message = null) {
  if (!draft) return;
  const waits = isUnaffected || !(error instanceof Rejected) || error.code === "signed_out";
  draft.state = waits ? "unsent" : "rejected";
  draft.error = waits ? null : error.code;
  draft.message = waits ? null : (message ?? error.details?.[0]?.message ?? error.message);
}

// The forms' notes, and the report's fields.

export const noteOf = (id, form) => drafts[id]?.notes[form.template_code] ?? { value: form.general_note, state: null };

export function typeNote(id, form, value) {
  const { notes } = of(id);
  notes[form.template_code] = { value, base: form.general_note, state: "typed", error: null };
  if (value === form.general_note) delete notes[form.template_code];
  saved.delete(`${id}/${form.template_code}/`);
  persist();
  flushSoon(id);
}

export const fieldOf = (id, name, read) => drafts[id]?.fields[name] ?? { value: read, state: null };

/** Records an edit of one of the report's fields. `parsed` is the value to send, or `undefined` if the input is invalid. */
export function typeField(id, name, value, report, parsed) {
  const { fields } = of(id);
  const reported = readField(report, name);
  const base = fields[name]?.base ?? reported;
  fields[name] = { value, parsed, base, state: "typed", error: parsed === undefined || parsed === null ? "number" : null };
  if (parsed === reported && base === reported) delete fields[name];
  saved.delete(`${id}/${name}`);
  persist();
  flushSoon(id);
}

/** Resolves a conflict with another inspector's change of a field: keeps our value or theirs. */
export function decide(id, name, isOurs, report) {
  const draft = of(id).fields[name];
  if (isOurs && draft) Object.assign(draft, { base: readField(report, name), state: "typed", error: null });
  else delete of(id).fields[name];
  persist();
  flushSoon(id);
}

/** Reads a field from a report, in the format in which it is sent. */
let readField = () => undefined;
export function setFieldReader(reader) {
  readField = reader;
}

async function sendFields(id, report) {
  const { fields } = of(id);
  const ready = Object.entries(fields).filter(([, draft]) => !draft.error && draft.state !== "rejected");
  // A field that another inspector has changed since is not overwritten without asking.
  for (const [name, draft] of ready) if (readField(report, name) !== draft.base) draft.error = "changed_meanwhile";
  const sent = ready.filter(([, draft]) => !draft.error).map(([name, draft]) => [name, { ...draft }]);
  if (sent.length === 0) return persist();
  for (const [name] of sent) fields[name].state = "sending";
  persist();
  const body = { version: report.version, ...Object.fromEntries(sent.map(([name, { parsed }]) => [name, parsed])) };
  try {
    const after = await api.update(id, body);
    for (const [name, draft] of sent) {
      settle(fields, name, (current) => current.value === draft.value);
      if (fields[name]) fields[name].base = readField(after, name);
      saved.set(`${id}/${name}`, Date.now());
    }
    storeReport(after);
  } catch (error) {
    if (error instanceof Rejected && error.code === "changed_meanwhile") {
      for (const [name] of sent) if (fields[name]) fields[name].state = "typed";
      storeRead(await api.report(id));
      flushSoon(id, 0);
      return;
    }
    const isOne = error instanceof Rejected && error.details.length > 0;
    for (const [name] of sent) fail(fields[name], error, isOne && !error.isAbout(`/${name}`));
    persist();
    if (isOne) flushSoon(id);
    throw error;
  }
}

// Sending.

function flushSoon(id, pause = PAUSE) {
  clearTimeout(timers.get(id));
  timers.set(
    id,
    setTimeout(() => {
      flush(id).catch(() => {});
    }, pause),
  );
}

/**
 * Sends all valid drafts of a report now.
 *
 * Throws the error of the last failed request. The drafts are kept, and sent again when the connection is back.
 */
export function flush(id) {
  clearTimeout(timers.get(id));
  return enqueue(id, async () => {
    let failure = null;
    const current = () => (state.report?.id === id ? state.report.data : null);
    const codes = () => new Set([...Object.keys(of(id).points), ...Object.keys(of(id).notes)]);
    for (const work of [
      ...[...codes()].map((code) => (report) => sendForm(id, code, report)),
      (report) => sendFields(id, report),
    ]) {
      try {
        const report = current() ?? (unsent(id) > 0 ? await api.report(id) : null);
        if (report) await work(report);
      } catch (error) {
        failure = error;
        if (error instanceof Unreachable) break;
        if (error.code === "signed_out") break;
      }
    }
    if (failure instanceof Unreachable) flushSoon(id, RETRY);
    if (failure) throw failure;
  });
}

/** Sends the drafts of all reports, after the connection or the session is back. */
export function flushAll() {
  for (const id of Object.keys(drafts)) if (unsent(id) > 0) flush(id).catch(() => {});
}
