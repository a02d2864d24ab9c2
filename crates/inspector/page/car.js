// The car from above, with the panels that a form's points are about (`place`), in the colors and with the initials of their
// statuses. The list below it has the same points for the keyboard and for screen readers.

import { h } from "./dom.js";
import { tone } from "./rules.js";

/** The panels in a drawing of 200 by 360, front up: the outline, and the middle of the initial. Those of the right side mirror it. */
const PANELS = {
  BUMPER_FRONT: ["M50 16Q100-2 150 16L146 34Q100 20 54 34Z", 100, 20],
  HOOD: ["M56 39Q100 25 144 39L140 108Q100 98 60 108Z", 100, 70],
  ROOF: ["M68 146Q100 140 132 146V236Q100 242 68 236Z", 100, 191],
  TRUNK_LID: ["M60 272Q100 280 140 272L144 321Q100 332 56 321Z", 100, 302],
  BUMPER_REAR: ["M54 326Q100 338 146 326L150 344Q100 362 50 344Z", 100, 342],
  FENDER_FRONT_LEFT: ["M47 38L52 42 56 110 26 116V66Q28 46 47 38Z", 41, 82],
  DOOR_FRONT_LEFT: ["M26 121L57 115 63 146V188H26Z", 43, 155],
  DOOR_REAR_LEFT: ["M26 193H63V236L57 262 26 256Z", 43, 224],
  FENDER_REAR_LEFT: ["M26 261L56 267 52 319 47 324Q28 316 26 298Z", 41, 290],
};
const GLASS = ["M60 113Q100 103 140 113L132 141Q100 135 68 141Z", "M68 241Q100 247 132 241L140 267Q100 275 60 267Z"];
const WIDTH = 200;

/** The outline and the middle of a panel. */
function panelOf(place) {
  const right = place.endsWith("_RIGHT");
  const [outline, x, y] = PANELS[right ? place.replace(/_RIGHT$/, "_LEFT") : place];
  return { outline, x: right ? WIDTH - x : x, y, transform: right ? `matrix(-1 0 0 1 ${WIDTH} 0)` : null };
}

/**
 * Draws the panels: `{ place, name, status, label, isSelected }`, where `label` is that of the status. `choose` is called with the
 * place that was clicked; without it nothing can be chosen.
 */
export function car(panels, choose) {
  return h(
    "svg",
    { class: choose ? "panels chosen" : "panels", viewBox: "0 0 200 360", "aria-hidden": "true" },
    GLASS.map((d) => h("path", { class: "glass", d })),
    panels.map(({ place, name, status, label, isSelected }) => {
      const { outline, x, y, transform } = panelOf(place);
      return h(
        "g",
        {
          key: place,
          class: `panel ${tone(status)}${isSelected ? " selected" : ""}`,
          "data-place": place,
          onclick: choose && (() => choose(place)),
        },
        h("title", null, label ? `${name}: ${label}` : name),
        h("path", { d: outline, transform }),
        label && h("text", { x, y, "text-anchor": "middle", "dominant-baseline": "central" }, label[0]),
      );
    }),
  );
}
