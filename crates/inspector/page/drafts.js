// What was typed and is not with the service yet. It is sent by itself, one change after the other, and stays until the
// service has it: through lost connections, sessions that end and a reload of the page.

import { api, Refused, Unreachable } from "./api.js";
import { readNumber } from "./format.js";
import { judged } from "./rules.js";
import { changed, state } from "./state.js";

const PLACE = "inspector.drafts";
/** How long somebody may pause while typing, in milliseconds. */
const PAUSE = 900;
const RETRY = 5_000;

/**
 * By report: `points` by form and point (`{ change, state, fault }`, where `change` has what was touched of status, number and note),
 * `notes` by form and `fields` of the report (`{ value, base, state, fault }`). `state` is `typed`, `sending`, `unsent` or `refused`; `base` what the report had.
 */
let drafts = {};
/** When what was last saved was, by report and place; for people to see. */
const saved = new Map();
const queues = new Map();
const timers = new Map();

/** Whose they are. */
let owner = null;

try { ({ owner, drafts } = JSON.parse(sessionStorage.getItem(PLACE)) ?? { owner, drafts }); } catch { /* Then there are none. */ }

/** Goes on with what `who` typed before the page was loaded anew; what anybody else typed goes. */
export function claimDrafts(who) {
  if (owner !== who) forgetDrafts();
  owner = who;
  keep();
}

function keep() {
  try { sessionStorage.setItem(PLACE, JSON.stringify({ owner, drafts })); } catch { /* The page has them for as long as it is open. */ }
  changed();
}

const of = (id) => (drafts[id] ??= { points: {}, notes: {}, fields: {} });

/** Forgets all of it: somebody else signed in. */
export function forgetDrafts() {
  drafts = {};
  saved.clear();
  for (const timer of timers.values()) clearTimeout(timer);
  timers.clear();
  keep();
}

/** How much of a report is not with the service. */
export function unsent(id) {
  const { points, notes, fields } = drafts[id] ?? { points: {}, notes: {}, fields: {} };
  return Object.values(points).reduce((sum, form) => sum + Object.keys(form).length, 0) + Object.keys(notes).length + Object.keys(fields).length;
}

/** Whether anything is not with the service. */
export const isAnythingUnsent = () => Object.keys(drafts).some((id) => unsent(id) > 0);

/** When something was saved last: a text of `savedAt`'s keys. */
export const savedAt = (id, place) => saved.get(`${id}/${place}`);

/** One change after the other: each is built on what the one before came to. */
export function queued(id, work) {
  const done = (queues.get(id) ?? Promise.resolve()).then(work);
  queues.set(id, done.catch(() => {}));
  return done;
}

/** What the report has come to, if it is the one on the page. An answer that is older than what is there says nothing. */
export function took(report) {
  if (state.report?.id === report.id && report.version >= (state.report.data?.version ?? 0)) {
    state.report = { id: report.id, state: "there", data: report };
  }
  changed();
}

// Points.

/** What stands in a point's fields: as it is in the report, but for what was typed. A status that the thresholds give is not chosen. */
export function shownOf(id, form, point) {
  const draft = drafts[id]?.points[form.template_code]?.[point.code];
  return { ...asRead(point), ...draft?.change, state: draft?.state ?? null, fault: draft?.fault ?? null };
}

function asRead(point) {
  const follows = point.status_code && judged(point.numeric_value, point.bounds) === point.status_code;
  return {
    status: follows ? "" : point.status_code ?? "",
    number: point.numeric_value === null || point.numeric_value === undefined ? "" : String(point.numeric_value),
    note: point.note ?? "",
  };
}

/** Changes some of a point's fields, and sends that when the typing pauses. What was not touched stays whoever's it is. */
export function typePoint(id, form, point, typed) {
  const points = (of(id).points[form.template_code] ??= {});
  const change = { ...points[point.code]?.change, ...typed };
  // A number that has thresholds decides alone.
  if (typed.number && point.bounds) change.status = "";
  const read = asRead(point);
  const isSending = points[point.code]?.state === "sending";
  if (!isSending) for (const name of Object.keys(change)) if (change[name] === read[name]) delete change[name];
  if (Object.keys(change).length === 0) delete points[point.code];
  else points[point.code] = { change, state: "typed", fault: null };
  saved.delete(`${id}/${form.template_code}/${point.code}`);
  keep();
  soon(id);
}

