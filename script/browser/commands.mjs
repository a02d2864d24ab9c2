// Runs each command that the sandbox's page and the documentation site show, as it is shown. SANDBOX names the sandbox.json, FOLDER the
// folder with the site. script/site runs this file after site.mjs.
//
// A test takes the commands that it runs from the pages. The last test fails if a command is left that no test took and NOT_RUN does not
// list. Before a command is run, `fill` replaces only what a reader has to replace: the base URL, the key, a branch, a plate, a
// report's ID, the time of a filter, and folders. The samples of Java, C# and Go on the pages of the reference are statements; `completed`
// adds the rest.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import { startBrowser } from "./browser.mjs";

const sandbox = JSON.parse(readFileSync(process.env.SANDBOX, "utf8"));
const { base_url: base, examples } = sandbox;
const [partner] = sandbox.partners;
const KEY = { PARTNER_BASE_URL: base, PARTNER_KEY_ID: partner.key_id, PARTNER_SECRET: partner.secret };
const { branch_code: branch, plate } = examples.open_report;

/** Commands that are not run here: a page, a part of the label, a part of the text, and the reason. */
const NOT_RUN = [
  ["", /PowerShell|powershell/, "", "PowerShell is no package of Debian; the workflow `windows` runs the kit"],
  ["start.html", /Windows cmd/, "", "cmd is a part of Windows"],
  ["kits.html", /^Run$/, "pwsh ", "PowerShell is no package of Debian"],
  ["tools.html", /bat code/, "schtasks", "a program of Windows"],
  ["tools.html", /^Code$/, "npm install ", "script/packages runs it"],
  ["tools.html", /^Code$/, "pip install ", "script/packages runs it"],
  ["tools.html", /(ts|python) code/, "import ", "script/packages runs the programs of the packages' READMEs"],
  ["tools.html", /rust code/, "use ", "a part of a program; the crate has whole ones in `examples`, which cargo compiles"],
  ["tools.html", /^code$/, "cargo doc --open", "opens a browser"],
];
/** Labels of what is not a command: responses, requests on the wire, configuration, and the kits' files. */
const DATA = /^(Example|Sent$|Message$|Kit, |Headers$|Request($| )|Response($| )|(json|text|toml|ini) code$)/;
/** The programs of commands in a sentence. */
const PROGRAM = /^(partner|partner-api|bash|python3|node|php|javac?|mcs|mono|go|cc|pwsh|curl|npm|pip|cargo|script\/\S+) /;

/** What the pages show: the page, the label, the text, the language of its tab, and the page's `href`s. */
const shown = [];
let browser;
const root = mkdtempSync(join(tmpdir(), "commands-"));
const programs = join(root, "bin");

before(async () => {
  const built = resolve(process.env.CARGO_TARGET_DIR ?? "target", "debug");
  mkdirSync(programs);
  for (const program of ["partner", "partner-api"]) symlinkSync(join(built, program), join(programs, program));
  // The keyrings of GNOME and macOS. They keep the secret that they read in a file.
  for (const [program, store] of [["secret-tool", "store"], ["security", "add-generic-password"]]) {
    writeFileSync(join(programs, program), `#!/bin/sh\nif [ "$1" = ${store} ]; then cat >"$HOME/secret"; else cat "$HOME/secret"; fi\n`);
    chmodSync(join(programs, program), 0o755);
  }
  browser = await startBrowser();
  const page = await browser.newPage({ javaScriptEnabled: false });
  for (const file of ["", ...readdirSync(join(process.env.FOLDER, "docs")).filter((name) => name.endsWith(".html"))]) {
    await page.goto(file === "" ? `${base}/` : `${base}/docs/${file}`);
    shown.push(...await page.evaluate((name) => {
      const columns = [...document.querySelectorAll("main table")].flatMap((table) => {
        const headings = [...table.querySelectorAll("thead th")].map((cell) => cell.textContent);
        return [...table.querySelectorAll("tbody tr")].flatMap((row) => [...row.children].map((cell, at) => [cell, headings[at]]));
      });
      const column = (element) => columns.find(([cell]) => cell.contains(element))?.[1];
      const kinds = [...document.querySelectorAll("main pre")].map((pre) => [pre, pre.getAttribute("aria-label")]);
      for (const code of document.querySelectorAll("main code")) {
        if (!code.closest("pre")) kinds.push([code, ["Build", "Run"].includes(column(code)) ? column(code) : "code"]);
      }
      return kinds.map(([element, label]) => ({
        page: name, label, text: element.textContent.trimEnd(), tab: element.closest("[data-tab]")?.dataset.tab,
        file: element.closest("section")?.querySelector("p code")?.textContent, href: element.closest("tr")?.querySelector("a")?.getAttribute("href"),
      }));
    }, file));
  }
});
after(async () => {
  await browser.close();
  rmSync(root, { recursive: true });
});

