// Signatures in the browser, and the search for the mistake in a wrong one. It tries what a client may have signed instead, as
// `partner explain` does; both must name the mistakes of crates/partner/src/explain/cases.json.
"use strict";

globalThis.partnerSigning = (() => {
  const hex = (bytes) => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const utf8 = (text) => new TextEncoder().encode(text);
  const latin1 = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  const sha256 = async (bytes) => hex(await crypto.subtle.digest("SHA-256", bytes));
  const PREFIX = "sha256=";

  /** Returns the decoded pairs of a raw query, given as one character per byte. */
  function pairsOf(text) {
    const malformed = text.search(/%(?![0-9A-Fa-f]{2})/);
    if (malformed >= 0) {
      throw Object.assign(new Error(`the query's % at byte ${malformed} is not followed by two hexadecimal digits; write it as %25`), { offset: malformed });
    }
    const decode = (part) => part.replaceAll("+", " ").replace(/%(..)/g, (_, digits) => String.fromCharCode(parseInt(digits, 16)));
    return text.split("&").filter((piece) => piece !== "").map((piece) => {
      const equals = piece.indexOf("=");
      return equals < 0 ? [decode(piece)] : [decode(piece.slice(0, equals)), decode(piece.slice(equals + 1))];
    });
  }

  const escaped = (byte) => "%" + byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0");
  const encode = (part) => part.replace(/[^A-Za-z0-9\-._~]/g, escaped);
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const byName = ([name, value = ""], [other, otherValue = ""]) => compare(name, other) || compare(value, otherValue);
  const joined = (pairs, encoder) => pairs.map(([name, value = ""]) => `${encoder(name)}=${encoder(value)}`).join("&");

  /** Returns the CANONICAL_QUERY of a raw query, given as bytes. */
  const canonicalQuery = (raw) =>
    pairsOf(latin1(raw)).map((pair) => pair.map(encode)).sort(byName).map(([name, value = ""]) => `${name}=${value}`).join("&");

  const split = (target) => /^([^?]*)\??([^]*)$/.exec(target).slice(1);

  /** Returns the six lines that are signed. */
  async function parts({ method, target, timestamp, nonce, body }) {
    const [path, query] = split(target);
    return [method.toUpperCase(), path, canonicalQuery(utf8(query)), timestamp, nonce, await sha256(body)];
  }

  async function hmacOf(keyBytes) {
    const key = await crypto.subtle.importKey("raw", keyBytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    return async (text) => hex(await crypto.subtle.sign("HMAC", key, utf8(text)));
  }

  const sign = async (secret, text) => PREFIX + await (await hmacOf(utf8(secret)))(text);

  /** Returns the secret decoded from base32. */
  function base32Decoded(secret) {
    const bits = [...secret].map((character) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(character).toString(2).padStart(5, "0")).join("");
    return Uint8Array.from(bits.match(/.{8}/g) ?? [], (byte) => parseInt(byte, 2));
  }

  /** Returns the digest that a signature contains, in lower-case hex, and the mistake in how it is written. */
  function digestOf(signature) {
    const hasPrefix = signature.startsWith(PREFIX);
    const rest = signature.replace(/^sha256=/i, "");
    const mistakes = hasPrefix ? [] : [/^sha256=/i.test(signature) ? "The prefix must be `sha256=`, in lower case." : "The signature must begin with `sha256=`."];
    if (/^[0-9a-f]{64}$/.test(rest)) return { digest: rest, mistakes };
    if (/^[0-9a-f]{64}$/i.test(rest)) return { digest: rest.toLowerCase(), mistakes: [...mistakes, "The digest is in upper case; write its hex in lower case."] };
    if (/^[A-Za-z0-9+/_-]{43}=?$/.test(rest)) {
      const bytes = Uint8Array.from(atob(rest.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
      return { digest: hex(bytes), mistakes: [...mistakes, "The digest is in base64; write it in lower-case hex."] };
    }
    if (/^[0-9a-f]{40}$/i.test(rest)) return { mistakes: ["40 hex digits are the length of SHA-1; use HMAC-SHA256."] };
    if (/^[0-9a-f]{128}$/i.test(rest)) return { mistakes: ["128 hex digits are the length of SHA-512; use HMAC-SHA256."] };
    return { mistakes: ["A signature is `sha256=` followed by 64 lower-case hex digits."] };
  }

  /** Returns what may have been signed in place of each line: [line, value, mistake]. */
  async function lineMistakes(right, request, hosts) {
    const [method, path, canonical, timestamp, nonce, digest] = right;
    const [, query] = split(request.target);
    const raw = latin1(utf8(query));
    const mistakes = [];
    const known = new Set();
    const add = (at, value, mistake) => {
      const key = `${at} ${value}`;
      if (value === right[at] || known.has(key)) return;
      known.add(key);
      mistakes.push([at, value, mistake]);
    };
    add(0, method.toLowerCase(), "The method was signed in lower case; write it in upper case.");
    add(0, method[0] + method.slice(1).toLowerCase(), "The method must be signed in upper case.");
    for (const host of hosts) for (const start of ["https://", "http://", "//", ""]) add(1, `${start}${host}${path}`, "The host was signed with the path; the path begins with /api/v1/partner.");
    add(1, path.endsWith("/") ? path.slice(0, -1) : `${path}/`, "Only one of the paths, the signed or the sent one, has a trailing slash; sign the path as it is sent.");
    add(1, request.target, "The path was signed with its query; the query has a separate line.");
    add(1, path.replace(/^\/api\/v1\/partner/, ""), "The path was signed without /api/v1/partner.");
    add(1, path.replace(/^\/api\/v1/, ""), "The path was signed without /api/v1.");
    add(1, path.toLowerCase(), "The path was signed in lower case; sign the path as it is sent.");
    add(1, path.replace(/%([0-9A-Fa-f]{2})/g, (_, digits) => String.fromCharCode(parseInt(digits, 16))), "The path was decoded before it was signed; sign the path as it is sent.");
    if (canonical !== "") {
      const pairs = pairsOf(raw);
      const sorted = [...pairs].sort(byName);
      const plain = (text) => new TextDecoder().decode(Uint8Array.from(text, (character) => character.charCodeAt(0)));
      const encoders = [
        [encode, ""],
        [(text) => encode(text).replaceAll("%20", "+"), "A space was signed as `+`, as form encoding does; the canonical form is %20."],
        [(text) => encode(text).replace(/%../g, (escape) => escape.toLowerCase()), "The query's escapes are in lower-case hex; write %C4, not %c4."],
        [(text) => encode(text).replace(/%(21|27|28|29|2A)/g, (_, digits) => String.fromCharCode(parseInt(digits, 16))), "Reserved characters of the query are not escaped; encodeURIComponent leaves ! ' ( ) * as they are."],
        [(text) => encode(text).replaceAll("~", "%7E"), "Unreserved characters of the query are escaped; leave - . _ ~ as they are."],
        [(text) => encode(encode(text)), "The query is percent-encoded twice; encode the values once."],
        [plain, "The query was decoded before it was signed; sign its canonical form."],
      ];
      const order = "The query's parameters are in the wrong order; sort the encoded pairs by name and then by value.";
      for (const [encoder, mistake] of encoders) {
        add(2, joined(sorted, encoder), mistake);
        add(2, joined(pairs, encoder), [mistake, order].filter(Boolean).join(" "));
      }
      add(2, sorted.map((pair) => pair.map(encode).join("=")).join("&"), "A parameter without a value keeps its `=` in the canonical query.");
      add(2, raw, "The query was signed as it is sent; sign its canonical form.");
      add(2, query, "The query was signed as it is sent; sign its canonical form.");
      add(2, raw.split("&").sort(compare).join("&"), "The query was sorted but not encoded in its canonical form.");
      add(2, `?${canonical}`, "The `?` is not part of the canonical query.");
      add(2, `?${raw}`, "The `?` is not part of the canonical query.");
      add(2, "", "The query was left out; its line is the canonical query.");
      if (raw.includes("+")) {
        const meant = raw.replaceAll("+", "%2B");
        for (const value of [canonicalQuery(utf8(meant)), meant]) add(2, value, "A plus in the query was signed as a plus, but a bare `+` was sent, which means a space; send %2B.");
      }
    }
    if (/^\d+$/.test(timestamp)) {
      for (const [step, unit] of [[1e3, "milliseconds"], [1e6, "microseconds"], [1e9, "nanoseconds"]]) add(3, timestamp + String(step).slice(1), `The timestamp was signed in ${unit}, and sent in seconds; sign and send seconds.`);
      if (timestamp.length === 13) add(3, timestamp.slice(0, 10), "The timestamp was sent in milliseconds, and signed in seconds; send seconds.");
      for (let drift = -5; drift <= 5; drift++) add(3, String(Number(timestamp) + drift), "The signed timestamp differs from the one that was sent; read the clock once and use the same text for both.");
      const date = new Date(Number(timestamp) * 1000);
      if (!Number.isNaN(date.getTime())) for (const text of [date.toISOString(), date.toISOString().replace(".000", "")]) add(3, text, "A date was signed; sign and send UNIX seconds.");
    }
    add(4, nonce.toUpperCase(), "The signed nonce differs from the one that was sent in letter case.");
    add(4, nonce.toLowerCase(), "The signed nonce differs from the one that was sent in letter case.");
    add(4, "", "The nonce was left out.");
    add(5, digest.toUpperCase(), "The hash of the body is in upper case; write it in lower case.");
    add(5, btoa(String.fromCharCode(...digest.match(/../g).map((byte) => parseInt(byte, 16)))), "The hash of the body is in base64; write it in lower-case hex.");
    add(5, "", "The hash of the body was left out; without a body it is the SHA-256 of the empty string.");
    add(5, new TextDecoder().decode(request.body), "The body itself was signed; sign its hash.");
    for (const [bytes, mistake] of bodyMistakes(request.body)) add(5, await sha256(bytes), mistake);
    return mistakes;
  }

  const RESERIALIZED = "The body was serialized twice, once to sign it and once to send it; serialize it once, then hash and send that text. You signed a re-serialized body";

  /** Returns the bytes that may have been hashed in place of the body. */
  function bodyMistakes(body) {
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(body);
    if (text === "") return ["{}", "null", '""', "[]", "undefined", "None"].map((nothing) => [utf8(nothing), `The hash is that of ${nothing}, but no body was sent; hash the empty byte string.`]);
    const mistakes = [[new Uint8Array(), "The body was left out of the signature; hash the bytes of the body."]];
    const add = (changed, mistake) => { if (changed !== text) mistakes.push([utf8(changed), mistake]); };
    const sent = "You signed other bytes than you sent:";
    add(`${text}\n`, `${sent} a line feed at the end of the body was hashed but not sent.`);
    add(`${text}\r\n`, `${sent} a CR LF at the end of the body was hashed but not sent.`);
    add(`\ufeff${text}`, `${sent} a byte-order mark was hashed but not sent.`);
    add(text.replace(/^\ufeff/, ""), `${sent} a byte-order mark was sent but not hashed.`);
    add(text.trim(), `${sent} white space around the body was sent but not hashed.`);
    add(text.replaceAll("\r\n", "\n"), `${sent} line endings were changed to CR LF after hashing.`);
    add(text.replace(/\r?\n/g, "\r\n"), `${sent} line endings were changed from CR LF to LF after hashing.`);
    if (!/[^\x00-\xff]/.test(text)) mistakes.push([Uint8Array.from(text, (character) => character.charCodeAt(0)), `${sent} the body was hashed in Latin-1 but sent in UTF-8.`]);
    mistakes.push([Uint8Array.from([...text].flatMap((character) => [...character].flatMap((whole) => Array.from({ length: whole.length }, (_, at) => whole.charCodeAt(at)))).flatMap((unit) => [unit & 255, unit >> 8])), `${sent} the body was hashed in UTF-16 but sent in UTF-8.`]);
    const written = jsonTree(text.replace(/^\ufeff/, ""));
    if (written) {
      const styles = [
        ["", "", "", "without spaces (JavaScript's JSON.stringify)"], [" ", " ", "", "with a space after commas and colons (Python's json.dumps)"],
        ["", " ", "  ", "with spaces, indented by two"], ["", " ", "    ", "with spaces, indented by four"], ["", " ", "\t", "with spaces, indented by tabs"],
      ];
      for (const [comma, colon, indent, style] of styles)
        for (const [isSorted, order] of [[false, ""], [true, ", its members sorted"]])
          for (const [isAscii, escapes] of [[false, ""], [true, ", non-ASCII characters escaped"]])
            for (const [hasSlashes, slashes] of [[false, ""], [true, ", slashes escaped"]])
              for (const number of NUMBERS)
                add(writeJson(written, { comma, colon, indent, isSorted, isAscii, hasSlashes, number }, 0), `${RESERIALIZED} (${style}${order}${escapes}${slashes}).`);
    }
    return mistakes;
  }

  /** How libraries write a number that they have read: unchanged; like Python, which keeps `1.0`; like JavaScript. */
  const NUMBERS = [
    (text) => text,
    (text) => (/[.eE]/.test(text) && Number.isInteger(Number(text)) ? `${Number(text)}.0` : String(Number(text))),
    (text) => String(Number(text)),
  ];

  /** Reads JSON and keeps the text of each number, and the order of members. Returns null for other text. */
  function jsonTree(text) {
    try { JSON.parse(text); } catch { return null; }
    const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g);
    let at = 0;
    const value = () => {
      const token = tokens[at++];
      if (token !== "{" && token !== "[") return token.startsWith('"') ? { string: JSON.parse(token) } : { literal: token };
      const end = token === "{" ? "}" : "]";
      const items = [];
      while (tokens[at] !== end) {
        let name = null;
        if (end === "}") { name = JSON.parse(tokens[at]); at += 2; }
        items.push([name, value()]);
        if (tokens[at] === ",") at++;
      }
      at++;
      return { end, items };
    };
    return value();
  }

  function writeJson(node, style, depth) {
    const string = (text) => {
      const plain = style.hasSlashes ? JSON.stringify(text).replaceAll("/", "\\/") : JSON.stringify(text);
      return style.isAscii ? plain.replace(/[^\x00-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`) : plain;
    };
    if (node.literal !== undefined) return /^[-\d]/.test(node.literal) ? style.number(node.literal) : node.literal;
    if (node.string !== undefined) return string(node.string);
    const open = node.end === "}" ? "{" : "[";
    if (node.items.length === 0) return open + node.end;
    const line = (level) => (style.indent === "" ? "" : `\n${style.indent.repeat(level)}`);
    const items = style.isSorted && node.end === "}" ? [...node.items].sort(([a], [b]) => compare(a, b)) : node.items;
    const written = items.map(([name, value]) => line(depth + 1) + (name === null ? "" : `${string(name)}:${style.colon}`) + writeJson(value, style, depth + 1));
    return open + written.join(`,${style.comma}`) + line(depth) + node.end;
  }

  /** Returns texts that may have been signed with these lines: [text, mistake]. */
  function forms(lines) {
    const text = lines.join("\n");
    const found = [
      [`${text}\n`, "The canonical string was signed with a line feed at its end; remove it."],
      [`${text}\r\n`, "The canonical string was signed with a CR LF at its end; remove it."],
      [lines.join("\r\n"), "The lines were joined with CR LF; join them with LF."],
      [`${lines.join("\r\n")}\r\n`, "The lines were joined with CR LF, with one at the end; join them with LF."],
      [lines.join("\\n"), "The lines were joined with a backslash and an n; join them with line feeds."],
      [`\ufeff${text}`, "The canonical string was signed with a byte-order mark; sign UTF-8 without one."],
      [lines.join(""), "The lines were joined without line feeds."],
      [lines.slice(0, 5).join("\n"), "The hash of the body was left out; without a body it is the SHA-256 of the empty string."],
      ...[0, 1, 2, 3, 4].map((at) => [lines.with(at, lines[at + 1]).with(at + 1, lines[at]).join("\n"), "The lines are in the wrong order."]),
    ];
    if (lines[2] === "") found.push([lines.filter((_, at) => at !== 2).join("\n"), "The line of the empty query is missing; keep it, empty."]);
    return found;
  }

  /** Yields each text that may have been signed instead of the right lines: [text, mistakes]. */
  async function* signedInstead(right, request, hosts) {
    for (const [text, mistake] of forms(right)) yield [text, [mistake]];
    const mistakes = await lineMistakes(right, request, hosts);
    for (const [at, value, mistake] of mistakes) yield [right.with(at, value).join("\n"), [mistake]];
    if (/^\d{9,10}$/.test(right[3])) {
      const mistake = "The timestamp was signed in milliseconds, and sent in seconds; sign and send seconds.";
      for (let milliseconds = 1; milliseconds < 1000; milliseconds++) yield [right.with(3, right[3] + String(milliseconds).padStart(3, "0")).join("\n"), [mistake]];
    }
    for (const [index, [at, value, mistake]] of mistakes.entries()) {
      const lines = right.with(at, value);
      for (const [text, second] of forms(lines)) yield [text, [mistake, second]];
      for (const [other, otherValue, second] of mistakes.slice(index + 1)) if (other !== at) yield [lines.with(other, otherValue).join("\n"), [mistake, second]];
    }
  }

  /** Returns mistakes in the request itself, which no signature can fix. */
  function requestMistakes({ timestamp, nonce, target }) {
    const found = [];
    if (/^\d{13}$/.test(timestamp)) found.push("The timestamp is in milliseconds; sign and send seconds.");
    else if (/^\d{14,}$/.test(timestamp)) found.push("The timestamp is in microseconds or nanoseconds; sign and send seconds.");
    else if (!/^\d+$/.test(timestamp)) found.push("The timestamp must be UNIX seconds, digits only.");
    if (nonce.length < 16 || nonce.length > 128) found.push("A nonce has 16 to 128 characters.");
    if (!target.startsWith("/api/v1/partner")) found.push("The path must begin with /api/v1/partner, without the host.");
    return found;
  }

  /**
   * Compares a signature with the right one. Returns whether it is right, and the mistakes that reproduce it. `hosts` are names that may
   * have been signed with the path.
   */
  async function diagnose(request, secret, signature, hosts = []) {
    const right = await parts(request);
    const text = right.join("\n");
    const { digest, mistakes: written } = digestOf(signature);
    if (digest === undefined) return { isRight: false, mistakes: written };
    const keys = [
      [utf8(secret), []],
      [base32Decoded(secret), ["The secret was decoded from base32; use its 32 characters as they are."]],
      [utf8(secret.toLowerCase()), ["The secret was converted to lower case."]],
      [utf8(`${secret}\n`), ["The secret was used with a line feed at its end; trim it."]],
      [utf8(`${secret}\r\n`), ["The secret was used with a CR LF at its end; trim it."]],
      [utf8(`"${secret}"`), ["The secret was used with quotes around it."]],
    ];
    const signers = await Promise.all(keys.map(async ([key, mistakes]) => [await hmacOf(key), mistakes]));
    for (const [signer, mistakes] of signers) {
      const all = [...mistakes, ...written];
      if (digest === await signer(text)) return { isRight: all.length === 0, mistakes: all };
      for (const [form, mistake] of forms(right)) if (digest === await signer(form)) return { isRight: false, mistakes: [mistake, ...all] };
    }
    const others = [
      [await (await hmacOf(utf8(secret)))(await sha256(utf8(text))), "The SHA-256 of the canonical string was signed; sign the string itself."],
      [await (await hmacOf(utf8(text)))(secret), "Key and message are swapped; the secret is the key."],
      [await sha256(utf8(secret + text)), "The secret and the canonical string were concatenated and hashed; use HMAC-SHA256."],
      [await sha256(utf8(text + secret)), "The canonical string and the secret were concatenated and hashed; use HMAC-SHA256."],
      [await sha256(utf8(text)), "The canonical string was hashed without the secret; use HMAC-SHA256."],
    ];
    for (const [other, mistake] of others) if (digest === other) return { isRight: false, mistakes: [mistake, ...written] };
    for await (const [signed, mistakes] of signedInstead(right, request, hosts)) {
      if (digest === await signers[0][0](signed)) return { isRight: false, mistakes: [...mistakes, ...written] };
    }
    const unknown = "The signature was made with another secret, or from another string than this request's: check that the secret belongs to the key ID, and compare the canonical strings.";
    return { isRight: false, mistakes: [...written, unknown] };
  }

  /** Returns the mistakes in a canonical string, or null if it is none of the known ones. */
  async function diagnoseCanonical(request, theirs, hosts = []) {
    const right = await parts(request);
    for await (const [signed, mistakes] of signedInstead(right, request, hosts)) if (signed === theirs) return mistakes;
    return null;
  }

  return { canonicalQuery, diagnose, diagnoseCanonical, parts, requestMistakes, sign, utf8 };
})();