/** What a point's draft says to the service, or what is lacking: `number`, `emptied` or `status`. */
export function meant(change, point) {
  const whole = { ...asRead(point), ...change };
  const number = readNumber(whole.number);
  if (number === undefined) return { lacks: "number" };
  const hadNumber = point.numeric_value !== null && point.numeric_value !== undefined;
  if (number === null && hadNumber) return { lacks: "emptied" };
  const isJudged = number !== null && Boolean(point.bounds);
  if (!isJudged && !whole.status) return { lacks: "status" };
  // With a number goes what decides of it: thresholds, or the status that a person gave.
  const isAnswered = Boolean(point.status_code);
  const isValueNew = "number" in change || "status" in change || !isAnswered;
  return {
    answer: {
      point_code: point.code,
      ...(isValueNew && number !== null && { numeric_value: number }),
      ...(isValueNew && !isJudged && { status_code: whole.status }),
      ...("note" in change && { note: change.note }),
    },
  };
}

async function sendForm(id, code, report) {
  const form = report.forms.find((form) => form.template_code === code);
  const rows = Object.entries(of(id).points[code] ?? {}).filter(([, draft]) => draft.state !== "refused");
  const sent = new Map();
  for (const [pointCode, draft] of rows) {
    const point = form?.points.find((point) => point.code === pointCode);
    const { answer, lacks } = point ? meant(draft.change, point) : { lacks: "status" };
    if (lacks) { draft.state = "typed"; draft.fault = lacks; } else { draft.state = "sending"; draft.fault = null; sent.set(pointCode, { change: draft.change, answer }); }
  }
  const note = of(id).notes[code];
  const isNoteSent = note && note.state !== "refused";
  if (isNoteSent) note.state = "sending";
  keep();
  if (sent.size === 0 && !isNoteSent) return;
  const answers = [...sent.values()].map(({ answer }) => answer);
  const noteSent = isNoteSent ? note.value : undefined;
  try {
    const after = await api.fill(id, code, { answers, ...(isNoteSent && { general_note: noteSent }) });
    const now = Date.now();
    for (const [pointCode, { change }] of sent) {
      settle(of(id).points[code], pointCode, (current) => JSON.stringify(current.change) === JSON.stringify(change));
      saved.set(`${id}/${code}/${pointCode}`, now);
    }
    if (isNoteSent) {
      settle(of(id).notes, code, (current) => current.value === noteSent);
      saved.set(`${id}/${code}/`, now);
    }
    took(after);
  } catch (error) {
    const faulty = error instanceof Refused ? new Set([...sent.keys()].filter((_, index) => error.isAbout(`/answers/${index}`))) : new Set();
    for (const pointCode of sent.keys()) fail(of(id).points[code]?.[pointCode], error, faulty.size > 0 && !faulty.has(pointCode));
    if (isNoteSent) fail(of(id).notes[code], error, faulty.size > 0 && !error.isAbout("/general_note"));
    keep();
    if (faulty.size > 0) soon(id);
    throw error;
  }
}

/** What was sent is there; what was typed meanwhile is a draft still. */
function settle(all, key, isSame) {
  const current = all?.[key];
  if (!current) return;
  if (isSame(current)) delete all[key];
  else current.state = "typed";
}

function fail(draft, error, isInnocent) {
  if (!draft) return;
  const waits = isInnocent || !(error instanceof Refused) || error.code === "signed_out";
  draft.state = waits ? "unsent" : "refused";
  draft.fault = waits ? null : error.code;
}

// The form's note, and the report's own fields.

export const noteOf = (id, form) => drafts[id]?.notes[form.template_code] ?? { value: form.general_note, state: null };

