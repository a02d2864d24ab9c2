// Whether somebody is at this browser. What people do keeps a session alive, what the page reads by itself does not (INS-4).

/** How long nobody may touch the page, in milliseconds: the session's own time without what people do. */
const LEFT = 30 * 60_000;
/** How often it is told that somebody is there, in milliseconds. */
const TELL = 60_000;
/** Where the tabs of a browser, which have one session, find when one of them was touched. */
const PLACE = "inspector.touched";

let touched = 0;
let told = 0;

/** Somebody has come. */
export function arrived() {
  touched = Date.now();
  told = 0;
}

/** Whether nobody has touched this page, or another one of this browser, for long. */
export function isLeft() {
  let elsewhere = 0;
  try { elsewhere = Number(localStorage.getItem(PLACE)); } catch { /* A browser that keeps nothing. */ }
  return Date.now() - Math.max(touched, elsewhere) >= LEFT;
}

/** Calls `tell` when the page is touched, but not at every touch. */
export function onTouch(tell) {
  const touch = () => {
    touched = Date.now();
    if (touched - told < TELL) return;
    told = touched;
    try { localStorage.setItem(PLACE, String(touched)); } catch { /* Then each tab is left by itself. */ }
    tell();
  };
  for (const kind of ["pointerdown", "keydown", "wheel", "touchstart"]) window.addEventListener(kind, touch, { passive: true });
}
