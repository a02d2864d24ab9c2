// The event stream. It is read with `fetch`, because an EventSource hides the comments that arrive every fifteen seconds. Without
// them, a tablet out of radio range would show an outdated report for minutes without a warning.

import { api } from "./api.js";

/** A stream without data for this time counts as lost, in milliseconds. */
const SILENCE = 40_000;
const FIRST_BACKOFF = 1_000;
const MAX_BACKOFF = 30_000;

/**
 * Keeps a stream open until `stop` is called. Calls `on.open` whenever the stream is ready: the view has to be reloaded then;
 * `on.lost` when the stream is lost; `on.changed` with a report's ID; and `on.signedOut`, after which the stream is stopped.
 */
export function watch(on) {
  let stopped = false;
  let backoff = FIRST_BACKOFF;
  let wake = () => {};
  let stream = null;

  const cut = () => stream?.abort();
  const online = () => {
    backoff = FIRST_BACKOFF;
    wake();
  };
  window.addEventListener("offline", cut);
  window.addEventListener("online", online);

  async function run() {
    while (!stopped) {
      const ended = await readStream();
      if (stopped) return;
      if (ended === "signed_out") {
        stop();
        on.signedOut();
        return;
      }
      on.lost();
      // With jitter, so that the pages do not all reconnect at once after an outage.
      const pause = backoff * (0.75 + Math.random() / 2);
      backoff = Math.min(backoff * 2, MAX_BACKOFF);
      await new Promise((resolve) => {
        wake = resolve;
        setTimeout(resolve, pause);
      });
    }
  }

  async function readStream() {
    stream = new AbortController();
    let silence;
    const restartTimer = () => {
      clearTimeout(silence);
      silence = setTimeout(cut, SILENCE);
    };
    try {
      restartTimer();
      const response = await api.events(stream.signal);
      if (response.status === 401) return "signed_out";
      if (!response.ok) return "rejected";
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return "ended";
        restartTimer();
        const blocks = (text + value).replaceAll("\r\n", "\n").split("\n\n");
        text = blocks.pop();
        for (const block of blocks) {
          const { event, data } = parsed(block);
          if (event === "signed_out") return "signed_out";
          // From here on every change is reported; earlier changes are found by reloading.
          if (event === "ready") {
            backoff = FIRST_BACKOFF;
            on.open();
          }
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
  try {
    data = JSON.parse(fields.data);
  } catch {
    /* The page ignores events that it does not know. */
  }
  return { event: fields.event, data };
}
