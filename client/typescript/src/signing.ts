// The signature of a request: its canonical string, the HMAC, and the four headers. Uses Web Crypto, which Node.js and other runtimes
// have built in.

const SIGNED_FROM = "/api/v1/partner";

/** One byte as `%XX`. `byte` is a character below U+0100. */
const percentEncoded = (byte: string) => "%" + byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0");

const hex = (bytes: ArrayBuffer | Uint8Array) =>
  Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");

/**
 * CANONICAL_QUERY of a raw query, the text after the first `?` of a serialized URL, which is ASCII. Each name and value is decoded once
 * and encoded in one way, and the pairs are sorted bytewise. `encodeURIComponent` would leave ! ' ( ) * unencoded.
 */
export function canonicalQuery(raw: string): string {
  const malformed = raw.search(/%(?![0-9A-Fa-f]{2})/);
  if (malformed >= 0) {
    throw new RangeError(`the % at byte ${malformed} of the query must be followed by two hexadecimal digits; write it as %25`);
  }
  const recode = (part: string) =>
    part
      .replaceAll("+", " ")
      .replace(/%(..)/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)))
      .replace(/[^A-Za-z0-9\-._~]/g, percentEncoded);
  // Not localeCompare, which sorts as people do.
  const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
  return raw
    .split("&")
    .filter((piece) => piece !== "")
    .map((piece): [string, string] => {
      const equals = piece.indexOf("=");
      return equals < 0 ? [recode(piece), ""] : [recode(piece.slice(0, equals)), recode(piece.slice(equals + 1))];
    })
    .sort(([name, value], [otherName, otherValue]) => compare(name, otherName) || compare(value, otherValue))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
}

/** The text that is signed. `url` is the address as it is sent, `body` the exact bytes. */
export async function canonicalString(
  method: string,
  url: URL,
  timestamp: string,
  nonce: string,
  body: Uint8Array<ArrayBuffer>,
): Promise<string> {
  // The path of a gateway in front of the API is not signed.
  const path = url.pathname.slice(Math.max(url.pathname.indexOf(SIGNED_FROM), 0));
  const digest = hex(await crypto.subtle.digest("SHA-256", body));
  return [method, path, canonicalQuery(url.search.slice(1)), timestamp, nonce, digest].join("\n");
}

/** The value of the signature header. The HMAC key is the secret's 32 characters, not what they decode to. */
export async function sign(secret: string, canonical: string): Promise<string> {
  const bytes = new TextEncoder();
  const key = await crypto.subtle.importKey("raw", bytes.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return "sha256=" + hex(await crypto.subtle.sign("HMAC", key, bytes.encode(canonical)));
}

/** The four headers of one attempt, with the current time and a nonce that was never used. */
export async function signedHeaders(
  key: { keyId: string; secret: string },
  method: string,
  url: URL,
  body: Uint8Array<ArrayBuffer>,
): Promise<Record<string, string>> {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const nonce = hex(crypto.getRandomValues(new Uint8Array(16)));
  return {
    "X-Partner-Key-Id": key.keyId,
    "X-Partner-Timestamp": timestamp,
    "X-Partner-Nonce": nonce,
    "X-Partner-Signature": await sign(key.secret, await canonicalString(method, url, timestamp, nonce, body)),
  };
}
