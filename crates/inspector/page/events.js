// The stream of what changes. Read with `fetch` rather than by an EventSource, which does not tell of the comments that come
// every fifteen seconds: a tablet that left the radio's reach would show an old report for minutes and say nothing.

import { api } from "./api.js";

/** A stream that was silent for so long is dead, in milliseconds. */
const SILENCE = 40_000;
const FIRST_REST = 1_000;
const LONGEST_REST = 30_000;

/**
 * Keeps a stream open until it is told to stop. `on.open` is called whenever there is one: whoever shows something reads it
 * anew; `on.lost` when there is none any more; `on.changed` with a report's id; `on.signedOut`, after which it is stopped.
 */
export function watch(on) {
  let stopped = false;
  let rest = FIRST_REST;
  let wake = () => {};
  let stream = null;

  const cut = () => stream?.abort();
  const online = () => { rest = FIRST_REST; wake(); };
  window.addEventListener("offline", cut);
  window.addEventListener("online", online);

  async function run() {
    while (!stopped) {
      const ended = await once();
      if (stopped) return;
      if (ended === "signed_out") { stop(); on.signedOut(); return; }
      on.lost();
      // Apart from each other, so that a service that comes back is not asked by all at once.
      const pause = rest * (0.75 + Math.random() / 2);
      rest = Math.min(rest * 2, LONGEST_REST);
      await new Promise((resolve) => { wake = resolve; setTimeout(resolve, pause); });
    }
  }

  async function once() {
    stream = new AbortController();
    let silence;
    const heard = () => { clearTimeout(silence); silence = setTimeout(cut, SILENCE); };
    try {
      heard();
      const response = await api.events(stream.signal);
      if (response.status === 401) return "signed_out";
      if (!response.ok) return "refused";
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return "ended";
        heard();
        const blocks = (text + value).replaceAll("\r\n", "\n").split("\n\n");
        text = blocks.pop();
        for (const block of blocks) {
          const { event, data } = parsed(block);
          if (event === "signed_out") return "signed_out";
          // From here on every change is told; what was before is read.
          if (event === "ready") { rest = FIRST_REST; on.open(); }
          if (event === "changed") on.changed(data.report_id);
        }
      }
    } catch {
      return "lost";
    } finally {
      clearTimeout(silence);
      cut();
    }
  }

  function stop() {
    stopped = true;
    window.removeEventListener("offline", cut);
    window.removeEventListener("online", online);
    cut();
    wake();
  }

  run();
  return { stop, now: online };
}

/** An event's name and data; a comment has neither. */
function parsed(block) {
  const fields = { event: "message", data: "" };
  for (const line of block.split("\n")) {
    const [, name, value] = /^(event|data): ?(.*)$/.exec(line) ?? [];
    if (name) fields[name] = value;
  }
  let data = {};
  try { data = JSON.parse(fields.data); } catch { /* Nothing that this page knows. */ }
  return { event: fields.event, data };
}