/** Returns the texts with this label on a page, and marks them as run. */
function take(page, label, words = "") {
  const found = shown.filter((part) => part.page === page && (label.test?.(part.label) ?? part.label === label) && part.text.includes(words));
  assert.notEqual(found.length, 0, `${page} shows nothing like ${label} ${words}`);
  for (const part of found) part.isTaken = true;
  return found;
}

function takeOne(page, label, words) {
  const [part, ...more] = take(page, label, words);
  assert.deepEqual(more, []);
  return part.text;
}

/** Replaces what a reader has to replace. Each text must occur. */
function fill(text, ...replacements) {
  for (const [before, value] of replacements) {
    assert.ok(text.search(before) >= 0, `${before} is not in ${text}`);
    text = text.replaceAll(before, () => value);
  }
  return text;
}

const folder = () => mkdtempSync(join(root, "reader-"));

function environment(more) {
  return {
    ...process.env, http_proxy: "", HTTP_PROXY: "", HOME: root, XDG_CONFIG_HOME: "", GOCACHE: process.env.GOCACHE ?? join(homedir(), ".cache/go-build"),
    GO111MODULE: "off", LC_ALL: "C.UTF-8", PATH: `${programs}${delimiter}${process.env.PATH}`, ...more,
  };
}

/** Runs a shell's lines and returns what they print. */
async function run(text, cwd, more = KEY) {
  try {
    const { stdout, stderr } = await promisify(execFile)("bash", ["-euc", text], { cwd, env: environment(more), maxBuffer: 1 << 26 });
    return stdout + stderr;
  } catch (error) {
    throw new Error(`${text}\n${error.stdout}${error.stderr}`, { cause: error });
  }
}

/** The kits on the site, by name: the file's name. Downloads one into a folder. */
async function download(kit, cwd) {
  const { href } = shown.find((part) => part.page === "kits.html" && part.label === "Run" && part.href.endsWith(`/${kit}`));
  await run(`curl --silent --fail --remote-name ${base}/docs/${href}`, cwd);
}

const KITS = {
  curl: "partner.sh", Python: "partner.py", "Node.js": "partner.mjs", PHP: "partner.php", Java: "Partner.java", "C#": "Partner.cs", Go: "partner.go", C: "partner.c",
};

test("the commands of the sandbox's page", async () => {
  for (const { text } of take("", /^A request, /)) assert.equal(JSON.parse((await run(text, folder(), {})).match(/\{.*\}/)[0]).status, "ok");
  assert.match(await run(takeOne("", "A pending measurement"), folder(), {}), /"status": ?"pending"/);
});

/** The programs of the page "Getting started", by language. */
const programsOfStart = new Map();

