// A client of the inspectors' API (spec/inspector-api.yaml).

const BASE = "/inspector/v1";
/** The timeout of a request, in milliseconds. The service's own timeouts are shorter. */
const TIMEOUT = 20_000;
const PHOTO_TIMEOUT = 180_000;

/** The service rejected a request. `code` and `field` are those of the response. */
export class Rejected extends Error {
  constructor(status, error = {}, retryAfter = null) {
    super(error.message ?? `HTTP ${status}`);
    this.status = status;
    this.code = error.code ?? "unknown";
    this.field = error.field ?? null;
    this.details = error.details ?? (error.field ? [{ field: error.field, message: error.message }] : []);
    this.requestId = error.request_id ?? null;
    this.retryAfter = retryAfter;
  }

  /** Whether an invalid field is at `pointer` or below it. */
  isAbout(pointer) {
    return this.details.some(({ field }) => field === pointer || field?.startsWith(`${pointer}/`));
  }
}

/** No usable response arrived; the request may be retried later. */
export class Unreachable extends Error {}

let csrfToken = null;
/** The identity that signed in on this page. Another tab may have signed in another inspector since. */
let who = null;
let signedOut = () => {};

/** Calls `listener` whenever a response says that there is no session. */
export function onSignedOut(listener) {
  signedOut = listener;
}

async function send(method, path, { body, signal, isByUser = method !== "GET" } = {}) {
  const headers = {};
  if (csrfToken && isByUser) headers["X-CSRF-Token"] = csrfToken;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    const timeout = AbortSignal.timeout(TIMEOUT);
    response = await fetch(BASE + path, {
      method,
      headers,
      cache: "no-store",
      credentials: "same-origin",
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    return outcome(response.status, response.status === 204 ? "" : await response.text(), response.headers.get("Retry-After"));
  } catch (error) {
    if (error instanceof Rejected || error instanceof Unreachable) throw error;
    throw new Unreachable(error.message);
  }
}

/** Returns the body of a response, or throws the error that the response reports. */
function outcome(status, text, retryAfter) {
  let json = null;
  try {
    json = text ? JSON.parse(text) : null;
  } catch {
    /* A proxy's error page. */
  }
  if (status >= 200 && status < 300) return json;
  // The service, or a proxy in front of it, is busy or down for the moment.
  if (status === 502 || status === 503 || status === 504) throw new Unreachable(`HTTP ${status}`);
  throw new Rejected(status, json?.error, retryAfter === null ? null : Number(retryAfter));
}

/** A random UUID. `crypto.randomUUID` only exists on pages with TLS. */
export function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return [...bytes]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("")
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** Identifies a session's inspector: the name and the branches. */
export const identity = ({ inspector, branches }) => [inspector, ...branches.map(({ id }) => id).sort()].join(" ");

/** The error codes that may mean that another tab of this browser has started another session. */
const CODES_OF_ANOTHER_SESSION = ["forged_request", "not_found"];

/** Sends a request, and retries it once with the new CSRF token if the same inspector has signed in again in another tab. */
async function call(method, path, options) {
  try {
    return await send(method, path, options);
  } catch (error) {
    if (!(error instanceof Rejected)) throw error;
    if (error.code === "signed_out") signedOut();
    if (!who || !CODES_OF_ANOTHER_SESSION.includes(error.code)) throw error;
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

function startSession({ data }) {
  csrfToken = data.csrf_token;
  who = identity(data);
  return data;
}

const data = async (response) => (await response).data;
const of = (id) => `/reports/${encodeURIComponent(id)}`;

export const api = {
  session: async () => startSession(await call("GET", "/session")),
  /** Keeps the session alive. After a new sign-in in another tab, the new session's CSRF token is used from the next call on. */
  async keepAlive() {
    const { data } = await call("GET", "/session", { isByUser: true });
    if (identity(data) === who) csrfToken = data.csrf_token;
  },
  signIn: async (token) => startSession(await send("POST", "/session", { body: { token } })),
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
  /** The address of a published report's PDF. */
  pdf: (id) => `${BASE}${of(id)}/pdf`,
  update: (id, body) => data(call("PATCH", of(id), { body })),
  fill: (id, form, body) => data(call("PUT", `${of(id)}/forms/${encodeURIComponent(form)}`, { body })),
  move: (id, body) => data(call("PUT", `${of(id)}/status`, { body })),
  orderPhotos: (id, body) => data(call("PUT", `${of(id)}/photos`, { body })),
  apply: (id, measurement) => data(call("PUT", `${of(id)}/measurements/${encodeURIComponent(measurement)}`)),
  discard: (measurement) => call("DELETE", `/measurements/${encodeURIComponent(measurement)}`),
  /** Makes an applied or discarded measurement pending again. */
  undo: (measurement) => call("DELETE", `/measurements/${encodeURIComponent(measurement)}/settlement`),
  correctVehicle: (id, body) => data(call("PUT", `${of(id)}/vehicle`, { body })),
  updatePhoto: (id, photo, body) => data(call("PATCH", `${of(id)}/photos/${encodeURIComponent(photo)}`, { body })),
  deletePhoto: (id, photo) => data(call("DELETE", `${of(id)}/photos/${encodeURIComponent(photo)}`)),

  /**
   * Uploads a photo. After a lost response, the same `uploadId` prevents a second photo. Calls `progress` with values from 0 to 1,
   * which `fetch` does not offer.
   */
  addPhoto(id, { uploadId, file, kind, pointCode, caption }, progress) {
    const query = new URLSearchParams({ kind, upload_id: uploadId });
    if (pointCode) query.set("point_code", pointCode);
    if (caption) query.set("caption", caption);
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open("POST", `${BASE}${of(id)}/photos?${query}`);
      request.timeout = PHOTO_TIMEOUT;
      request.setRequestHeader("Content-Type", "application/octet-stream");
      if (csrfToken) request.setRequestHeader("X-CSRF-Token", csrfToken);
      request.upload.onprogress = (event) => {
        if (event.lengthComputable) progress(event.loaded / event.total);
      };
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

  /** Opens the event stream; the caller reads the response's body. */
  events: (signal) =>
    fetch(`${BASE}/events`, { headers: { Accept: "text/event-stream" }, cache: "no-store", credentials: "same-origin", signal }),
};
