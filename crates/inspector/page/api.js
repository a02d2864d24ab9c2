// The inspectors' API (spec/inspector-api.yaml) as the page asks it.

const BASE = "/inspector/v1";
/** How long an answer is waited for, in milliseconds: the service's own bounds are shorter. */
const PATIENCE = 20_000;
const PATIENCE_FOR_PHOTOS = 180_000;

/** The service said no; `code` and `field` are those of its answer. */
export class Refused extends Error {
  constructor(status, error = {}, retryAfter = null) {
    super(error.message ?? `HTTP ${status}`);
    this.status = status;
    this.code = error.code ?? "unknown";
    this.field = error.field ?? null;
    this.details = error.details ?? (error.field ? [{ field: error.field, message: error.message }] : []);
    this.requestId = error.request_id ?? null;
    this.retryAfter = retryAfter;
  }

  /** Whether any of the places that are wrong begins so. */
  isAbout(pointer) {
    return this.details.some(({ field }) => field === pointer || field?.startsWith(`${pointer}/`));
  }
}

/** No answer came, or none that says anything: the same may be asked again later. */
export class Unreachable extends Error {}

let csrfToken = null;
/** Who signed in at this page; another tab may have signed in somebody else since. */
let who = null;
let signedOut = () => {};

/** Calls `listener` whenever an answer says that nobody is signed in. */
export function onSignedOut(listener) { signedOut = listener; }

async function send(method, path, { body, signal, isByHand = method !== "GET" } = {}) {
  const headers = {};
  if (csrfToken && isByHand) headers["X-CSRF-Token"] = csrfToken;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    const timeout = AbortSignal.timeout(PATIENCE);
    response = await fetch(BASE + path, {
      method, headers, cache: "no-store", credentials: "same-origin",
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    return outcome(response.status, response.status === 204 ? "" : await response.text(), response.headers.get("Retry-After"));
  } catch (error) {
    if (error instanceof Refused || error instanceof Unreachable) throw error;
    throw new Unreachable(error.message);
  }
}

/** What an answer says, or an exception that does. */
function outcome(status, text, retryAfter) {
  let json = null;
  try { json = text ? JSON.parse(text) : null; } catch { /* A proxy's own page. */ }
  if (status >= 200 && status < 300) return json;
  // Of the service, of a proxy before it: busy, or not there for the moment.
  if (status === 502 || status === 503 || status === 504) throw new Unreachable(`HTTP ${status}`);
  throw new Refused(status, json?.error, retryAfter === null ? null : Number(retryAfter));
}

/** Who a session is. */
export const identity = ({ inspector, branches }) => [inspector, ...branches.map(({ id }) => id).sort()].join(" ");

/** What an answer may say because another tab of this browser has another session. */
const MAY_BE_ANOTHERS = ["forged_request", "not_found"];

/** Asks, and once more with the new session's token if the same inspector has signed in anew in another tab. */
async function call(method, path, options) {
  try {
    return await send(method, path, options);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (error.code === "signed_out") signedOut();
    if (!who || !MAY_BE_ANOTHERS.includes(error.code)) throw error;
    const { data } = await send("GET", "/session");
    if (identity(data) !== who) {
      signedOut();
      throw error;
    }
    if (error.code !== "forged_request") throw error;
    csrfToken = data.csrf_token;
    return send(method, path, options);
  }
}

function begun({ data }) {
  csrfToken = data.csrf_token;
  who = identity(data);
  return data;
}

const data = async (answer) => (await answer).data;
const of = (id) => `/reports/${encodeURIComponent(id)}`;

export const api = {
  session: async () => begun(await call("GET", "/session")),
  /** Keeps the session alive, for somebody is there; one that was begun anew in another tab from the next time on. */
  async stay() {
    const { data } = await call("GET", "/session", { isByHand: true });
    if (identity(data) === who) csrfToken = data.csrf_token;
  },
  signIn: async (token) => begun(await send("POST", "/session", { body: { token } })),
  async signOut() {
    await call("DELETE", "/session");
    csrfToken = who = null;
  },
  list(filter) {
    const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value));
    return call("GET", `/reports?${query}`);
  },
  open: (body) => data(call("POST", "/reports", { body })),
  report: (id) => data(call("GET", of(id))),
  update: (id, body) => data(call("PATCH", of(id), { body })),
  fill: (id, form, body) => data(call("PUT", `${of(id)}/forms/${encodeURIComponent(form)}`, { body })),
  move: (id, body) => data(call("PUT", `${of(id)}/status`, { body })),
  orderPhotos: (id, body) => data(call("PUT", `${of(id)}/photos`, { body })),
  apply: (id, measurement) => data(call("PUT", `${of(id)}/measurements/${encodeURIComponent(measurement)}`)),
  discard: (measurement) => call("DELETE", `/measurements/${encodeURIComponent(measurement)}`),

  /** Sends a photo; `progress` is told shares from 0 to 1, which `fetch` does not know. */
  addPhoto(id, { file, kind, pointCode, caption }, progress) {
    const query = new URLSearchParams({ kind });
    if (pointCode) query.set("point_code", pointCode);
    if (caption) query.set("caption", caption);
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open("POST", `${BASE}${of(id)}/photos?${query}`);
      request.timeout = PATIENCE_FOR_PHOTOS;
      request.setRequestHeader("Content-Type", "application/octet-stream");
      if (csrfToken) request.setRequestHeader("X-CSRF-Token", csrfToken);
      request.upload.onprogress = (event) => { if (event.lengthComputable) progress(event.loaded / event.total); };
      request.onerror = request.ontimeout = request.onabort = () => reject(new Unreachable("the photo was not sent"));
      request.onload = () => {
        try {
          resolve(outcome(request.status, request.responseText, request.getResponseHeader("Retry-After")).data);
        } catch (error) {
          if (error.code === "signed_out") signedOut();
          reject(error);
        }
      };
      request.send(file);
    });
  },

  /** The stream of events, as an answer whose body is to be read. */
  events: (signal) => fetch(`${BASE}/events`, { headers: { Accept: "text/event-stream" }, cache: "no-store", credentials: "same-origin", signal }),
};
