// Compares a PDF with the digests of a report's PDFs. The file does not leave the browser.

const section = document.getElementById("compare");
const file = document.getElementById("file");
const result = document.getElementById("result");
const { current, earlier, same, outdated, other, unreadable } = section.dataset;

function show(text, kind) {
  result.textContent = text;
  result.className = kind;
}

async function sha256(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function compare() {
  const [chosen] = file.files;
  if (!chosen) return;
  try {
    const digest = await sha256(await chosen.arrayBuffer());
    if (digest === current) show(same, "good");
    else if (earlier.split(" ").includes(digest)) show(outdated, "fair");
    else show(other, "bad");
  } catch {
    show(unreadable, "bad");
  }
}

// Browsers offer SubtleCrypto only to pages with TLS.
if (window.crypto?.subtle) {
  section.hidden = false;
  file.addEventListener("change", compare);
}
