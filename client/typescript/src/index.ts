/**
 * A typed client of the Partner Inspection Reports and Test-Line Measurements API. The types are generated from the API's OpenAPI
 * document; `connect` adds signing and retries, and `inspections` follows the pages of the list.
 */

import createClient, { type Client } from "openapi-fetch";

import type { components, paths } from "./schema.js";
import { signedHeaders } from "./signing.js";

export type { components, operations, paths } from "./schema.js";
export { canonicalQuery, canonicalString, sign } from "./signing.js";

const ATTEMPTS = 4;
/** In seconds. If `Retry-After` asks for more, the response is returned instead. */
const LONGEST_WAIT = 120;
/** In milliseconds, for each attempt. */
const TIMEOUT = 60_000;

/** A key of the API at one address. */
export interface Key {
  /** The operator's address, such as `https://partner-sandbox.inspection.example`. */
  baseUrl: string;
  keyId: string;
  secret: string;
  /** Replaces the global `fetch`, for instance by one with a proxy. It is called once for each attempt. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

/** The calls of the API: `GET` and `POST` with one of its paths. */
export type Partner = Client<paths>;

export type Inspection = components["schemas"]["Inspection"];
export type InspectionListItem = components["schemas"]["InspectionListItem"];
export type Measurement = components["schemas"]["Measurement"];
export type MeasurementRequest = components["schemas"]["MeasurementRequest"];
/** The filters of the list of reports. */
export type InspectionFilter = NonNullable<paths["/api/v1/partner/inspections"]["get"]["parameters"]["query"]>;

/** A response other than 200 or 201, after all retries. */
export class PartnerError extends Error {
  constructor(
    readonly response: Response,
    /**
     * The error that the service returned, with its `code`, `message`, `request_id`, and the invalid `field`. `undefined` if the
     * body did not come from the service, for instance if a proxy responded.
     */
    readonly error: components["schemas"]["ErrorDetail"] | undefined,
  ) {
    const message = error ? `${error.code}: ${error.message} (request ${error.request_id})` : response.statusText;
    super(`${response.status} ${message}`);
    this.name = "PartnerError";
  }
}

/**
 * A measurement that was not recorded, because its `external_id` was already used for another measurement. Usually two devices use
 * the same numbers. To have this measurement recorded, submit it with a new `external_id`.
 */
export class PayloadMismatchError extends PartnerError {
  constructor(
    response: Response,
    /** The recorded measurement, with which the service responded. */
    readonly recorded: Measurement,
  ) {
    super(response, undefined);
    this.name = "PayloadMismatchError";
    this.message =
      "the measurement was not recorded, because its external_id was already used for another measurement " +
      `(${recorded.measurement_id}); submit it with a new external_id`;
  }
}

/** A client whose requests are signed with `key` and retried. It sends nothing yet. */
export function connect(key: Key): Partner {
  return createClient<paths>({ baseUrl: key.baseUrl, fetch: signedFetch(key) });
}

/**
 * Returns the data of a call's response. Throws a `PartnerError` if the service rejected the request, and a `PayloadMismatchError` if
 * the `external_id` of a measurement was already used for another one.
 */
export async function unwrap<Data>(call: Promise<{ data?: Data; error?: unknown; response: Response }>): Promise<Data> {
  const { data, error, response } = await call;
  if (data !== undefined) {
    // Only a response to a measurement has this header.
    if (response.headers.get("X-Idempotency-Payload-Mismatch") === "true") {
      throw new PayloadMismatchError(response, (data as { data: Measurement }).data);
    }
    return data;
  }
  throw new PartnerError(response, (error as Partial<components["schemas"]["Error"]> | undefined)?.error);
}

/** All reports that pass the filters, page by page. */
export async function* inspections(partner: Partner, filter: InspectionFilter = {}): AsyncGenerator<InspectionListItem, void> {
  let query = { limit: 100, ...filter };
  for (;;) {
    const { data, page } = await unwrap(partner.GET("/api/v1/partner/inspections", { params: { query } }));
    yield* data;
    if (!page.has_more || page.next_cursor === undefined) return;
    query = { ...query, cursor: page.next_cursor };
  }
}

/**
 * A `fetch` that sends a request up to four times. Each attempt is signed with a new timestamp and nonce, and sends the same body.
 * `connect` uses it; call it for requests that the typed client cannot make.
 */
export function signedFetch(key: Key): (request: Request) => Promise<Response> {
  const send = key.fetch ?? fetch;
  return async (request) => {
    const body = new Uint8Array(await request.arrayBuffer());
    const repeatable = isRepeatable(request.method, body);
    for (let attempt = 1; ; attempt++) {
      const headers = new Headers(request.headers);
      for (const [name, value] of Object.entries(await signedHeaders(key, request.method, new URL(request.url), body))) {
        headers.set(name, value);
      }
      // Partly random, so that devices do not all retry at the same moment.
      let wait = (0.5 + Math.random() / 2) * 2 ** (attempt - 1);
      try {
        const response = await send(request.url, {
          method: request.method,
          headers,
          body: body.length > 0 ? body : null,
          redirect: "manual",
          signal: AbortSignal.any([request.signal, AbortSignal.timeout(TIMEOUT)]),
        });
        // Reads the body to its end, so that a broken connection is noticed here.
        await response.clone().arrayBuffer();
        const retryAfter = response.headers.get("Retry-After") ?? "";
        if (/^\d+$/.test(retryAfter)) wait = Number(retryAfter);
        // 408 and 429: nothing was processed.
        const { status } = response;
        const retriable = [408, 429].includes(status) || (repeatable && [500, 502, 503, 504].includes(status));
        if (attempt === ATTEMPTS || !retriable || wait > LONGEST_WAIT) return response;
      } catch (error) {
        if (attempt === ATTEMPTS || !repeatable || request.signal.aborted) throw error;
      }
      await pause(wait * 1000, request.signal);
    }
  };
}

/**
 * Whether a request may be sent again although the first one may have been processed. This holds for a GET, and for a measurement
 * with an `external_id`, by which the service recognizes it.
 */
function isRepeatable(method: string, body: Uint8Array): boolean {
  if (method === "GET") return true;
  try {
    return Boolean((JSON.parse(new TextDecoder().decode(body)) as { external_id?: unknown } | null)?.external_id);
  } catch {
    return false;
  }
}

async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        reject(signal.reason as Error);
      },
      { once: true },
    );
  });
}
