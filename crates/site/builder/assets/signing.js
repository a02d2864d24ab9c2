// The calculator: the canonical string and the signature of a request, made in this page with the browser's own cryptography.
"use strict";

(() => {
  const hex = (bytes) => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const utf8 = (text) => new TextEncoder().encode(text);
  const latin1 = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");

  /** CANONICAL_QUERY of a raw query, given as bytes. */
  function canonicalQuery(raw) {
    const text = latin1(raw); // one character for each byte
    const malformed = text.search(/%(?![0-9A-Fa-f]{2})/);
    if (malformed >= 0) {
      throw Object.assign(new Error(`the query's % at byte ${malformed} is not followed by two hexadecimal digits; write it as %25`), { offset: malformed });
    }
    const recode = (part) => part
      .replaceAll("+", " ")
      .replace(/%(..)/g, (_, digits) => String.fromCharCode(parseInt(digits, 16)))
      .replace(/[^A-Za-z0-9\-._~]/g, (byte) => "%" + byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0"));
    const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    return text.split("&").filter((piece) => piece !== "")
      .map((piece) => {
        const equals = piece.indexOf("=");
        return equals < 0 ? [recode(piece), ""] : [recode(piece.slice(0, equals)), recode(piece.slice(equals + 1))];
      })
      .sort(([name, value], [other, otherValue]) => compare(name, other) || compare(value, otherValue))
      .map(([name, value]) => `${name}=${value}`).join("&");
  }

  const sha256 = async (bytes) => hex(await crypto.subtle.digest("SHA-256", bytes));

  /** The six parts that are signed. */
  async function parts({ method, target, timestamp, nonce, body }) {
    const [, path, query] = /^([^?]*)\??([^]*)$/.exec(target);
    return [method.toUpperCase(), path, canonicalQuery(utf8(query)), timestamp, nonce, await sha256(body)];
  }

  async function hmac(keyBytes, text) {
    const key = await crypto.subtle.importKey("raw", keyBytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    return "sha256=" + hex(await crypto.subtle.sign("HMAC", key, utf8(text)));
  }

  /** The secret as those have it who decode it from base32. */
  function base32Decoded(secret) {
    const bits = [...secret].map((character) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(character).toString(2).padStart(5, "0")).join("");
    return Uint8Array.from(bits.match(/.{8}/g) ?? [], (byte) => parseInt(byte, 2));
  }

  /** What a signature was made of that is not the right one, for the mistakes that are made most often; else null. */
  async function mistake(request, secret, signature) {
    const right = await parts(request);
    const canonical = right.join("\n");
    const [, path, query] = /^([^?]*)\??([^]*)$/.exec(request.target);
    const having = (at, value) => right.map((part, index) => (index === at ? value : part)).join("\n");
    const bodyText = new TextDecoder().decode(request.body);
    const bodies = [["with a line feed at its end", `${bodyText}\n`], ["without the line feed at its end", bodyText.replace(/\r?\n$/, "")]];
    try {
      bodies.push(["serialized again without spaces", JSON.stringify(JSON.parse(bodyText))], ["serialized again with spaces", JSON.stringify(JSON.parse(bodyText), null, 2)]);
    } catch {}
    const canonicals = [
      ["The canonical string ends with a line feed; it must not.", `${canonical}\n`],
      ["The lines are joined with CR and LF; join them with LF alone.", right.join("\r\n")],
      ["The query was signed as it was sent; sign its canonical form.", having(2, query)],
      ["The query was left out.", having(2, "")],
      ["The line of the query is missing; it stays, also when it is empty.", right.filter((_, index) => index !== 2).join("\n")],
      ["A plus in the query was taken for a plus; it is a space.", having(2, canonicalQueryOf(query.replaceAll("+", "%2B")))],
      ["The path has a trailing slash in one of the two.", having(1, path.endsWith("/") ? path.slice(0, -1) : `${path}/`)],
      ["The path was signed with its query.", having(1, request.target)],
      ["The path was signed without /api/v1/partner.", having(1, path.replace(/^\/api\/v1\/partner/, ""))],
      ["The method was signed in lower case.", having(0, right[0].toLowerCase())],
      ["The timestamp was signed in milliseconds; sign seconds.", having(3, `${request.timestamp}000`)],
      ["The hash of the body is in capitals; write it in lower case.", having(5, right[5].toUpperCase())],
      ["The body itself was signed, not its hash.", having(5, bodyText)],
      ["The body was left out of the signature.", having(5, await sha256(new Uint8Array()))],
      ...await Promise.all(bodies.map(async ([how, text]) => [`The body was signed ${how}, and sent another way: sign the bytes that you send.`, having(5, await sha256(utf8(text)))])),
    ];
    const given = signature.trim().toLowerCase().replace(/^(sha256=)?/, "sha256=");
    if (given === await hmac(utf8(secret), canonical)) return "The signature is right, and written differently: it is `sha256=` and lower-case hex digits.";
    if (given === await hmac(base32Decoded(secret), canonical)) return "The secret was decoded from base32; take its 32 characters as they are.";
    for (const [words, text] of canonicals) if (given === await hmac(utf8(secret), text)) return words;
    return null;
  }

  const canonicalQueryOf = (query) => { try { return canonicalQuery(utf8(query)); } catch { return query; } };

  const field = (id) => document.getElementById(id);
  const NAMES = ["METHOD", "PATH", "CANONICAL_QUERY", "TIMESTAMP", "NONCE", "BODY_SHA256"];
  const PLAIN = "https is needed for the browser's cryptography; open this page over https, on your own machine, or from a folder.";

  function bodyBytes() {
    const text = field("body-text").value;
    if (field("encoding").value === "text") return utf8(text);
    return Uint8Array.from(atob(text.replace(/\s/g, "")), (character) => character.charCodeAt(0));
  }

  const item = (words, note, differs) => {
    const line = document.createElement("li");
    const small = document.createElement("small");
    small.textContent = note;
    line.append(words === "" ? "(empty)" : words, small);
    line.classList.toggle("differs", differs);
    return line;
  };

  /** Compares with a canonical string of another hand. */
  function differences(right, theirs) {
    if (theirs.trim() === "") return [];
    const lines = theirs.replace(/\r/g, "").split("\n");
    const found = [];
    NAMES.forEach((name, at) => {
      if (right[at] !== (lines[at] ?? "")) found.push(`${name}: yours is ${JSON.stringify(lines[at] ?? "")}, here it is ${JSON.stringify(right[at])}`);
    });
    if (lines.length !== 6) found.push(`yours has ${lines.length} lines, and 6 are right${lines.at(-1) === "" ? ": no line feed at the end" : ""}`);
    return found;
  }

  let turn = 0;
  async function compute() {
    const mine = ++turn;
    const problem = field("problem");
    try {
      if (!crypto.subtle) throw new Error(PLAIN);
      const request = { method: field("method").value.trim(), target: field("target").value, timestamp: field("timestamp").value.trim(), nonce: field("nonce").value, body: bodyBytes() };
      const secret = field("secret").value.trim();
      if (secret === "") throw new Error("The secret is missing.");
      const right = await parts(request);
      const signature = await hmac(utf8(secret), right.join("\n"));
      const yours = field("yours").value.trim();
      const isRight = yours === signature;
      const reason = yours === "" || isRight ? null : await mistake(request, secret, yours);
      if (mine !== turn) return; // something was typed meanwhile
      const notes = differences(right, field("theirs").value);
      field("lines").replaceChildren(...right.map((part, at) => item(part, NAMES[at], notes.some((note) => note.startsWith(`${NAMES[at]}:`)))));
      field("headers").textContent = `X-Partner-Timestamp: ${request.timestamp}\nX-Partner-Nonce: ${request.nonce}\nX-Partner-Signature: ${signature}`;
      const verdict = field("verdict");
      verdict.hidden = yours === "";
      verdict.className = isRight ? "right" : "wrong";
      verdict.textContent = isRight ? "Your signature is right." : reason ?? "Your signature is another one, for none of the usual reasons: compare the canonical strings, and see whether the secret belongs to the key id.";
      field("differences").hidden = notes.length === 0;
      field("differences").replaceChildren(...notes.map((note) => { const line = document.createElement("li"); line.textContent = note; return line; }));
      const looks = [];
      if (!/^[A-Z2-7]{32}$/.test(secret)) looks.push("A secret is 32 characters of A-Z and 2-7.");
      if (/^\d{13}$/.test(request.timestamp)) looks.push("The timestamp looks like milliseconds; send seconds.");
      if (request.nonce.length < 16) looks.push("A nonce has 16 to 128 characters.");
      if (!request.target.startsWith("/api/v1/partner")) looks.push("The path begins with /api/v1/partner, without the host.");
      problem.textContent = looks.join(" ");
      problem.hidden = looks.length === 0;
      field("results").hidden = false;
    } catch (error) {
      if (mine !== turn) return;
      problem.textContent = error.name === "InvalidCharacterError" ? "The body is no base64." : error.message;
      problem.hidden = false;
      field("results").hidden = true;
    }
  }

  /** A request as it is sent: its line, headers, an empty line, the body. */
  function takeOver() {
    const [, head, body] = /^([^]*?)(?:\r?\n\r?\n([^]*))?$/.exec(field("raw").value.trimStart());
    const [line, ...headers] = head.split(/\r?\n/);
    const [method, target] = line.split(" ");
    field("method").value = method;
    field("target").value = (target ?? "").replace(/^https?:\/\/[^/]+/, "");
    for (const header of headers) {
      const [name, ...value] = header.split(":");
      const id = { "x-partner-timestamp": "timestamp", "x-partner-nonce": "nonce", "x-partner-signature": "yours" }[name.trim().toLowerCase()];
      if (id) field(id).value = value.join(":").trim();
      if (id === "yours") field("compare").open = true;
    }
    field("encoding").value = "text";
    field("body-text").value = body ?? "";
    compute();
  }

  field("now").addEventListener("click", () => { field("timestamp").value = String(Math.floor(Date.now() / 1000)); compute(); });
  field("fresh").addEventListener("click", () => { field("nonce").value = hex(crypto.getRandomValues(new Uint8Array(16))); compute(); });
  field("take").addEventListener("click", takeOver);
  field("calculator-form").addEventListener("submit", (event) => event.preventDefault());
  field("calculator-form").addEventListener("input", (event) => { if (event.target.id !== "raw") compute(); });
  window.partnerSigning = { canonicalQuery };
  compute();
})();