export function typeNote(id, form, value) {
  const { notes } = of(id);
  notes[form.template_code] = { value, base: form.general_note, state: "typed", fault: null };
  if (value === form.general_note) delete notes[form.template_code];
  saved.delete(`${id}/${form.template_code}/`);
  keep();
  soon(id);
}

export const fieldOf = (id, name, read) => drafts[id]?.fields[name] ?? { value: read, state: null };

/** Changes one of the report's own fields; `said` is what it is to the service, `undefined` for what cannot be meant. */
export function typeField(id, name, value, report, said) {
  const { fields } = of(id);
  const there = readField(report, name);
  const base = fields[name]?.base ?? there;
  fields[name] = { value, said, base, state: "typed", fault: said === undefined || said === null ? "number" : null };
  if (said === there && base === there) delete fields[name];
  saved.delete(`${id}/${name}`);
  keep();
  soon(id);
}

/** Of a field that somebody else changed, too: ours, or theirs. */
export function decide(id, name, isOurs, report) {
  const draft = of(id).fields[name];
  if (isOurs && draft) Object.assign(draft, { base: readField(report, name), state: "typed", fault: null });
  else delete of(id).fields[name];
  keep();
  soon(id);
}

/** What the service's report has in a field, in the form in which it is sent. */
let readField = () => undefined;
export function fieldsReadBy(reader) { readField = reader; }

async function sendFields(id, report) {
  const { fields } = of(id);
  const ready = Object.entries(fields).filter(([, draft]) => draft.fault === null && draft.state !== "refused");
  // What somebody else has changed since is not overwritten unasked.
  for (const [name, draft] of ready) if (readField(report, name) !== draft.base) draft.fault = "changed_meanwhile";
  const sent = ready.filter(([, draft]) => draft.fault === null).map(([name, draft]) => [name, { ...draft }]);
  if (sent.length === 0) return keep();
  for (const [name] of sent) fields[name].state = "sending";
  keep();
  const body = { version: report.version, ...Object.fromEntries(sent.map(([name, { said }]) => [name, said])) };
  try {
    const after = await api.update(id, body);
    for (const [name, draft] of sent) {
      settle(fields, name, (current) => current.value === draft.value);
      if (fields[name]) fields[name].base = readField(after, name);
      saved.set(`${id}/${name}`, Date.now());
    }
    took(after);
  } catch (error) {
    if (error instanceof Refused && error.code === "changed_meanwhile") {
      for (const [name] of sent) if (fields[name]) fields[name].state = "typed";
      took(await api.report(id));
      soon(id, 0);
      return;
    }
    const isOne = error instanceof Refused && error.details.length > 0;
    for (const [name] of sent) fail(fields[name], error, isOne && !error.isAbout(`/${name}`));
    keep();
    if (isOne) soon(id);
    throw error;
  }
}

// Sending.

function soon(id, pause = PAUSE) {
  clearTimeout(timers.get(id));
  timers.set(id, setTimeout(() => { flush(id).catch(() => {}); }, pause));
}

/**
 * Sends all that was typed in a report and can be meant, now.
 *
 * Throws what the last request failed with: what was typed is kept, and sent again when there is a connection.
 */
export function flush(id) {
  clearTimeout(timers.get(id));
  return queued(id, async () => {
    let failure = null;
    const current = () => (state.report?.id === id ? state.report.data : null);
    const codes = () => new Set([...Object.keys(of(id).points), ...Object.keys(of(id).notes)]);
    for (const work of [...[...codes()].map((code) => (report) => sendForm(id, code, report)), (report) => sendFields(id, report)]) {
      try {
        const report = current() ?? (unsent(id) > 0 ? await api.report(id) : null);
        if (report) await work(report);
      } catch (error) {
        failure = error;
        if (error instanceof Unreachable) break;
        if (error.code === "signed_out") break;
      }
    }
    if (failure instanceof Unreachable) soon(id, RETRY);
    if (failure) throw failure;
  });
}

/** Sends what is not with the service, of all reports: there is a connection again, or a session. */
export function flushAll() {
  for (const id of Object.keys(drafts)) if (unsent(id) > 0) flush(id).catch(() => {});
}