test("the programs of the page Getting started, in each language", async () => {
  const lines = takeOne("start.html", /^Key, Linux/);
  const values = Object.values(KEY);
  const key = lines.split("\n").map((line, at) => fill(line, ["…", values[at]])).join("\n");
  for (const [language, file] of Object.entries(KITS)) {
    const cwd = folder();
    await download(file, cwd);
    for (const [what, words] of [["First request", /["']?status["']?: ?["']ok["']/], ["First measurement", /measurement_id/]]) {
      const [sample] = take("start.html", `${what}, ${language}`);
      const isCommand = language === "curl";
      const commands = isCommand ? [sample] : take("start.html", `Commands: ${what}, ${language}`);
      let { text } = sample;
      programsOfStart.set(`${what}, ${language}`, text);
      if (what === "First measurement") {
        // C# doubles quotes, and C escapes them.
        text = fill(text, [/(branch_code[\\"]*: ?[\\"]*)ANK-01/g, `${text.match(/branch_code[\\"]*: ?[\\"]*/)[0]}${branch}`], [/(external_id[\\"]*: ?[\\"]*)/g, `${text.match(/external_id[\\"]*: ?[\\"]*/)[0]}${language}-`]);
      }
      if (!isCommand) writeFileSync(join(cwd, commands[0].file), `${text}\n`);
      assert.match(await run(`${key}\n${isCommand ? text : commands[0].text}`, cwd, {}), words, `${language}: ${what}`);
    }
  }
});

test("the kits are built, run and checked with the commands of their page", async () => {
  const check = takeOne("kits.html", "sh code", "--check");
  for (const [language, file] of Object.entries(KITS)) {
    const cwd = folder();
    await download(file, cwd);
    const commands = shown.filter((part) => part.page === "kits.html" && ["Build", "Run"].includes(part.label) && part.href.endsWith(`/${file}`));
    for (const part of commands) part.isTaken = true;
    assert.match(await run(`${commands.map((part) => part.text).join("\n")} GET /api/v1/partner/health`, cwd), /"status":"ok"/, language);
    if (language === "Python") {
      await run(`curl --silent --fail --remote-name ${base}/docs/signing-vectors.json`, cwd);
      assert.match(await run(check, cwd, {}), /request_vectors: \d+ checked/);
    }
  }
});

/** Adds to a sample what the reader's program has around it. */
function completed(language, text) {
  const uses = { "encoding/json": "json.", fmt: "fmt.", io: "io.", log: "log.", "net/http": "http.", os: "os." };
  const imports = Object.keys(uses).filter((name) => text.includes(uses[name])).map((name) => `import "${name}"\n`).join("");
  return {
    Java: `import java.nio.charset.StandardCharsets;\nimport java.nio.file.*;\nclass Request { public static void main(String[] arguments) throws Exception {\n${text}\n} }`,
    "C#": `using System;\nusing System.IO;\nusing System.Text;\nclass Request { static void Main() {\n${text}\n} }`,
    Go: `package main\n${imports}func main() {\n${text}\n}`,
  }[language] ?? text;
}

test("the samples of the reference are those of the page Getting started with another target, or run", async () => {
  const flat = (text) => text.replace(/^[ \t]+/gm, "");
  const target = /\/api\/v1\/partner\/[^"' ]*/;
  const { published } = examples.inspections;
  const expected = new Map();
  for (const language of Object.keys(KITS)) {
    const cwd = folder();
    await download(KITS[language], cwd);
    for (const part of shown.filter(({ label }) => /^(Code|All pages|All photos), /.test(label) && label.endsWith(`, ${language}`))) {
      part.isTaken = true;
      const [start] = ["First request", "First measurement"].map((what) => programsOfStart.get(`${what}, ${language}`))
        .filter((program) => flat(program).includes(flat(part.text).replace(target, program.match(target)[0])));
      if (start) continue;
      const text = part.text.replace(/(inspections\/)[0-9a-f-]{36}/, `$1${published}`).replace(/(published_from=)[0-9-]+/, (_, name) => `${name}2020-01-01`);
      const commands = language === "curl" ? { text } : shown.find(({ label }) => label === `Commands: First request, ${language}`);
      if (language !== "curl") writeFileSync(join(cwd, commands.file), `${completed(language, text)}\n`);
      const before = readdirSync(cwd);
      const printed = await run(commands.text, cwd);
      // What a sample has read: a PDF, the reports of all pages, or photos.
      const made = readdirSync(cwd).filter((name) => !before.includes(name));
      const read = part.page === "get_inspection_pdf.html" ? [readFileSync(join(cwd, "report.pdf")).subarray(0, 5).toString()]
        : part.page === "list_inspections.html" ? [...printed.matchAll(/\b[A-Z]+-[0-9]{4}-[0-9]{6}\b/g)].map(([number]) => number).sort()
          : made.filter((name) => name.endsWith(".jpg")).sort();
      const unique = [...new Set(read)];
      assert.notEqual(unique.length, 0, `${part.page}, ${part.label}: ${printed}`);
      if (!expected.has(part.page)) expected.set(part.page, unique);
      assert.deepEqual(unique, expected.get(part.page), `${part.page}, ${part.label}: ${printed}`);
    }
  }
  assert.deepEqual([...expected.keys()].sort(), ["get_inspection_pdf.html", "get_inspection_photos.html", "list_inspections.html"]);
  assert.ok(expected.get("list_inspections.html").length > 100);
});

test("the commands of the page Acceptance scenarios", async () => {
  const cwd = folder();
  await download("partner.sh", cwd);
  await download("partner.py", cwd);
  copyFileSync(process.env.SANDBOX, join(cwd, "sandbox.json"));
  const key = Object.values(KEY).reduce((text, value) => text.replace("…", value), takeOne("scenarios.html", "Key"));
  const report = [[/'?ANK-01'?/g, `'${branch}'`], [/'34 ABC 123'/g, `'${plate}'`]];
  const requests = fill(takeOne("scenarios.html", "The six requests"), ...report);
  // Four of the requests are to be rejected, so the kit's exit code is not 0.
  const printed = await run(`set +e\n${key}\n${requests}\ntrue`, cwd, {});
  const statuses = [...printed.matchAll(/^HTTP\/\S+ (\d{3})/gm)].map(([, status]) => Number(status));
  const wanted = [...requests.matchAll(/send # (\d{3})/g)].map(([, status]) => Number(status));
  assert.deepEqual([wanted.length, statuses], [6, wanted], printed);
  await run(`${key}\n${fill(takeOne("scenarios.html", "The report"), ...report)}`, cwd, {});
  for (const file of ["acceptance.html", "acceptance.xml"]) assert.ok(existsSync(join(cwd, file)), file);
  await run(takeOne("scenarios.html", "The certificate"), cwd, {});
  assert.match(readFileSync(join(cwd, "certificate.html"), "utf8"), /<html/);
});

test("the commands of the page Keeping in sync, and those of the program's chapter on it", async () => {
  // A partner with few reports.
  const { key_id: PARTNER_KEY_ID, secret: PARTNER_SECRET } = sandbox.partners.find(({ name }) => name === "beta");
  const key = { ...KEY, PARTNER_KEY_ID, PARTNER_SECRET };
  const cwd = folder();
  for (const commands of [takeOne("sync.html", "Keeping in sync"), takeOne("tools.html", "Code", "partner sync")]) {
    // The sandbox renders PDFs in the background. Until it has rendered all, the command names those that are missing, and may fail.
    const printed = await run(`{ ${commands}\n} || true`, cwd, key);
    const missing = printed.match(/^(pdf of|error:).*/gm) ?? [];
    assert.deepEqual(missing.filter((line) => !line.includes("PDF is being rendered")), []);
    assert.match(printed, /^reports\.sqlite: [1-9][0-9]* reports/m);
    assert.notEqual(readdirSync(join(cwd, "reports.files")).length, 0);
  }
});

test("the commands that select a service and a key", async () => {
  const [gnome, macos] = takeOne("tools.html", "Code", "secret-tool store").split(/^(?=security )/m);
  const values = `--base-url ${base} --key-id ${partner.key_id}`;
  for (const lines of [fill(gnome, ["https://api.example.org", base], ["vip_live_...", partner.key_id]), fill(macos, ["profile add live ...", `profile add live ${values}`])]) {
    const home = folder();
    assert.match(await run(`${lines}\npartner health --profile live <&-`.replace(/^(secret-tool store|security add)/m, `echo '${partner.secret}' | $1`), home, { HOME: home }), /status +ok/);
  }
});

test("an export is submitted with the mappings and commands that are shown", async () => {
  const [ofCsv, ofXml] = take("tools.html", "toml code", "plate = ").map(({ text }) => text);
  const commands = takeOne("tools.html", "Code", "partner measure --map");
  const cwd = folder();
  const [year, month, day] = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10).split("-");
  const csv = `Plaka;Cihaz;Tarih;Ön sol;Kayma\r\n34 CSV 101;BT-1;${day}.${month}.${year} 10:00;285,0;-1,4\r\n34 CSV 102;BT-1;${day}.${month}.${year} 10:05;290,5;\r\n`;
  // Latin-1 has the same byte for Ö as windows-1254.
  writeFileSync(join(cwd, "export.csv"), Buffer.from(csv, "latin1"));
  writeFileSync(join(cwd, "mapping.toml"), fill(ofCsv, [/ANK-01/g, branch]));
  assert.match(await run(commands, cwd), /2\.85/);
  writeFileSync(join(cwd, "export.xml"), '<Tests><Test><Vehicle plate="34 XML 101"/><Brake><FrontLeft>2850</FrontLeft></Brake></Test></Tests>');
  writeFileSync(join(cwd, "mapping.toml"), `branch_code = { value = "${branch}" }\n${ofXml}`);
  assert.match(await run(commands.replaceAll("export.csv", "export.xml"), cwd), /2\.85/);
});

test("a program is certified with the command and the script that are shown", async () => {
  const command = takeOne("tools.html", "Code", "--listen");
  const cwd = folder();
  await download("partner.py", cwd);
  mkdirSync(join(cwd, ".sandbox"));
  copyFileSync(process.env.SANDBOX, join(cwd, ".sandbox/sandbox.json"));
  await run(command, cwd, {});
  assert.ok(JSON.parse(readFileSync(join(cwd, "certificate.json"), "utf8")));
  for (const file of ["certificate.html", "certificate.json"]) rmSync(join(cwd, file));
  writeFileSync(join(cwd, "steps.toml"), takeOne("tools.html", "toml code", "[[step]]"));
  const [option] = take("tools.html", "code", "--script ");
  await run(command.replace("--listen", `--listen ${option.text.replace("FILE", "steps.toml")}`), cwd, {});
});

test("a folder is watched with the commands that are shown", async () => {
  const [mapping] = take("tools.html", "toml code", "plate = ").map(({ text }) => text);
  for (const words of ["--watch /var/spool/test-line", "--watch exports"]) {
    const cwd = folder();
    const spool = join(cwd, "exports");
    mkdirSync(spool);
    writeFileSync(join(cwd, "mapping.toml"), fill(mapping, [/ANK-01/g, branch]));
    const command = takeOne("tools.html", "Code", words).replace("/var/spool/test-line", spool);
    const watcher = spawn("bash", ["-c", `exec ${command}`], { cwd, env: environment(KEY), stdio: "ignore" });
    const ended = new Promise((done) => { watcher.on("exit", done); });
    try {
      writeFileSync(join(spool, "package.json"), JSON.stringify({ branch_code: branch, plate: "34 WCH 101", measurements: { BRAKE_FRONT_LEFT: 2.85 } }));
      writeFileSync(join(spool, "export.csv"), Buffer.from("Plaka;Cihaz;Tarih;Ön sol;Kayma\r\n34 WCH 102;BT-1;;285,0;-1,4\r\n", "latin1"));
      const expected = words === "--watch exports" ? 2 : 1;
      const sent = () => (existsSync(join(spool, "sent")) ? readdirSync(join(spool, "sent")).filter((name) => name.endsWith(".answer.json")) : []);
      const began = Date.now();
      while (sent().length < expected) {
        assert.ok(Date.now() - began < 120_000 && watcher.exitCode === null, `not sent: ${readdirSync(spool)}`);
        await new Promise((done) => { setTimeout(done, 100); });
      }
    } finally {
      watcher.kill("SIGTERM");
      await ended;
    }
  }
});

test("every command in a sentence or a table exists with its options", async () => {
  for (const part of shown.filter(({ label, text }) => label === "code" && /^partner(-api)? /.test(text))) {
    part.isTaken = true;
    const [, start, choices] = part.text.match(/^(.*? )((?:\w+\|)+\w+)$/) ?? [];
    const commands = choices ? choices.split("|").map((choice) => start + choice) : [part.text];
    for (const command of commands) assert.match(await run(`${command} --help`, root, {}), /Usage: partner/, command);
  }
});

test("no page shows a command that is neither run nor listed with a reason", () => {
  const isListed = ({ page, label, text }, [ofPage, labels, words]) => (ofPage === "" || ofPage === page) && labels.test(label) && text.includes(words);
  const isCommand = ({ label, text }) => label !== "code" || PROGRAM.test(text);
  const left = shown.filter((part) => isCommand(part) && !part.isTaken && !DATA.test(part.label) && !NOT_RUN.some((entry) => isListed(part, entry)));
  assert.deepEqual(left.map(({ page, label, text }) => `${page}: ${label}: ${text.split("\n")[0]}`), []);
  for (const entry of NOT_RUN) assert.ok(shown.some((part) => isListed(part, entry) && !part.isTaken), `NOT_RUN has an entry that nothing needs: ${entry}`);
});
