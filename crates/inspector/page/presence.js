// Detects whether somebody uses the page. Only input by a person keeps a session alive, background reads do not (INS-4).

/** The time without input after which the page is idle, in milliseconds. It equals the session's idle timeout. */
const IDLE_LIMIT = 30 * 60_000;
/** The shortest interval between two reports of input, in milliseconds. */
const REPORT_INTERVAL = 60_000;
/** The time of the last input in any tab. All tabs of a browser share one session. */
const STORAGE_KEY = "inspector.touched";

let touched = 0;
let reported = 0;

/** Restarts the idle time, after a sign-in. */
export function markPresent() {
  touched = Date.now();
  reported = 0;
}

/** Whether neither this tab nor another one of this browser has had input for the idle limit. */
export function isIdle() {
  let elsewhere = 0;
  try {
    elsewhere = Number(localStorage.getItem(STORAGE_KEY));
  } catch {
    /* The browser allows no storage. */
  }
  return Date.now() - Math.max(touched, elsewhere) >= IDLE_LIMIT;
}

/** Calls `listener` on input, at most once per report interval. */
export function onTouch(listener) {
  const touch = () => {
    touched = Date.now();
    if (touched - reported < REPORT_INTERVAL) return;
    reported = touched;
    try {
      localStorage.setItem(STORAGE_KEY, String(touched));
    } catch {
      /* Each tab then has its own idle time. */
    }
    listener();
  };
  for (const kind of ["pointerdown", "keydown", "wheel", "touchstart"]) window.addEventListener(kind, touch, { passive: true });
}
