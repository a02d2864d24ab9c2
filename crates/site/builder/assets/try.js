// Sends signed requests to this service with a visitor's test key. The secret is used only to compute the signature.
"use strict";

(() => {
  const { parts, requestMistakes, sign, utf8 } = globalThis.partnerSigning;
  const field = (id) => document.getElementById(`try-${id}`);
  const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

  /** Returns what is wrong with the input, or an empty text. */
  function mistakeIn(keyId, secret, request) {
    if (location.protocol === "file:") return "Open this page from the service: it sends requests to the server it comes from.";
    if (!crypto.subtle) return "The browser's cryptography requires HTTPS; open this page over HTTPS or from localhost.";
    if (keyId.includes("_live_")) return "This is the ID of a live key. Use a test key: a live secret does not belong in a browser.";
    if (!keyId.includes("_test_")) return "The key ID must contain _test_.";
    if (!/^[A-Z2-7]{32}$/.test(secret)) return "A secret has 32 characters of A-Z and 2-7.";
    if (!request.target.startsWith("/api/v1/partner/")) return "The path must begin with /api/v1/partner/.";
    return requestMistakes(request).join(" ");
  }

  /** Returns the body for display. A file is offered as a link instead. */
  async function shown(response) {
    const type = response.headers.get("content-type") ?? "";
    const link = field("link");
    URL.revokeObjectURL(link.href);
    field("file").hidden = type.startsWith("application/json");
    if (type.startsWith("application/json")) {
      const text = await response.text();
      try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
    }
    const file = await response.blob();
    link.href = URL.createObjectURL(file);
    link.download = type.startsWith("application/pdf") ? "report.pdf" : "response";
    return `${file.size} bytes of ${type || "no content type"}`;
  }

  async function send() {
    const body = field("body").value;
    // A request to this URL sends exactly this target.
    const address = new URL(field("target").value.trim(), location.href);
    const request = {
      method: field("method").value.trim().toUpperCase(),
      target: address.pathname + address.search,
      timestamp: String(Math.floor(Date.now() / 1000)),
      nonce: hex(crypto.getRandomValues(new Uint8Array(16))),
      body: utf8(body),
    };
    const [keyId, secret] = [field("key").value.trim(), field("secret").value.trim()];
    const mistake = address.origin === location.origin ? mistakeIn(keyId, secret, request) : "Give the path without a host.";
    field("problem").textContent = mistake;
    field("problem").hidden = mistake === "";
    field("results").hidden = true;
    if (mistake !== "") return;
    const headers = {
      "X-Partner-Key-Id": keyId,
      "X-Partner-Timestamp": request.timestamp,
      "X-Partner-Nonce": request.nonce,
      "X-Partner-Signature": await sign(secret, (await parts(request)).join("\n")),
    };
    if (body !== "") headers["Content-Type"] = "application/json";
    const began = performance.now();
    const content = body === "" ? undefined : body;
    const response = await fetch(request.target, { method: request.method, headers, body: content, cache: "no-store", credentials: "omit" });
    const text = await shown(response);
    const lines = (pairs) => pairs.map(([name, value]) => `${name}: ${value}`).join("\n");
    field("status").textContent = String(response.status);
    field("status").dataset.class = String(response.status)[0];
    field("time").textContent = `${Math.round(performance.now() - began)} ms`;
    field("headers").textContent = lines([...response.headers]);
    field("text").textContent = text;
    field("sent").textContent = `${request.method} ${request.target}\n${lines(Object.entries(headers))}${body === "" ? "" : `\n\n${body}`}`;
    field("results").hidden = false;
  }

  function choose() {
    const [chosen] = field("operation").selectedOptions;
    field("method").value = chosen.dataset.method;
    field("target").value = chosen.value;
    field("body").value = chosen.dataset.body;
  }

  field("operation").addEventListener("change", choose);
  document.getElementById("try-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    field("send").disabled = true;
    try {
      await send();
    } catch (error) {
      field("problem").textContent = `The request failed: ${error.message}`;
      field("problem").hidden = false;
    }
    field("send").disabled = false;
  });
  choose();
})();
