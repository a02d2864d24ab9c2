// The calculator: computes the canonical string and the signature of a request, and names the mistake in a wrong one.
"use strict";

(() => {
  const { diagnose, diagnoseCanonical, parts, requestMistakes, sign, utf8 } = globalThis.partnerSigning;
  const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

  const field = (id) => document.getElementById(id);
  const NAMES = ["METHOD", "PATH", "CANONICAL_QUERY", "TIMESTAMP", "NONCE", "BODY_SHA256"];
  const INSECURE = "The browser's cryptography requires HTTPS; open this page over HTTPS, from localhost, or from a folder.";

  function bodyBytes() {
    const text = field("body-text").value;
    if (field("encoding").value === "text") return utf8(text);
    return Uint8Array.from(atob(text.replace(/\s/g, "")), (character) => character.charCodeAt(0));
  }

  const item = (text, note, differs) => {
    const line = document.createElement("li");
    const small = document.createElement("small");
    small.textContent = note;
    line.append(text === "" ? "(empty)" : text, small);
    line.classList.toggle("differs", differs);
    return line;
  };

  /** Compares with another canonical string. */
  async function differences(request, right, theirs) {
    if (theirs.trim() === "" || theirs === right.join("\n")) return [];
    const known = await diagnoseCanonical(request, theirs, hosts());
    // A string with missing or additional lines differs in every line after them.
    if (known !== null && theirs.split("\n").length !== 6) return known;
    const lines = theirs.replace(/\r/g, "").split("\n");
    const found = [];
    NAMES.forEach((name, at) => {
      if (right[at] !== (lines[at] ?? "")) found.push(`${name}: yours is ${JSON.stringify(lines[at] ?? "")}, expected ${JSON.stringify(right[at])}`);
    });
    if (lines.length !== 6) found.push(`yours has ${lines.length} lines, expected 6${lines.at(-1) === "" ? " (without a line feed at the end)" : ""}`);
    return [...found, ...(known ?? [])];
  }

  /** The host of the pasted request. */
  let pastedHost = "";
  /** Returns the hosts that may have been signed with the path. */
  const hosts = () => [...new Set([pastedHost, location.host, location.hostname])].filter(Boolean);

  let latest = 0;
  async function compute() {
    const run = ++latest;
    const problem = field("problem");
    try {
      if (!crypto.subtle) throw new Error(INSECURE);
      const request = { method: field("method").value.trim(), target: field("target").value, timestamp: field("timestamp").value.trim(), nonce: field("nonce").value, body: bodyBytes() };
      const secret = field("secret").value.trim();
      if (secret === "") throw new Error("The secret is missing.");
      const right = await parts(request);
      const signature = await sign(secret, right.join("\n"));
      const yours = field("yours").value.trim();
      const { isRight, mistakes } = yours === "" ? { mistakes: [] } : await diagnose(request, secret, yours, hosts());
      const notes = await differences(request, right, field("theirs").value);
      if (run !== latest) return; // the input has changed
      field("lines").replaceChildren(...right.map((part, at) => item(part, NAMES[at], notes.some((note) => note.startsWith(`${NAMES[at]}:`)))));
      field("headers").textContent = `X-Partner-Timestamp: ${request.timestamp}\nX-Partner-Nonce: ${request.nonce}\nX-Partner-Signature: ${signature}`;
      const verdict = field("verdict");
      verdict.hidden = yours === "";
      verdict.className = isRight ? "right" : "wrong";
      verdict.textContent = isRight ? "Your signature is correct." : mistakes.join(" ");
      field("differences").hidden = notes.length === 0;
      field("differences").replaceChildren(...notes.map((note) => { const line = document.createElement("li"); line.textContent = note; return line; }));
      const warnings = requestMistakes(request);
      if (!/^[A-Z2-7]{32}$/.test(secret)) warnings.unshift("A secret has 32 characters of A-Z and 2-7.");
      problem.textContent = warnings.join(" ");
      problem.hidden = warnings.length === 0;
      field("results").hidden = false;
    } catch (error) {
      if (run !== latest) return;
      problem.textContent = error.name === "InvalidCharacterError" ? "The body is not valid base64." : error.message;
      problem.hidden = false;
      field("results").hidden = true;
    }
  }

  /** Fills in the form from a pasted request: its line, headers, an empty line, the body. */
  function fillIn() {
    const [, head, body] = /^([^]*?)(?:\r?\n\r?\n([^]*))?$/.exec(field("raw").value.trimStart());
    const [line, ...headers] = head.split(/\r?\n/);
    const [method, target] = line.split(" ");
    field("method").value = method;
    pastedHost = /^https?:\/\/([^/]+)/.exec(target ?? "")?.[1] ?? "";
    field("target").value = (target ?? "").replace(/^https?:\/\/[^/]+/, "");
    for (const header of headers) {
      const [name, ...value] = header.split(":");
      if (name.trim().toLowerCase() === "host") pastedHost = value.join(":").trim();
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
  field("take").addEventListener("click", fillIn);
  field("calculator-form").addEventListener("submit", (event) => event.preventDefault());
  field("calculator-form").addEventListener("input", (event) => { if (event.target.id !== "raw") compute(); });
  compute();
})();
